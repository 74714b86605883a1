"""The contents of a network as facts and arrays: to notice changes, for digests, and for the engine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from operator import is_
from typing import Any

import numpy as np

from ..engine.prediction import BlockArrays, CompiledNetwork, NetworkArrays
from .blocks import Block, Head, Layer, Linear
from .structure import Structure
from .tensors import CONSTANTS, LIMITS, OPTIONAL

__all__ = ["Layout", "digest_of"]

_CONSTANTS = (*CONSTANTS, *OPTIONAL, *LIMITS)


class Layout:
    """A network laid out for the engine, for as long as nothing of it changes.

    Whatever changes is noticed: objects by their identity, and values in arrays by comparing them, which
    costs less than the prediction of one row.

    Attributes
    ----------
    network : what the engine predicts with; None where users' operators have to be computed by torch
    """

    def __init__(self, network: Structure) -> None:
        self._objects = _objects(network)
        arrays = [part for part in self._objects if isinstance(part, np.ndarray)]
        # Of an array with gaps between its values there is no view; such a network is laid out every time.
        self._views = [array.data for array in arrays if array.flags.c_contiguous]
        self._values = b"".join(self._views) if len(self._views) == len(arrays) else None
        self.network = compile_network(network) if is_compilable(network) else None

    def is_of(self, network: Structure) -> bool:
        """Whether the network is as it was when it was laid out."""
        now = _objects(network)
        same = len(now) == len(self._objects) and all(map(is_, now, self._objects))
        return same and b"".join(self._views) == self._values


def _objects(network: Structure) -> list[Any]:
    """All that a network computes with, one after the other."""
    objects: list[Any] = [network.n_inputs, network.n_outputs, network.input_bound, network.broad]
    objects.append(network.members)
    objects += [getattr(network, name) for name in _CONSTANTS]
    blocks: list[Layer | Head] = [part for layer in network.layers for part in (layer, *layer)]
    for block in [*blocks, network.head]:
        objects.append(block)
        if isinstance(block, Layer):
            continue
        objects += (block.weight, block.bias)
        if isinstance(block, Block):
            objects += (block.operator_set, block.normalization, block.has_bias)
            norm = block.norm
            if norm is not None:
                objects += (norm.mean, norm.variance, norm.scale, norm.shift)
    return objects


def _arrays(network: Structure, facts: list[Any]) -> Iterator[tuple[str, np.ndarray]]:
    for name in _CONSTANTS:
        array = getattr(network, name)
        if array is not None:
            yield name, array
    groups: list[list[Head]] = [list(layer) for layer in network.layers]
    for layer in [*groups, [network.head]]:
        facts.append(len(layer))
        for block in layer:
            yield "weight", block.weight
            yield "bias", block.bias
            if isinstance(block, Linear):
                facts.append("linear")
                continue
            operators = block.operator_set
            facts += (
                operators.nodal,
                operators.pool,
                operators.activation,
                block.normalization,
                block.has_bias,
            )
            if block.norm is not None:
                for name in ("mean", "variance", "scale", "shift"):
                    yield name, getattr(block.norm, name)


def digest_of(network: Structure) -> str:
    """SHA-256 of a network's content, the same on every machine, as 64 hexadecimal digits."""
    facts: list[Any] = [network.n_inputs, network.n_outputs, network.broad]
    if network.input_bound is not None:
        facts.append(float(network.input_bound).hex())
    if network.members is not None and max(map(len, network.members)) > 1:
        facts.append(network.members)  # which decides what a block reads
    digest = hashlib.sha256()
    for name, array in _arrays(network, facts):
        little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        facts.append([name, little.dtype.str, list(little.shape)])
        digest.update(little.data)
    digest.update(repr(facts).encode())
    return digest.hexdigest()


def is_compilable(network: Structure) -> bool:
    """Whether the engine can compute all of a network: operators of users it cannot."""
    blocks = [block for layer in network.layers for block in layer]
    if isinstance(network.head, Block):
        blocks.append(network.head)
    return all(block.operator_set.codes is not None for block in blocks)


def compile_network(network: Structure) -> CompiledNetwork:
    """A network laid out for the engine."""
    head = network.head
    scaled = network.output_mean is not None and network.output_scale is not None
    names = ("output_scale", "output_mean", "output_low", "output_high")
    return CompiledNetwork(
        NetworkArrays(
            network.n_inputs,
            [[_block_arrays(block) for block in layer] for layer in network.layers],
            _block_arrays(head) if isinstance(head, Block) else (head.weight, head.bias),
            network.input_mean,
            network.input_scale,
            network.input_bound,
            broad=network.broad,
            members=network.members,
            head_low=network.head_low,
            head_high=network.head_high,
            **{name: getattr(network, name) for name in names if scaled},
        )
    )


def _block_arrays(block: Block) -> BlockArrays:
    codes, norm = block.operator_set.codes, block.norm
    assert codes is not None
    if norm is None:
        return BlockArrays(codes, block.weight, block.bias, block.normalization)
    moments = np.stack([norm.mean, norm.variance, norm.scale, norm.shift])
    return BlockArrays(codes, block.weight, block.bias, "batch", moments)
