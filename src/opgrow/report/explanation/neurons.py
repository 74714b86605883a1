"""The neurons that the head of a network reads: where they are, what they compute, what they add.

Below a linear head the features of neurons times their weights add up to the outputs; that is exact. What a
neuron's activation is applied to is a sum of `terms` where the neuron reads the inputs, or reads linear
features of them, as the enhancement nodes of BLS do.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...network import Block, Linear, Network
from ...operators import OperatorSet
from .attribution import Attribution, attribute
from .subject import Subject

__all__ = ["Head", "Neuron", "neurons_of"]

_LINEAR = ("multiplication", "sum")


@dataclass(frozen=True, eq=False)
class Neuron:
    """A neuron that the head reads.

    Attributes
    ----------
    number : its place among what the head reads
    layer, block, member : from 1; the member is that of an average
    place : its place in the block, from 0
    operators : OperatorSet
    weight, bias : weights of the network's inputs, or None where it reads other neurons that are not linear
    scale, shift : of its batch norm, 1 and 0 without one
    unit : whether the block's sums are scaled together before the activation
    """

    number: int
    layer: int
    block: int
    member: int
    place: int
    operators: OperatorSet
    weight: np.ndarray | None
    bias: float
    scale: float
    shift: float
    unit: bool

    @property
    def window(self) -> int | None:
        """Neighbouring inputs whose psi are multiplied; 0 for a maximum, None where this is not known."""
        if self.weight is None:
            return None
        return 0 if self.operators.pool == "maximum" else self.operators.pool_operator.window

    @property
    def view(self) -> str:
        """Which of the views of `WORDS` its curves are."""
        if self.window is None:
            return "averaged"
        if self.window == 0:
            return "averaged" if self.unit else "maximum"
        return "scaled" if self.unit else "exact"

    def handed_on(self, pooled: np.ndarray) -> np.ndarray | None:
        """What it hands on for sums that its activation is applied to; None if that depends on others."""
        formula = self.operators.activation_operator.formula
        if self.unit or formula is None:
            return None
        with np.errstate(all="ignore"):
            return np.asarray(formula(np.asarray(pooled, np.float64)), np.float64) * self.scale + self.shift

    def __str__(self) -> str:
        return f"neuron {self.number} (layer {self.layer}, {self.operators})"


def neurons_of(network: Network) -> list[Neuron]:
    """All neurons that the head reads, in the order of its weights."""
    linear = _linear_features(network)
    neurons: list[Neuron] = []
    for layer, start, stop in network.head_spans():
        column = 0
        members = _members_of_blocks(network, layer)
        for number, block in enumerate(network.layers[layer]):
            first, column = column, column + block.n_neurons
            chosen = range(max(first, start) - first, min(column, stop) - first)
            if chosen:
                weight, bias = _on_inputs(network, layer, number, linear)
                neurons += [
                    _neuron(
                        block, (len(neurons) + i, layer + 1, number + 1, members[number], place), weight, bias
                    )
                    for i, place in enumerate(chosen)
                ]
    return neurons


def _neuron(
    block: Block, places: tuple[int, int, int, int, int], weight: np.ndarray | None, bias: np.ndarray
) -> Neuron:
    place = places[-1]
    scale, shift = (1.0, 0.0)
    if block.norm is not None:
        scales, shifts = block.norm.folded()
        scale, shift = float(scales[place]), float(shifts[place])
    own = None if weight is None else weight[:, place]
    unit = block.normalization == "unit"
    return Neuron(*places, block.operator_set, own, float(bias[place]), scale, shift, unit)


def _members_of_blocks(network: Network, layer: int) -> list[int]:
    """Which network of an average each block of a layer belongs to, from 1."""
    if network.members is None:
        return [1] * len(network.layers[layer])
    return [
        number
        for number, counts in enumerate(network.members, 1)
        for _ in range(counts[layer] if layer < len(counts) else 0)
    ]


def _on_inputs(
    network: Network, layer: int, number: int, linear: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]]
) -> tuple[np.ndarray | None, np.ndarray]:
    """Weights (inputs, neurons) and biases of a block by the network's inputs, where it has them."""
    block = network.layers[layer].blocks[number]
    weight, bias = block.weight.astype(np.float64), block.bias.astype(np.float64)
    if layer == 0:
        return weight, bias
    operators, before = block.operator_set, linear.get(layer - 1)
    if before is None or (operators.nodal, operators.pool) != _LINEAR:
        return None, bias
    first = network.block_spans()[layer][number].start
    reads = slice(first, first + block.n_inputs)
    matrix, offset, is_linear = before
    if not is_linear[reads].all():
        return None, bias
    return matrix[:, reads] @ weight, bias + offset[reads] @ weight


def _linear_features(network: Network) -> dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Of each layer: matrix (inputs, neurons) and offset of its linear features, and which these are."""
    linear: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
    for layer in range(len(network.layers)):
        parts = []
        for number, block in enumerate(network.layers[layer]):
            operators = block.operator_set
            weight, bias = _on_inputs(network, layer, number, linear)
            plain = (operators.nodal, operators.pool) == _LINEAR and operators.activation == "identity"
            if weight is None or not plain or block.normalization == "unit":
                n = block.n_neurons
                parts.append((np.zeros((network.n_inputs, n)), np.zeros(n), np.zeros(n, bool)))
                continue
            scale, shift = (1.0, 0.0) if block.norm is None else block.norm.folded()
            parts.append((weight * scale, bias * scale + shift, np.ones(block.n_neurons, bool)))
        matrices, offsets, flags = zip(*parts, strict=True)
        linear[layer] = np.concatenate(matrices, axis=1), np.concatenate(offsets), np.concatenate(flags)
    return linear


class Head:
    """From the features that the head reads to what is explained.

    Attributes
    ----------
    weights : array (features, quantities), what one unit of a feature adds; None where the head has operators
    """

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._network = subject.network
        head = self._network.head
        self.weights: np.ndarray | None = None
        if isinstance(head, Linear):
            self.weights = (head.weight.astype(np.float64) * self._output_scale) @ subject.mix

    @cached_property
    def _output_scale(self) -> np.ndarray:
        scale = self._network.output_scale
        return np.ones(self._network.n_outputs) if scale is None else scale

    @property
    def view(self) -> str:
        return "paths" if self.weights is None else "neurons"

    def outputs(self, features: np.ndarray) -> np.ndarray:
        """What is explained, without limits, for features (n, features)."""
        raw = np.asarray(self._network.head.outputs(features), np.float64) * self._output_scale
        if self._network.output_mean is not None:
            raw = raw + self._network.output_mean
        return raw @ self._subject.mix

    def contributions(
        self, features: np.ndarray, background: np.ndarray, budget: int, rng: np.random.Generator
    ) -> Attribution:
        """What each feature of one row adds, relative to the features (n, features) of the background."""
        background = background.astype(np.float64)
        if self.weights is not None:
            values = (features - background.mean(axis=0))[:, None] * self.weights
            return Attribution(self.outputs(background.mean(axis=0, keepdims=True))[0], values)
        groups = [slice(i, i + 1) for i in range(len(features))]
        return attribute(self.outputs, features.astype(np.float64), background, groups, budget, rng)

    def added(self, features: np.ndarray, background: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """What each feature adds for each of some rows: (rows, features, quantities)."""
        return np.stack([self.contributions(row, background, 1 << 13, rng).values for row in features])
