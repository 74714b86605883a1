"""Blocks of neurons, layers of blocks, and linear heads, as numpy arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from ..common.extras import require_torch
from ..engine.batch_norm import NORM_EPSILON, deviation
from ..engine.features import compiled_features
from ..operators import OperatorSet
from ..operators.kinds import stated
from ..operators.unit_norm import unit_rows

__all__ = ["NORMALIZATIONS", "NORM_EPSILON", "Block", "Head", "Layer", "Linear", "Norm", "check_sizes"]

#: What the ``norm`` of a block can be.
NORMALIZATIONS = ("batch", "unit", None)


class Norm:
    """Batch norm with fixed statistics: (x - mean) / sqrt(variance + NORM_EPSILON) * scale + shift.

    Attributes
    ----------
    mean, variance, scale, shift : arrays of shape (n_neurons,) in float32
    """

    def __init__(self, n_neurons: int) -> None:
        self.mean, self.shift = np.zeros((2, n_neurons), np.float32)
        self.variance, self.scale = np.ones((2, n_neurons), np.float32)

    def apply(self, features: np.ndarray) -> np.ndarray:
        """Normalise rows (N, n_neurons) in place."""
        features -= self.mean
        features /= deviation(self.variance)
        features *= self.scale
        features += self.shift
        return features

    def folded(self) -> tuple[np.ndarray, np.ndarray]:
        """The scale and the shift that all of it comes to, in double precision."""
        factor = self.scale / deviation(self.variance.astype(np.float64))
        return factor, self.shift - self.mean * factor

    def __repr__(self) -> str:
        return f"Norm({len(self.mean)})"


class Neurons:
    """What has a weight for each input of each neuron, wherever that is."""

    weight: Any

    @property
    def n_inputs(self) -> int:
        return len(self.weight)

    @property
    def n_neurons(self) -> int:
        return self.weight.shape[1]


class Block(Neurons):
    """Neurons that share one operator set and were added together.

    Parameters
    ----------
    n_inputs, n_neurons : int
    operator_set : OperatorSet
    norm : {"batch", "unit", None}, default="batch"
        "batch" normalises the features by their statistics over the training rows. "unit", the random part of
        PLN, divides the pooled values of each sample by their Euclidean norm over the block, before the
        activation.
    bias : bool, default=True
        False leaves out the bias, as "unit" demands.

    Attributes
    ----------
    weight : array of shape (n_inputs, n_neurons) in float32, zeros at first
    bias : array of shape (n_neurons,) in float32; zeros where there is none
    has_bias : whether there is one
    norm : Norm of the block's features, or None
    normalization : "batch", "unit" or None

    Examples
    --------
    >>> import numpy as np
    >>> from opgrow import Block, OperatorSet
    >>> block = Block(8, 40, OperatorSet("gaussian", "sum", "tanh"))
    >>> block.features(np.zeros((5, 8))).shape, block.n_parameters()
    ((5, 40), 440)
    """

    weight: np.ndarray

    def __init__(
        self,
        n_inputs: int,
        n_neurons: int,
        operator_set: OperatorSet,
        *,
        norm: str | None = "batch",
        bias: bool = True,
    ) -> None:
        check_sizes(n_inputs=n_inputs, n_neurons=n_neurons)
        if not isinstance(operator_set, OperatorSet):
            raise TypeError(f"operator_set must be an OperatorSet, got {operator_set!r}")
        if norm not in NORMALIZATIONS:
            raise ValueError(f"norm must be 'batch', 'unit' or None, got {norm!r}")
        if norm == "unit" and bias:
            raise ValueError("norm='unit' is for blocks without bias: pass bias=False")
        self.operator_set = operator_set
        self.normalization = norm
        self.has_bias = bool(bias)
        self.weight = np.zeros((n_inputs, n_neurons), np.float32)
        self.bias = np.zeros(n_neurons, np.float32)
        # Any, because whoever tunes batch-normalised blocks knows that it is not None.
        self.norm: Any = Norm(n_neurons) if norm == "batch" else None

    def features(self, x: np.ndarray, n_threads: int = 1) -> np.ndarray:
        """f(rho(psi(x, weight)) + bias), before the batch norm: (N, n_inputs) to (N, n_neurons)."""
        operators, weight, bias = self.operator_set, self.weight, self.bias
        if self.normalization == "unit":
            operators = replace(operators, activation="identity")
        x, weight, bias = (np.asarray(array, np.float32) for array in (x, weight, bias))
        features = compiled_features(x, weight, bias, operators, n_threads)
        return self._activated(unit_rows(features)) if self.normalization == "unit" else features

    def _activated(self, z: np.ndarray) -> np.ndarray:
        activation = self.operator_set.activation_operator
        if activation.code is not None:
            return stated(activation.formula)(z)
        torch = require_torch(f"The activation {activation.name!r}")
        with torch.no_grad():
            return activation.function(torch.from_numpy(z)).numpy()

    def outputs(self, x: np.ndarray, n_threads: int = 1) -> np.ndarray:
        """What the block hands on: its features after the batch norm, if it has one."""
        features = self.features(x, n_threads)
        return features if self.norm is None else self.norm.apply(features)

    def n_parameters(self) -> int:
        extra = (1 if self.has_bias else 0) + (2 if self.norm is not None else 0)
        return self.n_neurons * (self.n_inputs + extra)

    def flops(self) -> int:
        """Elementary operations for one sample."""
        neuron = self.operator_set.flops(self.n_inputs)
        if not self.has_bias:
            neuron -= 1
        if self.norm is not None:
            neuron += 2
        # Per neuron a square, an addition and a division; and one root.
        unit = 3 * self.n_neurons + 1 if self.normalization == "unit" else 0
        return self.n_neurons * neuron + unit

    def remarks(self) -> list[str]:
        """What sets the block apart from one with batch norm and bias, in words."""
        norm = {"batch": [], "unit": ["unit norm"], None: ["no norm"]}[self.normalization]
        return norm if self.has_bias else [*norm, "no bias"]

    def __repr__(self) -> str:
        parts = [str(self.n_inputs), str(self.n_neurons), str(self.operator_set), *self.remarks()]
        return f"Block({', '.join(parts)})"


class Linear:
    """A linear head.

    Parameters
    ----------
    n_inputs, n_outputs : int

    Attributes
    ----------
    weight : array of shape (n_inputs, n_outputs) in float32, zeros at first
    bias : array of shape (n_outputs,) in float32
    """

    def __init__(self, n_inputs: int, n_outputs: int) -> None:
        check_sizes(n_inputs=n_inputs, n_outputs=n_outputs)
        self.weight = np.zeros((n_inputs, n_outputs), np.float32)
        self.bias = np.zeros(n_outputs, np.float32)

    @property
    def n_inputs(self) -> int:
        return len(self.weight)

    @property
    def n_outputs(self) -> int:
        return len(self.bias)

    def outputs(self, x: np.ndarray) -> np.ndarray:
        """Rows (N, n_inputs) to (N, n_outputs), in double precision.

        Single-precision products round differently for different numbers of rows, and a prediction should not
        depend on the rows beside it.
        """
        return np.asarray(x, np.float64) @ self.weight.astype(np.float64) + self.bias

    def n_parameters(self) -> int:
        return self.weight.size + self.bias.size

    def flops(self) -> int:
        """Elementary operations for one sample."""
        return 2 * self.weight.size + self.bias.size

    def __repr__(self) -> str:
        return f"Linear({self.n_inputs}, {self.n_outputs})"


#: What a network ends with; a block has no norm there.
Head = Linear | Block


class Layer:
    """Blocks side by side: their features are concatenated.

    A block with fewer inputs than the layer sees the first of them, as the enhancement nodes of BLS do that
    were there before further feature nodes.

    Attributes
    ----------
    blocks : list of Block
    """

    def __init__(self, blocks: Sequence[Block] = ()) -> None:
        self.blocks = list(blocks)

    @property
    def n_neurons(self) -> int:
        return sum(block.n_neurons for block in self.blocks)

    def outputs(self, x: np.ndarray, n_threads: int = 1, firsts: Sequence[int] | None = None) -> np.ndarray:
        """What the layer hands on for rows of its inputs: (N, D) to (N, n_neurons).

        ``firsts`` has the first input that each block reads, where that is not the first of the layer.
        """
        firsts = [0] * len(self.blocks) if firsts is None else firsts
        parts = [
            block.outputs(x[:, first : first + block.n_inputs], n_threads)
            for block, first in zip(self.blocks, firsts, strict=True)
        ]
        return np.concatenate(parts, axis=1)

    def __iter__(self) -> Iterator[Block]:
        return iter(self.blocks)

    def __len__(self) -> int:
        return len(self.blocks)

    def __repr__(self) -> str:
        return f"Layer({self.blocks!r})"


def check_sizes(**sizes: Any) -> None:
    """Complain of sizes that are no positive integers."""
    for name, size in sizes.items():
        if type(size) is bool or not isinstance(size, Integral) or size < 1:
            raise ValueError(f"{name} must be an integer of at least 1, got {size!r}")
