"""Networks of all kinds, with arbitrary values."""

from __future__ import annotations

import itertools

import numpy as np

from opgrow import PERCEPTRON, Block, Layer, Network, OperatorSet
from opgrow.network.average import average
from tests.networks import limited, randomized


def perceptrons(*widths, activation="sigmoid"):
    operator_set = OperatorSet("multiplication", "sum", activation)
    layers = [Layer([Block(a, b, operator_set)]) for a, b in itertools.pairwise(widths[:-1])]
    return Network(widths[0], widths[-1], layers)


def mixed():
    first = Layer(
        [
            Block(4, 3, OperatorSet("gaussian", "sum", "tanh")),
            Block(4, 2, OperatorSet("dog", "maximum", "elu")),
        ]
    )
    second = Layer([Block(5, 4, OperatorSet("harmonic", "correlation1", "softplus"))])
    return randomized(Network(4, 2, [first, second]))


def operational():
    """A network of POP: the head, too, is of operational neurons."""
    layers = [Layer([Block(4, 5, OperatorSet("gaussian", "sum", "tanh"))]), Layer([Block(5, 3, PERCEPTRON)])]
    return randomized(Network(4, 2, layers, head_operators=OperatorSet("harmonic", "correlation1", "elu")))


def progressive():
    """A network of PLN: a structured and a random part side by side."""
    relu = OperatorSet("multiplication", "sum", "relu")
    widths, layers = [4, 9, 7], []
    for n_inputs, n_neurons in itertools.pairwise(widths):
        structured = Block(n_inputs, 4, relu, norm=None, bias=False)
        layers.append(
            Layer([structured, Block(n_inputs, n_neurons - 4, relu, norm="unit", bias=False)]),
        )
    return randomized(Network(4, 2, layers))


def limited_average():
    """The average of two networks, one of them with two layers, as a regressor: features have limits."""
    first = Layer([Block(4, 5, OperatorSet("multiplication", "correlation1", "elu"))])
    second = Layer([Block(5, 3, OperatorSet("dog", "sum", "relu"))])
    other = Layer([Block(4, 4, OperatorSet("quadratic", "sum", "elu"))])
    constants = {"output_mean": np.array([3.0, -1.0]), "output_scale": np.array([2.0, 0.5])}
    networks = [randomized(Network(4, 2, layers), len(layers)) for layers in ([first, second], [other])]
    network = average(networks)
    for block in (block for layer in network.layers for block in layer):
        block.norm.scale[:] = np.resize([1.5, -1.5], block.n_neurons)
        block.norm.variance[:] = 0.5
    network.input_bound = 3.0
    for name, values in constants.items():
        setattr(network, name, values)
    return limited(network, np.random.default_rng(0).normal(size=(200, 4)))


def broad():
    """A network of BLS: three feature nodes, enhancement nodes, and further feature nodes after them."""
    linear = OperatorSet("multiplication", "sum", "identity")
    features = Layer([Block(4, 3, linear), Block(4, 2, linear)])
    enhancements = Layer([Block(3, 4, PERCEPTRON, norm=None), Block(5, 2, PERCEPTRON, norm=None)])
    return randomized(Network(4, 2, [features, enhancements], broad=True))


ALL = [mixed, operational, progressive, broad]
