"""What happens to inputs before the first layer: they are centred, scaled and bounded.

A network learns from the values that it has seen. Beyond them, operators such as the exponential grow without
limit, and one row far from the others can be given any answer. So inputs are squashed smoothly: close to the
centre nothing changes, and no value, however large, becomes more than ``bound`` scales.

The centre and scale of a column are its mean and standard deviation, unless a few values far from all others
decide these, such as a 999999 that stands for a gap: then they are its median and half the distance between
its 16 % and 84 % quantiles, which for a normal distribution are the same. A column that never changes
carries no information, and its scale is so large that it still carries none if it changes later.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

__all__ = [
    "BOUND",
    "FARTHEST",
    "SAMPLE_ROWS",
    "Ranges",
    "Scaling",
    "kept_sample",
    "robust",
    "spread_rows",
    "squash",
]

#: Scales that an input has at most once it is squashed; docs/difficult-data.md says why.
BOUND = 3.0
#: Rows from which quantiles are taken, at most.
SAMPLE_ROWS = 4096
#: A column with a value that is so many deviations from the mean is measured by its quantiles.
_FAR = 8.0
#: Beyond so many bounds the squashed value is the bound, in single precision; farther squares overflow.
FARTHEST = 1e4
#: The scale of a column that never changes, in units of its value: what it becomes later vanishes. A unit of
#: at most 2^20 lets single precision hold the scale, unless it could not hold the value itself.
_IGNORED, _LARGEST_UNIT, _SINGLE = 2.0**100, 2.0**20, 1e28
#: Part of the range of the targets by which a prediction may leave it.
_MARGIN = 0.05
#: Rows that stay with a fitted estimator, and their values, at most.
_KEPT_ROWS, _KEPT_VALUES = 256, 1 << 16
_QUANTILES = (0.16, 0.5, 0.84)

Values = TypeVar("Values", bound=Any)


def squash(z: Values, bound: float | None) -> Values:
    """z / sqrt(1 + (z / bound)^2) of a numpy array or a torch tensor; without a bound, z as it is."""
    if bound is None:
        return z
    z = z.clip(-FARTHEST * bound, FARTHEST * bound)
    return z / (1 + (z / bound) ** 2) ** 0.5


@dataclass(frozen=True)
class Scaling:
    """Centre and scale of each input, and the bound of all of them, or None.

    Attributes
    ----------
    center, scale : arrays of shape (n_inputs,) in float64
    bound : float or None
    """

    center: np.ndarray
    scale: np.ndarray
    bound: float | None = None

    @classmethod
    def nothing(cls, n_inputs: int) -> Scaling:
        """Inputs as they are."""
        return cls(np.zeros(n_inputs), np.ones(n_inputs))

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """What the first layer sees of rows (n, n_inputs), in float64."""
        return squash((x - self.center) / self.scale, self.bound)


@dataclass(frozen=True)
class Ranges:
    """What was seen in training: the least and the largest value of each input and, in regression, target."""

    low: np.ndarray
    high: np.ndarray
    target_low: np.ndarray
    target_high: np.ndarray

    def joined(self, other: Ranges) -> Ranges:
        """What both have seen."""
        return Ranges(
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            np.minimum(self.target_low, other.target_low),
            np.maximum(self.target_high, other.target_high),
        )

    def output_limits(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest prediction: a little beyond the targets that were seen."""
        margin = _MARGIN * (self.target_high / 2 - self.target_low / 2) * 2
        with np.errstate(over="ignore"):
            return self.target_low - margin, self.target_high + margin


def spread_rows(n_rows: int, before: int, total: int, most: int) -> np.ndarray:
    """Numbers of the rows here that are among ``most`` rows, evenly spread over all of them.

    There are ``total`` rows; the ``n_rows`` here come after ``before`` others.
    """
    stride = max(1, -(-total // most))
    return np.arange(-before % stride, n_rows, stride)


def kept_sample(sample: np.ndarray) -> np.ndarray:
    """The rows of a sample that stay with a fitted estimator: few, however many inputs they have."""
    most = max(1, min(_KEPT_ROWS, _KEPT_VALUES // sample.shape[1]))
    return sample[spread_rows(len(sample), 0, len(sample), most)]


def robust(scaling: Scaling, ranges: Ranges, sample: np.ndarray, weight: np.ndarray) -> Scaling:
    """A scaling by mean and deviation, corrected for columns with far values and for constant ones.

    ``sample`` are rows (n, n_inputs) of the data and ``weight`` their weights.
    """
    size = np.abs(ranges.low)
    unit = np.clip(size, 1.0, np.where(size < _SINGLE, _LARGEST_UNIT, 1e270))
    scaling = replace(scaling, scale=np.where(ranges.low == ranges.high, _IGNORED * unit, scaling.scale))
    with np.errstate(over="ignore"):
        distance = np.maximum(ranges.high - scaling.center, scaling.center - ranges.low) / scaling.scale
    far = np.flatnonzero(distance > _FAR)
    if not far.size or not len(sample):
        return scaling
    low, middle, high = _quantiles(sample[:, far].astype(np.float64), weight)
    half = high / 2 - low / 2
    # Equal values, but for rounding errors, have no spread.
    usable = half > len(sample) * np.finfo(np.float64).eps * np.abs(middle)
    center, scale = scaling.center.copy(), scaling.scale.copy()
    center[far[usable]], scale[far[usable]] = middle[usable], half[usable]
    return replace(scaling, center=center, scale=scale)


def _quantiles(x: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, ...]:
    """Weighted quantiles of each column, of which each is a value of the column.

    A row of weight 2 counts as two rows.
    """
    order = np.argsort(x, axis=0, kind="stable")
    shares = np.cumsum(weight[order], axis=0)
    total = shares[-1]
    columns = np.arange(x.shape[1])
    quantiles = []
    for quantile in _QUANTILES:
        place = (shares < quantile * total * (1 - 1e-12)).sum(axis=0)
        quantiles.append(x[order[np.minimum(place, len(x) - 1), columns], columns])
    return tuple(quantiles)
