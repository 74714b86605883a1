"""A network without some of its blocks: which can go together, and what is left of it.

Blocks that read each other belong together. A part is such a group, so that the rest of the network computes
what it did. Of a network with one layer each block is a part, of networks side by side each network with
several layers, and of broad networks each group that weights connect.
"""

from __future__ import annotations

from copy import copy
from typing import NamedTuple

import numpy as np

from .blocks import Block, Layer
from .network import Network

__all__ = ["Part", "Rest", "parts_of", "without"]

#: Blocks, each by its layer and its place in it.
Part = frozenset[tuple[int, int]]


class Rest(NamedTuple):
    """What is left of a network, whose head is still to be solved.

    Attributes
    ----------
    network : Network
    kept : which features of the former head the new one sees, in its order
    """

    network: Network
    kept: np.ndarray


def parts_of(network: Network) -> list[Part]:
    """The smallest groups of blocks that read nothing of each other, in their order."""
    parts: list[set[tuple[int, int]]] = []
    columns = _blocks_of_columns(network)
    for level, (layer, spans) in enumerate(zip(network.layers, network.block_spans(), strict=True)):
        for place, (block, span) in enumerate(zip(layer, spans, strict=True)):
            group = {(level, place)}
            if level:
                read = columns[level - 1][span.start : span.stop][: block.n_inputs]
                if network.broad:
                    read = read[(block.weight != 0).any(axis=1)]
                group |= {(level - 1, int(number)) for number in np.unique(read)}
            joined = [part for part in parts if part & group]
            parts = [part for part in parts if not part & group]
            parts.append(group.union(*joined))
    return sorted((frozenset(part) for part in parts), key=min)


def without(network: Network, part: Part) -> Rest | None:
    """The network without one or several of its parts, or None if too little would be left to compute."""
    columns = _blocks_of_columns(network)
    layers: list[Layer] = []
    for level, layer in enumerate(network.layers):
        blocks = [
            _reading(block, level, columns, part, network.broad)
            for place, block in enumerate(layer)
            if (level, place) not in part
        ]
        if blocks and len(layers) < level:
            return None
        if blocks:
            layers.append(Layer(blocks))
    if not layers:
        return None
    rest = copy(network)
    rest.layers, rest.members = layers, _members(network, part)
    rest.head_low = rest.head_high = None  # they were those of the former head
    kept = np.concatenate(
        [
            [(span.layer, int(number)) not in part for number in columns[span.layer][span.start : span.stop]]
            for span in network.head_spans()
        ]
    )
    return Rest(rest, np.flatnonzero(kept))


def _blocks_of_columns(network: Network) -> list[np.ndarray]:
    """For each layer, which block each of its features is from."""
    return [np.repeat(np.arange(len(layer)), [b.n_neurons for b in layer]) for layer in network.layers]


def _reading(block: Block, level: int, columns: list[np.ndarray], part: Part, broad: bool) -> Block:
    """A block as it reads what is left of the layer before."""
    if not level or not broad:
        return block
    left = [(level - 1, int(number)) not in part for number in columns[level - 1][: block.n_inputs]]
    reading = copy(block)
    reading.weight = np.ascontiguousarray(block.weight[left])
    return reading


def _members(network: Network, part: Part) -> tuple[tuple[int, ...], ...] | None:
    """The blocks in each layer of each network of an average that is left, if there are several."""
    if network.members is None:
        return None
    starts = [0] * len(network.layers)
    members = []
    for counts in network.members:
        own = []
        for level, count in enumerate(counts):
            places = range(starts[level], starts[level] + count)
            own.append(sum((level, place) not in part for place in places))
            starts[level] += count
        if all(own):
            members.append(tuple(own))
    return tuple(members) if len(members) > 1 else None
