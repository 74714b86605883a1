"""Ridge regression on rows that go on coming: the sums that its solution needs, and no row, are held.

For features G (N, p), targets Y (N, C) and row weights w these are the sum of the weights, the weighted
means, and the centred sums (G - mean)'W(G - mean) and (G - mean)'W(Y - mean), in float64. Two sets of sums
are joined exactly (Chan, Golub and LeVeque 1983), so that it does not matter in which chunks rows come. The
solution is that of `opgrow.closed_form.ridge` for all rows at once: features are standardised by the sums
themselves, weights have a mean of 1, and the intercept is not penalised.

With a forgetting factor f below 1, a row counts f times as much with each row that follows it. A target that
was 0 for all rows so far, such as a class that nobody has seen, is a column of zeros in the sums.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..common.errors import NotFiniteError
from ..engine.native import native
from .ridge import factor_base

__all__ = ["RidgeSolution", "RunningRidge"]

#: Rows whose features are taken to double precision at once.
_CHUNK_ROWS = 1024
#: Deviations below this part of the mean are rounding errors of single precision.
_ROUNDING = 1e-6


class RidgeSolution(NamedTuple):
    """Weights (p, C) and intercept (C,) for features as they are, and what leverages follow from.

    Attributes
    ----------
    factor : (p, p) lower Cholesky factor for standardised features; scale : (p,) their deviations
    """

    weight: np.ndarray
    intercept: np.ndarray
    factor: np.ndarray
    scale: np.ndarray


@dataclass(frozen=True)
class RunningRidge:
    """The sums of all rows so far; `extended` returns those with more rows and leaves these as they are.

    Attributes
    ----------
    count : how many rows there were, each as much as it is remembered
    weight : the sum of their weights
    mean, target_mean : (p,) and (C,) weighted means
    gram, cross : (p, p) and (p, C) centred sums
    total : the weighted sum of the squares of the centred targets

    Examples
    --------
    >>> import numpy as np
    >>> g, y = np.array([[0.0, 1], [1, 1], [2, 3], [3, 0]]), np.array([[1.0], [2], [4], [1]])
    >>> sums = RunningRidge.start(2, 1).extended(g[:1], y[:1], np.ones(1)).extended(g[1:], y[1:], np.ones(3))
    >>> sums.solve(1e-6).weight.round(3)
    array([[0.309],
           [1.085]])
    """

    count: float
    weight: float
    mean: np.ndarray
    target_mean: np.ndarray
    gram: np.ndarray
    cross: np.ndarray
    total: float

    @classmethod
    def start(cls, n_features: int, n_targets: int) -> RunningRidge:
        """The sums of no rows."""
        p, c = n_features, n_targets
        return cls(0.0, 0.0, np.zeros(p), np.zeros(c), np.zeros((p, p)), np.zeros((p, c)), 0.0)

    @property
    def n_features(self) -> int:
        return len(self.mean)

    def extended(
        self, features: np.ndarray, target: np.ndarray, weight: np.ndarray, forgetting: float = 1.0
    ) -> RunningRidge:
        """The sums with further rows.

        Parameters
        ----------
        features : (n, p) of any float type, in the order in which the rows came
        target : (n, C)
        weight : (n,) above 0
        forgetting : above 0 and at most 1
            By how much a row counts less with each row after it.
        """
        sums = self
        for start in range(0, len(features), _CHUNK_ROWS):
            rows = slice(start, start + _CHUNK_ROWS)
            chunk = _sums_of(features[rows], target[rows], weight[rows], forgetting)
            sums = sums.faded(forgetting ** len(features[rows])).joined(chunk)
        return sums

    def with_targets(self, places: np.ndarray) -> RunningRidge:
        """The sums with further targets, which were 0 in all rows so far.

        Parameters
        ----------
        places : (C',) for each target, which one it has been, or -1 for a new one
        """
        known = places >= 0
        target_mean, cross = np.zeros(len(places)), np.zeros((self.n_features, len(places)))
        target_mean[known], cross[:, known] = self.target_mean[places[known]], self.cross[:, places[known]]
        return replace(self, target_mean=target_mean, cross=cross)

    def reordered(self, order: np.ndarray) -> RunningRidge:
        """The sums with the features in another order, or with some of them, which stay exact."""
        gram = np.ascontiguousarray(self.gram[order][:, order])
        return replace(self, mean=self.mean[order], gram=gram, cross=self.cross[order])

    def solve(self, ridge: float) -> RidgeSolution:
        """The ridge solution for all rows; ``ridge`` is relative to a sum over rows of mean weight 1."""
        gram, cross, scale = self._standardised()
        identity = np.eye(self.n_features)
        for extra in (0.0, 1e-12, 1e-10, 1e-8):  # where rounding errors are larger than the ridge
            factor = native().cholesky(gram + (ridge + extra * self.count) * identity)
            if factor is not None:
                break
        else:
            raise NotFiniteError("the Gram matrix of the features has no Cholesky factor")
        weight = native().substitute(factor, native().substitute(factor, cross), transposed=True)
        weight /= scale[:, None]
        intercept = self.target_mean - native().multiply(self.mean[None], weight)[0]
        return RidgeSolution(weight, intercept, factor, scale)

    def left_out(
        self, head: RidgeSolution, features: np.ndarray, target: np.ndarray, weight: np.ndarray
    ) -> np.ndarray:
        """What the head would say of rows (n, C) without each, as far as they are remembered in full.

        Parameters
        ----------
        head : of `solve`; features, target, weight : (n, p), (n, C) and (n,) of some rows in these sums
        """
        outputs = native().multiply(features, head.weight) + head.intercept
        standardised = np.ascontiguousarray(((features - self.mean) / head.scale).T)
        whitened = native().substitute(head.factor, standardised)
        leverage = weight * self.count / self.weight * (1 / self.count + (whitened * whitened).sum(axis=0))
        return target - (target - outputs) / (1 - leverage).clip(1e-3)[:, None]

    def best_ridge(self, ridges: tuple[float, ...]) -> float:
        """The ridge with the least generalised cross-validation error, of some in ascending order."""
        gram, cross, _ = self._standardised()
        total = self.total * self.count / self.weight
        errors = []
        for ridge in ridges:
            base = factor_base(gram, cross, total, self.count, ridge)
            trace = float(native().row_sums(base.whiten[None], 2)[0])
            freedom = 1 + self.n_features - ridge * trace
            left = max(1 - freedom / self.count, 1e-3)
            errors.append(base.squared_error / (left * left))
        return ridges[int(np.argmin(errors))]

    def _standardised(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Both sums for standardised features and weights of mean 1, and the features' deviations."""
        deviation = np.sqrt(np.diag(self.gram) / self.weight)
        scale = np.where(deviation <= _ROUNDING * np.abs(self.mean), 1.0, deviation)
        unit = self.count / self.weight
        return self.gram / scale / scale[:, None] * unit, self.cross / scale[:, None] * unit, scale

    def faded(self, factor: float) -> RunningRidge:
        """The sums of rows that count less by a factor."""
        if factor == 1.0:
            return self
        return replace(
            self,
            count=self.count * factor,
            weight=self.weight * factor,
            gram=self.gram * factor,
            cross=self.cross * factor,
            total=self.total * factor,
        )

    def joined(self, other: RunningRidge) -> RunningRidge:
        """The sums of both."""
        if not self.weight:
            return other
        weight = self.weight + other.weight
        share, between = other.weight / weight, self.weight * other.weight / weight
        step, target_step = other.mean - self.mean, other.target_mean - self.target_mean
        return RunningRidge(
            self.count + other.count,
            weight,
            self.mean + share * step,
            self.target_mean + share * target_step,
            self.gram + other.gram + between * step[:, None] * step,
            self.cross + other.cross + between * step[:, None] * target_step,
            self.total + other.total + between * float((target_step * target_step).sum()),
        )


def _sums_of(features: np.ndarray, target: np.ndarray, weight: np.ndarray, forgetting: float) -> RunningRidge:
    """The sums of a few rows."""
    remembered = forgetting ** np.arange(len(features) - 1, -1, -1.0)
    weight = weight * remembered
    total = float(weight.sum())
    features, target = (array.astype(np.float64, order="C") for array in (features, target))
    with np.errstate(all="ignore"):  # reported below
        mean = native().multiply(weight[None], features)[0] / total
        target_mean = native().multiply(weight[None], target)[0] / total
        root = np.sqrt(weight)[:, None]
        features, target = (features - mean) * root, (target - target_mean) * root
        gram, cross = native().multiply(features.T, features), native().multiply(features.T, target)
        squares = float(native().row_sums(target[None], 2)[0])
    if not (total > 0 and np.isfinite(gram.sum()) and np.isfinite(cross.sum()) and np.isfinite(squares)):
        raise NotFiniteError("the sums over rows of features and targets are not finite")
    return RunningRidge(float(remembered.sum()), total, mean, target_mean, gram, cross, squares)
