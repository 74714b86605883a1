"""Candidates for training: where each parameter lies in a flat vector, and what came of them.

Candidates that are trained together have equal sizes; their operators, parameters and dropouts may differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..engine import training
from ..network import Block, Layer, Linear
from ..operators import OperatorSet

__all__ = ["BlockParameters", "Candidates", "Shape", "fill"]

#: A deviation of features below this part of their mean is nothing but rounding errors.
_STILL = np.float32(1e-6)
#: Codes of a linear head, and of operators that have only their torch function.
LINEAR, UNKNOWN = (-1, -1, -1), (-2, -2, -2)


@dataclass(frozen=True)
class BlockParameters:
    """A block's parameters as views into flat vectors (..., size), arrays or tensors."""

    operator_set: OperatorSet
    weight: Any
    bias: Any
    scale: Any
    shift: Any


class Shape:
    """Where each parameter of layers and head lies in a flat vector; laid out as `engine.training` says.

    The head sees ``n_frozen`` features that training does not change, and then those of the last layer.
    """

    def __init__(self, layers: Sequence[Layer], head: Linear | Block, n_frozen: int) -> None:
        self.sets = [block.operator_set for layer in layers for block in layer]
        self.widths = np.array([layer.n_neurons for layer in layers], np.int64)
        self.n_features, self.n_outputs = head.weight.shape
        self.n_frozen = n_frozen
        self.head_set = head.operator_set if isinstance(head, Block) else None
        codes = LINEAR if self.head_set is None else self.head_set.codes
        self.head_codes = np.array(codes or UNKNOWN, np.int64)
        rows, offset = [], 0
        for number, layer in enumerate(layers):
            column = 0
            for block in layer:
                codes = block.operator_set.codes or UNKNOWN
                rows.append([*codes, block.n_inputs, block.n_neurons, offset, number, column])
                offset += block.n_neurons * (block.n_inputs + 3)
                column += block.n_neurons
        self.plan = np.array(rows, np.int64).reshape(-1, 8)
        self.head_at = offset
        self.size = offset + (self.n_features + 1) * self.n_outputs

    @property
    def n_neurons(self) -> int:
        return int(self.widths.sum())

    @property
    def compilable(self) -> bool:
        """Whether all operators are built in."""
        return bool((self.plan[:, :3] > UNKNOWN[0]).all() and (self.head_codes > UNKNOWN[0]).all())

    @property
    def sizes(self) -> tuple[Any, ...]:
        """What candidates that are trained together have in common."""
        return (
            self.plan[:, 3:].tobytes(),
            self.n_features,
            self.n_frozen,
            self.head_set is None,
            self.n_outputs,
        )

    def compiled(self) -> training.Shape:
        """The same for the engine in C."""
        nodal, pool, activation = self.head_codes.tolist()
        return training.Shape(
            self.plan, self.widths, (nodal, pool, activation), self.n_frozen, self.n_outputs
        )

    def blocks(self, theta: Any) -> list[list[BlockParameters]]:
        """The parameters of each block of each layer, as views into (..., size) vectors."""
        layers: list[list[BlockParameters]] = [[] for _ in self.widths]
        for operator_set, row in zip(self.sets, self.plan, strict=True):
            n_in, d, at, layer = (int(value) for value in row[3:7])
            end = at + n_in * d
            rest = (theta[..., end + i * d : end + (i + 1) * d] for i in range(3))
            weight = theta[..., at:end].reshape(*theta.shape[:-1], n_in, d)
            layers[layer].append(BlockParameters(operator_set, weight, *rest))
        return layers

    def head(self, theta: Any) -> tuple[Any, Any]:
        """Weights (..., features, outputs) and biases (..., outputs) of the head."""
        end = self.size - self.n_outputs
        weight = theta[..., self.head_at : end].reshape(*theta.shape[:-1], self.n_features, self.n_outputs)
        return weight, theta[..., end:]

    def decay(self, weight_decay: float) -> np.ndarray:
        """Decay of each parameter: weights of blocks and head, but no bias and no batch norm."""
        decay = np.zeros(self.size, np.float32)
        for layer in self.blocks(decay):
            for block in layer:
                block.weight[:] = weight_decay
        self.head(decay)[0][:] = weight_decay
        return decay

    def flatten(self, layers: Sequence[Layer], head: Linear | Block) -> np.ndarray:
        """All parameters as one vector."""
        theta = np.empty(self.size, np.float32)
        for views, layer in zip(self.blocks(theta), layers, strict=True):
            for view, block in zip(views, layer, strict=True):
                view.weight[:], view.bias[:] = block.weight, block.bias
                view.scale[:], view.shift[:] = block.norm.scale, block.norm.shift
        weight, bias = self.head(theta)
        weight[:], bias[:] = head.weight, head.bias
        return theta

    def moments(self, layers: Sequence[Layer]) -> np.ndarray:
        """Means and variances (2, neurons) that the blocks' norms have."""
        norms = [block.norm for layer in layers for block in layer]
        parts = [[norm.mean for norm in norms], [norm.variance for norm in norms]]
        return np.array([np.concatenate(part) if part else np.zeros(0) for part in parts], np.float32)

    def restore(
        self, theta: np.ndarray, moments: np.ndarray, layers: Sequence[Layer], head: Linear | Block
    ) -> None:
        """Write parameters and statistics (2, neurons) into the blocks and the head."""
        first = 0
        for views, layer in zip(self.blocks(theta), layers, strict=True):
            for view, block in zip(views, layer, strict=True):
                block.weight, block.bias = view.weight.copy(), view.bias.copy()
                norm = block.norm
                norm.scale, norm.shift = view.scale.copy(), view.shift.copy()
                norm.mean, norm.variance = _spread_out(*moments[:, first : first + block.n_neurons])
                first += block.n_neurons
        weight, bias = self.head(theta)
        head.weight, head.bias = weight.copy(), bias.copy()


