"""The arrays of a network under the names that model files and the torch module have for them.

The names are those of torch's modules: a linear head has weights (n_outputs, n_inputs), and a batch norm
counts batches, of which there are none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .blocks import Block, Linear
from .structure import Structure

__all__ = ["CONSTANTS", "LIMITS", "OPTIONAL", "from_tensors", "to_tensors"]

CONSTANTS = ("input_mean", "input_scale")
OPTIONAL = ("input_low", "input_high", "output_mean", "output_scale", "output_low", "output_high")
#: In single precision, as the features that they are compared with.
LIMITS = ("head_low", "head_high")
#: Names of a batch norm's arrays, and what `Norm` calls them.
_NORM = {"weight": "scale", "bias": "shift", "running_mean": "mean", "running_var": "variance"}
_COUNT = "norm.num_batches_tracked"


def to_tensors(network: Structure) -> dict[str, np.ndarray]:
    """The arrays of a network by the names of their tensors."""
    tensors = {name: getattr(network, name) for name in (*CONSTANTS, *OPTIONAL, *LIMITS)}
    tensors = {name: array for name, array in tensors.items() if array is not None}
    for name, holder, attribute in _places(network):
        tensors[name] = getattr(holder, attribute)
    if isinstance(network.head, Linear):
        tensors["head.weight"] = network.head.weight.T
    for prefix, block in _blocks(network):
        if block.norm is not None:
            tensors[f"{prefix}.{_COUNT}"] = np.zeros((), np.int64)
    return {name: np.array(array, order="C") for name, array in tensors.items()}


def from_tensors(network: Structure, tensors: Mapping[str, np.ndarray]) -> None:
    """Give a network of the right shape its arrays: weights in single and constants in double precision."""
    for name in CONSTANTS:
        setattr(network, name, np.array(tensors[name], np.float64))
    for names, precision in ((OPTIONAL, np.float64), (LIMITS, np.float32)):
        for name in names:
            values = tensors.get(name)
            with np.errstate(over="ignore"):
                setattr(network, name, None if values is None else np.array(values, precision))
    for name, holder, attribute in _places(network):
        values = tensors[name]
        if holder is network.head and attribute == "weight" and isinstance(holder, Linear):
            values = values.T
        with np.errstate(over="ignore"):
            setattr(holder, attribute, np.array(values, np.float32, order="C"))


def _blocks(network: Structure) -> Iterator[tuple[str, Block]]:
    for i, layer in enumerate(network.layers):
        for j, block in enumerate(layer):
            yield f"layers.{i}.blocks.{j}", block


def _places(network: Structure) -> Iterator[tuple[str, Any, str]]:
    """Names of the tensors of layers and head, and whose attributes they are."""
    for prefix, block in _blocks(network):
        yield f"{prefix}.weight", block, "weight"
        if block.has_bias:
            yield f"{prefix}.bias", block, "bias"
        if block.norm is not None:
            for name, attribute in _NORM.items():
                yield f"{prefix}.norm.{name}", block.norm, attribute
    yield "head.weight", network.head, "weight"
    yield "head.bias", network.head, "bias"
