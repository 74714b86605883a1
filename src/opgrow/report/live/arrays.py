"""A network as compact data for a page: its arrays in base64, and how they belong together."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from ...engine.batch_norm import deviation
from ...network import Block, Network

__all__ = ["network_data"]

_Place = tuple[int, int] | None


class _Arrays:
    """Arrays of one precision, one after the other; each is known by its place and its length."""

    def __init__(self, dtype: str) -> None:
        self.dtype, self.parts, self.size = np.dtype(dtype), list[np.ndarray](), 0

    def add(self, array: np.ndarray | None) -> _Place:
        if array is None:
            return None
        with np.errstate(over="ignore"):
            values = np.ascontiguousarray(array, self.dtype).reshape(-1)
        place = self.size, values.size
        self.parts.append(values)
        self.size += values.size
        return place

    def text(self) -> str:
        return base64.b64encode(b"".join(part.tobytes() for part in self.parts)).decode()


def network_data(network: Network) -> dict[str, Any]:
    """What `evaluator.js` computes with."""
    singles, doubles = _Arrays("<f4"), _Arrays("<f8")
    layers = [
        [
            _block_data(block, span.start, singles)
            for block, span in zip(layer, network.block_spans()[number], strict=True)
        ]
        for number, layer in enumerate(network.layers)
    ]
    if isinstance(network.head, Block):
        head = _block_data(network.head, 0, singles)
    else:
        head = {"weight": singles.add(network.head.weight.T), "bias": singles.add(network.head.bias)}
    scaled = network.output_mean is not None and network.output_scale is not None
    names = ("output_scale", "output_mean", "output_low", "output_high")
    constants = {name: doubles.add(getattr(network, name) if scaled else None) for name in names}
    return {
        "inputs": network.n_inputs,
        "outputs": network.n_outputs,
        "mean": doubles.add(network.input_mean),
        "scale": doubles.add(network.input_scale),
        "bound": network.input_bound,
        **constants,
        "head_low": singles.add(network.head_low),
        "head_high": singles.add(network.head_high),
        "layers": layers,
        "head": head,
        "spans": [list(span) for span in network.head_spans()],
        "singles": singles.text(),
        "doubles": doubles.text(),
    }


def _block_data(block: Block, first: int, singles: _Arrays) -> dict[str, Any]:
    operators, norm = block.operator_set, block.norm
    moments = None
    if norm is not None:
        # In single precision, as the engine has them.
        factor = np.asarray(norm.scale, np.float64) / deviation(np.asarray(norm.variance, np.float64))
        moments = np.stack([norm.mean, factor.astype(np.float32), norm.shift])
    return {
        "operators": [operators.nodal, operators.pool, operators.activation],
        "inputs": block.n_inputs,
        "neurons": block.n_neurons,
        "first": first,
        "norm": block.normalization,
        "weight": singles.add(block.weight.T),
        "bias": singles.add(block.bias) if block.has_bias else None,
        "moments": singles.add(moments),
    }
