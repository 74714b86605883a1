"""Rows to learn from, as networks and heads take them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

__all__ = ["LearnedRows"]


@dataclass(frozen=True)
class LearnedRows:
    """Rows to learn from: inputs (n, D), target columns (n, C) and weights (n,), all above 0.

    ``target`` has ones and zeros for classes, and for regression the targets in the user's units.
    """

    x: np.ndarray
    target: np.ndarray
    weight: np.ndarray

    def chosen(self, rows: np.ndarray) -> LearnedRows:
        """Some of the rows."""
        return LearnedRows(self.x[rows], self.target[rows], self.weight[rows])

    def beside(self, other: LearnedRows) -> LearnedRows:
        """These rows, and others after them."""
        pairs = (self.x, other.x), (self.target, other.target), (self.weight, other.weight)
        return LearnedRows(*(np.concatenate(pair) for pair in pairs))

    def representing(self, shares: np.ndarray | None) -> LearnedRows:
        """The rows with weights by which they count for others: classes have the ``shares`` (C,) of those."""
        if shares is None:
            return self
        here = (self.weight[:, None] * self.target).sum(axis=0) / self.weight.sum()
        ratio = np.divide(shares, here, out=np.zeros(len(here)), where=here > 0)
        weight = self.weight * ratio[self.target.argmax(axis=1)]
        keep = np.flatnonzero(weight > 0)
        return replace(self, weight=weight).chosen(keep)
