"""`WindowFeatures` as scikit-learn knows transformers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opgrow.signals import FEATURES
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

from opgrow import WindowFeatures

X = np.random.default_rng(0).normal(size=(6, 48))


@pytest.mark.filterwarnings("ignore")
def test_it_is_a_transformer_by_the_rules_of_scikit_learn():
    check_estimator(WindowFeatures(features=("mean", "deviation", "range", "crossings")))


@given(
    st.integers(1, 4),
    st.lists(st.sampled_from(FEATURES), min_size=1, unique=True),
    st.one_of(st.integers(1, 3), st.just((0.0, 0.2, 0.5)), st.just([0.1, 0.5])),
    st.floats(0, 2),
    st.sampled_from([np.float32, np.float64, np.int16]),
)
def test_names_and_shapes_fit_whatever_is_chosen(n_channels, features, bands, hysteresis, dtype):
    rows = (100 * np.random.default_rng(1).normal(size=(3, 24 * n_channels))).astype(dtype)
    step = WindowFeatures(n_channels, features, bands, hysteresis)
    made = step.fit_transform(rows)
    names = step.get_feature_names_out()
    assert made.shape == (3, len(names))
    assert made.dtype == np.float64
    assert len(set(names)) == len(names)
    assert np.isfinite(made).all()
    assert np.array_equal(made, clone(step).fit(rows).transform(rows.reshape(3, 24, n_channels)))
    # Each channel as if it were alone, and each window.
    width = len(names) // n_channels
    alone = clone(step).set_params(n_channels=1)
    for c in range(n_channels):
        one = alone.fit_transform(rows[1:2, c::n_channels])
        np.testing.assert_allclose(made[1:2, c * width : (c + 1) * width], one, rtol=1e-12, atol=1e-12)


def test_output_can_be_a_data_frame():
    frame = WindowFeatures(2, ("mean", "bands"), 2).set_output(transform="pandas").fit_transform(X)
    assert list(frame.columns) == [f"c{c}_{name}" for c in (0, 1) for name in ("mean", "band1", "band2")]
    np.testing.assert_allclose(frame["c1_mean"], X[:, 1::2].mean(axis=1))


def test_a_data_frame_of_samples_is_taken():
    frame = pd.DataFrame(X, columns=[f"t{i}" for i in range(48)])
    assert np.array_equal(WindowFeatures().fit_transform(frame), WindowFeatures().fit_transform(X))


def test_many_windows_are_transformed_as_few_are(monkeypatch):
    whole = WindowFeatures().fit_transform(X)
    monkeypatch.setattr("opgrow.rows.signals.window_features._CHUNK_NUMBERS", 100)
    assert np.array_equal(WindowFeatures().fit_transform(X), whole)


@pytest.mark.parametrize(
    ("parameters", "x", "says"),
    [
        ({"n_channels": 0}, X, "n_channels must be an integer of at least 1, got 0"),
        ({"n_channels": 5}, X, "Windows have 48 numbers, which n_channels=5 does not divide"),
        ({"features": ()}, X, r"features must be different names, at least one, of mean, .* got \(\)"),
        ({"features": "mean"}, X, "features must be different names"),
        ({"features": ("mean", "mean")}, X, "features must be different names"),
        ({"features": ("median",)}, X, r"got \('median',\)"),
        ({"bands": 0}, X, r"bands must be an integer from 1 to 64, or increasing edges in \[0, 0.5\]"),
        ({"bands": (0.2, 0.1)}, X, "bands must be"),
        ({"bands": (0.1, 0.6)}, X, "bands must be"),
        ({"bands": 8}, X, "A window of 48 samples has no frequency from 0 to"),
        ({"hysteresis": -1}, X, r"hysteresis must be a number in \[0, 100\], got -1"),
        (
            {},
            X.reshape(6, 24, 2),
            r"X has the shape \(6, 24, 2\), and with n_channels=1 the last number is 1",
        ),
        ({"n_channels": 2}, np.where(np.arange(48) == 7, np.nan, X), "NaN in window 0, sample 3, channel 1"),
        ({}, np.where(np.arange(48) == 7, -np.inf, X), "value inf in window 0, sample 7, channel 0"),
    ],
)
def test_errors_are_a_sentence(parameters, x, says):
    with pytest.raises(ValueError, match=says) as caught:
        WindowFeatures(**parameters).fit(x)
    assert "\n" not in str(caught.value)


def test_windows_of_another_length_are_refused():
    step = WindowFeatures().fit(X)
    with pytest.raises(ValueError, match="X has 40 features, but WindowFeatures is expecting 48"):
        step.transform(X[:, :40])


def test_it_wants_to_be_fitted():
    with pytest.raises(NotFittedError):
        WindowFeatures().transform(X)
    with pytest.raises(NotFittedError):
        WindowFeatures().get_feature_names_out()
