"""Windows of rows that pass through in chunks, for training.

An epoch takes the chunks in a random order and shuffles the rows of several of them together, a window. While
one window is trained on, the chunks of the next are read. The state of the optimiser goes on from window to
window; if one window holds all rows, an epoch is the same as in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from ...engine.training import Rows
from ..memory import HostPart
from .part import StreamPart

__all__ = ["Windows"]


class Windows:
    """Windows of rows that tuning goes through; their memory is taken once, when the first one is read."""

    def __init__(self, part: StreamPart, rows: int) -> None:
        self.part, self.rows = part, rows
        self.single = part.n_rows <= rows
        self.data: Rows | None = None
        self.n_chunks = part.training.n_chunks

    def windows(self, rng: np.random.Generator) -> Iterator[Rows]:
        """All rows once, window by window."""
        if self.single:
            if self.data is None:
                self.data = self._all(self.part.chunks())
            yield self.data
            return
        order = rng.permutation(self.n_chunks)
        each = max(1, round(self.rows * self.n_chunks / self.part.n_rows))
        # Windows of nearly equal numbers of chunks, so that no last one is tiny.
        bounds = np.linspace(0, self.n_chunks, -(-self.n_chunks // each) + 1).round().astype(int)
        chunks = self.part.chunks(order, depth=each)
        for start, stop in pairwise(bounds.tolist()):
            window = self._window(chunks, stop - start)
            if len(window.x):
                yield window

    def _all(self, chunks: Iterator[HostPart]) -> Rows:
        self.data = None
        return self._window(chunks, self.n_chunks)

    def _window(self, chunks: Iterator[HostPart], count: int) -> Rows:
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
        size = self.part.n_rows if self.single else max(needed, min(self.rows, self.part.n_rows))
        old = self.data
        arrays = []
        for name in ("x", "frozen", "target", "weight"):
            like = getattr(chunk, name)
            array = np.empty((size, *like.shape[1:]), np.float32)
            if old is not None:
                array[:filled] = getattr(old, name)[:filled]
            arrays.append(array)
        return Rows(*arrays)
