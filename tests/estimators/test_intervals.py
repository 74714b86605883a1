"""Prediction intervals of regressors: they cover what they promise, and are wide where errors are large."""

from __future__ import annotations

import numpy as np
import pytest

from opgrow import BLSRegressor, HeMLGOPRegressor, HeMLRNRegressor, POPFastRegressor, load
from opgrow.estimators.fit.calibration import HeldOut
from opgrow.estimators.intervals import N_SCORES, intervals_of
from opgrow.network import Network
from tests.networks import randomized

QUICK = {"max_layers": 1, "max_neurons": 40, "random_state": 0}


def waves(n_rows, seed, noise=0.3):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(n_rows, 3))
    return x, np.sin(3 * x[:, 0]) + x[:, 1] * x[:, 2] + noise * rng.normal(size=n_rows)


def coverage(model, x, y, wanted):
    low, high = model.predict_interval(x, wanted)
    assert low.shape == high.shape == y.shape
    return float(((low <= y) & (y <= high)).mean())


@pytest.mark.parametrize("make", [HeMLGOPRegressor, HeMLRNRegressor, BLSRegressor])
def test_intervals_cover_the_share_of_fresh_rows_that_was_asked_for(make):
    x, y = waves(700, 0)
    model = make(random_state=0, **({} if make is BLSRegressor else {"max_layers": 1})).fit(x, y)
    fresh = waves(4000, 1)
    for wanted in (0.5, 0.8, 0.9, 0.95):
        assert coverage(model, *fresh, wanted) == pytest.approx(wanted, abs=0.08)


def test_networks_that_disagree_make_them_wider():
    x, y = waves(300, 0, noise=0.05)
    model = HeMLGOPRegressor(**QUICK).fit(x, y)
    inside = model.predict_interval(x)
    outside = model.predict_interval(np.sign(x) * 1.6)
    assert np.mean(outside[1] - outside[0]) > 1.3 * np.mean(inside[1] - inside[0])


def test_a_single_network_has_intervals_of_one_width():
    x, y = waves(300, 0)
    low, high = HeMLGOPRegressor(preset=None, **QUICK).fit(x, y).predict_interval(x)
    np.testing.assert_allclose(high - low, (high - low)[0])


def test_several_targets_have_intervals_of_their_own():
    x, y = waves(400, 0, noise=0.1)
    both = np.stack([y, 100 * y + 50 * np.random.default_rng(5).normal(size=len(y))], axis=1)
    model = HeMLGOPRegressor(**QUICK).fit(x, both)
    low, high = model.predict_interval(x)
    assert low.shape == both.shape
    width = (high - low).mean(axis=0)
    assert width[1] > 100 * width[0]
    assert np.all(((low <= both) & (both <= high)).mean(axis=0) > 0.85)


@pytest.mark.parametrize("preset", [None, "balanced", "compact"])
def test_a_saved_model_keeps_them(tmp_path, preset):
    x, y = waves(250, 0)
    model = HeMLGOPRegressor(preset=preset, **QUICK).fit(x, y)
    model.save(tmp_path / "waves.safetensors")
    again = load(tmp_path / "waves.safetensors")
    for before, after in zip(model.predict_interval(x), again.predict_interval(x), strict=True):
        np.testing.assert_array_equal(before, after)


def test_without_validation_rows_there_are_none_and_the_error_says_so(tmp_path):
    x, y = waves(100, 0)
    model = HeMLGOPRegressor(preset=None, validation_fraction=0, **QUICK).fit(x, y)
    with pytest.raises(ValueError, match="no rows validated it: fit it again, and not by partial_fit, with"):
        model.predict_interval(x)
    model.save(tmp_path / "none.safetensors")
    assert load(tmp_path / "none.safetensors").intervals_ is None
    model.fit(x, y, eval_set=waves(50, 1))
    assert coverage(model, *waves(2000, 2), 0.8) == pytest.approx(0.8, abs=0.12)


@pytest.mark.parametrize("wanted", [0, 1, -0.1, 1.5, "half", None])
def test_a_coverage_is_a_share(wanted):
    x, y = waves(60, 0)
    model = POPFastRegressor(widths=(4,), epochs=(1,), learning_rates=(0.01,), random_state=0).fit(x, y)
    with pytest.raises(ValueError, match="coverage"):
        model.predict_interval(x, wanted)


def test_the_factor_of_a_coverage_is_a_quantile_of_errors_in_units_of_the_scale():
    rng = np.random.default_rng(0)
    network = randomized(Network(2, 1), 0)
    error = rng.normal(size=(199, 1))
    held = HeldOut(rng.normal(size=(199, 2)), np.zeros((199, 1)), error, np.ones(199))
    intervals = intervals_of(network, None, held)
    assert intervals.scores.shape == (1, N_SCORES)
    half = intervals.half_widths(network, held.x, 0.9)
    # 0.9 (n + 1) / n of the errors are within: one row more could have any.
    assert (abs(error) <= half).mean() == pytest.approx(0.905, abs=0.01)


def test_errors_of_zero_have_intervals_of_no_width():
    held = HeldOut(np.zeros((9, 2)), np.ones((9, 1)), np.ones((9, 1)), np.ones(9))
    intervals = intervals_of(randomized(Network(2, 1), 0), None, held)
    np.testing.assert_array_equal(intervals.half_widths(Network(2, 1), held.x, 0.9), np.zeros((9, 1)))
