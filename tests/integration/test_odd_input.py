"""Input that real tables bring: it is fitted, or refused with one sentence."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from opgrow import HeMLGOPClassifier, HeMLGOPRegressor, HeMLRNClassifier, HoMLGOPClassifier
from opgrow.network.tensors import to_tensors
from tests.networks import outputs_of

SMALL = {
    "n_min": 6,
    "n_step": 3,
    "max_neurons": 9,
    "learning_rates": (0.01,),
    "epochs": (3,),
    "fine_tune_epochs": 2,
    "dropout": 0.1,
    "random_state": 0,
}
BOTH = pytest.mark.parametrize("cls", [HeMLGOPClassifier, HeMLGOPRegressor], ids=lambda c: c.__name__)


def table(n=120, d=4, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    return x, (x[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(int)


def fitted(cls, x, y, **changes):
    """Fit without a warning, and predict finite numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimator = cls(**(SMALL | changes)).fit(x, y)
    assert np.isfinite(outputs_of(estimator, x)).all()
    assert all(np.isfinite(tensor).all() for tensor in to_tensors(estimator.network_).values())
    return estimator


@BOTH
def test_constant_columns_do_no_harm(cls):
    x, y = table()
    x[:, 1], x[:, 2] = 0.0, 1e8 + 0.1
    estimator = fitted(cls, x, y)
    assert estimator.score(x, y) > 0.3
    assert (estimator.network_.input_scale[1:3] > 1e29).all()  # whatever they become later vanishes


@BOTH
def test_only_constant_columns(cls):
    _, y = table()
    estimator = fitted(cls, np.ones((120, 3)), y)
    assert len(np.unique(estimator.predict(np.ones((5, 3))))) == 1


@BOTH
def test_a_constant_column_that_changes_at_prediction(cls):
    x, y = table()
    x[:, 1] = 5.0
    estimator = fitted(cls, x, y)
    before = estimator.predict(x)
    x[:, 1] = 6.0
    np.testing.assert_array_equal(estimator.predict(x), before)


@BOTH
def test_duplicated_columns_and_rows(cls):
    x, y = table()
    assert fitted(cls, np.concatenate([x, x, x], axis=1), y).score(np.concatenate([x, x, x], axis=1), y) > 0.3
    assert fitted(cls, np.tile(x[:10], (12, 1)), np.tile(y[:10], 12)).score(x[:10], y[:10]) > 0.3


@BOTH
@pytest.mark.parametrize("d", [1, 2, 3])
def test_few_features_are_enough(cls, d):
    x, y = table(d=d)
    assert fitted(cls, x, y).score(x, y) > 0.3


@pytest.mark.parametrize(
    "cls", [HeMLGOPClassifier, HeMLRNClassifier, HoMLGOPClassifier], ids=lambda c: c.__name__
)
def test_two_samples_of_each_class(cls):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6, 3)) + 5 * np.repeat(np.eye(3), 2, axis=0)
    y = np.repeat(["a", "b", "c"], 2)
    clf = fitted(cls, x, y)
    assert list(clf.classes_) == ["a", "b", "c"]
    assert clf.score(x, y) > 0.6


@BOTH
def test_two_rows_are_enough(cls):
    estimator = fitted(cls, [[0.0, 1.0], [1.0, 0.0]], [0, 1])
    assert estimator.predict([[0.0, 1.0]]).shape == (1,)


def test_classes_with_a_single_row():
    x, y = table()
    y[0], y[1] = 2, 3
    clf = fitted(HeMLGOPClassifier, x, y)
    assert list(clf.classes_) == [0, 1, 2, 3]


def test_500_classes_are_fitted():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(500), 2)
    x = rng.normal(size=(500, 20))[y] + 0.05 * rng.normal(size=(1000, 20))
    clf = fitted(HeMLGOPClassifier, x, y, n_min=60, max_neurons=60, max_layers=1, epochs=(10,))
    assert clf.predict_proba(x).shape == (1000, 500)
    assert clf.score(x, y) > 0.5


@BOTH
def test_many_more_columns_than_rows(cls):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 5000))
    y = (x[:, :50].sum(axis=1) > 0).astype(int)
    fitted(
        cls,
        x,
        y,
        max_layers=1,
        operators=[("multiplication", "sum", "tanh"), ("harmonic", "correlation1", "elu")],
    )


@BOTH
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.int64, np.uint16, bool])
def test_the_type_of_numbers_does_not_matter(cls, dtype):
    x, y = table()
    x = (x > 0) if dtype is bool else np.abs(10 * x).astype(dtype)
    as_double = x.astype(np.float64)
    expected = outputs_of(fitted(cls, as_double, y), as_double)
    np.testing.assert_allclose(outputs_of(fitted(cls, x, y), x), expected, rtol=1e-4, atol=1e-4)


