"""Where numba keeps compiled kernels when neither this package's folder nor the user's home can be written.

That is so in containers that run as a user without a home: numba then refuses to compile anything. A folder
for temporary files serves instead, which lasts as long as the container.
"""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path

__all__ = ["choose_cache_folder"]

_VARIABLE = "NUMBA_CACHE_DIR"


def choose_cache_folder() -> None:
    """Name a folder to numba, in this process and in those that it starts, if numba would find none."""
    if os.environ.get(_VARIABLE) or os.name == "nt":
        return
    if any(_is_writable(folder) for folder in _folders_of_numba()):
        return
    os.environ[_VARIABLE] = str(_temporary())
    if "numba" in sys.modules:  # it has looked already
        sys.modules["numba"].config.CACHE_DIR = os.environ[_VARIABLE]


def _folders_of_numba() -> list[Path]:
    caches = (
        "~/Library/Caches" if sys.platform == "darwin" else os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    )
    return [Path(__file__).parent / "__pycache__", Path(os.path.expanduser(caches)) / "numba"]


def _is_writable(folder: Path) -> bool:
    """Whether a folder, or the one in which it would be made, can be written; a user without home has "~"."""
    if not folder.is_absolute():
        return False
    while not folder.exists():
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def _temporary() -> Path:
    """A folder that the processes of this user share; one that ends with this process if that is not ours.

    What is in it is executed, so nobody else may have made it or be able to write to it.
    """
    shared = Path(tempfile.gettempdir()) / f"opgrow-kernels-{os.getuid()}"
    try:
        shared.mkdir(mode=0o700, exist_ok=True)
        about = shared.lstat()
        if stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid() and not about.st_mode & 0o077:
            return shared
    except OSError:
        pass
    own = tempfile.mkdtemp(prefix="opgrow-kernels-")
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    return Path(own)
