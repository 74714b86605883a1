"""A network beside another one: the head of both sees the features of both.

Of networks whose head sees the last layer, both become members, as in an average. In broad networks, whose
head sees all layers, blocks read the first features of the layer before: those of the second network get
weights of 0 for the features of the first one.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import NamedTuple

import numpy as np

from .blocks import Block, Layer
from .network import Network

__all__ = ["Beside", "beside"]


class Beside(NamedTuple):
    """Two networks as one, whose head is still to be solved.

    Attributes
    ----------
    network : Network with the constants of the first one
    order : of the features of the first and then the second, in which order the head sees them
    """

    network: Network
    order: np.ndarray


def beside(first: Network, second: Network) -> Beside:
    """The network with the blocks of both; those of ``first`` are not copied, and neither network changes."""
    layers = [
        Layer(
            [
                *_blocks(first, level),
                *(_shifted(block, first, level) for block in _blocks(second, level)),
            ]
        )
        for level in range(max(len(first.layers), len(second.layers)))
    ]
    members = None if first.broad else [*_members(first), *_members(second)]
    network = Network(first.n_inputs, first.n_outputs, layers, broad=first.broad, members=members)
    for name in ("mean", "scale", "low", "high", "bound"):
        setattr(network, f"input_{name}", getattr(first, f"input_{name}"))
    for name in ("mean", "scale", "low", "high"):
        setattr(network, f"output_{name}", getattr(first, f"output_{name}"))
    # The head is still to be solved, and features have no limits below it.
    return Beside(network, _order(first, second))


def _blocks(network: Network, level: int) -> Sequence[Block]:
    return network.layers[level].blocks if level < len(network.layers) else ()


def _members(network: Network) -> Sequence[Sequence[int]]:
    return network.members or ([len(layer) for layer in network.layers],)


def _shifted(block: Block, first: Network, level: int) -> Block:
    """A block of the second network as it reads the layer before that has the features of both."""
    if not first.broad or level == 0 or level > len(first.layers):
        return block
    shifted = copy(block)
    ahead = np.zeros((first.layers[level - 1].n_neurons, block.n_neurons), np.float32)
    shifted.weight = np.concatenate([ahead, block.weight])
    return shifted


def _order(first: Network, second: Network) -> np.ndarray:
    width = first.head_width
    if not first.broad:
        return np.arange(width + second.head_width)
    parts, starts = [], [0, width]
    for level in range(max(len(first.layers), len(second.layers))):
        for i, network in enumerate((first, second)):
            size = sum(block.n_neurons for block in _blocks(network, level))
            parts.append(np.arange(starts[i], starts[i] + size))
            starts[i] += size
    return np.concatenate(parts)
