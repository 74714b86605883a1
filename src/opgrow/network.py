"""What was grown, as torch modules: blocks of neurons, layers of blocks, a network of layers and a head.

Sizes and FLOPs follow the conventions that reproduce the paper's tables: a hidden neuron has its weights and,
where it has them, a bias and the scale and shift of its batch norm; the head has weights and biases. The
constants that standardise the input are not counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from numbers import Integral
from typing import Any

import torch
from torch import Tensor, nn

from . import kernels
from .operators import OperatorSet
from .scaling import squash

__all__ = ["NORMALIZATIONS", "NORM_EPSILON", "Block", "Layer", "Network", "unit_rows"]

#: Added to the variance by every batch norm. Small, because pooled products of small numbers have small
#: but meaningful variances.
NORM_EPSILON = 1e-8
#: What the ``norm`` of a block can be.
NORMALIZATIONS = ("batch", "unit", None)


class Block(nn.Module):
    """Neurons that share one operator set and were added together.

    Parameters
    ----------
    n_inputs, n_neurons : int
    operator_set : OperatorSet
    norm : {"batch", "unit", None}, default="batch"
        "batch" normalises the features over the batch. "unit", the random part of PLN, divides the pooled
        values of each sample by their Euclidean norm over the block, before the activation.
    bias : bool, default=True
        False leaves out the bias, as "unit" demands.

    Attributes
    ----------
    weight : Parameter of shape (n_inputs, n_neurons)
    bias : Parameter of shape (n_neurons,), or zeros that are neither trained nor saved
    norm : BatchNorm1d over the block's features, or None
    normalization : "batch", "unit" or None

    Examples
    --------
    >>> import torch
    >>> from opgrow import Block, OperatorSet
    >>> block = Block(8, 40, OperatorSet("gaussian", "sum", "tanh"))
    >>> block.features(torch.zeros(5, 8)).shape, block.n_parameters()
    (torch.Size([5, 40]), 440)
    """

    def __init__(
        self,
        n_inputs: int,
        n_neurons: int,
        operator_set: OperatorSet,
        *,
        norm: str | None = "batch",
        bias: bool = True,
    ) -> None:
        super().__init__()
        _check_sizes(n_inputs=n_inputs, n_neurons=n_neurons)
        if not isinstance(operator_set, OperatorSet):
            raise TypeError(f"operator_set must be an OperatorSet, got {operator_set!r}")
        if norm not in NORMALIZATIONS:
            raise ValueError(f"norm must be 'batch', 'unit' or None, got {norm!r}")
        if norm == "unit" and bias:
            raise ValueError("norm='unit' is for blocks without bias: pass bias=False")
        self.bias: Tensor
        self.operator_set = operator_set
        self.normalization = norm
        self.weight = nn.Parameter(torch.empty(n_inputs, n_neurons).uniform_(-1, 1))
        if bias:
            self.bias = nn.Parameter(torch.zeros(n_neurons))
        else:
            self.register_buffer("bias", torch.zeros(n_neurons), persistent=False)
        # Any, because whoever tunes batch-normalised blocks knows that it is not None.
        self.norm: Any = nn.BatchNorm1d(n_neurons, eps=NORM_EPSILON) if norm == "batch" else None

    @property
    def n_inputs(self) -> int:
        return self.weight.shape[0]

    @property
    def n_neurons(self) -> int:
        return self.weight.shape[1]

    @property
    def has_bias(self) -> bool:
        return isinstance(self.bias, nn.Parameter)

    def features(self, x: Tensor) -> Tensor:
        """f(rho(psi(x, weight)) + bias), before the batch norm: (N, n_inputs) to (N, n_neurons)."""
        if self.normalization != "unit":
            return kernels.features(x, self.weight, self.bias, self.operator_set)
        linear = replace(self.operator_set, activation="identity")
        pooled = kernels.features(x, self.weight, self.bias, linear)
        return self.operator_set.activation_operator.function(unit_rows(pooled))

    def forward(self, x: Tensor) -> Tensor:
        features = self.features(x)
        return features if self.norm is None else self.norm(features)

    def n_parameters(self) -> int:
        extra = (1 if self.has_bias else 0) + (2 if self.norm is not None else 0)
        return self.n_neurons * (self.n_inputs + extra)

    def flops(self) -> int:
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

    def extra_repr(self) -> str:
        return ", ".join([str(self.n_inputs), str(self.n_neurons), str(self.operator_set), *self.remarks()])


def unit_rows(z: Tensor) -> Tensor:
    """Rows divided by their Euclidean norm; rows of zeros stay, and their gradients are finite."""
    # Dividing by the largest entry first keeps the squares from overflowing or vanishing. The result does not
    # depend on that factor, so it takes no part in the gradient.
    largest = z.detach().abs().amax(dim=1, keepdim=True)
    z = z / torch.where(largest == 0, torch.ones_like(largest), largest)
    squares = z.square().sum(dim=1, keepdim=True)
    return z / torch.where(squares == 0, torch.ones_like(squares), squares).sqrt()


def _check_sizes(**sizes: Any) -> None:
    for name, size in sizes.items():
        if type(size) is bool or not isinstance(size, Integral) or size < 1:
            raise ValueError(f"{name} must be an integer of at least 1, got {size!r}")


class Layer(nn.Module):
    """Blocks side by side: their features are concatenated.

    A block with fewer inputs than the layer sees the first of them, as the enhancement nodes of BLS do that
    were there before further feature nodes.
    """

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
        return torch.cat([block(x[:, : block.n_inputs]) for block in self], dim=1)


class Network(nn.Module):
    """Standardised input, layers of blocks, and a head.

    Parameters
    ----------
    n_inputs, n_outputs : int
    layers : sequence of Layer
    input_mean, input_scale : tensors of shape (n_inputs,), optional
        The input is used as ``z = (x - input_mean) / input_scale``.
    input_bound : float, optional
        Where given, as ``z / sqrt(1 + (z / input_bound)^2)``, which no input takes beyond this bound.
    output_mean, output_scale : tensors of shape (n_outputs,), optional
        Where given, as for regression, the head's outputs are multiplied and shifted by them, in double
        precision.
    output_low, output_high : tensors of shape (n_outputs,), optional
        Where given, outputs are not below or above them.
    head_operators : OperatorSet, optional
        The head is linear; where these are given, as for POP, it is a block of such neurons without norm.
    broad : bool, default=False
        True, for BLS: the head sees the outputs of all layers, and not only of the last. Only then may
        blocks from the second layer on have fewer inputs than the layer before has outputs.

    Attributes
    ----------
    head : nn.Linear or Block
    input_low, input_high : tensors of shape (n_inputs,), or None
        The least and the largest input that the network has learned from, as far as that is known.

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
        *,
        input_bound: float | None = None,
        output_low: Tensor | None = None,
        output_high: Tensor | None = None,
        head_operators: OperatorSet | None = None,
        broad: bool = False,
    ) -> None:
        super().__init__()
        self.input_mean: Tensor
        self.input_scale: Tensor
        self.output_mean: Tensor | None
        self.output_scale: Tensor | None
        self.output_low: Tensor | None
        self.output_high: Tensor | None
        self.input_low: Tensor | None
        self.input_high: Tensor | None
        _check_sizes(n_inputs=n_inputs, n_outputs=n_outputs)
        if not isinstance(layers, Sequence) or not all(isinstance(layer, Layer) for layer in layers):
            raise TypeError(f"layers must be a list of Layers, got {layers!r}")
        self.n_inputs, self.n_outputs = n_inputs, n_outputs
        # In double precision, for inputs whose mean is large and whose deviation is small.
        mean = torch.zeros(n_inputs) if input_mean is None else input_mean
        scale = torch.ones(n_inputs) if input_scale is None else input_scale
        self.register_buffer("input_mean", mean.to(torch.float64))
        self.register_buffer("input_scale", scale.to(torch.float64))
        optional = {
            "input_low": None,
            "input_high": None,
            "output_mean": output_mean,
            "output_scale": output_scale,
            "output_low": output_low,
            "output_high": output_high,
        }
        for name, values in optional.items():
            self.register_buffer(name, None if values is None else values.to(torch.float64))
        self.input_bound = input_bound
        self.layers = nn.ModuleList(layers)
        self.broad = broad
        self._check_widths()
        widths = [layer.n_neurons for layer in layers]
        width = (sum(widths) if broad else widths[-1]) if widths else n_inputs
        # Any, because most methods know that it is linear, and the others that it is not.
        self.head: Any
        if head_operators is None:
            self.head = nn.Linear(width, n_outputs)
        else:
            self.head = Block(width, n_outputs, head_operators, norm=None)

    def _check_widths(self) -> None:
        """Refuse widths that the compiled kernels could not trust and a model file could not hold."""
        width = self.n_inputs
        for i, layer in enumerate(self.hidden):
            for j, block in enumerate(layer):
                given = block.n_inputs
                if given != width and not (self.broad and i > 0 and given < width):
                    where = f"block {j + 1} of layer {i + 1}"
                    raise ValueError(f"{where} has {given} inputs, and the layer before it {width} outputs")
            width = layer.n_neurons

    @property
    def hidden(self) -> list[Layer]:
        """The layers, from input to output."""
        return list(self.layers)  # type: ignore[arg-type]

    def standardize(self, x: Tensor) -> Tensor:
        """Inputs as the first layer sees them: centred, scaled, bounded, in the precision of the weights."""
        z = (x - self.input_mean) / self.input_scale
        return squash(z, self.input_bound).to(self.head.weight.dtype)

    def forward(self, x: Tensor) -> Tensor:
        x = self.standardize(x)
        outputs = []
        for layer in self.layers:
            x = layer(x)
            if self.broad:
                outputs.append(x)
        out = self._apply_head(torch.cat(outputs, dim=1) if outputs else x)
        if self.output_mean is not None and self.output_scale is not None:
            out = out * self.output_scale + self.output_mean
            return out if self.output_low is None else out.clamp(self.output_low, self.output_high)
        return out.to(x.dtype)

    def _apply_head(self, x: Tensor) -> Tensor:
        """The head; a linear one in double precision where only predictions are wanted.

        Single-precision products round differently for different numbers of rows, and a prediction should
        not depend on the rows beside it.
        """
        differentiable = torch.is_grad_enabled() or x.dtype != torch.float32 or torch.jit.is_tracing()
        if differentiable or isinstance(self.head, Block):  # the kernels of blocks see to it themselves
            return self.head(x)
        weight, bias = self.head.weight.double(), self.head.bias.double()
        return nn.functional.linear(x.double(), weight, bias)

    def n_parameters(self) -> int:
        hidden = sum(block.n_parameters() for layer in self.hidden for block in layer)
        return hidden + self.head.weight.numel() + self.head.bias.numel()

    def flops(self) -> int:
        """Elementary operations for one sample."""
        hidden = sum(block.flops() for layer in self.hidden for block in layer)
        if isinstance(self.head, Block):
            return hidden + self.head.flops()
        return hidden + 2 * self.head.weight.numel() + self.head.bias.numel()

    def describe(self) -> dict[str, Any]:
        """Topology, operators and costs as plain data.

        A block has "norm" and "bias" only where they are not "batch" and True.
        """
        layers = [
            {"neurons": layer.n_neurons, "blocks": [_describe_block(block) for block in layer]}
            for layer in self.hidden
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
        for number, layer in enumerate(self.hidden, 1):
            lines.append(f"  layer {number}: {layer.n_neurons} neurons")
            blocks = [
                f"    {block.n_neurons:>4} x {', '.join([str(block.operator_set), *block.remarks()])}"
                for block in layer
            ]
            for line, equal in groupby(blocks):  # BLS has dozens of windows that read the same
                times = len(list(equal))
                lines.append(line if times == 1 else f"{line} ({times} such blocks)")
        sees = ", sees all layers" if self.broad else ""
        lines.append(f"  head: {self._head_kind()}, {self.n_outputs} outputs{sees}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from .report.drawing import draw

        return draw(self)._repr_html_()

    def _head_kind(self) -> str:
        return str(self.head.operator_set) if isinstance(self.head, Block) else "linear"

    def topology(self) -> str:
        """Widths from input to output, such as "8-60-2"."""
        widths = [self.n_inputs, *(layer.n_neurons for layer in self.hidden), self.n_outputs]
        return "-".join(str(width) for width in widths)


def _describe_block(block: Block) -> dict[str, Any]:
    data: dict[str, Any] = {"operators": str(block.operator_set), "neurons": block.n_neurons}
    if block.normalization != "batch":
        data["norm"] = block.normalization
    if not block.has_bias:
        data["bias"] = False
    return data
