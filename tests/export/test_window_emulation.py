"""The features of windows in single precision, compared with those in double precision."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from opgrow.export.window_emulation import most_windows, window_features
from opgrow.rows.signals import FEATURES, WindowForm
from opgrow.rows.signals.form import band_places, features_of

#: Largest error of a feature in single precision, in units of a channel's range in its window.
ERROR = 2e-6


def form_of(n: int, channels: int, features: tuple[str, ...] = FEATURES, bands: int = 2) -> WindowForm:
    return WindowForm(n, channels, features, band_places(bands, n) if "bands" in features else (), 0.1)


@given(st.integers(4, 150), st.integers(1, 3), st.integers(0, 2**16), st.sampled_from([1e-6, 1.0, 1e6]))
@example(1024, 1, 0, 1.0)
def test_single_precision_loses_little(n, channels, seed, size):
    """Even with an offset of a thousand deviations."""
    rng = np.random.default_rng(seed)
    x = (size * (1000 + rng.normal(size=(4, n, channels)))).astype(np.float32)
    features = tuple(name for name in FEATURES if name != "crossings")
    form = form_of(n, channels, features)
    rows = x.reshape(4, -1)
    exact = features_of(form, rows.astype(np.float64)).reshape(4, channels, -1)
    made = window_features(form, rows).reshape(4, channels, -1)
    assert made.dtype == np.float32
    error = np.abs(made - exact) - 1e-7 * np.abs(exact)
    assert (error <= ERROR * np.ptp(x, axis=1)[:, :, None]).all()


@given(st.integers(4, 200), st.integers(0, 2**16))
def test_crossings_are_the_same_where_no_sample_is_next_to_the_level(n, seed):
    x = np.random.default_rng(seed).normal(size=(8, n)).astype(np.float32)
    centred = x.astype(np.float64) - x.mean(axis=1, keepdims=True, dtype=np.float64)
    level = 0.1 * centred.std(axis=1, keepdims=True)
    sure = np.abs(np.abs(centred) - level).min(axis=1) > 1e-5
    form = form_of(n, 1, ("crossings",))
    assert np.array_equal(window_features(form, x)[sure], features_of(form, x)[sure])


def test_constants_infinities_and_unknown_samples():
    form = form_of(8, 1)
    x = np.full((4, 8), 3.25, np.float32)
    x[1, 2], x[2, 2:4], x[3, 5] = np.inf, (-np.inf, 3e38), np.nan
    features = window_features(form, x)
    assert features[0].tolist() == [3.25, 0, 3.25, 3.25, 0, 0, 0, 0, 0]
    assert np.isfinite(features[1:3]).all()
    assert features[1, 3] == features[2, 3] == np.float32(1e16)
    assert np.isnan(features[3]).any()


@pytest.mark.parametrize("bands", [1, 4])
def test_long_windows_are_compared_in_smaller_numbers(bands):
    short, long = form_of(64, 1, bands=bands), form_of(4096, 14, bands=bands)
    assert most_windows(short) > 100_000
    assert 1 <= most_windows(long) < 100
