"""Further features for sums whose rows are gone, from a few rows that are still there.

The sums of the old features are exact and stay so. Of the new features N nothing is known in rows that are
gone, and the rows that are left say how they follow from the old ones O: N = O B + b + R, where B is a ridge
regression. The sums of all rows are then those of O B + b, which follow from the old sums exactly, and those
of R, which are estimated: the rows that are left count for all. The result is a sum of two Gram matrices, and
so one of features that could exist. Rows that follow are added exactly.
"""

from __future__ import annotations

import numpy as np

from ..engine.native import native
from .running_ridge import RunningRidge

__all__ = ["widened"]

#: Ridges of the regression of new features on old ones, of which generalised cross-validation chooses.
_RIDGES = (0.1, 1.0, 10.0, 100.0, 1000.0)


def widened(
    sums: RunningRidge, old: np.ndarray, new: np.ndarray, target: np.ndarray, weight: np.ndarray
) -> RunningRidge:
    """The sums with new features after the old ones.

    Parameters
    ----------
    sums : RunningRidge of all rows
    old, new, target, weight : (n, p), (n, m), (n, C) and (n,) of the rows that are left
    """
    multiply = native().multiply
    weight = weight * (sums.weight / weight.sum())
    old, new, target = (array.astype(np.float64, order="C") for array in (old, new, target))
    between = RunningRidge.start(old.shape[1], new.shape[1]).extended(old, new, weight)
    slope, intercept, *_ = between.solve(between.best_ridge(_RIDGES))
    rest = new - multiply(old, slope) - intercept
    weighted = rest * weight[:, None]
    follows = multiply(sums.gram, slope)
    return RunningRidge(
        sums.count,
        sums.weight,
        np.concatenate([sums.mean, multiply(sums.mean[None], slope)[0] + intercept]),
        sums.target_mean,
        np.block(
            [
                [sums.gram, follows],
                [follows.T, multiply(slope.T, follows) + multiply(weighted.T, rest)],
            ]
        ),
        np.concatenate(
            [
                sums.cross,
                multiply(slope.T, sums.cross) + multiply(weighted.T, target - sums.target_mean),
            ]
        ),
        sums.total,
    )
