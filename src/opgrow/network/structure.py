"""What a network consists of: constants of its inputs and outputs, layers of blocks, and a head.

`Network` adds what it computes. Whatever only reads a network (its layout for the engine, its tensors, its
torch module, its drawing) takes a `Structure`, so that `Network` can offer all of them as methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from itertools import groupby
from typing import Any, Self

import numpy as np

from ..engine.wiring import Members, Span, block_spans, check_members, head_spans, member_widths
from ..operators import OperatorSet
from .blocks import Block, Head, Layer, Linear, check_sizes

__all__ = ["Structure"]


class Structure:
    """Constants, layers and head of a network; `Network` describes the parameters."""

    def __init__(
        self,
        n_inputs: int,
        n_outputs: int,
        layers: Sequence[Layer] = (),
        input_mean: np.ndarray | None = None,
        input_scale: np.ndarray | None = None,
        output_mean: np.ndarray | None = None,
        output_scale: np.ndarray | None = None,
        *,
        input_bound: float | None = None,
        output_low: np.ndarray | None = None,
        output_high: np.ndarray | None = None,
        head_low: np.ndarray | None = None,
        head_high: np.ndarray | None = None,
        head_operators: OperatorSet | None = None,
        broad: bool = False,
        members: Sequence[Sequence[int]] | None = None,
    ) -> None:
        check_sizes(n_inputs=n_inputs, n_outputs=n_outputs)
        if not isinstance(layers, Sequence) or not all(isinstance(layer, Layer) for layer in layers):
            raise TypeError(f"layers must be a list of Layers, got {layers!r}")
        self.n_inputs, self.n_outputs = n_inputs, n_outputs
        # In double precision, for inputs whose mean is large and whose deviation is small.
        self.input_mean = np.zeros(n_inputs) if input_mean is None else _double(input_mean)
        self.input_scale = np.ones(n_inputs) if input_scale is None else _double(input_scale)
        self.output_mean, self.output_scale = _optional(output_mean), _optional(output_scale)
        self.output_low, self.output_high = _optional(output_low), _optional(output_high)
        self.head_low, self.head_high = _single(head_low), _single(head_high)
        self.input_low: np.ndarray | None = None
        self.input_high: np.ndarray | None = None
        self.input_bound = input_bound
        self.layers = list(layers)
        self.broad = broad
        self.members: Members | None = None if members is None else tuple(map(tuple, members))
        if self.members is not None and head_operators is not None:
            raise ValueError("an average of networks has a linear head: leave out head_operators")
        self._check_widths()
        limited = head_low is not None or head_high is not None
        if limited and head_operators is not None:
            raise ValueError("features have limits below a linear head alone: leave out head_operators")
        width = self.head_width
        self.head: Head = Linear(width, n_outputs)
        if head_operators is not None:
            self.head = Block(width, n_outputs, head_operators, norm=None)

    @property
    def head_width(self) -> int:
        """How many features the head sees."""
        return sum(stop - start for _, start, stop in self.head_spans()) if self.layers else self.n_inputs

    def block_spans(self) -> list[list[Span]]:
        """What each block of each layer can read of the layer before."""
        return block_spans(self.n_inputs, self._block_widths(), self.members)

    def head_spans(self) -> list[Span]:
        """What the head sees of the layers, in the order of its weights."""
        return head_spans(self._block_widths(), self.members, self.broad)

    def member_widths(self) -> list[int]:
        """How many features of each network of an average the head sees, in the order of its weights."""
        assert self.members is not None
        return member_widths(self._block_widths(), self.members)

    def _block_widths(self) -> list[list[int]]:
        return [[block.n_neurons for block in layer] for layer in self.layers]

    def _check_widths(self) -> None:
        """Refuse widths that the engine could not trust and a model file could not hold."""
        if self.members is not None:
            check_members(self._block_widths(), self.members, self.broad)
        for i, (layer, spans) in enumerate(zip(self.layers, self.block_spans(), strict=True)):
            for j, (block, span) in enumerate(zip(layer, spans, strict=True)):
                n_inputs, width = block.n_inputs, span.stop - span.start
                if n_inputs != width and not (self.broad and i > 0 and n_inputs < width):
                    where = f"block {j + 1} of layer {i + 1}"
                    raise ValueError(
                        f"{where} has {n_inputs} inputs, and the layer before it {width} outputs"
                    )

    def copy(self) -> Self:
        """A network with arrays of its own and the same values."""
        return deepcopy(self)

    def n_parameters(self) -> int:
        hidden = sum(block.n_parameters() for layer in self.layers for block in layer)
        return hidden + self.head.n_parameters()

    def flops(self) -> int:
        """Elementary operations for one sample."""
        return sum(block.flops() for layer in self.layers for block in layer) + self.head.flops()

    def describe(self) -> dict[str, Any]:
        """Topology, operators and costs as plain data.

        A block has "norm" and "bias" only where they are not "batch" and True.
        """
        layers = [
            {"neurons": layer.n_neurons, "blocks": [_describe_block(block) for block in layer]}
            for layer in self.layers
        ]
        return {
            "inputs": self.n_inputs,
            "outputs": self.n_outputs,
            "layers": layers,
            "head": self._head_kind(),
            "broad": self.broad,
            "parameters": self.n_parameters(),
            "flops": self.flops(),
        }

    def __repr__(self) -> str:
        lines = [f"Network({self.topology()}: {self.n_parameters():,} parameters, {self.flops():,} FLOPs)"]
        for number, layer in enumerate(self.layers, 1):
            lines.append(f"  layer {number}: {layer.n_neurons} neurons")
            blocks = [
                f"    {block.n_neurons:>4} x {', '.join([str(block.operator_set), *block.remarks()])}"
                for block in layer
            ]
            for line, equal in groupby(blocks):  # BLS has dozens of windows that read the same
                times = len(list(equal))
                lines.append(line if times == 1 else f"{line} ({times} such blocks)")
        sees = ", sees all layers" if self.broad else ""
        if self.members is not None:
            sees = f", the mean of {len(self.members)} networks"
        lines.append(f"  head: {self._head_kind()}, {self.n_outputs} outputs{sees}")
        return "\n".join(lines)

    def _head_kind(self) -> str:
        return str(self.head.operator_set) if isinstance(self.head, Block) else "linear"

    def topology(self) -> str:
        """Widths from input to output, such as "8-60-2"."""
        widths = [self.n_inputs, *(layer.n_neurons for layer in self.layers), self.n_outputs]
        return "-".join(str(width) for width in widths)


def _double(values: Any) -> np.ndarray:
    return np.array(values, np.float64)


def _single(values: Any) -> np.ndarray | None:
    """As the features that it is compared with."""
    return None if values is None else np.array(values, np.float32)


def _optional(values: Any) -> np.ndarray | None:
    return None if values is None else _double(values)


def _describe_block(block: Block) -> dict[str, Any]:
    data: dict[str, Any] = {"operators": str(block.operator_set), "neurons": block.n_neurons}
    if block.normalization != "batch":
        data["norm"] = block.normalization
    if not block.has_bias:
        data["bias"] = False
    return data
