"""What was grown, as torch modules: blocks of neurons, layers of blocks, a network of layers and a head.

Sizes and FLOPs follow the conventions that reproduce the paper's tables: a hidden neuron has its weights,
a bias, and the scale and shift of its batch norm; the head has weights and biases. The constants that
standardise the input are not counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from . import kernels
from .operators import OperatorSet

__all__ = ["NORM_EPSILON", "Block", "Layer", "Network"]

#: Added to the variance by every batch norm. Small, because pooled products of small numbers have small
#: but meaningful variances.
NORM_EPSILON = 1e-8


class Block(nn.Module):
    """Neurons that share one operator set and were added together, with their batch norm.

    Parameters
    ----------
    n_inputs, n_neurons : int
    operator_set : OperatorSet

    Attributes
    ----------
    weight : Parameter of shape (n_inputs, n_neurons)
    bias : Parameter of shape (n_neurons,)
    norm : BatchNorm1d over the block's features

    Examples
    --------
    >>> import torch
    >>> from opgrow import Block, OperatorSet
    >>> block = Block(8, 40, OperatorSet("gaussian", "sum", "tanh"))
    >>> block.features(torch.zeros(5, 8)).shape, block.n_parameters()
    (torch.Size([5, 40]), 440)
    """

    def __init__(self, n_inputs: int, n_neurons: int, operator_set: OperatorSet) -> None:
        super().__init__()
        self.operator_set = operator_set
        self.weight = nn.Parameter(torch.empty(n_inputs, n_neurons).uniform_(-1, 1))
        self.bias = nn.Parameter(torch.zeros(n_neurons))
        self.norm = nn.BatchNorm1d(n_neurons, eps=NORM_EPSILON)

    @property
    def n_inputs(self) -> int:
        return self.weight.shape[0]

    @property
    def n_neurons(self) -> int:
        return self.weight.shape[1]

    def features(self, x: Tensor) -> Tensor:
        """f(rho(psi(x, weight)) + bias), before the batch norm: (N, n_inputs) to (N, n_neurons)."""
        return kernels.features(x, self.weight, self.bias, self.operator_set)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.features(x))

    def n_parameters(self) -> int:
        return self.n_neurons * (self.n_inputs + 3)

    def flops(self) -> int:
        return self.n_neurons * (self.operator_set.flops(self.n_inputs) + 2)

    def extra_repr(self) -> str:
        return f"{self.n_inputs}, {self.n_neurons}, {self.operator_set}"


class Layer(nn.Module):
    """Blocks side by side: their features are concatenated."""

    def __init__(self, blocks: Sequence[Block] = ()) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    @property
    def n_neurons(self) -> int:
        return sum(block.n_neurons for block in self)

    def __iter__(self) -> Iterator[Block]:
        return iter(self.blocks)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.blocks)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([block(x) for block in self], dim=1)


class Network(nn.Module):
    """Standardised input, layers of blocks, and a linear head.

    Parameters
    ----------
    n_inputs, n_outputs : int
    layers : sequence of Layer
    input_mean, input_scale : tensors of shape (n_inputs,), optional
        The input is used as ``(x - input_mean) / input_scale``.
    output_mean, output_scale : tensors of shape (n_outputs,), optional
        Where given, as for regression, the head's outputs are multiplied and shifted by them, in double
        precision.

    Examples
    --------
    >>> from opgrow import Block, Layer, Network, OperatorSet
    >>> perceptron = OperatorSet("multiplication", "sum", "sigmoid")
    >>> network = Network(8, 2, [Layer([Block(8, 40, perceptron), Block(8, 20, perceptron)])])
    >>> network.n_parameters(), network.flops()
    (782, 1442)
    """

    def __init__(
        self,
        n_inputs: int,
        n_outputs: int,
        layers: Sequence[Layer] = (),
        input_mean: Tensor | None = None,
        input_scale: Tensor | None = None,
        output_mean: Tensor | None = None,
        output_scale: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.input_mean: Tensor
        self.input_scale: Tensor
        self.output_mean: Tensor | None
        self.output_scale: Tensor | None
        self.n_inputs, self.n_outputs = n_inputs, n_outputs
        # In double precision, for inputs whose mean is large and whose deviation is small.
        mean = torch.zeros(n_inputs) if input_mean is None else input_mean
        scale = torch.ones(n_inputs) if input_scale is None else input_scale
        self.register_buffer("input_mean", mean.to(torch.float64))
        self.register_buffer("input_scale", scale.to(torch.float64))
        self.register_buffer("output_mean", None if output_mean is None else output_mean.to(torch.float64))
        self.register_buffer("output_scale", None if output_scale is None else output_scale.to(torch.float64))
        self.layers = nn.ModuleList(layers)
        self.head = nn.Linear(layers[-1].n_neurons if layers else n_inputs, n_outputs)

    @property
    def hidden(self) -> list[Layer]:
        """The layers, from input to output."""
        return list(self.layers)  # type: ignore[arg-type]

    def standardize(self, x: Tensor) -> Tensor:
        """(x - input_mean) / input_scale, in the precision of the weights."""
        return ((x - self.input_mean) / self.input_scale).to(self.head.weight.dtype)

    def forward(self, x: Tensor) -> Tensor:
        x = self.standardize(x)
        for layer in self.layers:
            x = layer(x)
        out = self._apply_head(x)
        if self.output_mean is not None and self.output_scale is not None:
            return out * self.output_scale + self.output_mean
        return out.to(x.dtype)

    def _apply_head(self, x: Tensor) -> Tensor:
        """The head; in double precision where only predictions are wanted.

        Single-precision products round differently for different numbers of rows, and a prediction should
        not depend on the rows beside it.
        """
        if torch.is_grad_enabled() or x.dtype != torch.float32 or torch.jit.is_tracing():
            return self.head(x)
        weight, bias = self.head.weight.double(), self.head.bias.double()
        return nn.functional.linear(x.double(), weight, bias)

    def n_parameters(self) -> int:
        hidden = sum(block.n_parameters() for layer in self.hidden for block in layer)
        return hidden + self.head.weight.numel() + self.head.bias.numel()

    def flops(self) -> int:
        """Elementary operations for one sample."""
        hidden = sum(block.flops() for layer in self.hidden for block in layer)
        return hidden + 2 * self.head.weight.numel() + self.head.bias.numel()

    def describe(self) -> dict[str, Any]:
        """Topology, operators and costs as plain data."""
        layers = [
            {
                "neurons": layer.n_neurons,
                "blocks": [
                    {"operators": str(block.operator_set), "neurons": block.n_neurons} for block in layer
                ],
            }
            for layer in self.hidden
        ]
        return {
            "inputs": self.n_inputs,
            "outputs": self.n_outputs,
            "layers": layers,
            "parameters": self.n_parameters(),
            "flops": self.flops(),
        }

    def __repr__(self) -> str:
        lines = [f"Network({self.topology()}: {self.n_parameters():,} parameters, {self.flops():,} FLOPs)"]
        for number, layer in enumerate(self.hidden, 1):
            lines.append(f"  layer {number}: {layer.n_neurons} neurons")
            lines += [f"    {block.n_neurons:>4} x {block.operator_set}" for block in layer]
        lines.append(f"  head: linear, {self.n_outputs} outputs")
        return "\n".join(lines)

    def topology(self) -> str:
        """Widths from input to output, such as "8-60-2"."""
        widths = [self.n_inputs, *(layer.n_neurons for layer in self.hidden), self.n_outputs]
        return "-".join(str(width) for width in widths)
