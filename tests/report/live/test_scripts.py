"""JavaScript computes what Python computes: every operator, every estimator, networks of all kinds."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.datasets import load_diabetes, load_wine

import opgrow
from opgrow import PERCEPTRON, Block, HeMLRNClassifier, Layer, Network, OperatorSet
from opgrow.network.average import average
from opgrow.operators import register_activation, unregister
from opgrow.operators.registry import built_in, lookup
from opgrow.report.live.arrays import network_data
from opgrow.report.live.data import as_json, reason_against
from opgrow.report.live.scripts import operator_script, script_of
from tests import example_networks, example_operators
from tests.networks import randomized
from tests.report.live import in_node
from tests.report.test_page import small

NAMES = sorted(name for name in opgrow.__all__ if name.endswith(("Classifier", "Regressor")))
pytestmark = pytest.mark.skipif(in_node.NODE is None, reason=in_node.NEEDED)


def outputs_in_node(network, rows):
    return np.array(
        in_node.run(
            operator_script(network),
            script_of("evaluator"),
            f"const network = networkOf({as_json(network_data(network))});",
            in_node.written(f"{json.dumps(rows.tolist())}.map((row) => network.run(row).outputs)"),
        )
    )


@pytest.mark.parametrize("name", NAMES)
def test_every_estimator_says_the_same_of_all_rows(name):
    X, y = load_wine(return_X_y=True) if name.endswith("Classifier") else load_diabetes(return_X_y=True)
    model = small(getattr(opgrow, name)).fit(X[::2], y[::2])
    outputs, shares, labels = in_node.predictions(model, X)
    if is_classifier(model):
        np.testing.assert_allclose(outputs, model.decision_function(X), rtol=2e-5, atol=2e-5)
        np.testing.assert_allclose(shares, model.predict_proba(X), rtol=1e-4, atol=2e-6)
        assert (model.classes_[labels] == model.predict(X)).all()
    else:
        expected = model.predict(X).reshape(len(X), -1)
        np.testing.assert_allclose(outputs, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_every_operator_of_the_library():
    rng = np.random.default_rng(0)
    sets = [OperatorSet(n, "sum", "identity") for n in built_in("nodal")]
    sets += [OperatorSet("gaussian", p, "identity") for p in built_in("pool")]
    sets += [OperatorSet("multiplication", "sum", a) for a in built_in("activation")]
    network = randomized(Network(70, 1, [Layer([Block(70, 2, one, norm=None) for one in sets])]))
    network.head.weight[:], network.head.bias[:] = 0, 0
    rows = rng.normal(size=(20, 70)) * rng.choice([0.1, 1.0, 9.0], size=(20, 1))
    seen = np.array(
        in_node.run(
            operator_script(network),
            script_of("evaluator"),
            f"const network = networkOf({as_json(network_data(network))});",
            in_node.written(f"{json.dumps(rows.tolist())}.map((row) => Array.from(network.run(row).seen))"),
        )
    )
    expected = network.features(rows)
    size = np.abs(expected).max(axis=0).clip(1)
    np.testing.assert_allclose(seen / size, expected / size, rtol=2e-5, atol=2e-5)
    used = {
        (one.kind, one.name)
        for s in sets
        for one in (s.nodal_operator, s.pool_operator, s.activation_operator)
    }
    assert used == {(kind, name) for kind in ("nodal", "pool", "activation") for name in built_in(kind)}
    assert all(lookup(kind, name).js is not None for kind, name in used)


@pytest.mark.parametrize(
    "make", [*example_networks.ALL, example_networks.limited_average], ids=lambda make: make.__name__
)
def test_networks_of_all_kinds(make):
    network, rows = make(), np.random.default_rng(1).normal(size=(50, 4))
    np.testing.assert_allclose(outputs_in_node(network, rows), network.outputs(rows), rtol=2e-5, atol=2e-5)


def test_an_average_of_networks_of_different_depths_with_bounds_and_constants():
    rng = np.random.default_rng(2)

    def member(*widths):
        blocks = [
            Block(n, d, OperatorSet("dog", "correlation2", "tanh"))
            for n, d in zip((5, *widths), widths, strict=False)
        ]
        return randomized(Network(5, 2, [Layer([block]) for block in blocks]), seed=len(widths))

    network = average([member(3), member(4, 6), member(2, 3, 2)])
    network.input_mean, network.input_scale, network.input_bound = (
        rng.normal(size=5),
        rng.uniform(1, 2, 5),
        3.0,
    )
    network.output_mean, network.output_scale = np.array([1e3, -2.0]), np.array([50.0, 0.1])
    network.output_low, network.output_high = np.array([980.0, -2.01]), np.array([1010.0, -1.9])
    rows = rng.normal(size=(60, 5)) * rng.choice([1.0, 1e3, 1e30], size=(60, 1))
    expected = network.outputs(rows)
    assert (expected == network.output_high).any()
    np.testing.assert_allclose(outputs_in_node(network, rows), expected, rtol=1e-6)


def test_operators_of_users_compute_by_what_they_state():
    example_operators.register()
    try:
        network = randomized(Network(4, 2, [Layer([Block(4, 5, OperatorSet(*example_operators.SET))])]))
        rows = np.random.default_rng(3).normal(size=(30, 4))
        np.testing.assert_allclose(
            outputs_in_node(network, rows), network.outputs(rows), rtol=1e-5, atol=1e-5
        )
    finally:
        example_operators.remove()


def test_an_operator_without_a_form_in_javascript_is_named(tmp_path):
    import torch

    register_activation("swish", torch.nn.functional.silu, flops=2)
    try:
        X, y = load_wine(return_X_y=True)
        operators = [("multiplication", "sum", "swish")]
        model = small(HeMLRNClassifier, operators=operators).fit(X, y)
        assert (
            "the activation operator 'swish' was registered without a form in JavaScript"
            in reason_against(model)
        )
    finally:
        unregister("activation", "swish")


def test_large_networks_do_not_compute_in_pages():
    model = HeMLRNClassifier()
    model.network_ = Network(1000, 2, [Layer([Block(1000, 200, PERCEPTRON)])])
    assert "201,002 parameters" in reason_against(model)


def test_text_that_could_end_a_script_is_refused():
    with pytest.raises(ValueError, match="must not contain '</' or '<!--'"):
        register_activation("evil", lambda x: x.tanh(), js="x </script>")
