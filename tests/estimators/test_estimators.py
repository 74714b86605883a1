"""The scikit-learn faces: its own checks, parameters, input of every kind, and errors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import expit, softmax
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes, load_iris, make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import RidgeCV
from sklearn.metrics import get_scorer, r2_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import opgrow
from opgrow import (
    HeMLGOPClassifier,
    HeMLGOPRegressor,
    HeMLRNClassifier,
    HeMLRNRegressor,
    HoMLRNClassifier,
    HoMLRNRegressor,
    OperatorSet,
    PLNRegressor,
    PMLPRegressor,
    POPClassifier,
    POPMemHClassifier,
    POPRegressor,
)
from opgrow.operators import register_nodal, unregister
from tests.double_precision import answers, assert_as_double_precision_says
from tests.networks import outputs_of

NAMES = sorted(name for name in opgrow.__all__ if name.endswith(("Classifier", "Regressor")))
ESTIMATORS = [getattr(opgrow, name) for name in NAMES]
CLASSIFIERS = [cls for cls in ESTIMATORS if cls.__name__.endswith("Classifier")]
REGRESSORS = [cls for cls in ESTIMATORS if cls.__name__.endswith("Regressor")]
OPERATORS = [
    ("multiplication", "sum", "tanh"),
    ("multiplication", "sum", "relu"),
    ("harmonic", "sum", "sigmoid"),
    ("gaussian", "maximum", "elu"),
]
SMALL = {
    "n_min": 6,
    "n_step": 3,
    "max_neurons": 9,
    "learning_rates": (0.01,),
    "epochs": (4,),
    "fine_tune_epochs": 2,
    "dropout": 0.1,
    "operators": OPERATORS,
    "random_state": 0,
}

# Scikit-learn asks that integer weights equal repeated rows to the last digit. Repeating rows changes which
# rows share a mini-batch and which are held out for validation, and leave-one-out leaves out one copy.
EXPECTED_FAILURES = {
    f"check_sample_weight_equivalence_on_{kind}_data": "batches and splits see single rows"
    for kind in ("dense", "sparse")
}
# Its check of regressors sets alpha, the penalty of linear models, to 0.01; PLN's alpha bounds a norm.
ALPHA_FAILURES = {"check_regressors_train": "fits with alpha=0.01, which leaves PLN's outputs no room"}


# The heads of the POP family start from random weights and not from a closed form.
TRAINED = {"widths": (8,), "learning_rates": (0.03,), "epochs": (100,)}


def small(cls, **changes):
    accepted_names = cls().get_params()  # not every family tunes or searches
    given = SMALL | (TRAINED if "widths" in accepted_names else {}) | changes
    return cls(**{name: value for name, value in given.items() if name in accepted_names})


def test_all_methods_are_tested():
    assert len(ESTIMATORS) == 22
    assert len(CLASSIFIERS) == len(REGRESSORS) == 11


@parametrize_with_checks(
    # Enough training for the checks that ask for a good fit, and a library small enough to be quick.
    [small(cls, n_min=10, epochs=(100,), patience=None) for cls in ESTIMATORS],
    expected_failed_checks=lambda estimator: (
        EXPECTED_FAILURES | (ALPHA_FAILURES if isinstance(estimator, PLNRegressor) else {})
    ),
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


@pytest.mark.parametrize("cls", [HeMLGOPClassifier, HeMLRNClassifier], ids=lambda c: c.__name__)
def test_defaults_classify(cls, iris):
    x, x_test, y, y_test = train_test_split(*iris, random_state=0, stratify=iris[1])
    clf = cls(random_state=0).fit(x, y)
    assert clf.score(x_test, y_test) > 0.9
    assert clf.network_.n_outputs == 3


@pytest.mark.parametrize("cls", [HeMLGOPRegressor, HeMLRNRegressor], ids=lambda c: c.__name__)
def test_defaults_regress(cls):
    x, y = make_friedman1(n_samples=400, noise=0.5, random_state=0)
    x, x_test, y, y_test = train_test_split(x, y, random_state=0)
    linear = RidgeCV().fit(x, y).score(x_test, y_test)
    assert cls(random_state=0).fit(x, y).score(x_test, y_test) > linear


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda c: c.__name__)
def test_parameters_are_cloned_and_set(cls):
    estimator = small(cls, n_min=7, ridge=(0.1, 1.0), widths=(7, 5))
    twin = clone(estimator)
    assert twin.get_params() == estimator.get_params()
    assert twin.set_params(validation_fraction=0.5).validation_fraction == 0.5
    assert estimator.validation_fraction == 0.2
    name, value = ("widths", (7, 5)) if hasattr(cls(), "widths") else ("n_min", 7)
    assert getattr(estimator, name) == value
    assert getattr(cls(), name) != value
    with pytest.raises(ValueError, match="Invalid parameter"):
        estimator.set_params(neurons=3)
    with pytest.raises(TypeError):
        cls(neurons=3)


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda c: c.__name__)
def test_parameters_are_those_of_the_design(cls):
    wanted = """
        criterion validation_fraction standardize device n_jobs max_parameters max_seconds checkpoint_dir
        checkpoint_seconds callbacks verbose
        random_state
    """
    if cls.__name__.startswith(("He", "Ho")):
        wanted += """
            n_min n_step max_neurons max_layers block_threshold layer_threshold ridge operators
            weight_range n_draws share_draws loss learning_rates epochs batch_size dropout
            input_dropout weight_decay max_norm fine_tune_epochs fine_tune_learning_rate
        """
    if cls.__name__.startswith("P") and not cls.__name__.startswith("PLN"):
        wanted += """
            widths layer_threshold target weight_range loss learning_rates epochs patience batch_size dropout
            input_dropout weight_decay max_norm optimizer fine_tune_epochs fine_tune_learning_rate
        """
        wanted += " activation" if cls.__name__.startswith("PMLP") else " operators"
        wanted += " memory memory_energy memory_ridge" if cls.__name__.startswith("POPMem") else ""
    assert set(wanted.split()) <= set(cls().get_params())
    assert ("class_weight" in cls().get_params()) == is_classifier(cls())
    for name in cls().get_params():
        assert name in cls.__doc__


def test_grid_search_and_pipelines(iris):
    x, y = iris
    pipeline = make_pipeline(StandardScaler(), small(HeMLGOPClassifier, max_layers=1))
    grid = GridSearchCV(pipeline, {"hemlgopclassifier__ridge": [0.1, 10.0]}, cv=3).fit(x, y)
    assert grid.best_score_ > 0.8
    assert np.isfinite(grid.cv_results_["mean_test_score"]).all()
    folds = KFold(3, shuffle=True, random_state=0)
    assert cross_val_score(small(HeMLRNRegressor), x[:, :3], x[:, 3], cv=folds).mean() > 0.5


@pytest.mark.parametrize("cls", CLASSIFIERS, ids=lambda c: c.__name__)
@pytest.mark.parametrize(
    "names",
    [["a", "b", "c"], [-5, 0, 7], [False, True], np.array(["x", "yy", "zzz"], dtype=object), [1.0, 2.0]],
    ids=str,
)
def test_labels_of_any_kind_come_back(cls, names, iris):
    x, y = iris
    x, y = x[y < len(names)], y[y < len(names)]
    labels = np.asarray(names)[y]
    clf = small(cls, max_layers=1).fit(x, labels)
    assert list(clf.classes_) == sorted(names)
    assert set(clf.predict(x)) <= set(labels)
    assert clf.score(x, labels) > 0.8
    probability = clf.predict_proba(x)
    assert probability.shape == (len(x), len(names))
    np.testing.assert_allclose(probability.sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_array_equal(clf.classes_[probability.argmax(axis=1)], clf.predict(x))


@pytest.mark.parametrize("loss", ["mse", "cross_entropy"])
@pytest.mark.parametrize("criterion", ["accuracy", "brier", "loss"])
def test_every_loss_goes_with_every_criterion(loss, criterion, iris):
    clf = small(HeMLGOPClassifier, loss=loss, criterion=criterion, max_layers=1).fit(*iris)
    assert clf.score(*iris) > 0.8
    np.testing.assert_allclose(clf.predict_proba(iris[0]).sum(axis=1), 1, rtol=1e-6)


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_the_largest_decision_is_the_predicted_class(cls, iris):
    x, y = iris
    clf = small(cls).fit(x, np.array(["a", "b", "c"])[y])
    rows = np.vstack([x, np.random.default_rng(0).normal(x.mean(axis=0), x.std(axis=0), (500, 4))])
    decisions = clf.decision_function(rows)
    assert decisions.shape == (len(rows), 3)
    np.testing.assert_array_equal(clf.classes_[decisions.argmax(axis=1)], clf.predict(rows))


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_the_sign_of_the_decision_between_two_classes_is_the_predicted_class(cls, iris):
    x, y = iris[0][50:], iris[1][50:]
    clf = small(cls).fit(x, y)
    rows = np.vstack([x, np.random.default_rng(0).normal(x.mean(axis=0), x.std(axis=0), (500, 4))])
    decisions = clf.decision_function(rows)
    assert decisions.shape == (len(rows),)
    np.testing.assert_array_equal(clf.classes_[(decisions > 0).astype(int)], clf.predict(rows))
    assert roc_auc_score(y, clf.decision_function(x)) > 0.9


def test_decisions_between_two_classes_are_differences_of_logits(iris):
    x, y = iris[0][50:], iris[1][50:]
    clf = small(HeMLGOPClassifier).fit(x, y)
    np.testing.assert_allclose(expit(clf.decision_function(x)), clf.predict_proba(x)[:, 1], rtol=1e-6)


def test_meta_estimators_use_decisions(iris):
    x, y = iris[0][50:], iris[1][50:]
    pipeline = make_pipeline(StandardScaler(), small(HeMLRNClassifier)).fit(x, y)
    scaled = StandardScaler().fit_transform(x)
    expected = small(HeMLRNClassifier).fit(scaled, y).decision_function(scaled)
    np.testing.assert_array_equal(pipeline.decision_function(x), expected)
    assert get_scorer("roc_auc")(pipeline, x, y) == roc_auc_score(y, expected)
    calibrated = CalibratedClassifierCV(FrozenEstimator(pipeline)).fit(x, y)
    order = np.argsort(expected, kind="stable")
    assert (np.diff(calibrated.predict_proba(x)[order, 1]) >= 0).all()
    assert CalibratedClassifierCV(small(HeMLRNClassifier), cv=2).fit(x, y).score(x, y) > 0.8


@pytest.mark.parametrize("score", ["loo", "gcv", "loss", "accuracy"])
def test_every_score_of_the_search_grows_a_network(score, iris):
    clf = small(HeMLRNClassifier, search_score=score, max_layers=1).fit(*iris)
    assert clf.score(*iris) > 0.8
    assert clf.history_[0].candidates


def imbalanced(n=400):
    rng = np.random.default_rng(0)
    y = (rng.uniform(size=n) < 0.1).astype(int)
    return rng.normal(size=(n, 3)) + y[:, None], y


@pytest.mark.parametrize("weights", ["balanced", {0: 1.0, 1: 9.0}])
def test_class_weight_raises_the_rare_class(weights):
    x, y = imbalanced()
    parameters = {"validation_fraction": 0.0, "max_layers": 1}
    plain = small(HeMLGOPClassifier, **parameters).fit(x, y)
    weighted = small(HeMLGOPClassifier, class_weight=weights, **parameters).fit(x, y)
    assert (weighted.predict(x) == 1).sum() > (plain.predict(x) == 1).sum()


def test_class_weight_is_the_same_as_sample_weight():
    x, y = imbalanced(150)
    parameters = {"max_layers": 1}
    by_class = small(HeMLGOPClassifier, class_weight={0: 1.0, 1: 4.0}, **parameters).fit(x, y)
    by_row = small(HeMLGOPClassifier, **parameters).fit(x, y, sample_weight=np.where(y == 1, 4.0, 1.0))
    np.testing.assert_array_equal(by_class.predict_proba(x), by_row.predict_proba(x))


@pytest.mark.parametrize("cls", [HeMLGOPClassifier, HeMLGOPRegressor], ids=lambda c: c.__name__)
def test_rows_without_weight_are_rows_that_are_not_there(cls, iris):
    x, y = iris
    keep = np.random.default_rng(0).uniform(size=len(x)) < 0.7
    weighted = small(cls).fit(x, y, sample_weight=keep.astype(float))
    removed = small(cls).fit(x[keep], y[keep])
    np.testing.assert_array_equal(weighted.network_.outputs(x), removed.network_.outputs(x))


def test_only_the_ratio_of_weights_counts(iris):
    x, y = iris
    weight = np.random.default_rng(0).uniform(0.5, 2, len(x))
    first, second = (small(HeMLGOPClassifier).fit(x, y, sample_weight=c * weight) for c in (1.0, 1024.0))
    np.testing.assert_allclose(first.predict_proba(x), second.predict_proba(x), atol=1e-4)


def test_a_class_whose_rows_have_no_weight_is_known_but_not_predicted(iris):
    x, y = iris
    clf = small(HeMLRNClassifier, max_layers=1).fit(x, y, sample_weight=(y != 2).astype(float))
    assert list(clf.classes_) == [0, 1, 2]
    assert set(clf.predict(x)) == {0, 1}


@pytest.mark.parametrize(
    "cls",
    [HeMLGOPClassifier, HeMLGOPRegressor, POPClassifier, POPRegressor, POPMemHClassifier, PMLPRegressor],
    ids=lambda c: c.__name__,
)
def test_eval_set_scores_and_is_not_trained_on(cls, iris, monkeypatch):
    # The scores of the history are those that decided, before the probabilities are calibrated.
    monkeypatch.setattr("opgrow.estimators.fit.fitting.calibrate", lambda network, held: 1.0)
    x, y = iris
    train, held = np.arange(0, 150, 2), np.arange(1, 150, 2)
    estimator = small(cls, fine_tune_epochs=0, max_layers=1)
    if "n_estimators" in estimator.get_params():
        estimator.set_params(n_estimators=1)
    fitted = estimator.fit(x[train], y[train], eval_set=(x[held], y[held]))
    same = clone(estimator).fit(x[train], y[train], eval_set=[(x[held], y[held])])
    np.testing.assert_array_equal(fitted.network_.outputs(x), same.network_.outputs(x))
    told = [step for step in fitted.history_ if step.accepted][-1].score
    if cls in CLASSIFIERS:
        error = ((fitted.predict_proba(x[held]) - np.eye(3)[y[held]]) ** 2).sum(axis=1).mean()
        assert told.value == pytest.approx(error, rel=1e-3)
    else:
        scale = fitted.network_.output_scale.item()
        fitted.network_.output_low = fitted.network_.output_high = None  # which scores do not know
        error = ((fitted.predict(x[held]) - y[held]) ** 2).mean() / scale**2
        assert told.value == pytest.approx(error, rel=1e-3)
    mean, scale = x[train].mean(axis=0), x[train].std(axis=0)
    np.testing.assert_allclose(fitted.network_.input_mean, mean)
    np.testing.assert_allclose(fitted.network_.input_scale, scale)


@pytest.mark.parametrize(
    ("eval_set", "message"),
    [
        (3, "eval_set must be a pair"),
        ((np.ones((2, 4)),), "eval_set must be a pair"),
        ((np.ones((2, 4)), [0, 5]), "eval_set has classes that y does not have"),
        ((np.ones((2, 3)), [0, 1]), "features"),
        ((np.ones((2, 4)), [0, 1, 1]), "inconsistent"),
        ((np.full((2, 4), np.inf), [0, 1]), "infinity"),
    ],
)
def test_bad_eval_sets_are_refused(eval_set, message, iris):
    with pytest.raises(ValueError, match=message):
        small(HeMLRNClassifier).fit(*iris, eval_set=eval_set)


def test_eval_set_with_another_number_of_targets(iris):
    x, y = iris
    with pytest.raises(ValueError, match="eval_set has 2 targets, but y has 1"):
        small(HeMLRNRegressor).fit(x, y, eval_set=(x, np.stack([y, y], axis=1)))


def test_without_validation_all_rows_train(iris):
    x, y = iris
    clf = small(HeMLGOPClassifier, validation_fraction=0.0).fit(x, y)
    np.testing.assert_allclose(clf.network_.input_mean, x.mean(axis=0))
    split = small(HeMLGOPClassifier, validation_fraction=0.3, n_estimators=1).fit(x, y)
    assert not np.allclose(split.network_.input_mean, x.mean(axis=0))


def test_standardize_off_leaves_the_input_alone(iris):
    clf = small(HeMLRNClassifier, standardize=False).fit(*iris)
    assert not clf.network_.input_mean.any()
    assert (clf.network_.input_scale == 1).all()
    assert clf.score(*iris) > 0.8


# --- regression ---


@pytest.mark.parametrize("cls", REGRESSORS, ids=lambda c: c.__name__)
def test_several_targets_at_once(cls, iris):
    x, _ = iris
    model = small(cls).fit(x[:, :2], x[:, 2:])
    predicted = model.predict(x[:, :2])
    assert predicted.shape == (150, 2)
    assert r2_score(x[:, 2:], predicted) > 0.5
    one = small(cls).fit(x[:, :2], x[:, 2:3]).predict(x[:, :2])
    assert one.shape == (150, 1)
    flat = small(cls).fit(x[:, :2], x[:, 2]).predict(x[:, :2])
    assert flat.shape == (150,)
    np.testing.assert_array_equal(one[:, 0], flat)


@pytest.mark.parametrize(
    "cls", [HeMLGOPRegressor, HoMLRNRegressor, POPRegressor, PMLPRegressor], ids=lambda c: c.__name__
)
@pytest.mark.parametrize(
    ("shift", "scale"), [(0.0, 1e-6), (0.0, 1e9), (1e6, 1.0), (1e9, 1.0), (-1e12, 100.0)]
)
def test_the_scale_of_targets_does_not_matter(cls, shift, scale, diabetes):
    x, y = diabetes
    y = (y - y.mean()) / y.std()
    wanted = small(cls).fit(x, y).score(x, y)
    moved = shift + scale * y
    actual = small(cls).fit(x, moved).score(x, moved)
    assert actual == pytest.approx(wanted, abs=0.02)


@pytest.mark.parametrize("cls", REGRESSORS, ids=lambda c: c.__name__)
def test_constant_targets_are_predicted(cls, diabetes):
    x, _ = diabetes
    model = small(cls, max_layers=1).fit(x[:60], np.full(60, 7.5))
    np.testing.assert_allclose(model.predict(x), 7.5, rtol=1e-4)


def test_a_custom_loss_and_optimizer(diabetes):
    x, y = diabetes

    def huber(outputs, target):
        return torch.nn.functional.huber_loss(outputs, target, reduction="none").mean(dim=1)

    model = small(HeMLGOPRegressor, loss=huber, max_layers=1).fit(x, y)
    assert model.score(x, y) > 0.3
    named = small(HeMLGOPRegressor, max_layers=1).fit(x, y)
    assert model.score(x, y) == pytest.approx(named.score(x, y), abs=0.1)
    clf = small(HeMLGOPClassifier, optimizer=lambda groups: torch.optim.AdamW(groups, lr=1.0), max_layers=1)
    assert clf.fit(x, y > 140).score(x, y > 140) > 0.6


def test_custom_operators_through_the_parameter(iris):
    register_nodal("cosine", lambda y, w: torch.cos(w * y), flops=2)
    try:
        sets = [("cosine", "sum", "tanh"), OperatorSet("cosine", "maximum", "relu")]
        clf = small(HeMLGOPClassifier, operators=sets, max_layers=1).fit(*iris)
        assert all(block.operator_set.nodal == "cosine" for layer in clf.network_.layers for block in layer)
        assert clf.score(*iris) > 0.7
    finally:
        unregister("nodal", "cosine")


# --- input ---


@pytest.mark.parametrize(
    "cls", [HeMLGOPClassifier, HeMLGOPRegressor, POPClassifier, PMLPRegressor], ids=lambda c: c.__name__
)
def test_tensors_lists_and_frames_are_the_same_data(cls, iris):
    x, y = iris
    expected = outputs_of(small(cls).fit(x, y), x)
    frame = pd.DataFrame(x, columns=list("abcd"))
    for rows, target in (
        (torch.from_numpy(x), torch.from_numpy(y)),
        (x.tolist(), y),
        (frame, y),
        (frame, pd.Series(y)),
    ):
        np.testing.assert_array_equal(outputs_of(small(cls).fit(rows, target), rows), expected)


def test_feature_names_are_kept_and_checked(iris):
    x, y = iris
    frame = pd.DataFrame(x, columns=list("abcd"))
    clf = small(HeMLRNClassifier).fit(frame, y)
    assert list(clf.feature_names_in_) == list("abcd")
    assert clf.n_features_in_ == 4
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(frame[list("dcba")])
    with pytest.warns(UserWarning, match="feature names"):
        clf.predict(x)


def test_frames_of_targets(iris):
    x, _ = iris
    frame = pd.DataFrame(x, columns=list("abcd"))
    model = small(HeMLRNRegressor).fit(frame[["a", "b"]], frame[["c", "d"]])
    np.testing.assert_array_equal(
        model.predict(frame[["a", "b"]]), small(HeMLRNRegressor).fit(x[:, :2], x[:, 2:]).predict(x[:, :2])
    )


@pytest.mark.cpu
@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda c: c.__name__)
def test_one_row_is_predicted_as_in_a_batch(cls, iris):
    x, y = iris
    estimator = small(cls).fit(x, y)
    together = answers(estimator, x)[::10]
    alone = np.concatenate([answers(estimator, x[i : i + 1]) for i in range(0, 150, 10)])
    np.testing.assert_array_equal(alone, together)
    assert_as_double_precision_says(estimator, x[::10], together)


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda c: c.__name__)
def test_before_fitting_nothing_is_predicted(cls, iris):
    for name in ("predict", "predict_proba"):
        if hasattr(cls, name):
            with pytest.raises(NotFittedError):
                getattr(cls(), name)(iris[0])


def test_another_number_of_features_is_refused(iris):
    clf = small(HeMLRNClassifier).fit(*iris)
    with pytest.raises(ValueError, match="3 features"):
        clf.predict(iris[0][:, :3])


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_plain_arrays_are_checked_like_any_other(bad, dtype, iris):
    x, y = iris
    clf = small(HeMLRNClassifier).fit(x, y)
    rows = x[:5].astype(dtype)
    np.testing.assert_array_equal(clf.predict_proba(rows), clf.predict_proba(rows.tolist()))
    np.testing.assert_array_equal(clf.predict_proba(rows[::2]), clf.predict_proba(rows[::2].tolist()))
    rows[3, 1] = bad
    with pytest.raises(ValueError, match="infinity"):
        clf.predict(rows)
    with pytest.raises(ValueError, match="0 sample"):
        clf.predict(rows[:0])


# --- parameters ---

BAD_PARAMETERS = {
    "n_min": [0, -1, 2.5, "10", None, True],
    "n_step": [0, 1.0, None],
    "max_neurons": [0, "many", np.inf],
    "max_layers": [0, -3, None],
    "block_threshold": ["no", None, np.nan],
    "layer_threshold": ["no", None, np.nan],
    "ridge": [0, -1.0, "some", (), [1.0, -1.0], [1.0, "a"], np.inf, np.nan, None],
    "operators": ["nope", [], [("a", "b", "c")], [("sum",)], None, 3, [3]],
    "weight_range": [0, -1.0, "wide", [], None, np.inf],
    "n_draws": [0, 1.5, None],
    "search_score": ["r2", None, 3],
    "criterion": ["f1", None, 3],
    "loss": ["hinge", None, 3],
    "learning_rates": [None, "fast", (0.1, 0.2, 0.3), ("a",), (-0.1,), (np.nan,), (np.inf,)],
    "epochs": [None, (1, 2), (1.5,), (-1,), ("a",)],
    "patience": [0, -1, 1.5, "long"],
    "batch_size": [0, -32, 32.0, "all", None],
    "keep_state": ["first", None, 1],
    "dropout": [1.0, -0.1, "high", [], [0.1, 1.0], None, np.nan],
    "input_dropout": [1.0, -0.1, None, "high"],
    "weight_decay": [-1.0, "heavy", None, np.nan, np.inf],
    "max_norm": [0, -1.0, "unit", np.nan],
    "optimizer": ["sgd", None, 3],
    "fine_tune_epochs": [-1, 1.5, None],
    "fine_tune_learning_rate": [-0.1, "slow", None, np.nan],
    "validation_fraction": [-0.1, 1.0, None, "half", np.nan],
    "device": ["tpu", None, 3],
    "n_jobs": [0, -2, "all", 1.5],
    "callbacks": [3, [3], "progress"],
    "random_state": ["seed", -1, 1.5],
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param(name, value, id=f"{name}={value!r}")
        for name, values in BAD_PARAMETERS.items()
        for value in values
    ],
)
@pytest.mark.parametrize("cls", [HeMLGOPClassifier, HeMLGOPRegressor], ids=lambda c: c.__name__)
def test_bad_parameters_are_named_in_one_sentence(cls, name, value, iris):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        small(cls, **{name: value}).fit(*iris)
    message = str(caught.value)
    names = {"operators": "operator", "random_state": "seed"}
    assert names.get(name, name) in message.lower()
    assert "\n" not in message
    assert len(message) < 500


@pytest.mark.parametrize(
    "value",
    ["heavy", 3, {0: -1.0, 1: 1.0, 2: 1.0}, {0: np.nan, 1: 1.0, 2: 1.0}, {0: 0.0, 1: 0.0, 2: 0.0}],
    ids=str,
)
def test_bad_class_weights_are_refused(value, iris):
    with pytest.raises(ValueError, match="weight"):
        small(HeMLRNClassifier, class_weight=value).fit(*iris)


@pytest.mark.parametrize(
    ("name", "value"), [("criterion", "accuracy"), ("loss", "cross_entropy"), ("search_score", "accuracy")]
)
def test_regression_has_no_accuracy(name, value, diabetes):
    with pytest.raises(ValueError, match=name):
        small(HeMLRNRegressor, **{name: value}).fit(*diabetes)


@pytest.mark.parametrize("name", ["ridge", "weight_range", "dropout", "learning_rates", "epochs"])
def test_sequences_may_be_tuples_lists_or_arrays(name, iris):
    values = {
        "ridge": (0.1, 1.0),
        "weight_range": (0.5, 1.0),
        "dropout": (0.1, 0.2),
        "learning_rates": (0.01,),
        "epochs": (2,),
    }
    fits = [
        small(HeMLGOPClassifier, max_layers=1, **{name: kind(values[name])}).fit(*iris)
        for kind in (tuple, list, np.array)
    ]
    for other in fits[1:]:
        np.testing.assert_array_equal(other.predict_proba(iris[0]), fits[0].predict_proba(iris[0]))


def test_numpy_numbers_are_numbers(iris):
    numbers = {
        "n_min": np.int64(6),
        "n_step": np.int32(3),
        "block_threshold": np.float32(1e-4),
        "ridge": np.float64(1.0),
    }
    small(HeMLGOPClassifier, max_layers=1, **numbers).fit(*iris)


@pytest.mark.parametrize("weight", [[-1.0] * 150, [np.nan] * 150, [0.0] * 150, [1.0] * 149, "heavy"])
def test_bad_sample_weights_are_refused(weight, iris):
    with pytest.raises(ValueError):  # noqa: PT011
        small(HeMLRNClassifier).fit(*iris, sample_weight=weight)


def test_the_papers_settings():
    clf, model = HeMLGOPClassifier.paper("small"), HeMLGOPRegressor.paper("small")
    assert (clf.n_min, clf.n_step, clf.max_neurons) == (40, 20, 200)
    assert (clf.criterion, clf.search_score, clf.loss) == ("accuracy", "accuracy", "mse")
    assert (model.criterion, model.search_score) == ("loss", "loss")
    assert clf.block_threshold == clf.layer_threshold == 1e-4
    assert (clf.weight_range, clf.keep_state, clf.batch_size) == (1.0, "last", 128)
    assert (clf.dropout, clf.weight_decay, clf.max_norm) == (0.1, 0.0, 2.0)
    assert (tuple(clf.learning_rates), tuple(clf.epochs)) == ((0.01, 0.001, 0.0001), (20, 40, 40))
    assert clf.validation_fraction == 0.2
    assert not clf.share_draws
    assert clf.patience is None
    assert (clf.fine_tune_epochs, clf.fine_tune_learning_rate) == (200, 5e-5)
    large = HeMLGOPClassifier.paper("large", ridge=10.0)
    assert tuple(large.learning_rates) == (0.01, 0.005, 0.001, 0.0005, 0.0001)
    assert tuple(large.epochs) == (100,) * 5
    assert (large.input_dropout, large.validation_fraction, large.ridge) == (0.2, 0.25, 10.0)
    assert HoMLRNClassifier.paper().max_layers == 8
    with pytest.raises(ValueError, match="scale"):
        HeMLGOPClassifier.paper("huge")


def test_the_papers_settings_run(iris):
    changes = {
        "n_min": 6,
        "n_step": 3,
        "max_neurons": 9,
        "learning_rates": (0.01,),
        "epochs": (5,),
        "fine_tune_epochs": 2,
    }
    clf = HeMLGOPClassifier.paper("small", random_state=0, **changes).fit(*iris)
    assert clf.score(*iris) > 0.8
    assert len(clf.history_[0].candidates) + clf.history_[0].invalid_candidates == 3 * 144


def test_fitting_twice_forgets_the_first_time(iris, diabetes):
    clf = small(HeMLGOPClassifier)
    clf.fit(diabetes[0], diabetes[1] > 140)
    again = clf.fit(*iris).predict_proba(iris[0])
    np.testing.assert_array_equal(again, small(HeMLGOPClassifier).fit(*iris).predict_proba(iris[0]))


def test_the_network_alone_predicts_like_the_estimator(iris):
    x, y = iris
    clf = small(HeMLGOPClassifier).fit(x, y)
    outputs = clf.network_.outputs(x)
    np.testing.assert_array_equal(outputs.argmax(axis=1), clf.predict(x))
    np.testing.assert_allclose(softmax(outputs.astype(np.float64), axis=1), clf.predict_proba(x), rtol=1e-5)
