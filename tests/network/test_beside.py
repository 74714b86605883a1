"""Two networks side by side compute what each of them does."""

from __future__ import annotations

import numpy as np
import pytest

from opgrow import Block, Layer, Network, OperatorSet
from opgrow.network.average import average
from opgrow.network.beside import beside

SETS = [OperatorSet("multiplication", "sum", "tanh"), OperatorSet("gaussian", "sum", "sigmoid")]


def network(seed, widths, broad=False):
    """A network with random weights, with blocks of ``widths`` in its layers."""
    rng = np.random.default_rng(seed)
    layers, n_inputs = [], 3
    for blocks in widths:
        made = [
            Block(n_inputs, n, SETS[i % 2], norm=None if broad else "batch") for i, n in enumerate(blocks)
        ]
        for block in made:
            block.weight[:] = rng.normal(size=block.weight.shape)
            block.bias[:] = rng.normal(size=block.bias.shape)
        layers.append(Layer(made))
        n_inputs = sum(blocks)
    mean, scale = np.array([0.5, -1.0, 2.0]), np.array([2.0, 3.0, 0.5])
    result = Network(3, 2, layers, mean, scale, input_bound=3.0, broad=broad)
    result.head.weight[:] = rng.normal(size=result.head.weight.shape)
    return result


CASES = {
    "as deep": (network(0, [[4, 2]]), network(1, [[3]])),
    "deeper": (network(0, [[4]]), network(1, [[3], [5, 2]])),
    "less deep": (network(0, [[4], [2]]), network(1, [[3]])),
    "beside an average": (average([network(0, [[4], [2]]), network(2, [[3]])]), network(1, [[3], [2]])),
    "broad": (network(0, [[4, 2], [5]], broad=True), network(1, [[3], [2, 2]], broad=True)),
    "broad and deeper": (network(0, [[4]], broad=True), network(1, [[3], [2]], broad=True)),
}


@pytest.mark.parametrize(("first", "second"), CASES.values(), ids=CASES)
def test_the_head_sees_the_features_of_both(first, second):
    x = np.random.default_rng(3).normal(size=(20, 3)) * 3
    second.input_mean, second.input_scale = first.input_mean, first.input_scale
    second.input_bound = first.input_bound = 3.0
    before = first.digest(), second.digest()
    both, order = beside(first, second)
    expected = np.concatenate([first.features(x), second.features(x)], axis=1)
    np.testing.assert_allclose(both.features(x), expected[:, order], rtol=1e-5, atol=1e-6)
    weight = np.concatenate([first.head.weight, second.head.weight])
    both.head.weight[:] = weight[order]
    np.testing.assert_allclose(both.outputs(x), expected @ weight, rtol=1e-4, atol=1e-5)
    assert (first.digest(), second.digest()) == before
