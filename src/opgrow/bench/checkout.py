"""Another commit of this repository, with an environment that can run it beside this one.

Packages of the present environment are used where the other commit needs them, too; what is missing is
installed with that commit's own constraints.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Side", "checked_out", "here"]


@dataclass(frozen=True)
class Side:
    """A commit that can be run: its interpreter, and the variables that make it import that commit."""

    name: str
    python: Path
    variables: dict[str, str]


def here(isa: str | None = None) -> Side:
    """The commit that runs this, with an instruction set other than the best if one is named."""
    variables = {"PYTHONPATH": str(Path(__file__).parents[2])}
    return Side("this", Path(sys.executable), variables | ({"OPGROW_ISA": isa} if isa else {}))


def _run(*command: str | Path) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        problem = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no message"]
        raise RuntimeError(f"{' '.join(map(str, command[:4]))} ... failed: {problem[0]}")
    return done.stdout.strip()


@contextmanager
def checked_out(commit: str, folder: Path | None = None) -> Iterator[Side]:
    """A worktree of a commit and its environment, in a folder that is reused, or else in a temporary one.

    Parameters
    ----------
    commit : what git calls it: a hash, a branch or a tag
    folder : where both are kept; by default they are removed again
    """
    try:
        repository = _run("git", "-C", Path(__file__).parent, "rev-parse", "--show-toplevel")
        full = _run("git", "-C", repository, "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}")
    except (RuntimeError, OSError):
        raise ValueError(
            f"--against must be a commit of the repository that opgrow runs from, got {commit!r}"
        ) from None
    if folder is not None:
        yield _side(repository, full, folder.resolve() / full[:12])
        return
    with tempfile.TemporaryDirectory(prefix="opgrow-") as temporary:
        place = Path(temporary) / full[:12]
        try:
            yield _side(repository, full, place)
        finally:
            _run("git", "-C", repository, "worktree", "remove", "--force", place / "source")


def _side(repository: str, commit: str, place: Path) -> Side:
    source, environment = place / "source", place / "environment"
    if not source.exists():
        _run("git", "-C", repository, "worktree", "add", "--detach", source, commit)
    python = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    ready = place / "ready"
    if not ready.exists():
        _run(sys.executable, "-m", "venv", "--without-pip", environment)
        _reuse_packages(python)
        _install_missing(python, source)
        ready.touch()
    variables = {"PYTHONPATH": str(source / "src"), "OPGROW_ISA": ""}
    engine = source / "src" / "opgrow" / "engine" / "c"
    if engine.exists():
        _run("cmake", "-S", engine, "-B", place / "engine")
        _run("cmake", "--build", place / "engine", "--parallel")
        suffix = "dll" if os.name == "nt" else "so"
        variables["OPGROW_ENGINE"] = str(place / "engine" / f"libopgrow_engine.{suffix}")
    return Side(commit[:7], python, variables)


def _reuse_packages(python: Path) -> None:
    """Let the packages of this environment be found after those of the new one, without its .pth files."""
    own = _run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    present = dict.fromkeys(sysconfig.get_path(kind) for kind in ("purelib", "platlib"))
    (Path(own) / "reused.pth").write_text("".join(f"{path}\n" for path in present))


def _install_missing(python: Path, source: Path) -> None:
    requirements = tomllib.loads((source / "pyproject.toml").read_text())["project"]["dependencies"]
    names = [re.split(r"[^\w.-]", text, maxsplit=1)[0] for text in requirements]
    present = {distribution.name.lower() for distribution in importlib.metadata.distributions()}
    missing = [name for name in names if name.lower() not in present]
    if missing:
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
        _run(*pip, "install", "--constraint", source / "constraints.txt", *missing)
