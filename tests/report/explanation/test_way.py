"""Whatever is said to have been added adds up to what the network says."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.datasets import load_diabetes, load_iris

from opgrow.estimators.registry import ESTIMATORS
from opgrow.report import explain
from tests.networks import outputs_of
from tests.report.explanation.models import fitted, random_model

TOLERANCE = 1e-5


def data_of(name):
    load = load_iris if name.endswith("Classifier") else load_diabetes
    x, y = load(return_X_y=True)
    return (x, y) if name.endswith("Classifier") else (x[::3, :6], y[::3])


def assert_adds_up(way, scale):
    columns, neurons = way.columns, way.neurons
    np.testing.assert_allclose(
        columns.base + columns.values.sum(axis=0), way.outputs, rtol=0, atol=TOLERANCE * scale
    )
    total = neurons.base + neurons.values.sum(axis=0) + neurons.limit
    np.testing.assert_allclose(total, way.outputs, rtol=0, atol=TOLERANCE * scale)


@pytest.fixture(scope="module")
def models():
    """One of each estimator, fitted when it is first asked for."""
    made = {}

    def of(name):
        if name not in made:
            made[name] = fitted(name, *data_of(name))
        return made[name]

    return of


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_contributions_of_columns_and_neurons_add_up_for_every_method(name, models):
    model, (x, _) = models(name), data_of(name)
    way = model.explain(x).row(3)
    scale = max(1.0, np.abs(way.outputs).max())
    assert_adds_up(way, scale)
    # No limits are reached here: nothing but rounding is left of what neurons do not add.
    assert np.abs(way.neurons.limit).max() < TOLERANCE * scale
    expected = outputs_of(model, x[3:4])[0]
    if is_classifier(model):
        expected = expected - expected.mean() if model.loss_ != "mse" else expected
    np.testing.assert_allclose(way.outputs, np.atleast_1d(expected), rtol=1e-6, atol=1e-6 * scale)


@pytest.mark.parametrize("seed", range(50))
def test_contributions_add_up_for_random_networks(seed):
    model = random_model(seed)
    x = np.random.default_rng(seed).normal(size=(30, model.network_.n_inputs))
    way = explain(model, x).row(0)
    scale = max(1.0, np.abs(way.outputs).max(), np.abs(way.neurons.base).max())
    assert_adds_up(way, scale)
    if model.network_.output_low is None:
        assert np.abs(way.neurons.limit).max() < TOLERANCE * scale


def test_an_output_at_a_limit_is_what_neurons_add_and_what_the_limit_cuts_off():
    model = fitted("HeMLGOPRegressor", *data_of("HeMLGOPRegressor"))
    x, _ = data_of("HeMLGOPRegressor")
    outputs = model.predict(x)
    model.network_.output_low = np.array([np.quantile(outputs, 0.5)])
    model.network_.output_high = np.array([np.quantile(outputs, 0.9)])
    row = int(outputs.argmin())
    way = model.explain(x).row(row)
    assert way.outputs[0] == model.network_.output_low[0]
    np.testing.assert_allclose(way.neurons.limit[0], way.outputs[0] - outputs[row], rtol=1e-4)
    assert_adds_up(way, abs(way.outputs[0]))


def test_two_classes_have_one_output_and_its_sentence_names_the_second():
    x, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["no", "yes"])
    model = fitted("HeMLGOPClassifier", x[50:], names[y[50:] - 1])
    explanation = model.explain(x[50:])
    way = explanation.row(0)
    assert explanation.outputs == ["log-odds of yes"]
    np.testing.assert_allclose(way.outputs, model.decision_function(x[50:51]), rtol=1e-6)
    assert way.prediction == model.predict(x[50:51])[0]
    size = way.columns.values[:, 0]
    column = int(np.abs(size).argmax())
    factor = np.exp(abs(size[column]))
    verb = "raises" if size[column] > 0 else "lowers"
    value = f"{x.iloc[50, column]:g}"
    assert (
        way.sentences[1] == f"{x.columns[column]} {value} {verb} the odds of yes by a factor of {factor:.2g}."
    )


def test_rows_that_do_not_exist_are_refused():
    model, (x, _) = fitted("HeMLRNClassifier", *data_of("HeMLRNClassifier")), data_of("HeMLRNClassifier")
    with pytest.raises(ValueError, match=r"There is no row 150: X has 150 rows, from 0 on\."):
        model.explain(x).row(150)