@BOTH
def test_the_layout_of_memory_does_not_matter(cls, tmp_path):
    x, y = table()
    expected = outputs_of(fitted(cls, x, y), x)
    wide = np.zeros((240, 8))
    wide[::2, ::2] = x
    mapped = np.memmap(tmp_path / "x.dat", dtype=np.float64, mode="w+", shape=x.shape)
    mapped[:] = x
    mapped.flush()
    readonly = np.memmap(tmp_path / "x.dat", dtype=np.float64, mode="r", shape=x.shape)
    frozen = x.copy()
    frozen.flags.writeable = False
    swapped = x.astype(">f8")
    for rows in (np.asfortranarray(x), wide[::2, ::2], x[::-1][::-1], readonly, frozen, swapped):
        np.testing.assert_array_equal(outputs_of(fitted(cls, rows, y), rows), expected)


def test_targets_in_any_layout():
    x, y = table()
    both = np.stack([y, 1 - y], axis=1).astype(np.float64)
    wanted = fitted(HeMLGOPRegressor, x, both, validation_fraction=0.0).predict(x)
    for given in (np.asfortranarray(both), np.repeat(both, 2, axis=1)[:, ::2], both.astype(np.float32)):
        actual = fitted(HeMLGOPRegressor, x, given, validation_fraction=0.0).predict(x)
        np.testing.assert_array_equal(actual, wanted)


@pytest.mark.parametrize("scale", [1e30, 1e39, 1e300])
def test_huge_targets_are_predicted_or_refused(scale):
    x, _ = table()
    refused, model = None, None
    try:
        model = fitted(HeMLGOPRegressor, x, scale * x[:, 0])
    except ValueError as error:
        refused = str(error)
    if model is None:
        assert "of y are too large" in refused
    else:
        assert np.abs(model.predict(x) - scale * x[:, 0]).mean() < 0.5 * scale


@BOTH
def test_fitting_leaves_the_users_arrays_alone(cls):
    x, y = table()
    weight = np.linspace(0, 1, len(y))
    before = x.copy(), y.copy(), weight.copy()
    cls(**SMALL).fit(x, y, sample_weight=weight)
    for now, then in zip((x, y, weight), before, strict=True):
        np.testing.assert_array_equal(now, then)


@BOTH
@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(cls, bad):
    x, y = table()
    spoiled = x.copy()
    spoiled[3, 1] = bad
    with pytest.raises(ValueError, match="NaN|infinity"):
        cls(**SMALL).fit(spoiled, y)
    estimator = fitted(cls, x, y)
    with pytest.raises(ValueError, match="NaN|infinity"):
        estimator.predict(spoiled)
    with pytest.raises(ValueError, match="NaN|infinity"):
        cls(**SMALL).fit(x, np.where(np.arange(120) == 3, bad, y))
    with pytest.raises(ValueError, match="NaN"):
        cls(**SMALL).fit(x, np.where(np.arange(120) == 3, np.nan, y))


@BOTH
@pytest.mark.parametrize("scale", [1e6, 1e-6, 1e30, 1e-30, 1e150])
def test_the_scale_of_columns_does_not_matter(cls, scale):
    x, y = table()
    wanted, actual = fitted(cls, x, y), fitted(cls, scale * x, y)
    assert actual.score(scale * x, y) == pytest.approx(wanted.score(x, y), abs=0.05)


@BOTH
def test_a_large_mean_with_a_small_deviation(cls):
    x, y = table()
    wanted, actual = fitted(cls, x, y), fitted(cls, 1e8 + x, y)
    assert actual.score(1e8 + x, y) == pytest.approx(wanted.score(x, y), abs=0.05)


@BOTH
def test_columns_of_very_different_scales(cls):
    x, y = table()
    factors = np.array([1e-8, 1.0, 1e8, 1e3])
    assert fitted(cls, x * factors, y).score(x * factors, y) > 0.3


@BOTH
def test_one_wild_outlier(cls):
    x, y = table()
    x[0] = 1e12
    estimator = fitted(cls, x, y)
    assert estimator.predict(x).shape == (120,)


@BOTH
def test_prediction_far_outside_the_training_data_is_finite(cls):
    x, y = table()
    estimator = fitted(cls, x, y)
    far = np.array([[1e6, -1e6, 1e6, -1e6], [1e12, 1e12, 1e12, 1e12]])
    assert np.isfinite(outputs_of(estimator, far)).all()


@BOTH
@pytest.mark.parametrize(
    "changes", [{"batch_size": 1}, {"batch_size": 10_000}, {"n_min": 1, "n_step": 1, "max_neurons": 2}]
)
def test_extreme_but_legal_settings(cls, changes):
    x, y = table(n=60)
    fitted(cls, x, y, **changes)


def test_one_class_is_refused():
    x, _ = table()
    with pytest.raises(ValueError, match="class"):
        HeMLGOPClassifier(**SMALL).fit(x, np.zeros(120))


def test_no_rows_and_no_columns_are_refused():
    for shape in ((0, 3), (5, 0), (1, 3)):
        with pytest.raises(ValueError, match="sample|feature"):
            HeMLGOPRegressor(**SMALL).fit(np.ones(shape), np.ones(shape[0]))
