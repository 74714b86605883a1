"""How far features can get at all: limits that no input reaches need no place in a program.

The inputs of a network are squashed, so that what one layer of multiplications and sums can come to is known.
Small networks for small machines are of this kind, and without limits their programs are shorter.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..network import Block, Network

__all__ = ["limits_in_reach"]

#: Activations that rise or fall everywhere, so that the ends of a range become the ends of another.
_MONOTONIC = ("sigmoid", "tanh", "relu", "softplus", "inverse_absolute", "elu")


def limits_in_reach(network: Network) -> bool:
    """Whether the limits of features that a network has may ever be reached; if in doubt, they may."""
    low, high = network.head_low, network.head_high
    if low is None or high is None:
        return False
    if len(network.layers) != 1 or network.input_bound is None or not all(map(_is_known, network.layers[0])):
        return True
    least, most = _range_of(network.layers[0], network.input_bound)
    return bool((least < low).any() or (most > high).any())


def _is_known(block: Block) -> bool:
    operators = block.operator_set
    sums = (operators.nodal, operators.pool) == ("multiplication", "sum")
    return sums and operators.activation in _MONOTONIC and block.norm is not None


def _range_of(blocks: Iterable[Block], bound: float) -> tuple[np.ndarray, np.ndarray]:
    """The least and the largest value of each feature, of inputs from -bound to bound."""
    ends = []
    for block in blocks:
        formula = block.operator_set.activation_operator.formula
        assert formula is not None
        assert block.norm is not None
        bias = block.bias.astype(np.float64) if block.has_bias else 0.0
        distance = bound * np.abs(block.weight.astype(np.float64)).sum(axis=0)
        scale, shift = block.norm.folded()
        ends.append([formula(bias + side * distance) * scale + shift for side in (-1.0, 1.0)])
    first, last = np.concatenate(ends, axis=1)
    return np.minimum(first, last), np.maximum(first, last)
