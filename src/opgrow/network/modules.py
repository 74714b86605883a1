"""The torch modules of blocks, layers and networks.

Their tensors have the names that model files use. Nothing else in the library works with modules.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from ..engine.differentiable import features
from ..operators import OperatorSet
from ..operators.unit_norm import tensor_unit_rows
from .blocks import NORM_EPSILON, Block
from .scaling import squash
from .structure import Structure
from .tensors import CONSTANTS, LIMITS, OPTIONAL, to_tensors

__all__ = ["BlockModule", "LayerModule", "NetworkModule", "to_torch"]


class BlockModule(nn.Module):
    """A `Block` as a module; its parameters are drawn at random.

    Attributes
    ----------
    weight : Parameter of shape (n_inputs, n_neurons)
    bias : Parameter of shape (n_neurons,), or zeros that are neither trained nor saved
    norm : BatchNorm1d over the block's features, or None
    """

    def __init__(
        self, n_inputs: int, n_neurons: int, operator_set: OperatorSet, norm: str | None, bias: bool
    ) -> None:
        super().__init__()
        self.bias: Tensor
        self.operator_set, self.normalization = operator_set, norm
        self.weight = nn.Parameter(torch.empty(n_inputs, n_neurons).uniform_(-1, 1))
        if bias:
            self.bias = nn.Parameter(torch.zeros(n_neurons))
        else:
            self.register_buffer("bias", torch.zeros(n_neurons), persistent=False)
        self.norm: Any = nn.BatchNorm1d(n_neurons, eps=NORM_EPSILON) if norm == "batch" else None

    @property
    def has_bias(self) -> bool:
        return isinstance(self.bias, nn.Parameter)

    def features(self, x: Tensor) -> Tensor:
        """f(rho(psi(x, weight)) + bias), before the batch norm: (N, n_inputs) to (N, n_neurons)."""
        if self.normalization != "unit":
            return features(x, self.weight, self.bias, self.operator_set)
        linear = replace(self.operator_set, activation="identity")
        pooled = features(x, self.weight, self.bias, linear)
        return self.operator_set.activation_operator.function(tensor_unit_rows(pooled))

    def forward(self, x: Tensor) -> Tensor:
        outputs = self.features(x)
        return outputs if self.norm is None else self.norm(outputs)

    def extra_repr(self) -> str:
        n_inputs, n_neurons = self.weight.shape
        return f"{n_inputs}, {n_neurons}, {self.operator_set}"


class LayerModule(nn.Module):
    """Blocks side by side: their features are concatenated. Each reads from its first input on."""

    def __init__(self, blocks: list[BlockModule], firsts: list[int]) -> None:
        super().__init__()
        self.blocks, self.firsts = nn.ModuleList(blocks), firsts

    def forward(self, x: Tensor) -> Tensor:
        places = zip(self.blocks, self.firsts, strict=True)
        return torch.cat([block(x[:, i : i + len(block.weight)]) for block, i in places], dim=1)  # type: ignore[arg-type]


class NetworkModule(nn.Module):
    """A network as a module, which maps rows (N, n_inputs) to outputs (N, n_outputs)."""

    def __init__(self, network: Structure) -> None:
        super().__init__()
        self.input_mean: Tensor
        self.input_scale: Tensor
        self.output_mean: Tensor | None
        self.output_scale: Tensor | None
        self.output_low: Tensor | None
        self.output_high: Tensor | None
        self.head_low: Tensor | None
        self.head_high: Tensor | None
        self.n_inputs, self.n_outputs = network.n_inputs, network.n_outputs
        self.input_bound, self.broad, self.members = network.input_bound, network.broad, network.members
        self.head_spans = network.head_spans()
        for name in (*CONSTANTS, *OPTIONAL, *LIMITS):
            values = getattr(network, name)
            self.register_buffer(name, None if values is None else torch.from_numpy(values.copy()))
        self.layers = nn.ModuleList(
            LayerModule([_block_module(block) for block in layer], [span.start for span in reads])
            for layer, reads in zip(network.layers, network.block_spans(), strict=True)
        )
        self.head: Any
        if isinstance(network.head, Block):
            self.head = _block_module(network.head)
        else:
            self.head = nn.Linear(network.head.n_inputs, network.head.n_outputs)

    def standardize(self, x: Tensor) -> Tensor:
        """Inputs as the first layer sees them: centred, scaled, bounded, in the precision of the weights."""
        z = (x - self.input_mean) / self.input_scale
        return squash(z, self.input_bound).to(self.head.weight.dtype)

    def forward(self, x: Tensor) -> Tensor:
        x = self.standardize(x)
        outputs = []
        for layer in self.layers:
            x = layer(x)
            outputs.append(x)
        seen = [outputs[layer][:, start:stop] for layer, start, stop in self.head_spans]
        read = torch.cat(seen, dim=1) if seen else x
        if self.head_low is not None and self.head_high is not None:
            read = read.clamp(self.head_low, self.head_high)
        out = self._apply_head(read)
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
        if differentiable or isinstance(self.head, BlockModule):  # whose kernels see to it themselves
            return self.head(x)
        weight, bias = self.head.weight.double(), self.head.bias.double()
        return nn.functional.linear(x.double(), weight, bias)


def _block_module(block: Block) -> BlockModule:
    return BlockModule(
        block.n_inputs, block.n_neurons, block.operator_set, block.normalization, block.has_bias
    )


def to_torch(network: Structure) -> NetworkModule:
    """A network as a torch module with the same outputs, in evaluation mode."""
    state = torch.random.get_rng_state()  # the modules draw weights that nobody sees
    try:
        module = NetworkModule(network)
    finally:
        torch.random.set_rng_state(state)
    module.load_state_dict({name: torch.from_numpy(array) for name, array in to_tensors(network).items()})
    return module.eval()
