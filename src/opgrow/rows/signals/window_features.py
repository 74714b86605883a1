"""`WindowFeatures`: windows of signals as a few fixed features, for pipelines of scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ...common.checks import check_integer, check_number, is_integer, is_listed, is_number
from .form import FEATURES, WindowForm, band_places, features_of

__all__ = ["WindowFeatures"]

#: Windows that are transformed at a time: their spectra take memory.
_CHUNK_NUMBERS = 1 << 22
_MOST_BANDS = 64


class WindowFeatures(TransformerMixin, BaseEstimator):
    """Turn windows of signals into a few numbers for each channel, as the first step of a pipeline.

    Nothing is learned: the same window always has the same features, and `opgrow.export_c` writes a pipeline
    of this and an estimator as one C file that takes the samples.

    Parameters
    ----------
    n_channels : int, default=1
        Signals that were sampled together.
    features : sequence of str, default=("mean", "deviation", "range", "difference", "crossings", "bands")
        What is computed of each channel, in this order:

        - "mean", "deviation" (root of the mean square from the mean), "minimum", "maximum" and "range", the
          maximum less the minimum;
        - "difference": the mean absolute difference between samples that follow each other;
        - "crossings": how often the signal crosses its mean;
        - "bands": for each band of frequencies the deviation of what it has of the signal. With bands that
          cover all frequencies, their squares, the energies, add up to the variance. Frequencies are those of
          the cosine transform (DCT-II).
    bands : int or sequence of float, default=4
        Octaves, of which the last is the upper half of all frequencies, or the edges of bands as shares of
        the sampling rate, from 0 to 0.5: for 128 samples a second, ``(4 / 128, 8 / 128, 13 / 128)`` has a
        band from 4 to 8 Hz and one from 8 to 13 Hz.
    hysteresis : float, default=0.1
        How far the signal has to go beyond its mean to count as being on that side, in deviations of the
        window: noise around the mean is not counted as crossings.

    Attributes
    ----------
    form_ : WindowForm
        The size of windows, and the coefficients of each band.
    n_features_in_ : int
        Numbers of a window: samples times channels.

    Notes
    -----
    Samples beyond 1e16 count as 1e16, and values that are not finite are refused. A constant has a deviation,
    range, difference, crossings and bands of 0.

    Examples
    --------
    >>> import numpy as np
    >>> from opgrow import WindowFeatures
    >>> time = np.arange(16)
    >>> X = [5 + np.sin(np.pi * time / 4), np.full(16, 3.0)]
    >>> step = WindowFeatures(features=("mean", "deviation", "crossings"))
    >>> step.fit_transform(X).round(2)
    array([[5.  , 0.71, 3.  ],
           [3.  , 0.  , 0.  ]])
    >>> WindowFeatures(n_channels=2, features=("mean", "bands"), bands=2).fit(X).get_feature_names_out()
    array(['c0_mean', 'c0_band1', 'c0_band2', 'c1_mean', 'c1_band1',
           'c1_band2'], dtype=object)
    """

    form_: WindowForm
    n_features_in_: int

    def __init__(
        self,
        n_channels: int = 1,
        features: Sequence[str] = ("mean", "deviation", "range", "difference", "crossings", "bands"),
        bands: int | Sequence[float] = 4,
        hysteresis: float = 0.1,
    ) -> None:
        self.n_channels = n_channels
        self.features = features
        self.bands = bands
        self.hysteresis = hysteresis

    def fit(self, X: Any, y: Any = None) -> Self:
        """Take the length of the windows, and check the parameters.

        Parameters
        ----------
        X : array-like of shape (n_windows, n_samples * n_channels) or (n_windows, n_samples, n_channels)
            Windows, in rows sample by sample as `opgrow.signals.windows` cuts them.
        y : ignored

        Returns
        -------
        self : WindowFeatures
        """
        features = _checked_features(self.features)
        bands = _checked_bands(self.bands)
        check_integer("n_channels", self.n_channels, 1)
        check_number("hysteresis", self.hysteresis, 0, 100)
        rows = self._rows(X, reset=True)
        n_samples, rest = divmod(rows.shape[1], self.n_channels)
        if rest:
            raise ValueError(
                f"Windows have {rows.shape[1]} numbers, which n_channels={self.n_channels} does not divide."
            )
        places = band_places(bands, n_samples) if "bands" in features else ()
        self.form_ = WindowForm(n_samples, int(self.n_channels), features, places, float(self.hysteresis))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The features of windows, channel by channel.

        Parameters
        ----------
        X : array-like of shape (n_windows, n_samples * n_channels) or (n_windows, n_samples, n_channels)

        Returns
        -------
        ndarray of shape (n_windows, n_features_out), float64
        """
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        chunk = max(1, _CHUNK_NUMBERS // rows.shape[1])
        return np.concatenate(
            [features_of(self.form_, rows[start : start + chunk]) for start in range(0, len(rows), chunk)]
        )

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names such as "mean", or "c0_mean" where there are several channels."""
        check_is_fitted(self)
        return np.array(self.form_.names, dtype=object)

    def _rows(self, X: Any, *, reset: bool) -> np.ndarray:
        """Windows as rows, checked."""
        X = X if hasattr(X, "shape") else np.asarray(X)
        shape = X.shape
        if len(shape) == 3:
            if shape[2] != self.n_channels:
                raise ValueError(
                    f"X has the shape {tuple(shape)}, and with n_channels={self.n_channels} the last number "
                    f"is {self.n_channels}."
                )
            X = np.asarray(X).reshape(shape[0], -1)
        rows = validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite=False)
        unknown = ~np.isfinite(rows)
        if unknown.any():
            row, place = np.unravel_index(int(unknown.argmax()), rows.shape)
            sample, channel = divmod(int(place), self.n_channels)
            kind = "NaN" if np.isnan(rows[row, place]) else "inf"
            raise ValueError(
                f"X has the value {kind} in window {row}, sample {sample}, channel {channel}, and must be "
                "finite: fill gaps, or leave the window out."
            )
        return np.asarray(rows)


def _checked_features(features: Any) -> tuple[str, ...]:
    listed = tuple(features) if isinstance(features, list | tuple) else ()
    known = all(isinstance(name, str) and name in FEATURES for name in listed)
    if not listed or not known or len(set(listed)) < len(listed):
        raise ValueError(
            f"features must be different names, at least one, of {', '.join(FEATURES)}, got {features!r}"
        )
    return listed


def _checked_bands(bands: Any) -> int | tuple[float, ...]:
    if is_integer(bands) and 1 <= bands <= _MOST_BANDS:
        return int(bands)
    edges = tuple(bands) if is_listed(bands) else ()
    shares = all(is_number(edge) and 0 <= edge <= 0.5 for edge in edges)
    if 2 <= len(edges) <= _MOST_BANDS + 1 and shares and all(low < high for low, high in pairwise(edges)):
        return tuple(float(edge) for edge in edges)
    raise ValueError(
        f"bands must be an integer from 1 to {_MOST_BANDS}, or increasing edges in [0, 0.5], shares of the "
        f"sampling rate, got {bands!r}"
    )
