"""Data of any size: every estimator grows a finite network from it, or refuses it in one sentence."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, make_classification
from typer.testing import CliRunner

import opgrow
from opgrow import estimators
from opgrow.cli import app
from opgrow.closed_form.admm import bounded_least_squares
from opgrow.closed_form.incremental_ridge import IncrementalRidge
from opgrow.closed_form.ridge import factor_base, update
from opgrow.engine.features import compiled_features
from opgrow.growth.search import SearchSettings, search
from opgrow.network import NORM_EPSILON
from opgrow.network.average import rows_between
from opgrow.network.tensors import to_tensors
from opgrow.operators import OperatorSet
from opgrow.rows.memory import MemoryRows
from opgrow.rows.preparation import merged, moments, standardized

QUICK = {
    "preset": None,
    "operators": [("gaussian", "sum", "tanh"), ("multiplication", "sum", "elu")],
    "n_min": 5,
    "n_step": 2,
    "max_neurons": 7,
    "max_layers": 2,
    "widths": (5, 4),
    "layer_threshold": -100,
    "window_size": 3,
    "admm_iterations": 50,
    "learning_rates": (0.01,),
    "epochs": (2,),
    "fine_tune_epochs": 1,
    "dropout": 0.1,
    "n_jobs": 1,
    "random_state": 0,
}
ALL = [getattr(estimators, name) for name in estimators.__all__]
CLASSIFIERS = [cls for cls in ALL if is_classifier(cls())]
REGRESSORS = [cls for cls in ALL if cls not in CLASSIFIERS]


def walk(classes):
    return pytest.mark.parametrize("cls", classes, ids=lambda cls: cls.__name__)


def quick(cls, **changes):
    known = cls._get_param_names()
    return cls(**{name: value for name, value in (QUICK | changes).items() if name in known})


def some(load, n_rows=80, n_columns=6):
    x, y = load(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(x))[:n_rows]
    return x[rows, :n_columns], y[rows]


IRIS, CANCER, DIABETES = some(load_iris), some(load_breast_cancer), some(load_diabetes)
MADE = make_classification(80, 6, random_state=0)


def table_for(cls):
    return CANCER if is_classifier(cls()) else DIABETES


def fitted(cls, x, y, fit=None, **changes):
    """Fit and predict without a warning; everything about the model is finite."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimator = quick(cls, **changes).fit(x, y, **(fit or {}))
        predicted = estimator.predict(x)
        if is_classifier(estimator):
            shares = estimator.predict_proba(x)
            np.testing.assert_allclose(shares.sum(axis=1), 1.0)
        else:
            assert np.isfinite(predicted).all()
    assert all(np.isfinite(tensor).all() for tensor in to_tensors(estimator.network_).values())
    return estimator


def outputs(estimator, x):
    return estimator.predict_proba(x) if is_classifier(estimator) else estimator.predict(x)


# --- scales ---


@walk(ALL)
def test_powers_of_two_change_nothing_but_the_constants(cls):
    x, y = table_for(cls)
    wanted = outputs(fitted(cls, x, y), x)
    mixed = 2.0 ** np.linspace(-100, 100, x.shape[1]).round()
    for factor in (2.0**-100, 2.0**100, mixed):
        np.testing.assert_array_equal(outputs(fitted(cls, x * factor, y), x * factor), wanted)


@walk(ALL)
def test_a_scaled_table_in_single_precision_is_learned_as_well(cls):
    x, y = table_for(cls)
    x = x.astype(np.float32)
    wanted = fitted(cls, x, y).score(x, y)
    for factor in (1e-30, 1e30, 10.0 ** np.linspace(-30, 30, x.shape[1])):
        scaled = (x * factor).astype(np.float32)
        assert fitted(cls, scaled, y).score(scaled, y) == pytest.approx(wanted, abs=0.02)


