"""Limits of features that no input reaches are not in programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from opgrow import Block, HeMLGOPClassifier, Layer, Network, OperatorSet
from opgrow.export.program import program_of
from opgrow.export.reach import limits_in_reach

ACTIVATIONS = ("sigmoid", "tanh", "relu", "softplus", "inverse_absolute", "elu")


def one_layer(operators: OperatorSet, seed: int = 0) -> Network:
    """A network of random weights and norms, whose limits are what inputs of up to 3 come to."""
    rng = np.random.default_rng(seed)
    block = Block(5, 7, operators)
    block.weight, block.bias = rng.normal(size=(5, 7)), rng.normal(size=7)
    block.norm.mean, block.norm.shift = rng.normal(size=(2, 7))
    block.norm.variance, block.norm.scale = rng.uniform(0.1, 2, 7), rng.choice([-1.5, 0.7], 7)
    network = Network(5, 2, [Layer([block])])
    network.input_bound = 3.0
    corners = np.sign(block.weight.T) * 1e30  # the inputs that are worst for one of the neurons
    features = network.features(np.concatenate([corners, -corners]))
    network.head_low, network.head_high = features.min(axis=0) - 1e-4, features.max(axis=0) + 1e-4
    return network


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_range_of_a_layer_of_sums_is_known(activation: str) -> None:
    network = one_layer(OperatorSet("multiplication", "sum", activation))
    assert not limits_in_reach(network)
    for limits, step in ((network.head_low, 1e-3), (network.head_high, -1e-3)):
        limits[3] += step
        assert limits_in_reach(network)
        limits[3] -= step
    assert not limits_in_reach(network)


@pytest.mark.parametrize(
    "change",
    [
        lambda n: setattr(n, "input_bound", None),
        lambda n: n.layers.append(Layer([Block(7, 7, OperatorSet("multiplication", "sum", "relu"))])),
    ],
)
def test_in_doubt_limits_stay(change: Any) -> None:
    network = one_layer(OperatorSet("multiplication", "sum", "tanh"))
    change(network)
    assert limits_in_reach(network)
    for operators in (("exponential", "sum", "tanh"), ("multiplication", "correlation1", "tanh")):
        assert limits_in_reach(one_layer(OperatorSet(*operators)))


def test_a_program_without_them_says_the_same() -> None:
    x, y = load_breast_cancer(return_X_y=True)
    model = HeMLGOPClassifier(preset="compact", random_state=0).fit(x[:300], y[:300])
    assert model.network_.head_low is not None
    assert not limits_in_reach(model.network_)
    assert program_of(model).head_low is program_of(model).head_high is None
    far = np.vstack([x, 1e6 * x, -1e30 * np.ones_like(x[:3])])
    limited = model.network_.outputs(far)
    model.network_.head_low = model.network_.head_high = None
    np.testing.assert_array_equal(model.network_.outputs(far), limited)
