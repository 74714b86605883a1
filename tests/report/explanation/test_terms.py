"""The terms of a neuron add up to what its activation is applied to."""

from __future__ import annotations

import numpy as np
import pytest

from opgrow import Block, Layer, Network, OperatorSet, operator_sets
from opgrow.report import explain
from opgrow.report.explanation.neurons import neurons_of
from opgrow.report.explanation.terms import Terms
from tests.networks import randomized
from tests.report.explanation.models import fitted, of_network

POOLS = ("sum", "correlation1", "correlation2", "maximum")
MIXED = {
    "size": np.linspace(-1, 1, 60) ** 3,
    "colour": np.array(["red", "green", "blue", "green"] * 15, dtype=object),
    "age": np.where(np.arange(60) % 5 == 0, np.nan, np.arange(60.0)),
    "width": np.cos(np.arange(60.0)),
}


def assert_terms_give_the_features(network, axes, rows):
    """From the terms to the neurons' values, which the network computes in another way."""
    features = network.features(rows)
    for neuron in neurons_of(network):
        terms = Terms(network, axes, neuron.operators.nodal_operator, neuron.window, neuron.weight).at(rows)
        values = list(terms.values())
        pooled = np.max(values, axis=0) if neuron.window == 0 else np.sum(values, axis=0)
        handed_on = neuron.handed_on(pooled + neuron.bias)
        scale = 1 + np.abs(features[:, neuron.number])
        assert (np.abs(handed_on - features[:, neuron.number]) < 2e-4 * scale).all(), str(neuron)


@pytest.mark.parametrize("pool", POOLS)
def test_terms_of_all_operators_add_up(pool):
    rows = np.random.default_rng(0).normal(size=(20, 5))
    layer = Layer([Block(5, 2, operators) for operators in operator_sets(pool=[pool])])
    network = randomized(Network(5, 2, [layer], input_bound=3.0))
    model = of_network(network)
    explanation = explain(model, rows)
    axes = [explanation.axis(j) for j in range(5)]
    assert_terms_give_the_features(network, axes, rows)


def test_linear_features_are_seen_through():
    """The enhancement nodes of BLS read linear features, so that they have curves of the columns, too."""
    linear = OperatorSet("multiplication", "sum", "identity")
    perceptron = OperatorSet("multiplication", "sum", "tanh")
    first = Layer([Block(4, 3, linear), Block(4, 2, linear, norm=None)])
    second = Layer([Block(3, 4, perceptron, norm=None), Block(5, 2, perceptron, norm=None)])
    network = randomized(Network(4, 2, [first, second], broad=True))
    rows = np.random.default_rng(0).normal(size=(20, 4))
    explanation = explain(of_network(network), rows)
    assert {neuron.view for neuron in neurons_of(network)} == {"exact"}
    assert_terms_give_the_features(network, [explanation.axis(j) for j in range(4)], rows)


def test_neurons_that_read_other_neurons_have_averaged_curves():
    first = Layer([Block(4, 3, OperatorSet("multiplication", "sum", "tanh"))])
    second = Layer([Block(3, 4, OperatorSet("multiplication", "sum", "tanh"))])
    network = randomized(Network(4, 2, [first, second]))
    assert {neuron.view for neuron in neurons_of(network)} == {"averaged"}


@pytest.mark.parametrize("pool", POOLS)
def test_curves_and_maps_are_the_terms_at_the_values_of_their_grids(pool):
    """Of a table: a text column is one column, whatever number of inputs it became."""
    y = np.arange(60) % 2
    operators = [("gaussian", pool, "tanh")]
    model = fitted("HeMLRNClassifier", MIXED, y, operators=operators, max_layers=1)
    explanation = model.explain(MIXED)
    network, rows = model.network_, model.network_rows(MIXED).astype(np.float64)
    axes = [explanation.axis(name) for name in explanation.columns]
    assert [axis.name for axis in axes] == ["size", "colour", "age", "width"]
    assert_terms_give_the_features(network, axes, rows)
    neuron = neurons_of(network)[0]
    terms = Terms(network, axes, neuron.operators.nodal_operator, neuron.window, neuron.weight)
    for columns in terms.columns:
        fixed = dict.fromkeys(columns[1:-1], 0)
        places = [0 if column in fixed else len(axes[column].encoded) - 1 for column in columns]
        row = rows[:1].copy()
        for column, place in zip(columns, places, strict=True):
            row[:, axes[column].inputs] = axes[column].encoded[place]
        expected = terms.at(row)[columns][0]
        shown = terms.curve(columns[0]) if len(columns) == 1 else terms.map(columns, fixed)
        assert shown.shape == tuple(len(axes[c].encoded) for c in columns if c not in fixed)
        np.testing.assert_allclose(
            shown[tuple(p for c, p in zip(columns, places, strict=True) if c not in fixed)],
            expected,
            rtol=1e-9,
        )
