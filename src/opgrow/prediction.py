"""What a network says of rows on a CPU: by the engine in one call where it can, and otherwise by torch.

The engine lays a network's arrays out once. They are laid out again as soon as anything of the network has
changed, by whatever way: its values are compared, which costs less than a prediction of one row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from .engine.native import native
from .engine.prediction import BlockArrays, CompiledNetwork, NetworkArrays
from .kernels.threads import run_all
from .network import Block, Layer, Network

__all__ = ["network_outputs"]

#: Rows that torch computes at once.
_TORCH_ROWS = 1 << 15
_KNOWN = (Network, nn.ModuleList, Layer, Block, nn.BatchNorm1d, nn.Linear)


def network_outputs(network: Network, x: np.ndarray) -> np.ndarray:
    """Outputs (N, C) of a network for rows (N, D) in single or double precision, on torch's threads."""
    compiled = _compiled(network) if network.head.weight.device.type == "cpu" else None
    if compiled is None:
        return _by_torch(network, x)
    out = native().predict(compiled, x, partial(run_all, n_threads=torch.get_num_threads()))
    with np.errstate(over="ignore"):
        return out if network.output_mean is not None else out.astype(np.float32)


def _by_torch(network: Network, x: np.ndarray) -> np.ndarray:
    device = network.head.weight.device
    with torch.no_grad():
        parts = [
            network(torch.from_numpy(np.array(x[start : start + _TORCH_ROWS])).to(device)).cpu()
            for start in range(0, len(x), _TORCH_ROWS)
        ]
    return torch.cat(parts).numpy()


@dataclass(frozen=True)
class _Content:
    """All that a network computes with, and what the engine made of it."""

    facts: list[Any]
    tensors: list[Tensor]
    places: list[Any]
    views: list[memoryview]
    values: bytes
    compiled: CompiledNetwork

    def is_of(self, facts: list[Any], tensors: list[Tensor]) -> bool:
        return (
            facts == self.facts
            and len(tensors) == len(self.tensors)
            and all(a is b for a, b in zip(tensors, self.tensors, strict=True))
            and [_place(tensor) for tensor in tensors] == self.places
            and b"".join(self.views) == self.values
        )


#: Beside the networks and not in them, because it can be neither copied nor pickled.
_contents: WeakKeyDictionary[Network, _Content] = WeakKeyDictionary()


def _place(tensor: Tensor) -> tuple[Any, ...]:
    return tensor.data_ptr(), tensor.shape, tensor.stride()


def _compiled(network: Network) -> CompiledNetwork | None:
    """The network for the engine, or None if only torch can compute it."""
    found = _survey(network)
    if found is None:
        return None
    facts, tensors = found
    content = _contents.get(network)
    if content is None or not content.is_of(facts, tensors):
        if not _is_single(network, tensors):
            return None
        views = [tensor.detach().numpy().data for tensor in tensors]
        compiled = CompiledNetwork(_network_arrays(network))
        content = _Content(facts, tensors, [_place(t) for t in tensors], views, b"".join(views), compiled)
        _contents[network] = content
    return content.compiled


def _survey(network: Network) -> tuple[list[Any], list[Tensor]] | None:
    """What a network is made of beside its values, and the tensors that hold these.

    None for networks that do more than their description says: in training, with hooks, with other modules
    than ours or operators that users have registered.
    """
    facts: list[Any] = [network.input_bound, network.broad]
    tensors: list[Any] = []
    waiting: list[Any] = [network]
    while waiting:
        module = waiting.pop()
        if type(module) not in _KNOWN or module.training:
            return None
        if module._forward_hooks or module._forward_pre_hooks:
            return None
        if type(module) is Block:
            if module.operator_set.codes is None:
                return None
            facts += (module.operator_set, module.normalization)
        elif type(module) is nn.BatchNorm1d:
            facts.append(module.eps)
        tensors += module._parameters.values()
        tensors += module._buffers.values()
        waiting += [part for part in module._modules.values() if part is not None]
    facts.append([tensor is None for tensor in tensors])
    return facts, [tensor for tensor in tensors if tensor is not None]


def _is_single(network: Network, tensors: list[Tensor]) -> bool:
    """Whether layers and head are complete, in single precision, and all tensors plain arrays of the host."""
    blocks = [block for layer in network.hidden for block in layer]
    norms = [block.norm for block in blocks if block.norm is not None]
    wanted = [tensor for block in [*blocks, network.head] for tensor in (block.weight, block.bias)]
    wanted += [part for n in norms for part in (n.running_mean, n.running_var, n.weight, n.bias)]
    single = all(tensor is not None and tensor.dtype == torch.float32 for tensor in wanted)
    return single and all(t.device.type == "cpu" and t.is_contiguous() for t in tensors)


def _array(tensor: Tensor | None) -> Any:
    return None if tensor is None else tensor.detach().numpy()


def _block_arrays(block: Block) -> BlockArrays:
    codes, weight, bias = block.operator_set.codes, _array(block.weight), _array(block.bias)
    assert codes is not None
    norm = block.norm
    if norm is None:
        return BlockArrays(codes, weight, bias, block.normalization)
    moments = np.stack([_array(t) for t in (norm.running_mean, norm.running_var, norm.weight, norm.bias)])
    return BlockArrays(codes, weight, bias, "batch", moments, norm.eps)


def _network_arrays(network: Network) -> NetworkArrays:
    head = network.head
    scaled = network.output_mean is not None and network.output_scale is not None
    names = ("output_scale", "output_mean", "output_low", "output_high")
    return NetworkArrays(
        network.n_inputs,
        [[_block_arrays(block) for block in layer] for layer in network.hidden],
        _block_arrays(head) if isinstance(head, Block) else (_array(head.weight).T, _array(head.bias)),
        _array(network.input_mean),
        _array(network.input_scale),
        network.input_bound,
        broad=network.broad,
        **{name: _array(getattr(network, name)) for name in names if scaled},
    )
