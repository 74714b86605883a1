"""Ridge regression on features that arrive in groups: the Cholesky factor of the Gram matrix grows with them.

With H the features so far, h the new ones, both standardised (weighted mean 0, variance 1), W the row weights
and ``L L' = H'WH + ridge I``, the factor for all of them is

    [[L, 0], [K', M]]  with  L K = H'Wh  and  M M' = h'Wh + ridge I - K'K, the Schur complement.

It is exact for every ridge and costs what the new columns cost; the pseudo-inverse updates of the literature
are exact for a ridge of zero only. All sums are in float64.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy import linalg

from .kernels.threads import stream
from .preparation import moments
from .statistics import chunks

__all__ = ["IncrementalRidge", "feature_moments"]

#: Deviations below this part of the mean are rounding errors of single precision.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class IncrementalRidge:
    """A solved regression; `extend` returns another one with more features and leaves this one as it is.

    The intercept is the weighted target mean for standardised features and is not penalised.

    Attributes
    ----------
    target, weight : (N, C) targets less their mean, float64, and (N,) row weights
    target_mean : (C,)
    ridge : float
    features : (N, p) float32, not standardised, in the order in which they came
    mean, scale : (p,) see `feature_moments`
    factor : (p, p) lower Cholesky factor
    reduced : (p, C) factor^-1 H'W target

    Examples
    --------
    >>> x, y = np.float32([[0, 1], [1, 1], [2, 3], [3, 0]]), np.float32([[1], [2], [4], [1]])
    >>> start = IncrementalRidge.start(y, np.ones(4), ridge=1e-6)
    >>> weight, intercept = start.extend(x[:, :1]).extend(x[:, 1:]).head()
    >>> weight.round(3), intercept.round(3)
    (array([[0.309],
           [1.085]]), array([0.181]))
    """

    target: np.ndarray
    weight: np.ndarray
    target_mean: np.ndarray
    ridge: float
    n_threads: int
    features: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    factor: np.ndarray
    reduced: np.ndarray

    @classmethod
    def start(
        cls, target: np.ndarray, weight: np.ndarray, ridge: float, n_threads: int = 1
    ) -> IncrementalRidge:
        """A regression without features."""
        weight = weight.astype(np.float64)
        with np.errstate(all="ignore"):  # reported by `extend`
            mean = weight @ target / weight.sum()
            target = target - mean
        n_rows, n_outputs = target.shape
        nothing = np.zeros((n_rows, 0), np.float32), np.zeros(0), np.zeros(0), np.zeros((0, 0))
        return cls(target, weight, mean, ridge, n_threads, *nothing, np.zeros((0, n_outputs)))

    def extend(self, new: np.ndarray) -> IncrementalRidge:
        """The regression with the features ``new`` (N, m) beside those it has."""
        p, m = len(self.mean), new.shape[1]
        mean, scale = feature_moments(new, self.weight)
        cross, gram, slope = self._sums(new, mean, scale)
        known = linalg.solve_triangular(self.factor, cross, lower=True) if p else cross
        corner = self._cholesky(gram - known.T @ known)
        reduced = linalg.solve_triangular(corner, slope - known.T @ self.reduced, lower=True)
        factor = np.zeros((p + m, p + m))
        factor[:p, :p], factor[p:, :p], factor[p:, p:] = self.factor, known.T, corner
        return replace(
            self,
            features=np.concatenate([self.features, new], axis=1),
            mean=np.concatenate([self.mean, mean]),
            scale=np.concatenate([self.scale, scale]),
            factor=factor,
            reduced=np.concatenate([self.reduced, reduced]),
        )

    def head(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights (p, C) and intercept (C,) for the features as they are, not standardised."""
        weight = linalg.solve_triangular(self.factor, self.reduced, trans="T", lower=True)
        weight /= self.scale[:, None]
        return weight, self.target_mean - self.mean @ weight

    def leave_one_out(self) -> float:
        """Mean squared error of predictions for each row by the regression without it, in closed form."""
        weight, _ = self.head()
        total, error = self.weight.sum(), 0.0
        for rows in chunks(len(self.features), 2 * len(self.mean)):
            h = self.features[rows] - self.mean
            whitened = linalg.solve_triangular(self.factor, (h / self.scale).T, lower=True)
            leverage = self.weight[rows] * (1 / total + np.square(whitened).sum(axis=0))
            # A row that alone decides its own prediction has a leverage of 1, but for rounding.
            left = np.maximum(1 - leverage, 1e-3)[:, None]
            residual = (self.target[rows] - h @ weight) / left
            error += float(self.weight[rows] @ np.square(residual).mean(axis=1))
        return error / float(total)

    def _sums(
        self, new: np.ndarray, mean: np.ndarray, scale: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """H'Wh, h'Wh and h'W target; chunks are spread over threads and added in their order."""
        p, m = len(self.mean), new.shape[1]

        def task(rows: slice) -> tuple[np.ndarray, ...]:
            h = (new[rows] - mean) / scale
            weighted = h * self.weight[rows, None]
            old = (self.features[rows] - self.mean) / self.scale
            with np.errstate(all="ignore"):  # reported below, in words
                return old.T @ weighted, h.T @ weighted, weighted.T @ self.target[rows]

        sums = np.zeros((p, m)), np.zeros((m, m)), np.zeros((m, self.target.shape[1]))
        tasks = [partial(task, rows) for rows in chunks(len(new), 2 * (p + m))]
        for part in stream(tasks, self.n_threads):
            for array, summand in zip(sums, part, strict=True):
                array += summand
        if not all(np.isfinite(array).all() for array in sums):
            raise FloatingPointError("the sums over rows of new features and targets are not finite")
        return sums

    def _cholesky(self, schur: np.ndarray) -> np.ndarray:
        identity, total = np.eye(len(schur)), self.weight.sum()
        for extra in (0.0, 1e-12, 1e-10, 1e-8):  # where rounding errors are larger than the ridge
            try:
                return linalg.cholesky(schur + (self.ridge + extra * total) * identity, lower=True)
            except linalg.LinAlgError:
                continue
        raise FloatingPointError("the Gram matrix of the features has no Cholesky factor: raise the ridge")


def feature_moments(features: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and deviation of each column; a column that is constant has the deviation 1."""
    try:
        mean, scale = moments(features, weight)
    except ValueError:
        raise FloatingPointError(
            "the features overflow: rescale the inputs or let them be standardised"
        ) from None
    return mean, np.where(scale <= _ROUNDING * np.abs(mean), 1.0, scale)
