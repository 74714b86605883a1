"""Windows of rows that pass through in chunks, for training.

An epoch takes the chunks in a random order and shuffles the rows of several of them together, a window. While
one window is trained on, the chunks of the next are read. The state of the optimiser goes on from window to
window; if one window holds all rows, an epoch is the same as in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from ...common.team import Alone
from ...engine.training import Rows
from ..memory import MemoryRows
from ..problem import Place
from ..window import Window

__all__ = ["Windows", "shared_windows"]

#: From an order of chunks, and how many to read in advance, to their rows.
Chunks = Callable[[np.ndarray, int], Iterator[MemoryRows]]


class Windows:
    """Windows of rows that tuning goes through; their memory is taken once, when the first one is read.

    Parameters
    ----------
    chunks : reads the chunks, of which there are ``n_chunks`` with ``n_rows`` in all
    size : rows of a window, about
    """

    def __init__(self, chunks: Chunks, n_chunks: int, n_rows: int, size: int) -> None:
        self.chunks, self.n_chunks, self.n_rows, self.size = chunks, n_chunks, n_rows, size
        self.single = n_rows <= size
        self.data: Rows | None = None

    def epoch(self, rng: np.random.Generator) -> Iterator[Window]:
        """All rows once, window by window."""
        return (Window(rows) for rows in self._rows(rng))

    def _rows(self, rng: np.random.Generator) -> Iterator[Rows]:
        if self.single:
            if self.data is None:
                self.data = self._window(self.chunks(np.arange(self.n_chunks), 2), self.n_chunks)
            yield self.data
            return
        order = rng.permutation(self.n_chunks)
        each = max(1, round(self.size * self.n_chunks / self.n_rows))
        # Windows of nearly equal numbers of chunks, so that no last one is tiny.
        bounds = np.linspace(0, self.n_chunks, -(-self.n_chunks // each) + 1).round().astype(int)
        chunks = self.chunks(order, each)
        for start, stop in pairwise(bounds.tolist()):
            window = self._window(chunks, stop - start)
            if len(window.x):
                yield window

    def _window(self, chunks: Iterator[MemoryRows], count: int) -> Rows:
        """The next chunks, copied into the memory of the window as they come."""
        filled = 0
        for _ in range(count):
            chunk = next(chunks).training_rows()
            needed = filled + len(chunk.x)
            if self.data is None or needed > len(self.data.x):
                self.data = self._room(needed, chunk, filled)
            for name in ("x", "frozen", "target", "weight"):
                getattr(self.data, name)[filled:needed] = getattr(chunk, name)
            filled = needed
        data = self.data
        assert data is not None
        return Rows(data.x[:filled], data.frozen[:filled], data.target[:filled], data.weight[:filled])

    def _room(self, needed: int, chunk: Rows, filled: int) -> Rows:
        """Arrays for at least so many rows, with the first ones of those that there were."""
        size = self.n_rows if self.single else max(needed, min(self.size, self.n_rows))
        old = self.data
        arrays = []
        for name in ("x", "frozen", "target", "weight"):
            like = getattr(chunk, name)
            array = np.empty((size, *like.shape[1:]), np.float32)
            if old is not None:
                array[:filled] = getattr(old, name)[:filled]
            arrays.append(array)
        return Rows(*arrays)


def shared_windows(own: Windows, nothing: Rows, team: Alone, rng: np.random.Generator) -> Iterator[Window]:
    """Windows of all ranks, one after the other: each rank has its own rows in them, which may be none."""
    mine = own.epoch(np.random.default_rng([int(rng.integers(1, 2**63)), team.rank]))
    while True:
        rows = next(mine, Window(nothing)).rows
        sizes = team.numbers(rows.n_rows, "sizes of windows")
        if not any(sizes):
            return
        first = sum(sizes[: team.rank])
        yield Window(rows, Place(first + np.arange(rows.n_rows), first, sum(sizes)))
