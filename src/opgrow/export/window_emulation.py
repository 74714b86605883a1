"""What the C of a `WindowForm` computes, in Python, in single precision and in the same order."""

from __future__ import annotations

import numpy as np

from ..operators.single_precision import inverse_root, within
from ..rows.signals import FARTHEST, WindowForm
from ..rows.signals.form import crossings
from .c_window import cosines, energy_factor

__all__ = ["most_windows", "window_features"]

#: Products with cosines that an export computes at most to measure itself.
_MOST_PRODUCTS = 1 << 31
_CHUNK_NUMBERS = 1 << 19
_TINY = np.finfo(np.float32).tiny


def most_windows(form: WindowForm) -> int:
    """Of how many windows the features are computed in a few seconds."""
    n_coefficients = sum(stop - first for first, stop in form.bands)
    return max(1, _MOST_PRODUCTS // (form.n_inputs * max(16, n_coefficients)))


def window_features(form: WindowForm, rows: np.ndarray) -> np.ndarray:
    """The features (n, len(form.names)) of windows (n, form.n_inputs) as C computes them."""
    n_coefficients = sum(stop - first for first, stop in form.bands)
    chunk = max(1, _CHUNK_NUMBERS // (form.n_channels * max(form.n_samples, n_coefficients)))
    with np.errstate(all="ignore"):
        return np.concatenate(
            [_chunk(form, rows[start : start + chunk]) for start in range(0, len(rows), chunk)]
        )


def _chunk(form: WindowForm, rows: np.ndarray) -> np.ndarray:
    """The features of a few windows."""
    n = np.float32(form.n_samples)
    given = np.asarray(rows, np.float32).reshape(len(rows), form.n_samples, form.n_channels)
    signal = within(given, FARTHEST)
    first = signal[:, 0]
    rest = signal - first[:, None]
    mean = _in_order(rest) / n
    centred = rest - mean[:, None]
    deviation = _root(_in_order(centred * centred) / n)
    low, high = signal.min(axis=1), signal.max(axis=1)
    columns: list[np.ndarray] = []
    for feature in form.features:
        if feature == "mean":
            columns.append(first + mean)
        elif feature == "deviation":
            columns.append(deviation)
        elif feature == "minimum":
            columns.append(low)
        elif feature == "maximum":
            columns.append(high)
        elif feature == "range":
            columns.append(high - low)
        elif feature == "difference":
            columns.append(
                _in_order(np.abs(rest[:, 1:] - rest[:, :-1])) / np.float32(max(1, form.n_samples - 1))
            )
        elif feature == "crossings":
            level = np.float32(form.hysteresis) * deviation
            columns.append(crossings(centred.transpose(0, 2, 1), level))
        else:
            columns += _bands(form, centred)
    return np.stack(columns, axis=2).reshape(len(rows), -1)


def _bands(form: WindowForm, centred: np.ndarray) -> list[np.ndarray]:
    """The root of the energy in each band (n, n_channels)."""
    n = form.n_samples
    left, right = centred, centred[:, ::-1]
    folded = left + right, left - right
    if n % 2:
        folded[0][:, n // 2] = centred[:, n // 2]
    quarter = cosines(form)
    wave = np.concatenate([quarter, -quarter[-2::-1], -quarter[1:], quarter[-2:0:-1]])
    found = []
    for first, stop in form.bands:
        k = np.arange(first, stop)
        total = np.zeros((len(centred), form.n_channels, len(k)), np.float32)
        for i in range((n + 1) // 2):
            for odd in (0, 1):
                here = np.flatnonzero(k % 2 == odd)
                if i < (n // 2 if odd else (n + 1) // 2) and len(here):
                    place = slice(here[0], None, 2)
                    factor = wave[(2 * i + 1) * k[place] % (4 * n)]
                    total[:, :, place] += factor * folded[odd][:, i, :, None]
        total *= energy_factor(form)
        found.append(_root(_in_order((total * total).transpose(0, 2, 1))))
    return found


def _in_order(terms: np.ndarray) -> np.ndarray:
    """Sums over the axis 1, one term after the other."""
    total = np.zeros((len(terms), *terms.shape[2:]), np.float32)
    for i in range(terms.shape[1]):
        total += terms[:, i]
    return total


def _root(values: np.ndarray) -> np.ndarray:
    usual = values > _TINY
    return np.where(usual, values * inverse_root(np.where(usual, values, np.float32(1))), np.float32(0))