@pytest.mark.parametrize("table", [IRIS, CANCER, MADE], ids=["iris", "breast_cancer", "made"])
@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e-40, 1e38, 1e200, 1e300])
def test_scales_whose_squares_vanish_or_overflow(table, scale):
    x, y = table
    assert np.abs(x).max() * scale < np.inf
    wanted = fitted(opgrow.HeMLGOPClassifier, x, y).score(x, y)
    found = fitted(opgrow.HeMLGOPClassifier, x * scale, y).score(x * scale, y)
    assert found == pytest.approx(wanted, abs=0.04)  # denormal numbers have fewer digits


def test_moments_of_columns_of_any_size():
    rng = np.random.default_rng(0)
    x, weight = rng.normal(1.0, 1.0, size=(200, 6)), rng.uniform(0.5, 2, 200)
    x[:, 5] = 3.0
    units = 2.0 ** np.array([-1040, -600, 0, 600, 1000, 1000])
    mean, scale = moments(x, weight)
    far_mean, far_scale = moments(x * units, weight)
    np.testing.assert_allclose(far_mean, mean * units, rtol=1e-9)
    np.testing.assert_allclose(far_scale, np.where(x.std(axis=0) == 0, 1.0, scale * units), rtol=1e-9)
    for factor in (1e-300, 1e-30, 1e30, 1e290):  # constants are told apart whatever the weights
        np.testing.assert_array_equal(moments(x, weight * factor)[1] == 1.0, scale == 1.0)


def test_what_cannot_be_standardised_is_refused():
    x = np.array([[1.0], [2.0], [1.7e308], [-1.7e308]])
    with pytest.raises(ValueError, match=r"^the values of X are too large: column 0 reaches 1.7e\+308"):
        moments(x, np.ones(4))
    with pytest.raises(ValueError, match="^X has values that are too far from the others"):
        standardized(x[:3], np.zeros(1), np.ones(1))


def test_rows_between_the_largest_numbers_are_finite():
    x = np.float32(3e38) * np.where(np.arange(20) % 2, 1, -1)[:, None].astype(np.float32)
    between, _ = rows_between(x, 20, np.random.default_rng(0))
    assert np.isfinite(between).all()


# --- difficult columns, weights and targets ---


def _alternating(x):
    x[:, 0] = 1e38 * (-1.0) ** np.arange(len(x))
    return x


def _with_column(x, value):
    x[:, 0] = value
    return x


COLUMNS = {
    "a column of 1e38": lambda x: _with_column(x, 1e38),
    "a column of 1e38 in single precision": lambda x: _with_column(x, 1e38).astype(np.float32),
    "a column of plus and minus 1e38": _alternating,
    "the same in single precision": lambda x: _alternating(x).astype(np.float32),
    "denormal numbers": lambda x: (x / np.abs(x).max() * 1e-40).astype(np.float32),
    "duplicated columns": lambda x: np.concatenate([x, x], axis=1),
    "columns equal up to 1e-12": lambda x: np.concatenate([x, x * (1 + 1e-12)], axis=1),
    "no column that varies": lambda x: np.full((len(x), 3), 7.1),
    "columns without a variance": lambda x: np.random.default_rng(2).standard_cauchy(x.shape),
    "one row far from the others": lambda x: np.concatenate([np.full_like(x[:1], 1e30), x[1:]]),
}


@walk(ALL)
@pytest.mark.parametrize("change", COLUMNS.values(), ids=COLUMNS)
def test_difficult_columns(cls, change):
    x, y = table_for(cls)
    fitted(cls, change(x.copy()), y)


@walk(ALL)
def test_weights_of_any_size(cls):
    x, y = table_for(cls)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(x))
    x = np.concatenate([x, np.full((len(x), 1), 0.1)], axis=1)  # constant, and not exactly representable
    wanted = outputs(fitted(cls, x, y, {"sample_weight": weight}), x)
    for factor in (2.0**-100, 2.0**1000):
        found = fitted(cls, x, y, {"sample_weight": weight * factor})
        np.testing.assert_array_equal(outputs(found, x), wanted)
    spread = 10.0 ** np.random.default_rng(3).permutation(np.linspace(-30, 30, len(x)))
    fitted(cls, x, y, {"sample_weight": spread})


