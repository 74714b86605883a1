"""The rows that an estimator keeps while it goes on learning: the last ones, and a sample of all.

The sample has as many rows of each class, drawn without replacement from all rows of the class: every row
gets a random number, and those with the smallest stay. The numbers follow from the place of a row in the
stream, so that the sample does not depend on how the rows were cut into chunks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .learned import LearnedRows

__all__ = ["Buffer"]


@dataclass(frozen=True)
class Buffer:
    """Rows of a stream, in their order.

    Attributes
    ----------
    size : how many rows there are at most, or one of each class more; half of them are the last ones
    seen : how many rows there were
    x, target, weight : (n, D), (n, C) and (n,) as `LearnedRows` has them
    number, draw : (n,) the place of each row in the stream, and its random number

    Examples
    --------
    >>> import numpy as np
    >>> buffer = Buffer.empty(10, np.zeros((0, 1)), np.zeros((0, 2)))
    >>> rows = LearnedRows(np.arange(100.0)[:, None], np.eye(2)[np.arange(100) % 2], np.ones(100))
    >>> buffer = buffer.extended(rows, classes=True)
    >>> buffer.number[-5:], len(buffer.number) <= 10
    (array([95, 96, 97, 98, 99]), True)
    """

    size: int
    seen: int
    x: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    number: np.ndarray
    draw: np.ndarray

    @classmethod
    def empty(cls, size: int, x: np.ndarray, target: np.ndarray) -> Buffer:
        """A buffer without rows; ``x`` and ``target`` tell types and columns."""
        return cls(size, 0, x[:0], target[:0], np.zeros(0), np.zeros(0, np.int64), np.zeros(0))

    def extended(self, rows: LearnedRows, classes: bool) -> Buffer:
        """The buffer after further rows; ``classes`` says whether targets are ones and zeros."""
        x, target, weight = rows.x, rows.target, rows.weight
        if not self.size:
            return replace(self, seen=self.seen + len(x))
        draws = np.random.Generator(np.random.PCG64(0).advance(self.seen)).random(len(x))
        everything = [
            np.concatenate(pair)
            for pair in (
                (self.x, x),
                (self.target, target),
                (self.weight, weight),
                (self.number, np.arange(self.seen, self.seen + len(x))),
                (self.draw, draws),
            )
        ]
        seen = self.seen + len(x)
        *_, target, _, number, draw = everything
        codes = target.argmax(axis=1) if classes else np.zeros(len(number), np.int64)
        n_recent = self.size // 2
        keep = number >= seen - n_recent
        quota = max(1, (self.size - n_recent) // (target.shape[1] if classes else 1))
        for code in np.unique(codes):
            of_class = np.flatnonzero(codes == code)
            keep[of_class[np.argsort(draw[of_class], kind="stable")[:quota]]] = True
        return Buffer(self.size, seen, *(array[keep] for array in everything))

    def with_targets(self, places: np.ndarray) -> Buffer:
        """The buffer with further classes; see `RunningRidge.with_targets`."""
        target = np.zeros((len(self.target), len(places)), self.target.dtype)
        target[:, places >= 0] = self.target[:, places[places >= 0]]
        return replace(self, target=target)

    def emptied(self) -> Buffer:
        """The buffer without its rows, and with its place in the stream."""
        return replace(Buffer.empty(self.size, self.x, self.target), seen=self.seen)

    def last(self, n_rows: int) -> LearnedRows:
        """So many of the last rows, as far as they are all still there."""
        n_rows = min(n_rows, self.size // 2, len(self.number))
        return self.rows.chosen(np.flatnonzero(self.number >= self.seen - n_rows))

    def since(self, place: int) -> Buffer:
        """The buffer with the rows from a place in the stream on, and no others."""
        keep = self.number >= place
        arrays = self.x, self.target, self.weight, self.number, self.draw
        return Buffer(self.size, self.seen, *(array[keep] for array in arrays))

    @property
    def rows(self) -> LearnedRows:
        return LearnedRows(self.x, self.target, self.weight)
