"""Predictions of whole networks by the engine: when it is used, and that it notices every change."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from opgrow import Block, Layer, Network, OperatorSet
from opgrow.network import compiled
from opgrow.operators import register_activation, unregister
from tests.networks import in_double, randomized

pytestmark = pytest.mark.cpu

X = np.random.default_rng(0).normal(size=(40, 3))


def grown(activation="tanh", **options):
    blocks = [
        Block(3, 3, OperatorSet("gaussian", "sum", activation)),
        Block(3, 4, OperatorSet("dog", "maximum", "elu")),
    ]
    layers = [Layer(blocks), Layer([Block(7, 6, OperatorSet("multiplication", "sum", "relu"))])]
    return randomized(Network(3, 2, layers, **options))


def in_place(network):
    network.head.weight[0, 0] += 1


def of_a_norm(network):
    network.layers[1].blocks[0].norm.mean += 0.5


def other_array(network):
    network.head.bias = np.ones(2, np.float32)


def turned(network):
    block = network.layers[0].blocks[0]
    block.weight = block.weight.T


def other_operators(network):
    network.layers[0].blocks[1].operator_set = OperatorSet("harmonic", "sum", "tanh")


def other_bound(network):
    network.input_bound = 0.5


def output_scale(network):
    network.output_mean, network.output_scale = np.ones(2), np.full(2, 3.0)


def other_block(network):
    block = Block(7, 6, OperatorSet("exponential", "correlation1", "tanh"))
    block.weight[:] = network.layers[1].blocks[0].weight
    network.layers[1].blocks[0] = block


CHANGES = [
    in_place,
    of_a_norm,
    other_array,
    turned,
    other_operators,
    other_bound,
    output_scale,
    other_block,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_changed_network_is_predicted_as_it_is_now(change):
    network = grown()
    before = network.outputs(X)
    np.testing.assert_allclose(before, in_double(network, X), rtol=1e-4, atol=1e-4)
    change(network)
    after = network.outputs(X)
    assert np.abs(after - before).max() > 1e-3
    np.testing.assert_allclose(after, in_double(network, X), rtol=1e-4, atol=1e-4)


def test_an_unchanged_network_is_laid_out_once(monkeypatch):
    network = grown()
    network.outputs(X)
    monkeypatch.setattr(compiled, "compile_network", lambda _: pytest.fail("laid out again"))
    network.outputs(X)


def test_outputs_are_double_where_they_are_scaled():
    scaled = grown(output_mean=np.zeros(2), output_scale=np.ones(2))
    assert (grown().outputs(X).dtype, scaled.outputs(X).dtype) == (np.float32, np.float64)


def test_operators_of_users_are_computed_block_by_block():
    register_activation("swish", torch.nn.functional.silu)
    try:
        network = grown("swish")
        np.testing.assert_allclose(network.outputs(X), in_double(network, X), rtol=1e-4, atol=1e-4)
        assert network.outputs(X).dtype == np.float32
        assert network.outputs(X[:0]).shape == (0, 2)
    finally:
        unregister("activation", "swish")


def test_rows_and_threads_change_nothing():
    network = grown()
    rows = np.random.default_rng(1).normal(size=(5000, 3)).astype(np.float32)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        together = network.outputs(rows)
        torch.set_num_threads(1)
        np.testing.assert_array_equal(network.outputs(rows), together)
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(network.outputs(rows[2047:2050]), together[2047:2050])


def test_a_block_that_moves_to_another_layer_is_noticed():
    first, second = (Block(2, 2, OperatorSet("multiplication", "sum", "tanh")) for _ in range(2))
    first.weight[:], second.weight[:] = np.eye(2), 2 * np.eye(2)
    network = Network(
        2, 1, [Layer([first, second]), Layer([Block(4, 2, OperatorSet("harmonic", "sum", "tanh"))])]
    )
    before = network.outputs(X[:, :2])
    network.layers[0].blocks.remove(second)
    network.layers[1].blocks[0].weight = np.ones((2, 2), np.float32)
    network.layers[1].blocks.insert(0, second)
    network.head = type(network.head)(4, 1)
    network.head.weight[:] = 1.0
    assert not np.array_equal(network.outputs(X[:, :2]), before)