@walk(CLASSIFIERS)
def test_few_rows_of_a_class(cls):
    x, y = CANCER
    with pytest.raises(ValueError, match=rf"^{cls.__name__} needs at least 2 classes, got 1 class: 1$"):
        quick(cls).fit(x, np.ones(len(x), int))
    assert len(fitted(cls, x[:12], np.arange(12)).classes_) == 12
    assert len(fitted(cls, x, np.where(np.arange(len(x)) == 3, 7, y)).classes_) == 3


@walk(REGRESSORS)
def test_targets_of_any_size(cls):
    x, y = DIABETES
    wanted = fitted(cls, x, y).predict(x)
    for factor in (2.0**-1000, 2.0**-100, 2.0**100):
        np.testing.assert_array_equal(fitted(cls, x, y * factor).predict(x) / factor, wanted)
    assert np.isfinite(fitted(cls, x, np.where(np.arange(len(x)) == 3, 1e30, y)).predict(x)).all()


@walk(REGRESSORS)
@pytest.mark.parametrize("value", [0.0, 1e-320, 1e-30, 1e30, 1e300])
def test_constant_targets(cls, value):
    x, _ = DIABETES
    found = fitted(cls, x, np.full(len(x), value)).predict(x)
    np.testing.assert_allclose(found, value, rtol=1e-5, atol={0.0: 1e-5, 1e-320: 1e-322}.get(value, 0))


# --- identical rows ---


def test_a_million_identical_rows_of_two_classes():
    y = np.arange(1_000_000) % 4 == 0
    found = opgrow.HeMLGOPClassifier(random_state=0, n_jobs=1).fit(np.full((len(y), 4), 3.7), y)
    np.testing.assert_allclose(found.predict_proba([[3.7] * 4]), [[0.75, 0.25]], atol=0.01)


def test_a_million_identical_rows_with_a_million_targets():
    y = np.random.default_rng(0).normal(5.0, 1.0, 1_000_000)
    found = quick(opgrow.BLSRegressor).fit(np.full((len(y), 4), 3.7), y)
    assert found.predict([[3.7] * 4]) == pytest.approx(5.0, abs=0.05)


def test_merged_rows_keep_weights_and_means():
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.1, 2, 50_000)
    for target in (np.eye(3)[rng.integers(3, size=50_000)], rng.normal(size=(50_000, 2))):
        few, share = merged(target, weight)
        assert len(few) <= 1000
        assert share.sum() == pytest.approx(weight.sum())
        np.testing.assert_allclose(share @ few, weight @ target)
    few, share = merged(np.eye(3)[[0, 2, 2, 0]], np.array([1.0, 2, 3, 4]))
    assert few.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert share.tolist() == [5, 5]


# --- nearly singular Gram matrices ---


def _copies(n_rows=300, noise=0.0):
    """Features of which every one has a copy, equal up to noise, and targets."""
    rng = np.random.default_rng(0)
    h = rng.normal(size=(n_rows, 5))
    h = np.concatenate([h, h + noise * rng.normal(size=h.shape)], axis=1)
    y = rng.normal(size=(n_rows, 2))
    return h - h.mean(axis=0), y - y.mean(axis=0)


def _ridge_oracle(h, y, ridge):
    """Predictions of ridge regression by a least-squares solver that never squares its matrix."""
    below = np.sqrt(ridge) * np.eye(h.shape[1])
    stacked = np.concatenate([h, below]), np.concatenate([y, np.zeros((len(below), y.shape[1]))])
    return h @ np.linalg.lstsq(*stacked, rcond=None)[0]


