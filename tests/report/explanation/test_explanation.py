"""Explanations as users meet them: for each estimator, and for what cannot be explained."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.inspection import PartialDependenceDisplay, permutation_importance

from opgrow import HeMLRNClassifier, load
from opgrow.report import Explanation, explain
from tests.report.explanation.models import fitted

X, Y = load_iris(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def model():
    return fitted("HeMLGOPClassifier", X, Y)


def test_the_most_important_column_is_the_one_that_decides():
    x = np.random.default_rng(0).normal(size=(300, 4))
    model = fitted("HeMLGOPRegressor", x, np.tanh(3 * x[:, 2]) + 0.1 * x[:, 0])
    explanation = model.explain(x)
    assert explanation.order[:2] == [2, 0]
    assert explanation.importance.shape == (4, 1)
    assert permutation_importance(model, x, x[:, 2], n_repeats=2).importances_mean.argmax() == 2


def test_the_same_rows_are_explained_in_the_same_way(model):
    first, second = model.explain(X), model.explain(X)
    second.row(3)  # what was asked for before does not matter
    np.testing.assert_array_equal(first.importance, second.importance)
    np.testing.assert_array_equal(first.row(7).columns.values, second.row(7).columns.values)


def test_a_model_from_a_file_is_explained_alike(model, tmp_path):
    model.save(tmp_path / "m.safetensors")
    loaded = load(tmp_path / "m.safetensors")
    assert loaded.explain(X).data(rows=[5]) == model.explain(X).data(rows=[5])


def test_it_says_what_it_is_about(model):
    explanation = model.explain(X)
    lines = repr(explanation).splitlines()
    assert lines[0] == (
        f"Explanation of HeMLGOPClassifier ({model.network_.topology()}), which predicts classes, by 150 rows"
    )
    assert lines[1] == "  explained: 0, 1, 2"
    assert [line.split("  ")[1] for line in lines[2:]] == [X.columns[j] for j in explanation.order]
    assert len(explanation) == 150


def test_columns_and_outputs_go_by_names_and_numbers(model):
    explanation = model.explain(X)
    assert explanation.response("petal width (cm)") is explanation.response(3)
    assert explanation.output_number("2") == 2
    with pytest.raises(ValueError, match=r"There is no column 'petal': the model has sepal length"):
        explanation.response("petal")
    with pytest.raises(ValueError, match=r"There is no output 3: the explanation has 0, 1, 2\."):
        explanation.output_number(3)
    with pytest.raises(ValueError, match="There is no neuron 9999: the head reads"):
        explanation.neuron(9999)


def test_what_cannot_be_explained_is_refused():
    with pytest.raises(NotFittedError, match="is not fitted: call fit before explaining it"):
        HeMLRNClassifier().explain(X)
    with pytest.raises(TypeError, match="Only opgrow's own estimators can be explained, got DummyClassifier"):
        explain(DummyClassifier(), X)


@pytest.mark.parametrize("seed", [-1, 0.5, "0", True])
def test_seeds_are_whole_numbers(model, seed):
    with pytest.raises(ValueError, match="random_state must be an integer of at least 0"):
        model.explain(X, random_state=seed)


def test_rows_that_do_not_fit_are_refused_as_by_predict(model):
    with pytest.raises(ValueError, match="should match those that were passed during fit"):
        model.explain(X.iloc[:, :3])


def test_the_word_explanation_is_a_public_class(model):
    assert isinstance(model.explain(X), Explanation)


def test_scikit_learn_inspects_our_estimators(model):
    pytest.importorskip("matplotlib").use("agg")
    display = PartialDependenceDisplay.from_estimator(model, X, [0, (2, 3)], target=1, grid_resolution=5)
    assert display.axes_.shape == (1, 2)
    importance = permutation_importance(model, X, Y, n_repeats=2, random_state=0)
    assert importance.importances_mean[2:].max() > importance.importances_mean[:2].max()
