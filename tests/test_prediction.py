"""Predictions of whole networks by the engine: when it is used, and that it notices every change."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch

from opgrow import Block, Layer, Network, OperatorSet, prediction
from opgrow.operators import register_activation, unregister
from opgrow.prediction import network_outputs

pytestmark = pytest.mark.cpu

X = np.random.default_rng(0).normal(size=(40, 3))


def grown(activation="tanh", **options):
    torch.manual_seed(0)
    blocks = [
        Block(3, 3, OperatorSet("gaussian", "sum", activation)),
        Block(3, 4, OperatorSet("dog", "maximum", "elu")),
    ]
    layers = [Layer(blocks), Layer([Block(7, 6, OperatorSet("multiplication", "sum", "relu"))])]
    return Network(3, 2, layers, **options).eval()


def exact(network):
    with torch.no_grad():
        return copy.deepcopy(network).double()(torch.from_numpy(X)).numpy()


@pytest.fixture
def by_torch(monkeypatch):
    """Counts the predictions that torch computes."""
    calls, compute = [], prediction._by_torch
    monkeypatch.setattr(prediction, "_by_torch", lambda *given: calls.append(1) or compute(*given))
    return calls


def in_place(network):
    with torch.no_grad():
        network.head.weight[0, 0] += 1


def behind_torchs_back(network):
    network.hidden[0].blocks[0].weight.detach().numpy()[1] = 0.25


def by_data(network):
    network.hidden[1].blocks[0].norm.running_mean.data += 0.5


def other_storage(network):
    network.head.bias.data = torch.ones(2)


def turned(network):
    weight = network.hidden[0].blocks[0].weight
    weight.data = weight.data.T


def other_parameter(network):
    network.head.weight = torch.nn.Parameter(torch.ones(2, 6))


def other_operators(network):
    network.hidden[0].blocks[1].operator_set = OperatorSet("harmonic", "sum", "tanh")


def other_bound(network):
    network.input_bound = 0.5


def other_epsilon(network):
    network.hidden[1].blocks[0].norm.eps = 0.3


def output_scale(network):
    network.output_mean, network.output_scale = torch.ones(2).double(), torch.full((2,), 3.0).double()


def further_block(network):
    network.hidden[1].blocks[0] = Block(7, 6, OperatorSet("exponential", "correlation1", "tanh")).eval()


CHANGES = [
    in_place,
    behind_torchs_back,
    by_data,
    other_storage,
    turned,
    other_parameter,
    other_operators,
    other_bound,
    other_epsilon,
    output_scale,
    further_block,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_changed_network_is_predicted_as_it_is_now(change):
    network = grown()
    before = network_outputs(network, X)
    np.testing.assert_allclose(before, exact(network), rtol=1e-5, atol=1e-5)
    change(network)
    after = network_outputs(network, X)
    assert np.abs(after - before).max() > 1e-3
    np.testing.assert_allclose(after, exact(network), rtol=1e-5, atol=1e-5)


def test_an_unchanged_network_is_laid_out_once(monkeypatch, by_torch):
    network = grown()
    network_outputs(network, X)
    monkeypatch.setattr(prediction, "CompiledNetwork", lambda _: pytest.fail("laid out again"))
    network_outputs(network, X)
    assert not by_torch


def test_outputs_have_the_precision_that_torch_gives(by_torch):
    plain = network_outputs(grown(), X)
    scaled = network_outputs(grown(output_mean=torch.zeros(2), output_scale=torch.ones(2)), X)
    assert (plain.dtype, scaled.dtype) == (np.float32, np.float64)
    assert not by_torch


def test_what_the_engine_cannot_compute_is_left_to_torch(by_torch):
    register_activation("swish", torch.nn.functional.silu)
    try:
        seen = []
        hooked, training = grown(), grown()
        hooked.hidden[0].register_forward_hook(lambda *_: seen.append(1))
        training.train()
        for network in (grown("swish"), hooked, training, grown().double()):
            found = network_outputs(network, X)
            np.testing.assert_allclose(found, exact(network), rtol=1e-5, atol=1e-5)
        assert len(by_torch) == 4
        assert seen
    finally:
        unregister("activation", "swish")


def test_a_network_that_has_predicted_can_be_copied_and_pickled():
    network = grown()
    wanted = network_outputs(network, X)
    for twin in (copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
        np.testing.assert_array_equal(network_outputs(twin, X), wanted)


def test_rows_and_threads_change_nothing():
    network = grown()
    rows = np.random.default_rng(1).normal(size=(5000, 3)).astype(np.float32)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        together = network_outputs(network, rows)
        torch.set_num_threads(1)
        np.testing.assert_array_equal(network_outputs(network, rows), together)
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(network_outputs(network, rows[2047:2050]), together[2047:2050])
