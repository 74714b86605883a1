"""A folder to which files are added: which of them are new, and which are complete."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path

__all__ = ["appearing", "new_files"]

#: Ends of the names of tables that may have a target.
_ENDINGS = (".csv", ".csv.gz", ".parquet", ".npz")


def new_files(folder: Path, known: Collection[str]) -> list[Path]:
    """Tables in a folder whose names are not known, by name; hidden files are left out."""
    if not folder.is_dir():
        raise ValueError(f"{str(folder)!r} is no folder: --follow and --once are for folders of tables.")
    there = (path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    tables = (path for path in there if path.name.lower().endswith(_ENDINGS))
    return sorted(path for path in tables if path.name not in known)


def appearing(folder: Path, known: Callable[[], Collection[str]], wait: Callable[[], None]) -> Iterator[Path]:
    """New tables of a folder as they appear, endlessly; ``wait`` is called between two looks.

    A table is complete when its size and time are those of the look before. One that is still not known when
    the next is asked for is offered again when it has changed.
    """
    before: dict[Path, tuple[int, int]] = {}
    offered: dict[Path, tuple[int, int]] = {}
    while True:
        now = {}
        for path in new_files(folder, known()):
            try:
                facts = path.stat()
            except FileNotFoundError:  # it went meanwhile
                continue
            now[path] = facts.st_size, facts.st_mtime_ns
        for path, state in now.items():
            if before.get(path) == state and offered.get(path) != state:
                offered[path] = state
                yield path
        before = now
        wait()
