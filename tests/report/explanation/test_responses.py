"""Responses are what the model says as one column moves, averaged over rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.inspection import partial_dependence

from opgrow import Block, Layer, Network, OperatorSet
from opgrow.report import explain
from tests.networks import randomized
from tests.report.explanation.models import fitted, of_network

X, Y = load_iris(return_X_y=True)


def test_averaged_responses_are_scikit_learns_partial_dependence():
    """Of all rows here: 120 of them are not more than the background."""
    x, y = X[20:140], Y[20:140]
    model = fitted("HeMLGOPClassifier", x, y)
    explanation = model.explain(x)
    for column in range(4):
        one, grid = explanation.response(column), explanation.axis(column).grid
        for method, actual in (("predict_proba", one.probability), ("decision_function", one.mean)):
            expected = partial_dependence(
                model, x, [column], response_method=method, custom_values={column: grid}
            )["average"].T
            if method == "decision_function":
                expected = expected - expected.mean(axis=1, keepdims=True)
            np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5)


def test_the_band_has_four_rows_of_five_and_interplay_is_what_rows_do_not_share():
    """A product of two columns: the curve of one is a line whose slope is the other, 0 on average."""
    linear = OperatorSet("multiplication", "sum", "identity")
    product = OperatorSet("multiplication", "correlation1", "identity")
    rng = np.random.default_rng(0)
    for operators, low, high in ((linear, 0.0, 1e-6), (product, 0.9, 1.0)):
        network = Network(2, 1, [Layer([Block(2, 1, operators, norm=None)])])
        network.layers[0].blocks[0].weight[:] = 1.0
        network.head.weight[:] = 1.0
        x = rng.normal(size=(100, 2))
        one = explain(of_network(network, "regression"), x).response(0)
        assert low <= one.interplay <= high
        slopes = x[:, 1] if operators is product else np.ones(100)
        grid = explain(of_network(network, "regression"), x).axis(0).grid
        curves = slopes[:, None] * (grid - grid.mean())
        level = (slopes.mean() * grid).mean() + (0 if operators is product else x[:, 1].mean())
        for actual, quantile in ((one.low, 0.1), (one.high, 0.9)):
            expected = np.quantile(curves, quantile, axis=0) + level
            np.testing.assert_allclose(actual[:, 0], expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("activation", "view"), [("identity", "exact"), ("tanh", "averaged")])
def test_outputs_are_exact_sums_of_curves_only_where_nothing_bends_the_sums(activation, view):
    layer = Layer([Block(3, 4, OperatorSet("gaussian", "sum", activation))])
    network = randomized(Network(3, 1, [layer], input_bound=3.0))
    rows = np.random.default_rng(0).normal(size=(60, 3))
    explanation = explain(of_network(network, "regression"), rows)
    responses = [explanation.response(j) for j in range(3)]
    assert {one.view for one in responses} == {view}
    # Of an exact one, what moving a column changes is the same in all rows.
    moved = np.array([0.3, -1.0, 0.5])
    changes = []
    for row in rows[:5]:
        other = row.copy()
        other[0] = moved[0]
        changes.append(network.outputs(np.stack([row * [0, 1, 1], other * [1, 1, 1]])))
    spread = np.ptp([change[1] - change[0] for change in changes], axis=0)
    assert (spread.max() < 1e-5) == (view == "exact")
    assert all((one.interplay < 1e-9) == (view == "exact") for one in responses)


def test_limits_of_a_regression_make_its_responses_averages():
    layer = Layer([Block(3, 4, OperatorSet("gaussian", "sum", "identity"))])
    constants = {"output_mean": np.zeros(1), "output_scale": np.ones(1)}
    network = randomized(Network(3, 1, [layer], **constants))
    rows = np.random.default_rng(0).normal(size=(60, 3))
    assert explain(of_network(network, "regression"), rows).response(0).view == "exact"
    network.output_low, network.output_high = np.array([-0.1]), np.array([0.1])
    assert explain(of_network(network, "regression"), rows).response(0).view == "averaged"
