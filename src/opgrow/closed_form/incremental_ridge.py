"""Ridge regression on features that arrive in groups: the Cholesky factor of the Gram matrix grows with them.

With H the features so far, h the new ones, both standardised (weighted mean 0, variance 1), W the row weights
and ``L L' = H'WH + ridge I``, the factor for all of them is

    [[L, 0], [K', M]]  with  L K = H'Wh  and  M M' = h'Wh + ridge I - K'K, the Schur complement.

It is exact for every ridge and costs what the new columns cost; the pseudo-inverse updates of the literature
are exact for a ridge of zero only. All sums are in float64, taken where the rows are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..common.errors import NotFiniteError
from ..engine.native import native
from .matrices import HOST, Matrices, Matrix, weighted_mean

__all__ = ["IncrementalRidge", "feature_moments"]

#: Deviations below this part of the mean are rounding errors of single precision.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class IncrementalRidge:
    """A solved regression; `extend` returns another one with more features and leaves this one as it is.

    The intercept is the weighted target mean for standardised features and is not penalised.

    Attributes
    ----------
    target, weight : (N, C) targets and (N,) row weights
    target_mean, total_weight : (C,) and float
    ridge : float
    matrices : what works on the rows
    features : (N, p) float32, not standardised, in the order in which they came; None before the first
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

    target: Matrix
    weight: Matrix
    target_mean: np.ndarray
    total_weight: float
    ridge: float
    matrices: Matrices
    features: Matrix | None
    mean: np.ndarray
    scale: np.ndarray
    factor: np.ndarray
    reduced: np.ndarray

    @classmethod
    def start(
        cls, target: Matrix, weight: Matrix, ridge: float, matrices: Matrices = HOST
    ) -> IncrementalRidge:
        """A regression without features."""
        mean, total = weighted_mean(target, weight, matrices)  # not finite: reported by `extend`
        nothing = np.zeros(0), np.zeros(0), np.zeros((0, 0)), np.zeros((0, len(mean)))
        return cls(target, weight, mean, total, ridge, matrices, None, *nothing)

    def extend(self, new: Matrix) -> IncrementalRidge:
        """The regression with the features ``new`` (N, m) beside those it has."""
        p, m = len(self.mean), new.shape[1]
        mean, scale = feature_moments(new, self.weight, self.matrices)
        cross, gram, slope = self._sums(new, mean, scale)
        engine = native()
        projected = engine.substitute(self.factor, cross)
        corner = self._cholesky(gram - engine.multiply(projected.T, projected))
        reduced = engine.substitute(corner, slope - engine.multiply(projected.T, self.reduced))
        factor = np.zeros((p + m, p + m))
        factor[:p, :p], factor[p:, :p], factor[p:, p:] = self.factor, projected.T, corner
        return replace(
            self,
            features=new if self.features is None else self.matrices.beside([self.features, new]),
            mean=np.concatenate([self.mean, mean]),
            scale=np.concatenate([self.scale, scale]),
            factor=factor,
            reduced=np.concatenate([self.reduced, reduced]),
        )

    def head(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights (p, C) and intercept (C,) for the features as they are, not standardised."""
        weight = native().substitute(self.factor, self.reduced, transposed=True)
        weight /= self.scale[:, None]
        return weight, self.target_mean - native().multiply(self.mean[None], weight)[0]

    def leave_one_out(self) -> float:
        """Mean squared error of predictions for each row by the regression without it, in closed form."""
        matrices = self.matrices
        constants = self.head()[0], self.mean, self.scale, self.factor, self.target_mean
        head, mean, scale, factor, target_mean = (matrices.constant(array) for array in constants)

        def error(features: Any, target: Any, weight: Any) -> tuple[Any]:
            weight = matrices.double(weight)
            h = features - mean
            whitened = matrices.substituted(factor, (h / scale).T)
            leverage = weight * (1 / self.total_weight + (whitened**2).sum(axis=0))
            # A row that alone decides its own prediction has a leverage of 1, but for rounding.
            left = (1 - leverage).clip(1e-3, None)[:, None]
            residual = (target - target_mean - matrices.product(h, head)) / left
            return ((weight * (residual**2).mean(axis=1)).sum(),)

        size = 2 * len(self.mean)
        [total] = matrices.sums(error, self.features, self.target, self.weight, columns=size)
        return float(total) / self.total_weight

    def _sums(
        self, new: Matrix, mean: np.ndarray, scale: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """H'Wh, h'Wh and h'W target."""
        matrices, size = self.matrices, 2 * (len(self.mean) + new.shape[1])
        constants = mean, scale, self.mean, self.scale, self.target_mean
        mean, scale, old_mean, old_scale, target_mean = (matrices.constant(array) for array in constants)

        def sums(new: Any, target: Any, weight: Any, old: Any = None) -> tuple[Any, Any, Any]:
            h = (new - mean) / scale
            weighted = h * weight[:, None]
            before = ((new[:, :0] if old is None else old) - old_mean) / old_scale
            product = matrices.product
            return (
                product(before.T, weighted),
                product(h.T, weighted),
                product(weighted.T, target - target_mean),
            )

        rows = [new, self.target, self.weight, *([] if self.features is None else [self.features])]
        cross, gram, slope = matrices.sums(sums, *rows, columns=size)
        if not all(np.isfinite(array).all() for array in (cross, gram, slope)):
            raise NotFiniteError("the sums over rows of new features and targets are not finite")
        return cross, gram, slope

    def _cholesky(self, schur: np.ndarray) -> np.ndarray:
        identity, total = np.eye(len(schur)), self.total_weight
        for extra in (0.0, 1e-12, 1e-10, 1e-8):  # where rounding errors are larger than the ridge
            factor = native().cholesky(schur + (self.ridge + extra * total) * identity)
            if factor is not None:
                return factor
        raise NotFiniteError("the Gram matrix of the features has no Cholesky factor: raise the ridge")


def feature_moments(
    features: Matrix, weight: Matrix, matrices: Matrices = HOST
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and deviation of each column; a column that is constant has the deviation 1."""
    try:
        mean, scale = matrices.moments(features, weight)
    except ValueError:
        raise NotFiniteError(
            "the features overflow: rescale the inputs or let them be standardised"
        ) from None
    return mean, np.where(scale <= _ROUNDING * np.abs(mean), 1.0, scale)
