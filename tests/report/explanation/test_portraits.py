"""What is said of neurons: their order, what they add, and what is left out."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_wine

from opgrow.report.explanation.shape import WORDS
from tests.report.explanation.models import fitted

X, Y = load_wine(return_X_y=True)


@pytest.fixture(scope="module")
def explanation():
    model = fitted("HeMLGOPClassifier", X, Y, max_layers=1, operators=[("gaussian", "sum", "tanh")])
    return model.explain(X)


def test_the_first_neurons_change_the_outputs_most(explanation):
    sizes = [one.size for one in explanation.neurons(100)]
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) == explanation.estimator.network_.head_width


def test_what_a_neuron_adds_is_its_value_times_its_weights(explanation):
    network = explanation.estimator.network_
    weight = network.head.weight.astype(np.float64)
    features = network.features(X)
    one = explanation.neurons(1)[0]
    number = one.neuron.number
    np.testing.assert_allclose(one.weights, weight[number] - weight[number].mean(), rtol=1e-9)
    for row in (0, 100):
        added = explanation.row(row).neurons.values[number]
        other = explanation.row(50).neurons.values[number]
        expected = (features[row, number] - features[50, number]).astype(np.float64) * one.weights
        np.testing.assert_allclose(added - other, expected, rtol=0, atol=1e-6)


def test_the_activation_leads_from_the_curves_to_what_is_handed_on(explanation):
    """At a row whose columns are on the grids: bias plus curves, activated, is the neuron's value."""
    network = explanation.estimator.network_
    axes = [explanation.axis(j) for j in range(13)]
    row = np.array([axis.encoded[3, 0] for axis in axes])
    value = network.features(row[None])[0]
    for one in explanation.neurons(4):
        assert one.neuron.view == "exact"
        shown = {curve.column: curve.values[3] for curve in one.curves}
        total = one.neuron.bias + sum(shown.values())
        assert len(shown) + one.left_out == 13
        if one.left_out == 0:
            assert abs(one.neuron.handed_on(np.array([total]))[0] - value[one.neuron.number]) < 1e-4


def test_the_histogram_is_of_what_the_activation_is_applied_to(explanation):
    """Which the values of the neurons tell, as tanh can be inverted: of every second row, the background."""
    features = explanation.estimator.network_.features(X[::2]).astype(np.float64)
    for one in explanation.neurons(4):
        values = (features[:, one.neuron.number] - one.neuron.shift) / one.neuron.scale
        sums = np.arctanh(values)
        assert one.sums[0] < sums.min() < sums.max() < one.sums[-1]
        np.testing.assert_allclose(one.edges[[0, -1]], one.sums[[0, -1]])
        below = [(sums < edge).sum() for edge in one.edges]
        # A sum beside an edge may be on its other side after rounding.
        assert np.abs(np.diff(below) - one.counts).max() <= 1
        expected = np.tanh(one.sums) * one.neuron.scale + one.neuron.shift
        np.testing.assert_allclose(one.handed_on, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "more", "view"),
    [
        ("HeMLGOPClassifier", {"max_layers": 1, "operators": [("dog", "maximum", "tanh")]}, "maximum"),
        ("HeMLGOPClassifier", {"max_layers": 1, "operators": [("dog", "correlation1", "tanh")]}, "exact"),
        ("PLNClassifier", {"max_layers": 1}, "scaled"),
        ("BLSClassifier", {}, "averaged"),
        ("BLSClassifier", {"feature_activation": "identity"}, "exact"),
        ("PLNClassifier", {"max_layers": 3, "layer_threshold": -10.0}, "averaged"),
    ],
)
def test_each_view_is_named_for_what_it_is(name, more, view):
    explanation = fitted(name, X, Y, **more).explain(X)
    views = {one.neuron.view for one in explanation.neurons(100)}
    assert view in views
    assert views <= set(WORDS)
    for one in explanation.neurons(100):
        assert one.curves or one.maps
        if one.neuron.view in ("averaged", "scaled"):
            assert one.sums is None


def test_the_words_of_what_is_not_exact_say_so():
    assert WORDS["averaged"].startswith("Averaged: the mean over rows")
    assert WORDS["local"].startswith("Local: this row alone")
    assert "sample" in WORDS["sampled"]
    assert "convention" in WORDS["columns"]
    assert "do not simply add up" in WORDS["paths"]
