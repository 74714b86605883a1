"""Networks as torch modules, and back: to differentiate them, to tune them by other means, to use a GPU."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from .blocks import Block, Layer
from .modules import BlockModule, LayerModule, NetworkModule, to_torch
from .network import Network
from .structure import Structure
from .tensors import from_tensors

__all__ = ["BlockModule", "LayerModule", "NetworkModule", "from_torch", "outputs_on", "to_torch"]

#: Rows that are computed at once.
_ROWS = 1 << 15


def outputs_on(network: Structure, x: np.ndarray, device: str) -> np.ndarray:
    """Outputs of a network for rows (N, n_inputs), computed on another device."""
    module = to_torch(network).to(device)
    with torch.no_grad():
        spans = range(0, len(x), _ROWS)
        parts = [module(torch.from_numpy(np.array(x[i : i + _ROWS])).to(device)).cpu() for i in spans]
    return torch.cat(parts).numpy()


def from_torch(module: NetworkModule) -> Network:
    """The network that a module, tuned perhaps or on another device, has become."""
    layers = [Layer([_plain_block(block) for block in layer.blocks]) for layer in module.layers]  # type: ignore[union-attr]
    operators = module.head.operator_set if isinstance(module.head, BlockModule) else None
    network = Network(
        module.n_inputs,
        module.n_outputs,
        layers,
        input_bound=module.input_bound,
        head_operators=operators,
        broad=module.broad,
        members=module.members,
    )
    from_tensors(network, {name: _array(tensor) for name, tensor in module.state_dict().items()})
    return network


def _plain_block(block: BlockModule) -> Block:
    n_inputs, n_neurons = block.weight.shape
    return Block(n_inputs, n_neurons, block.operator_set, norm=block.normalization, bias=block.has_bias)


def _array(tensor: Tensor) -> np.ndarray:
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).detach().cpu().numpy()
