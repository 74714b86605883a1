"""What is computed of a window, as plain facts, and the formulas in double precision.

Exports read a `WindowForm` and compute the same in single precision. All formulas are of the differences from
a channel's first sample: a large offset costs no digits, and a constant has a deviation of exactly 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.fft import dct

__all__ = ["FARTHEST", "FEATURES", "WindowForm", "band_places", "features_of"]

#: What can be computed of each channel.
FEATURES = ("mean", "deviation", "minimum", "maximum", "range", "difference", "crossings", "bands")
#: Samples beyond it count as if they were there: squares of them can be added up in single precision.
FARTHEST = 1e16
#: What a place in the spectrum may fall short of a coefficient by rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class WindowForm:
    """The windows that are taken, and the features that are made of each channel.

    Attributes
    ----------
    n_samples, n_channels : the size of a window
    features : names of features, in the order in which they are made
    bands : the first coefficient of each band, and the one behind its last
    hysteresis : how far from the mean a crossing has to go, in deviations
    """

    n_samples: int
    n_channels: int
    features: tuple[str, ...]
    bands: tuple[tuple[int, int], ...]
    hysteresis: float

    @property
    def n_inputs(self) -> int:
        """Numbers of a window."""
        return self.n_samples * self.n_channels

    @property
    def channel_names(self) -> list[str]:
        """Names of the features of a channel."""
        bands = [f"band{number}" for number in range(1, len(self.bands) + 1)]
        return [name for feature in self.features for name in (bands if feature == "bands" else [feature])]

    @property
    def names(self) -> list[str]:
        """Names of all features, channel by channel."""
        if self.n_channels == 1:
            return self.channel_names
        return [f"c{channel}_{name}" for channel in range(self.n_channels) for name in self.channel_names]


def band_places(bands: int | tuple[float, ...], n_samples: int) -> tuple[tuple[int, int], ...]:
    """The coefficients k of each band, of which each has the frequency k / (2 n_samples) a sample.

    A number of bands means octaves: the last is the upper half of all frequencies, the one before it the
    upper half of what is left, and the first has all that is left.
    """
    edges = bands if isinstance(bands, tuple) else (0.0, *(0.5 ** (bands - i) for i in range(bands - 1)), 0.5)
    stops = [max(1, math.ceil(2 * n_samples * edge - _ROUNDING)) for edge in edges]
    places = tuple(pairwise(stops))
    for (low, high), (first, stop) in zip(pairwise(edges), places, strict=True):
        if first >= stop:
            raise ValueError(
                f"A window of {n_samples} samples has no frequency from {low:.4g} to {high:.4g} of the "
                f"sampling rate, a band of bands={bands!r}: take longer windows or fewer bands."
            )
    return places


def features_of(form: WindowForm, rows: np.ndarray) -> np.ndarray:
    """The features (n, len(form.names)) of windows (n, form.n_inputs) in double precision."""
    samples = np.clip(rows, -FARTHEST, FARTHEST).reshape(len(rows), form.n_samples, form.n_channels)
    signal = np.ascontiguousarray(samples.transpose(0, 2, 1), dtype=np.float64)
    first = signal[:, :, :1]
    rest = signal - first
    mean = rest.mean(axis=2, keepdims=True)
    centred = rest - mean
    deviation = np.sqrt(np.square(centred).mean(axis=2))
    columns: list[np.ndarray] = []
    for feature in form.features:
        if feature == "mean":
            columns.append((first + mean)[:, :, 0])
        elif feature == "deviation":
            columns.append(deviation)
        elif feature == "minimum":
            columns.append(signal.min(axis=2))
        elif feature == "maximum":
            columns.append(signal.max(axis=2))
        elif feature == "range":
            columns.append(np.ptp(rest, axis=2))
        elif feature == "difference":
            columns.append(np.abs(np.diff(rest, axis=2)).sum(axis=2) / max(1, form.n_samples - 1))
        elif feature == "crossings":
            columns.append(crossings(centred, form.hysteresis * deviation))
        else:
            columns += _bands(form, centred)
    return np.stack(columns, axis=2).reshape(len(rows), -1)


def crossings(centred: np.ndarray, level: np.ndarray) -> np.ndarray:
    """How often signals (..., n_samples) go from above ``level`` (...) to below its negative or back."""
    level = level[..., None]
    side = np.where(centred > level, 1, np.where(centred < -level, -1, 0))
    # Between the levels, a signal is on the side that it was on last.
    places = np.maximum.accumulate(np.where(side != 0, np.arange(side.shape[-1]), 0), axis=-1)
    side = np.take_along_axis(side, places, axis=-1)
    return (side[..., 1:] * side[..., :-1] < 0).sum(axis=-1).astype(centred.dtype)


def _bands(form: WindowForm, centred: np.ndarray) -> list[np.ndarray]:
    """The deviation of what each band has of the signal: by Parseval, their squares sum to the variance."""
    squares = np.square(dct(centred, type=2, norm="ortho", axis=2))
    return [np.sqrt(squares[:, :, a:b].sum(axis=2) / form.n_samples) for a, b in form.bands]
