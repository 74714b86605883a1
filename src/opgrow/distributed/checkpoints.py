"""Checkpoints of several ranks: rank 0 reads and writes, and all of them go on from what it has read.

The pieces of work are the same on all ranks, and however many there are. So what some ranks have left, any
number of others can go on with.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.interruption import Interruption
from ..growth.checkpoints.folder import Folder, claimed, working
from ..growth.checkpoints.identity import Identity
from ..growth.checkpoints.records import Record, parse_record, read_content
from .hashing import checksum

if TYPE_CHECKING:
    from .ranks import SharedRanks

__all__ = ["SharedFolder", "digest", "opened_together"]

_PURPOSE = "checkpoints"
_ROWS = 1 << 13


class SharedFolder(Folder):
    """A folder that rank 0 alone has to reach."""

    def __init__(self, path: Path, seconds: float, interruption: Interruption, ranks: SharedRanks) -> None:
        super().__init__(path, seconds, interruption)
        self.ranks, self.group, self.writes = ranks, ranks.group, ranks.rank == 0

    def read(self, path: Path, kind: Any) -> tuple[Record, Any] | None:
        there = self.writes and path.exists()
        content = self.ranks.together(lambda: read_content(path, self.run) if there else None)
        content = self.group.content(content, _PURPOSE)
        return None if content is None else parse_record(path, content, kind)

    def write(self, path: Path, record: Record, value: Any) -> None:
        write = super().write
        self.ranks.together(lambda: write(path, record, value) if self.writes else None)

    def delete(self, prefix: str, since: str = "") -> None:
        if self.writes:
            super().delete(prefix, since)

    def asked(self) -> bool:
        """A signal to one rank is one to all of them; one that comes meanwhile counts the next time."""
        signal = max(self.group.numbers(self.interruption.signal or 0, _PURPOSE))
        if signal:
            self.interruption.signal = signal
        return bool(signal)

    def due(self, saved: float) -> bool:
        return bool(self.group.numbers(super().due(saved), _PURPOSE)[0])


@contextmanager
def opened_together(
    ranks: SharedRanks, path: str | os.PathLike[str], seconds: float, identity: Identity
) -> Iterator[SharedFolder]:
    """As `opgrow.growth.checkpoints.opened`, for all ranks; an error of the folder is one on all of them."""
    folder = SharedFolder(Path(path).expanduser(), seconds, Interruption(), ranks)
    with ExitStack() as stack:
        ranks.together(lambda: stack.enter_context(claimed(folder, identity)) if folder.writes else None)
        folder.seed = ranks.same_number(folder.seed)
        folder.elapsed_before = ranks.largest(folder.elapsed_before)  # the others know of none
        stack.enter_context(working(folder))
        yield folder


def digest(array: np.ndarray, first: int) -> np.ndarray:
    """One number (1,) for rows whose numbers begin with ``first``; that of all rows is the wrapping sum."""
    total = np.zeros(1, np.int64)
    matrix = array.reshape(len(array), -1)
    for start in range(0, len(matrix), _ROWS):
        words = np.ascontiguousarray(matrix[start : start + _ROWS], np.float64).view(np.uint64)
        total += checksum(words, first + start)
    return total
