"""The formulas of features, compared with their definitions, sample by sample."""

from __future__ import annotations

import math
import statistics
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.fft import dct

from opgrow.rows.signals.form import FARTHEST, FEATURES, WindowForm, band_places, features_of


def form_of(n: int, channels: int = 1, bands: int | tuple[float, ...] = 1, hysteresis: float = 0.1):
    return WindowForm(n, channels, FEATURES, band_places(bands, n), hysteresis)


def by_definition(x: list[float], bands: tuple[tuple[int, int], ...], hysteresis: float) -> list[float]:
    """All features of one channel."""
    n, mean, deviation = len(x), statistics.fmean(x), statistics.pstdev(x)
    count, side = 0, 0
    for value in x:
        now = (value - mean > hysteresis * deviation) - (value - mean < -hysteresis * deviation)
        count += now * side < 0
        side = now or side
    spectrum = [
        math.sqrt(2 / n)
        * math.fsum(v * math.cos(math.pi * k * (2 * t + 1) / (2 * n)) for t, v in enumerate(x))
        for k in range(n)
    ]
    parts = [math.sqrt(math.fsum(spectrum[k] ** 2 for k in range(a, b)) / n) for a, b in bands]
    steps = math.fsum(abs(b - a) for a, b in pairwise(x)) / (n - 1)
    return [mean, deviation, min(x), max(x), max(x) - min(x), steps, count, *parts]


@given(st.integers(2, 40), st.integers(1, 3), st.floats(0, 1), st.integers(0, 1000), st.floats(-1e3, 1e3))
def test_features_are_those_of_the_definitions(n, channels, hysteresis, seed, offset):
    x = offset + np.random.default_rng(seed).normal(size=(3, n, channels))
    form = (
        form_of(n, channels, (0.0, 0.25, 0.5), hysteresis) if n > 2 else form_of(n, channels, 1, hysteresis)
    )
    expected = [
        [
            value
            for c in range(channels)
            for value in by_definition(one[:, c].tolist(), form.bands, hysteresis)
        ]
        for one in x
    ]
    np.testing.assert_allclose(features_of(form, x.reshape(3, -1)), expected, rtol=1e-9, atol=1e-10)
    assert len(form.names) == len(expected[0])


@given(st.integers(8, 200), st.integers(1, 3), st.integers(0, 1000))
def test_energies_of_octaves_add_up_to_the_variance(n, bands, seed):
    x = np.random.default_rng(seed).normal(size=(2, n))
    form = WindowForm(n, 1, ("bands",), band_places(bands, n), 0.0)
    np.testing.assert_allclose(np.square(features_of(form, x)).sum(axis=1), x.var(axis=1))


def test_bands_are_those_of_the_cosine_transform():
    x = np.random.default_rng(0).normal(size=(4, 128)) + 4000
    form = WindowForm(128, 1, ("bands",), band_places((4 / 128, 8 / 128, 13 / 128), 128), 0.0)
    assert form.bands == ((8, 16), (16, 26))
    spectrum = dct(x, type=2, norm="ortho")
    expected = [np.sqrt((spectrum[:, a:b] ** 2).sum(axis=1) / 128) for a, b in ((8, 16), (16, 26))]
    np.testing.assert_allclose(features_of(form, x), np.stack(expected, axis=1), rtol=1e-9)


def test_a_tone_is_in_its_band():
    """A sine of 10 Hz, 128 samples a second, has its energy in the band from 8 to 13 Hz."""
    x = np.sin(2 * np.pi * 10 * np.arange(256) / 128)[None]
    form = form_of(256, bands=tuple(f / 128 for f in (1, 4, 8, 13, 30)))
    theta, alpha, beta = features_of(form, x)[0, -3:]
    assert alpha > 0.97 / math.sqrt(2)
    assert max(theta, beta) < 0.12


def test_octaves_halve_what_is_below_them():
    assert band_places(4, 128) == ((1, 16), (16, 32), (32, 64), (64, 128))
    assert band_places(1, 2) == ((1, 2),)


@pytest.mark.parametrize("hysteresis", [0.0, 0.5])
@pytest.mark.parametrize("value", [0.0, 0.1, -1e-30, 1e16, 1e300])
def test_constants_have_no_deviation_of_any_kind(value, hysteresis):
    features = features_of(form_of(17, 1, 2, hysteresis), np.full((1, 17), value))[0]
    kept = min(value, FARTHEST)
    assert features.tolist() == [kept, 0, kept, kept, 0, 0, 0, 0, 0]


def test_noise_within_the_hysteresis_is_no_crossing():
    slow = np.sign(np.sin(2 * np.pi * np.arange(100) / 50 + 0.1))
    noisy = slow + 0.5 * (-1.0) ** np.arange(100)
    assert features_of(WindowForm(100, 1, ("crossings",), (), 0.1), slow[None]) == 3
    steep = np.where(np.abs(slow) > 0, slow * 0.2, 0) + 0.5 * (-1.0) ** np.arange(100)
    assert features_of(WindowForm(100, 1, ("crossings",), (), 0.0), steep[None]) > 90
    assert features_of(WindowForm(100, 1, ("crossings",), (), 0.6), noisy[None]) == 3


def test_huge_values_stay_finite():
    rng = np.random.default_rng(0)
    x = rng.choice([-1e308, 1e308, 1.0], size=(5, 64))
    features = features_of(form_of(64, 1, 4), x)
    assert np.isfinite(features).all()
    assert np.abs(features[:, :6]).max() <= 2 * FARTHEST
    assert np.abs(features.astype(np.float32)).max() < np.inf


@pytest.mark.parametrize(("bands", "n"), [(4, 8), ((0.1, 0.11), 8), (1, 1)])
def test_bands_without_a_frequency_are_refused(bands, n):
    with pytest.raises(
        ValueError, match=rf"A window of {n} samples has no frequency from .* take longer windows"
    ):
        band_places(bands, n)
