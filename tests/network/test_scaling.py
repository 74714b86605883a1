"""Inputs on a common, bounded scale; predictions that stay near what was seen."""

import warnings

import numpy as np
import pytest
import torch

from opgrow import (
    BLSRegressor,
    HeMLGOPClassifier,
    HeMLRNClassifier,
    HeMLRNRegressor,
    RangeWarning,
    load,
)
from opgrow.network.scaling import BOUND, Scaling, kept_sample, robust, spread_rows, squash
from opgrow.rows.preparation import moments, ranges, scaled

RNG = np.random.default_rng(0)
QUICK = {"preset": None, "n_min": 6, "max_neurons": 6, "max_layers": 1, "fine_tune_epochs": 0}


def line(n_rows=200, noise=0.1):
    """A target that follows one input, beside inputs without meaning."""
    x = RNG.normal(size=(n_rows, 3))
    return x, 5 * x[:, 0] + noise * RNG.normal(size=n_rows)


@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor])
def test_squashing_keeps_order_and_the_middle_and_stays_within_the_bound(kind):
    z = np.concatenate([-np.logspace(300, -300, 50), [0.0], np.logspace(-300, 300, 50)])
    result = np.asarray(squash(kind(z), 3.0))
    assert (np.diff(result) >= 0).all()
    assert (np.abs(result) <= 3).all()
    near = np.abs(z) < 1e-3
    np.testing.assert_allclose(result[near], z[near], rtol=1e-6)
    np.testing.assert_allclose(squash(np.array([4.0]), 3.0), 4 / np.sqrt(1 + 16 / 9))
    assert np.isnan(np.asarray(squash(kind(np.array([np.nan])), 3.0))).all()
    np.testing.assert_allclose(np.asarray(squash(kind(np.array([np.inf, -np.inf])), 3.0)), [3, -3])


def test_without_a_bound_values_stay_as_they_are():
    z = np.array([-1e300, 2.0])
    assert squash(z, None) is z


def scaling_of(x, weight=None):
    weight = np.ones(len(x)) if weight is None else weight
    return robust(Scaling(*moments(x, weight), BOUND), ranges(x, x[:, :0]), x, weight)


def test_a_sentinel_does_not_decide_the_scale_of_its_column():
    x = RNG.normal(3.0, 2.0, size=(1000, 2))
    clean = scaling_of(x)
    x[17, 1] = 999_999.0
    result = scaling_of(x)
    assert result.center[0] == clean.center[0]
    assert result.scale[0] == clean.scale[0]
    np.testing.assert_allclose([result.center[1], result.scale[1]], [3.0, 2.0], rtol=0.15)
    assert moments(x, np.ones(1000))[1][1] > 10_000


def test_columns_without_far_values_are_scaled_by_mean_and_deviation():
    x = np.column_stack([RNG.uniform(size=500), RNG.integers(0, 2, 500), np.full(500, 7.0)])
    result = scaling_of(x)
    np.testing.assert_allclose(result.center, x.mean(axis=0))
    np.testing.assert_allclose(result.scale[:2], [x[:, 0].std(), x[:, 1].std()])


def test_a_column_of_equal_values_and_a_far_one_keeps_a_scale():
    x = np.zeros((500, 1))
    x[3] = 1e6
    assert scaling_of(x).scale == pytest.approx(x.std())


def test_weights_count_as_copies_of_rows():
    x = np.append(RNG.normal(size=199), 1e5)[:, None]
    weight = RNG.integers(1, 4, 200)
    copies, counted = scaling_of(np.repeat(x, weight, axis=0)), scaling_of(x, weight.astype(float))
    assert copies.center == counted.center
    assert copies.scale == counted.scale
    assert counted.scale < 2


def test_the_largest_numbers_are_squashed_like_others():
    x = np.array([[1e307], [-1e307], [0.0]])
    result = scaled(x, Scaling(np.zeros(1), np.full(1, 1e-300), BOUND))
    np.testing.assert_allclose(result, [[3], [-3], [0]], rtol=1e-6)


def test_spread_rows_do_not_depend_on_how_rows_are_divided():
    alone = spread_rows(1000, 0, 1000, 64)
    parts = [spread_rows(n, before, 1000, 64) + before for n, before in ((137, 0), (500, 137), (363, 637))]
    np.testing.assert_array_equal(np.concatenate(parts), alone)
    assert len(alone) <= 64


def test_a_kept_sample_is_small_however_wide_it_is():
    assert kept_sample(np.zeros((4096, 4))).shape == (256, 4)
    assert kept_sample(np.zeros((4096, 1024))).shape == (64, 1024)
    assert kept_sample(np.zeros((30, 100_000))).shape == (1, 100_000)