def _spread_out(mean: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Statistics by which neurons that always say the same stay constant.

    Their variance is rounding errors. Divided by it, these would become as large as other features, and other
    programs than the engine, which round in other ways, would compute other predictions.
    """
    return mean.copy(), np.where(variance <= np.square(_STILL * mean), np.float32(1), variance)


@dataclass(frozen=True)
class Candidates:
    """Candidates that are trained together.

    Attributes
    ----------
    shapes : of each candidate, of equal sizes
    theta : (K, size) parameters that they start from
    dropouts : of each candidate
    moments : (2, K, neurons) statistics of their features over all training rows, where these are known
    """

    shapes: Sequence[Shape]
    theta: np.ndarray
    dropouts: Sequence[float]
    moments: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.shapes)

    @property
    def compilable(self) -> bool:
        return all(shape.compilable for shape in self.shapes)

    @classmethod
    def of_networks(
        cls,
        networks: Sequence[tuple[Sequence[Layer], Linear | Block]],
        n_frozen: int,
        dropouts: Sequence[float],
    ) -> Candidates:
        """Layers with the head on top of them, as they are."""
        shapes = [Shape(layers, head, n_frozen) for layers, head in networks]
        pairs = list(zip(shapes, networks, strict=True))
        theta = np.stack([shape.flatten(*network) for shape, network in pairs])
        moments = np.stack([shape.moments(layers) for shape, (layers, _) in pairs], axis=1)
        return cls(shapes, theta, dropouts, moments)


def fill(target: np.ndarray, arrays: Mapping[str, np.ndarray], name: str) -> None:
    """Copy an array of exactly this shape and type."""
    values = arrays.get(name)
    if values is None or values.shape != target.shape or values.dtype != target.dtype:
        description = "missing" if values is None else f"of shape {values.shape} and type {values.dtype}"
        raise ValueError(
            f"the array {name!r} is {description}, expected shape {target.shape} and type {target.dtype}"
        )
    target[...] = values
