"""Intervals around the predictions of regressors, from rows that their networks have not learned from.

How far a prediction may be wrong differs between rows. Where the networks of an average disagree, the error
tends to be larger, so an interval is as wide as a scale that grows with their disagreement, times a factor.
Held-out rows tell both. The constant part of the scale is the one that makes their errors most likely. The
factor for a coverage is the quantile of their errors in units of the scale (conformal prediction). Each row
is predicted by the network that has not seen it, whose errors are at least as large as those of the average.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..network import Network
from ..network.average import member_outputs
from .fit.calibration import HeldOut

__all__ = ["N_SCORES", "Intervals", "intervals_of"]

#: Quantiles of the errors that are kept: of 0, 1, ..., 100 percent.
N_SCORES = 101
#: The constant part of the scale is one of these, times the root mean square error of held-out rows.
_FLOORS = (0.1, 0.2, 0.4, 0.7, 1.0, 2.0)
#: In place of a scale of nothing; its square is a number, too.
_SMALLEST = 1e-150


@dataclass(frozen=True)
class Intervals:
    """What is known of the errors of a regressor.

    Attributes
    ----------
    floor : (outputs,) the constant part of the scale
    scores : (outputs, `N_SCORES`) quantiles of the errors, in units of the scale
    n_rows : how many rows they are from
    biases : (networks, outputs) biases of the heads of an average's networks; None: the scale is constant
    """

    floor: np.ndarray
    scores: np.ndarray
    n_rows: int
    biases: np.ndarray | None = None

    def tensors(self) -> dict[str, np.ndarray]:
        """The arrays, by the names that they have in model files."""
        arrays = {"intervals.floor": self.floor, "intervals.scores": self.scores}
        return arrays if self.biases is None else arrays | {"intervals.biases": self.biases}

    @classmethod
    def from_tensors(cls, n_rows: int, tensors: dict[str, np.ndarray]) -> Intervals:
        """Take the arrays out of the tensors of a model file."""
        names = ("intervals.floor", "intervals.scores", "intervals.biases")
        floor, scores, biases = (tensors.pop(name, None) for name in names)
        assert floor is not None
        assert scores is not None
        return cls(_double(floor), _double(scores), n_rows, None if biases is None else _double(biases))

    def half_widths(self, network: Network, x: np.ndarray, coverage: float) -> np.ndarray:
        """How far the intervals of a coverage reach to either side of the predictions: (n, outputs)."""
        # One row more could have any error: the quantile is a little larger than that of the rows.
        level = min(coverage * (self.n_rows + 1) / self.n_rows, 1.0)
        places = np.linspace(0.0, 1.0, N_SCORES)
        factor = np.array([np.interp(level, places, scores) for scores in self.scores])
        with np.errstate(over="ignore"):  # of targets near the largest number
            half = factor * np.hypot(self.floor, _deviation(network, self.biases, x))
        return np.broadcast_to(half, (len(x), len(factor)))


def intervals_of(network: Network, biases: np.ndarray | None, held: HeldOut) -> Intervals:
    """What held-out rows tell of a network, an average where ``biases`` are given."""
    error = np.abs(held.target - held.outputs)
    unit = np.maximum(error.max(axis=0), _SMALLEST)  # squares of huge errors would overflow
    error, deviation = error / unit, _deviation(network, biases, held.x) / unit
    size = np.sqrt(_mean(error**2, held.weight))
    floors = np.array([np.maximum(share * size, _SMALLEST) for share in _FLOORS])
    cost = np.array([_surprise(error, np.hypot(floor, deviation), held.weight) for floor in floors])
    # Rounded, as logarithms of other machines have other last digits.
    floor = floors[np.round(cost, 9).argmin(axis=0), np.arange(len(size))]
    scores = np.quantile(error / np.hypot(floor, deviation), np.linspace(0.0, 1.0, N_SCORES), axis=0).T
    return Intervals(floor * unit, np.ascontiguousarray(scores), len(error), biases)


def _double(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64)


def _deviation(network: Network, biases: np.ndarray | None, x: np.ndarray) -> np.ndarray:
    """How much the networks of an average disagree on rows: (n, outputs), or one row of zeros."""
    if biases is None:
        return np.zeros((1, network.n_outputs))
    outputs = member_outputs(network, biases, x)
    unit = np.maximum(np.abs(outputs).max(axis=(0, 1)), _SMALLEST)
    return (outputs / unit).std(axis=0) * unit


def _mean(values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return (values * weight[:, None]).sum(axis=0) / weight.sum()


def _surprise(error: np.ndarray, scale: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The mean negative log-likelihood of errors, as if they were normal, with the best common factor."""
    scale = np.maximum(np.broadcast_to(scale, error.shape), _SMALLEST)
    factor = np.maximum(_mean((error / scale) ** 2, weight), _SMALLEST)
    return 0.5 * np.log(factor) + _mean(np.log(scale), weight)