@pytest.mark.parametrize("noise", [0.0, 1e-12])
@pytest.mark.parametrize("ridge", [1e-6, 0.1, 10.0])
def test_closed_forms_with_copied_features_are_the_oracles(noise, ridge):
    h, y = _copies(noise=noise)
    wanted = _ridge_oracle(h, y, ridge)
    old, new = h[:, :6], h[:, 6:]
    total = float(np.square(y).sum())
    base = factor_base(old.T @ old, old.T @ y, total, len(y), ridge)
    solved = update(base, (old.T @ new)[:, None], (new.T @ new)[None], (new.T @ y)[None])
    assert solved.valid.all()
    found = old @ solved.old_head[0] + new @ solved.new_head[0]
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    assert float(solved.squared_error[0]) == pytest.approx(np.square(y - wanted).sum(), rel=1e-6)

    single, deviation = h.astype(np.float32), h.astype(np.float32).std(axis=0, dtype=np.float64)
    regression = IncrementalRidge.start(y, np.ones(len(y)), ridge).extend(single[:, :6])
    weight, intercept = regression.extend(single[:, 6:]).head()
    standard = (single - single.mean(axis=0, dtype=np.float64)) / deviation
    np.testing.assert_allclose(single @ weight + intercept, _ridge_oracle(standard, y, ridge), atol=1e-4)

    free = bounded_least_squares(h.T @ h, h.T @ y, np.inf)
    np.testing.assert_allclose(h @ free, h @ np.linalg.lstsq(h, y, rcond=1e-10)[0], atol=1e-6)


@pytest.mark.parametrize("noise", [0.0, 1e-12])
def test_a_search_on_copied_inputs_and_features_is_the_oracle(noise):
    rng = np.random.default_rng(1)
    x, target = _copies(noise=noise)
    accepted, x = x.astype(np.float32), np.ascontiguousarray(x[:, 3:7], np.float32)
    rows = MemoryRows(x, accepted, target.astype(np.float32), np.ones(len(x), np.float32))
    sets = [OperatorSet("multiplication", "sum", "tanh"), OperatorSet("gaussian", "sum", "elu")]
    winner = search(rows, sets, 8, SearchSettings(ridges=(0.1,)), rng).winner
    raw = compiled_features(x, winner.weight, np.zeros(8, np.float32), winner.candidate.operator_set, 1)
    raw = raw.astype(np.float64)
    standard = (raw - raw.mean(axis=0)) / np.sqrt(raw.var(axis=0) + NORM_EPSILON)
    h = np.concatenate([accepted.astype(np.float64), standard], axis=1)
    found = h @ winner.head + winner.intercept
    np.testing.assert_allclose(found, _ridge_oracle(h - h.mean(axis=0), target, 0.1), atol=2e-3)


# --- what is not finite is left out and counted ---


def _overflowing(x):
    """Inputs whose squares and products of three overflow, while their sums do not."""
    return (x - x.mean(axis=0)) / x.std(axis=0) * 1e15


SQUARES = [("multiplication", "sum", "tanh"), ("quadratic", "correlation2", "inverse_absolute")]


@walk([cls for cls in CLASSIFIERS if "operators" in cls._get_param_names()])
def test_candidates_that_overflow_are_counted(cls):
    x, y = _overflowing(CANCER[0]), CANCER[1]
    found = fitted(cls, x, y, standardize=False, operators=SQUARES, widths=(5,), max_layers=1)
    searches = [step for step in found.history_ if step.candidates]
    assert sum(step.invalid_candidates for step in searches) > 0
    for step in searches:
        assert all(np.isfinite([c.score, c.loss]).all() for c in step.candidates)