@pytest.mark.filterwarnings("ignore::opgrow.RangeWarning")
@pytest.mark.parametrize("model", [HeMLRNRegressor(**QUICK, random_state=0), BLSRegressor(random_state=0)])
@pytest.mark.parametrize("factor", [30, -1e6, 1e300])
def test_predictions_far_from_the_data_stay_near_the_targets(model, factor):
    x, y = line()
    model.fit(x, y)
    for column in range(3):
        far = x.copy()
        far[:, column] *= factor
        predicted = model.predict(far)
        assert predicted.min() >= y.min() - 0.05001 * np.ptp(y)
        assert predicted.max() <= y.max() + 0.05001 * np.ptp(y)
    assert model.score(x, y) > 0.7


def test_several_targets_have_limits_of_their_own():
    x, y = line()
    model = HeMLRNRegressor(**QUICK, random_state=0).fit(x, np.column_stack([y, 100 + 0.01 * y]))
    low, high = model.network_.output_low, model.network_.output_high
    np.testing.assert_allclose(high - low, 1.1 * np.array([np.ptp(y), 0.01 * np.ptp(y)]))


def test_a_network_that_standardises_nothing_bounds_no_input():
    x, y = line()
    model = HeMLRNRegressor(**QUICK, standardize=False, random_state=0).fit(x, y)
    assert model.network_.input_bound is None
    np.testing.assert_array_equal(model.network_.standardize(x), x.astype(np.float32))


def test_rows_far_outside_are_named_and_can_be_asked_for():
    x, y = line()
    model = HeMLRNClassifier(**QUICK, random_state=0).fit(x, y > 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RangeWarning)
        model.predict(x)
    rows = np.vstack([x[:3], [[0.0, 1e4, 0.0]]])
    with pytest.warns(RangeWarning, match=r"1 of 4 rows .* in row 3, column 1 is 10000, and -.* were seen"):
        model.predict_proba(rows)
    np.testing.assert_array_equal(model.outside(rows), [False, False, False, True])


@pytest.mark.parametrize("value", [0.0, 0.1, -1e9, 1e29, 1e200])
def test_a_constant_column_is_ignored_when_it_changes(value):
    x, y = line()
    x[:, 2] = value
    model = HeMLRNClassifier(**QUICK, random_state=0).fit(x, y > 0)
    before = model.predict_proba(x)
    x[:, 2] += 1000 * max(1, abs(value))
    np.testing.assert_array_equal(model.predict_proba(x), before)
    assert not model.outside(x).any()


@pytest.mark.parametrize("value", [0.0, 1.7e9, -3e15])
def test_a_constant_column_of_any_size_can_be_exported(value, tmp_path):
    x, y = line()
    x[:, 2] = value
    model = HeMLRNClassifier(**QUICK, random_state=0).fit(x, y > 0)
    for options in ({}, {"arithmetic": "integer"}):
        assert model.export_c(tmp_path / "model.c", calibration=x, **options).agreement >= 0.99


def test_what_was_seen_travels_in_the_model_file(tmp_path):
    x, y = line()
    model = HeMLRNRegressor(**QUICK, random_state=0).fit(x, y)
    model.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert again.network_.input_bound == BOUND
    np.testing.assert_array_equal(again.sample_, model.sample_)
    np.testing.assert_array_equal(again.network_.input_low, x.min(axis=0))
    np.testing.assert_array_equal(again.network_.output_high, model.network_.output_high)
    with pytest.warns(RangeWarning):
        np.testing.assert_array_equal(again.predict(40 * x), model.predict(40 * x))


def test_a_model_file_can_leave_the_sample_out(tmp_path):
    x, y = line()
    model = HeMLRNRegressor(**QUICK, random_state=0).fit(x, y)
    model.save(tmp_path / "model.safetensors", sample=False)
    again = load(tmp_path / "model.safetensors")
    assert again.sample_ is None
    assert model.sample_ is not None
    np.testing.assert_array_equal(again.predict(x), model.predict(x))


def test_a_sentinel_costs_no_accuracy():
    x, y = line(400)
    clean = HeMLGOPClassifier(**QUICK, random_state=0).fit(x, y > 0).score(x, y > 0)
    x[7, 0] = 999_999.0
    assert HeMLGOPClassifier(**QUICK, random_state=0).fit(x, y > 0).score(x, y > 0) > clean - 0.03


def test_an_estimator_keeps_a_sample_of_its_rows_in_their_type():
    x, y = line(600)
    model = HeMLRNRegressor(**QUICK, random_state=0).fit(x.astype(np.float32), y)
    assert model.sample_.dtype == np.float32
    assert 128 <= len(model.sample_) <= 256
    rows = {tuple(row) for row in x.astype(np.float32)}
    assert all(tuple(row) in rows for row in model.sample_)
