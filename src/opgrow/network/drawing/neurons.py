"""What a drawing says about inputs, neurons and outputs, in a few lines each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...operators import OperatorSet
from ..blocks import Block
from ..structure import Structure

__all__ = ["Names", "input_text", "neuron_texts", "output_text", "spaced", "strengths"]

_LISTED = 12


@dataclass(frozen=True)
class Names:
    """Names of a network's inputs and outputs, where they are known."""

    inputs: list[str] | None
    outputs: list[str] | None

    @classmethod
    def of(
        cls, network: Structure, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None
    ) -> Names:
        """Names that have been counted."""
        for what, chosen, n in (
            ("feature_names", inputs, network.n_inputs),
            ("output_names", outputs, network.n_outputs),
        ):
            if chosen is not None and len(chosen) != n:
                raise ValueError(f"{what} must have {n} names, one for each, got {len(chosen)}")
        return cls(
            *(None if chosen is None else [str(name) for name in chosen] for chosen in (inputs, outputs))
        )

    def input(self, i: int) -> str:
        return f"input {i + 1}" if self.inputs is None else self.inputs[i]

    def output(self, i: int) -> str:
        return f"output {i + 1}" if self.outputs is None else self.outputs[i]


def spaced(operator_set: OperatorSet | str) -> str:
    """An operator set for reading."""
    return str(operator_set).replace("/", " / ")


def input_text(network: Structure, names: Names, i: int | None = None) -> str:
    """One input, or all of them."""
    if i is not None:
        place = f"input {i + 1} of {network.n_inputs}"
        return place if names.inputs is None else f"{names.inputs[i]}\n{place}"
    text = f"{network.n_inputs:,} inputs"
    if names.inputs is None:
        return text
    more = len(names.inputs) - _LISTED
    listed = ", ".join(names.inputs[:_LISTED]) + (f" and {more:,} more" if more > 0 else "")
    return f"{text}: {listed}"


def neuron_texts(network: Structure, names: Names, layer: int, number: int, member: int | None) -> list[str]:
    """The neurons of a block; ``layer`` and ``number`` of the block count from 1."""
    block = list(network.layers[layer - 1])[number - 1]
    network_text = "" if member is None else f"network {member}, "
    kinds = ", ".join([f"{block.n_inputs:,} inputs", *(block.remarks() or ["bias, batch norm"])])
    strongest = _strongest(network, names, layer, number)
    speaks = _head_weights(network, names, layer, number)
    return [
        "\n".join(
            filter(
                None,
                [
                    spaced(block.operator_set),
                    f"{network_text}layer {layer}, block {number}, neuron {i + 1} of {block.n_neurons}",
                    kinds,
                    strongest[i],
                    speaks[i] if speaks else "",
                ],
            )
        )
        for i in range(block.n_neurons)
    ]


def _strongest(network: Structure, names: Names, layer: int, number: int) -> list[str]:
    """Of each neuron of a block the input with the largest weight."""
    weight = network.layers[layer - 1].blocks[number - 1].weight
    first = network.block_spans()[layer - 1][number - 1].start
    places = np.abs(weight).argmax(axis=0)
    texts = []
    for column, row in enumerate(places):
        source = names.input(int(row)) if layer == 1 else f"neuron {first + row + 1} of layer {layer - 1}"
        texts.append(f"largest weight: {source} ({weight[row, column]:+.3g})")
    return texts


def _head_weights(network: Structure, names: Names, layer: int, number: int) -> list[str]:
    """Of each neuron of a block that a linear head sees, the output that it speaks for or against most."""
    blocks = network.layers[layer - 1].blocks
    before = _place_at_head(network, layer, sum(block.n_neurons for block in blocks[: number - 1]))
    if isinstance(network.head, Block) or before is None:
        return []
    weight = network.head.weight.T[:, before : before + blocks[number - 1].n_neurons]
    places = np.abs(weight).argmax(axis=0)
    return [
        f"largest head weight: {names.output(int(row))} ({weight[row, column]:+.3g})"
        for column, row in enumerate(places)
    ]


def _place_at_head(network: Structure, layer: int, neuron: int) -> int | None:
    """Which of the head's features a neuron of a layer is; None where the head does not see it."""
    before = 0
    for seen, start, stop in network.head_spans():
        if seen == layer - 1 and start <= neuron < stop:
            return before + neuron - start
        before += stop - start
    return None


def output_text(network: Structure, names: Names, i: int) -> str:
    """One output of the head."""
    head = spaced(network.head.operator_set) if isinstance(network.head, Block) else "linear"
    place = f"head: {head}, output {i + 1} of {network.n_outputs}"
    return place if names.outputs is None else f"{names.outputs[i]}\n{place}"


def strengths(network: Structure) -> list[list[np.ndarray]]:
    """How much what comes next relies on each neuron of each block of each layer, from 0 to 1 in each layer.

    These are the weights that the head and the next layer give it, times the deviation of what it says where
    a batch norm knows that.
    """
    result = []
    for number, layer in enumerate(network.layers):
        total = np.zeros(layer.n_neurons)
        before = 0
        for seen, start, stop in network.head_spans():
            weight = np.abs(network.head.weight[before : before + stop - start]).sum(axis=1)
            total[start:stop] += weight if seen == number else 0
            before += stop - start
        if number + 1 < len(network.layers):
            for block, span in zip(
                network.layers[number + 1], network.block_spans()[number + 1], strict=True
            ):
                part = slice(span.start, span.start + block.n_inputs)
                total[part] += np.abs(block.weight).sum(axis=1) / block.n_neurons
        parts, column = [], 0
        for block in layer:
            scale = 1.0 if block.norm is None else np.abs(block.norm.scale)
            parts.append(total[column : column + block.n_neurons] * scale)
            column += block.n_neurons
        largest = max((part.max() for part in parts), default=0.0)
        finite = np.isfinite(largest) and largest > 0
        result.append([part / largest if finite else np.ones_like(part) for part in parts])
    return result
