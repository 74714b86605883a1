"""Rows are divided among networks, and networks averaged into one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opgrow.network import Block, Layer, Network
from opgrow.network.average import average, fold_rows, member_outputs, rows_between
from opgrow.operators import OperatorSet
from tests.networks import randomized

# --- rows ---


@given(st.integers(4, 60), st.integers(1, 9), st.integers(1, 4), st.sampled_from([0.1, 0.2, 0.34, 0.5]))
def test_rows_are_held_back_once_in_every_division(n_rows, n_networks, n_classes, fraction):
    rng = np.random.default_rng(n_rows)
    codes = rng.integers(0, n_classes, n_rows)
    folds = fold_rows(n_rows, n_networks, fraction, codes, rng)
    assert len(folds) == n_networks
    n_folds = round(1 / fraction)
    for start in range(0, n_networks - n_folds + 1, n_folds):
        held = np.concatenate([rest for _, rest in folds[start : start + n_folds]])
        common = np.bincount(codes)[codes] > 1
        assert sorted(held) == np.flatnonzero(common).tolist()
    for most, rest in folds:
        assert sorted(np.concatenate([most, rest])) == list(range(n_rows))
        assert len(rest) <= np.ceil(n_rows / n_folds)
        assert set(codes[most]) == set(codes)


def test_classes_are_held_back_evenly():
    codes = np.repeat([0, 1, 2], [50, 25, 5])
    for _, rest in fold_rows(80, 5, 0.2, codes, np.random.default_rng(0)):
        assert np.bincount(codes[rest]).tolist() == [10, 5, 1]


def test_rows_are_divided_anew_when_folds_run_out():
    folds = fold_rows(40, 4, 0.5, None, np.random.default_rng(0))
    assert not np.array_equal(folds[0][1], folds[2][1])


# --- networks ---


def network(widths, seed):
    sets = [OperatorSet("gaussian", "maximum", "tanh"), OperatorSet("multiplication", "sum", "sigmoid")]
    blocks = [Block(5, d, s) for d, s in zip(widths, sets, strict=True)]
    return randomized(Network(5, 3, [Layer(blocks)]), seed)


def test_the_average_computes_the_mean_of_the_outputs():
    members = [network((4, 2), 0), network((3, 5), 1), network((1, 1), 2)]
    for member in members:  # as networks are while they grow
        member.input_mean, member.input_scale = np.zeros(5), np.ones(5)
    x = np.random.default_rng(3).normal(size=(20, 5))
    merged = average(members)
    mean = np.mean([member.outputs(x) for member in members], axis=0)
    np.testing.assert_allclose(merged.outputs(x), mean, rtol=1e-5, atol=1e-5)
    assert merged.topology() == "5-16-3"


def test_rows_between_lie_between_rows():
    x = np.random.default_rng(0).normal(size=(20, 3))
    between, near = rows_between(x, 15, np.random.default_rng(1))
    assert between.shape == (15, 3)
    assert len(set(near)) == 15
    away = np.linalg.norm(between - x[near], axis=1)
    spread = np.linalg.norm(x[:, None] - x, axis=2).max(axis=1)[near]
    assert (away <= spread / 2 + 1e-12).all()
    assert away.max() > 0


# --- averages of networks with several layers ---


def _random_network(depth, seed):
    """A network of so many layers with blocks of different operators, and weights drawn at random."""
    rng = np.random.default_rng(seed)
    kinds = [
        OperatorSet("multiplication", "sum", "tanh"),
        OperatorSet("gaussian", "maximum", "sigmoid"),
        OperatorSet("multiplication", "sum", "tanh"),
    ]
    width, layers = 4, []
    for level in range(depth):
        blocks = [Block(width, 2 + seed + i, kinds[(i + level) % 3]) for i in range(1 + (seed + level) % 3)]
        layers.append(Layer(blocks))
        width = layers[-1].n_neurons
    network = Network(4, 2, layers)
    for block in [block for layer in layers for block in layer]:
        block.weight[:] = rng.normal(size=block.weight.shape)
        block.bias[:] = rng.normal(size=block.bias.shape)
        block.norm.mean[:], block.norm.shift[:] = rng.normal(size=(2, block.n_neurons))
        block.norm.variance[:], block.norm.scale[:] = rng.uniform(0.5, 2, (2, block.n_neurons))
    network.head.weight[:] = rng.normal(size=network.head.weight.shape)
    network.head.bias[:] = rng.normal(size=2)
    return network


DEPTHS = [(2, 2), (1, 3, 2), (3, 1, 1, 2), (2, 1, 2)]


@pytest.mark.parametrize("depths", DEPTHS)
@pytest.mark.parametrize("n_rows", [1, 3, 40, 1500])
def test_an_average_of_deep_networks_predicts_the_mean_of_their_outputs(depths, n_rows):
    networks = [_random_network(depth, seed) for seed, depth in enumerate(depths)]
    x = np.random.default_rng(9).normal(size=(n_rows, 4)).astype(np.float32)
    expected = np.mean([network.outputs(x).astype(np.float64) for network in networks], axis=0)
    merged = average(networks)
    np.testing.assert_allclose(merged.outputs(x), expected, rtol=2e-5, atol=2e-5)
    by_blocks = merged.head.outputs(merged.features(x))
    np.testing.assert_allclose(by_blocks, expected, rtol=2e-5, atol=2e-5)
    n_biases = (len(networks) - 1) * merged.n_outputs
    assert merged.n_parameters() == sum(network.n_parameters() for network in networks) - n_biases


@pytest.mark.parametrize("depths", DEPTHS)
def test_an_average_of_deep_networks_is_a_torch_module_and_comes_back(depths):
    torch = pytest.importorskip("torch")
    from opgrow.network.torch import from_torch

    merged = average([_random_network(depth, seed) for seed, depth in enumerate(depths)])
    x = np.random.default_rng(9).normal(size=(30, 4)).astype(np.float32)
    module = merged.to_torch()
    with torch.no_grad():
        np.testing.assert_allclose(
            module(torch.from_numpy(x)).numpy(), merged.outputs(x), rtol=1e-5, atol=1e-5
        )
    assert from_torch(module).digest() == merged.digest()


def test_whose_a_block_is_belongs_to_the_digest_of_a_deep_average():
    merged = average([_random_network(2, 0), _random_network(2, 1), _random_network(2, 1)])
    assert merged.members == ((1, 2), (2, 3), (2, 3))
    other = merged.copy()
    other.members = tuple(reversed(merged.members))
    assert other.digest() != merged.digest()
    flat = average([_random_network(1, 0), _random_network(1, 1)])
    other = flat.copy()
    other.members = None  # in one layer all blocks read the inputs
    assert other.digest() == flat.digest()


def test_an_average_has_a_linear_head():
    layers = [Layer([Block(4, 2, OperatorSet("multiplication", "sum", "tanh")) for _ in range(2)])]
    with pytest.raises(ValueError, match="linear head"):
        Network(4, 2, layers, members=[[1], [1]], head_operators=OperatorSet("gaussian", "sum", "tanh"))


@pytest.mark.parametrize("scaled", [False, True])
def test_the_outputs_of_each_network_can_be_told_from_their_average(scaled):
    members = [network((4, 2), 0), network((3, 5), 1), network((1, 1), 2)]
    for member in members:
        member.input_mean, member.input_scale = np.zeros(5), np.ones(5)
        if scaled:
            member.output_mean, member.output_scale = np.array([1.0, 2.0, 3.0]), np.array([5.0, 0.1, 1.0])
    merged = average(members)
    merged.output_mean, merged.output_scale = members[0].output_mean, members[0].output_scale
    x = np.random.default_rng(3).normal(size=(20, 5))
    biases = np.stack([member.head.bias for member in members]).astype(np.float64)
    outputs = member_outputs(merged, biases, x)
    for own, member in zip(outputs, members, strict=True):
        np.testing.assert_allclose(own, member.outputs(x), rtol=2e-4, atol=2e-5)
    np.testing.assert_allclose(outputs.mean(axis=0), merged.outputs(x), rtol=2e-4, atol=2e-5)
