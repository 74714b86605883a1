"""Rows that lie far outside the training data: predictions for them are bounded, and still guesses."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

from ..common.errors import RangeWarning
from ..network import Network
from .base import GrowingEstimator

__all__ = ["FarRows", "values_outside"]

#: Rows that are compared at once: what comparisons make of more of them leaves the cache.
_ROWS = 1024


def values_outside(network: Network, x: np.ndarray) -> np.ndarray:
    """Which values (n, n_inputs) are further from the seen range of their input than the range is wide.

    An input that never changed in training is ignored by the network, and here.
    """
    if network.input_low is None or network.input_high is None:
        return np.zeros(x.shape, bool)
    low, high = network.input_low, network.input_high
    with np.errstate(over="ignore"):
        width = high - low
        return ((x < low - width) | (x > high + width)) & (width > 0)


class FarRows:
    """Counts the rows of a prediction that lie far outside, chunk by chunk, and warns of them once."""

    def __init__(self, estimator: GrowingEstimator[Any]) -> None:
        self.estimator = estimator
        self.n_rows, self.n_far, self.example = 0, 0, ""

    def look_at(self, x: np.ndarray) -> None:
        """Count the rows of the next chunk."""
        for start in range(0, len(x), _ROWS):
            self._count(x[start : start + _ROWS])

    def _count(self, x: np.ndarray) -> None:
        far = values_outside(self.estimator.network_, x)
        if far.any():  # mostly not, and rows are slower to go through than the whole
            rows = far.any(axis=1)
            if not self.n_far:
                row = int(rows.argmax())
                self.example = self._describe(self.n_rows + row, int(far[row].argmax()), x[row])
            self.n_far += int(rows.sum())
        self.n_rows += len(x)

    def _describe(self, number: int, column: int, row: np.ndarray) -> str:
        network = self.estimator.network_
        assert network.input_low is not None
        assert network.input_high is not None
        names = self.estimator.input_names
        name = f"column {column}" if names is None else repr(str(names[column]))
        low, high = float(network.input_low[column]), float(network.input_high[column])
        return f"in row {number}, {name} is {row[column]:.6g}, and {low:.6g} to {high:.6g} were seen"

    def warn(self) -> None:
        """Say how many there were, if any."""
        if self.n_far:
            lie = "lies" if self.n_far == 1 else "lie"
            warnings.warn(
                f"{self.n_far} of {self.n_rows} rows {lie} far outside the training data, where predictions "
                f"are guesses: {self.example}",
                RangeWarning,
                stacklevel=_level_of_user(),
            )


def _level_of_user() -> int:
    """The ``stacklevel`` at which `warnings.warn`, one function up, finds code that is not ours."""
    level, frame, ours = 1, sys._getframe(1), ("opgrow.", "sklearn.")
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(ours):
        level, frame = level + 1, frame.f_back
    return level
