"""Where a figure is from: the commit of the package, and the machine."""

from __future__ import annotations

import platform
import subprocess
from functools import lru_cache
from pathlib import Path

from ..common.version import __version__

__all__ = ["commit", "machine"]


@lru_cache(maxsize=1)
def commit() -> str:
    """The commit that the package runs from, or its version where git does not know the package."""
    git = ["git", "-C", str(Path(__file__).parent)]
    try:
        subprocess.run([*git, "ls-files", "--error-unmatch", __file__], capture_output=True, check=True)
        head = subprocess.run(
            [*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, check=True, text=True
        )
    except (OSError, subprocess.CalledProcessError):
        return f"version {__version__}"
    return head.stdout.strip()


@lru_cache(maxsize=1)
def machine() -> str:
    """The processor, as far as the system says."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