@walk([opgrow.HeMLGOPClassifier, opgrow.PMLPClassifier, opgrow.HeMLGOPRegressor, opgrow.PMLPRegressor])
def test_batches_and_epochs_that_overflow_are_counted(cls, tmp_path):
    x, y = table_for(cls)
    rates = {"learning_rates": (1e30,), "epochs": (3,), "fine_tune_learning_rate": 0.0}
    found = fitted(cls, x, y, **rates)
    tuned = [step for step in found.history_ if step.kind == "block"]
    assert sum(step.skipped_batches for step in tuned) > 0
    assert sum(step.invalid_epochs for step in tuned) > 0
    for step in tuned:
        lost = [e for e in step.curve if not np.isfinite([e.score.value, e.score.loss]).all()]
        assert step.invalid_epochs == len(lost)
        assert step.best_epoch not in [e.number for e in lost]

    model, page = tmp_path / "model.safetensors", tmp_path / "report.html"
    found.save(model)
    found.report(page)
    text = CliRunner().invoke(app, ["inspect", str(model)]).stdout
    told = json.loads(CliRunner().invoke(app, ["inspect", str(model), "--json"]).stdout)["history"]
    assert [step["invalid_epochs"] for step in told] == [step.invalid_epochs for step in found.history_]
    epochs = sum(step.invalid_epochs for step in found.history_)
    for shown in (" ".join(text.split()), page.read_text()):
        assert "Left out, because they were not finite: " in shown
        assert f"{epochs} epoch" in shown


def test_the_batches_of_all_tried_dropouts_count():
    rates = {"learning_rates": (1e30,), "epochs": (3,), "fine_tune_epochs": 0, "max_layers": 1}
    one = fitted(opgrow.HeMLGOPClassifier, *CANCER, n_min=7, dropout=(0.1,), **rates)
    two = fitted(opgrow.HeMLGOPClassifier, *CANCER, n_min=7, dropout=(0.1, 0.2), **rates)
    assert two.history_[0].skipped_batches > one.history_[0].skipped_batches > 0


def test_nothing_is_said_where_nothing_was_left_out():
    found = fitted(opgrow.HeMLGOPClassifier, *CANCER)
    assert opgrow.estimators.listeners.progress.growth_table(found.history_).caption is None


# --- refusals ---


def test_rows_on_which_a_network_overflows_are_refused():
    x, y = DIABETES
    operators = [("multiplication", "correlation2", "inverse_absolute")]
    model = fitted(opgrow.HeMLRNRegressor, x, y, operators=operators, standardize=False)
    far = np.concatenate([x[:2], 1e30 * x[:1], x[:2]])
    message = "^X is too far from the data .*: it overflows on 1 of 5 rows, the first of them row 2$"
    with pytest.raises(ValueError, match=message), pytest.warns(opgrow.RangeWarning):
        model.predict(far)


@walk(ALL)
def test_validation_rows_that_cannot_be_scored_are_refused(cls):
    x, y = table_for(cls)
    far = 1e300 * x, y
    operators = [("multiplication", "correlation2", "inverse_absolute")]
    with pytest.raises(ValueError, match=r"X or eval_set has values that are too far|overflows on the val"):
        quick(cls, operators=operators, standardize=False).fit(x, y, eval_set=far)
    model = quick(cls, operators=operators).fit(x, y, eval_set=far)  # bounded inputs can be scored
    assert np.isfinite(model.predict(x)).all()


@walk(ALL)
def test_inputs_that_overflow_unstandardised_are_refused_or_left_out(cls):
    x, y = table_for(cls)
    refused = None
    try:
        fitted(cls, 1e36 * _overflowing(x) / 1e15, y, standardize=False)
    except ValueError as error:
        refused = str(error)
    assert refused is None or (len(refused) < 250 and "\n" not in refused)


@pytest.mark.parametrize("scale", [1e-200, 1e-42, 1e41, 1e200])
def test_models_that_single_precision_cannot_hold_are_not_exported_in_it(scale, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    x, y = DIABETES
    for model in (
        fitted(opgrow.HeMLRNRegressor, scale * x, y),
        fitted(opgrow.HeMLRNRegressor, x, scale * y),
    ):
        for export, name in ((model.export_c, "model.c"), (model.export_onnx, "model.onnx")):
            with pytest.raises(ValueError, match="^(In|Out)put 0 has a mean of .* single precision does not"):
                export(tmp_path / name)
    model = fitted(opgrow.HeMLRNRegressor, scale * x, y)
    model.export_onnx(tmp_path / "model.onnx", input_type="float64")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    np.testing.assert_allclose(
        session.run(None, {"X": scale * x})[0][:, 0], model.predict(scale * x), rtol=1e-4
    )
