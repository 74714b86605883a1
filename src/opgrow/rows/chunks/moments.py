"""Weighted means and variances of columns that add up over chunks, without cancellation.

Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances" (1979).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["ColumnMoments", "column_moments"]

#: Values that are turned into float64 at once: they stay in the cache.
BLOCK = 1 << 16


@dataclass
class ColumnMoments:
    """Total weight, mean and weighted squares around it of each column, in float64."""

    weight: float
    mean: np.ndarray
    squares: np.ndarray

    @classmethod
    def nothing(cls, n_columns: int) -> ColumnMoments:
        return cls(0.0, np.zeros(n_columns), np.zeros(n_columns))

    def add(self, other: ColumnMoments, factor: float = 1.0) -> None:
        """Add other rows, with their weights multiplied by ``factor``."""
        more = factor * other.weight
        total = self.weight + more
        if not total > 0:
            return
        with np.errstate(over="ignore", invalid="ignore"):
            apart = other.mean - self.mean
            self.mean = self.mean + apart * (more / total)
            self.squares = (
                self.squares + factor * other.squares + np.square(apart) * (self.weight * more / total)
            )
        self.weight = total

    @property
    def variance(self) -> np.ndarray:
        return self.squares / self.weight


def column_moments(x: np.ndarray, weight: np.ndarray | None = None) -> ColumnMoments:
    """Moments of some rows, by two passes over them; without weights, each row weighs 1."""
    total = float(len(x)) if weight is None else float(weight.sum(dtype=np.float64))
    if not total > 0:
        return ColumnMoments.nothing(x.shape[1])
    size = max(1, BLOCK // max(1, x.shape[1]))
    spans = [slice(start, start + size) for start in range(0, len(x), size)]
    mean, squares = np.zeros(x.shape[1]), np.zeros(x.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        for span in spans:
            block = x[span].astype(np.float64)
            mean += (block if weight is None else weight[span, None] * block).sum(axis=0)
        mean /= total
        for span in spans:
            block = np.square(x[span] - mean)
            squares += (block if weight is None else weight[span, None] * block).sum(axis=0)
    return ColumnMoments(total, mean, squares)
