"""Blocks of neurons on a device, and what they compute there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from ...engine import reference
from ...engine.batch_norm import deviation
from ...engine.cuda import pools as kernels
from ...network import Block
from ...network.blocks import Neurons
from ...operators import OperatorSet
from ...operators.unit_norm import tensor_unit_rows
from ..draws import Draw

__all__ = ["DeviceBlock", "block_outputs", "candidate_features", "raw_features"]


@dataclass(frozen=True)
class DeviceBlock(Neurons):
    """A block on the device.

    Attributes
    ----------
    weight : (n_inputs, n_neurons); bias : (n_neurons,)
    factor, offset : (n_neurons,) what the batch norm multiplies and shifts by, or None
    """

    operator_set: OperatorSet
    normalization: str | None
    weight: Tensor
    bias: Tensor
    factor: Tensor | None
    offset: Tensor | None

    @classmethod
    def of(cls, block: Block, device: torch.device) -> DeviceBlock:
        """A copy of a block's arrays."""

        def copied(array: np.ndarray) -> Tensor:
            return torch.tensor(array, device=device)

        factor, offset, norm = None, None, block.norm
        if norm is not None:
            factor = copied(norm.scale) / deviation(copied(norm.variance))
            offset = copied(norm.shift) - copied(norm.mean) * factor
        arrays = copied(block.weight), copied(block.bias)
        return cls(block.operator_set, block.normalization, *arrays, factor, offset)


def raw_features(x: Tensor, weight: Tensor, bias: Tensor, operator_set: OperatorSet) -> Tensor:
    """f(rho(psi(x, weight)) + bias) for inputs (D, n): (d, n)."""
    if operator_set.codes is None:
        with torch.no_grad():
            return reference.features(x.T, weight, bias, operator_set).T
    nodal, pool, _ = operator_set.codes
    pooled = kernels.pooled(nodal, pool, x[None], weight[None])[0]
    return operator_set.activation_operator.function(pooled.add_(bias[:, None]))


@torch.no_grad()
def block_outputs(block: DeviceBlock, x: Tensor) -> Tensor:
    """What a block on the device hands on for inputs (D, n): (d, n)."""
    if block.normalization == "unit":
        pooled = raw_features(x, block.weight, block.bias, replace(block.operator_set, activation="identity"))
        return block.operator_set.activation_operator.function(tensor_unit_rows(pooled.T).T)
    raw = raw_features(x, block.weight, block.bias, block.operator_set)
    if block.factor is None or block.offset is None:
        return raw
    return torch.addcmul(block.offset[:, None], raw, block.factor[:, None])


def candidate_features(x: Tensor, draws: Sequence[Draw], weights: Sequence[Tensor]) -> Tensor:
    """Raw features of all candidates for inputs (D, n): (k, m, n)."""
    k = sum(len(draw.sets) for draw in draws)
    out = torch.empty(k, weights[0].shape[1], x.shape[1], device=x.device)
    start = 0
    for draw, weight in zip(draws, weights, strict=True):
        _draw_features(x, draw.sets, weight, out[start : start + len(draw.sets)])
        start += len(draw.sets)
    return out


def _draw_features(x: Tensor, sets: Sequence[OperatorSet], weight: Tensor, out: Tensor) -> None:
    pools: Tensor | None = None
    by_activation: dict[str, list[int]] = {}
    for number, operator_set in enumerate(sets):
        if operator_set.codes is None:
            out[number] = raw_features(x, weight, torch.zeros(len(out[0]), device=x.device), operator_set)
        else:
            by_activation.setdefault(operator_set.activation, []).append(number)
    for numbers in by_activation.values():
        first = sets[numbers[0]]
        if pools is None:
            pools = kernels.all_pools(first.nodal_operator.code, x, weight)  # type: ignore[arg-type]
        wanted = [sets[number].pool_operator.code for number in numbers]
        step = numbers[1] - numbers[0] if len(numbers) > 1 else 1
        if wanted == [0, 1, 2, 3] and numbers == list(range(numbers[0], numbers[0] + 4 * step, step)):
            out[numbers[0] : numbers[-1] + 1 : step] = first.activation_operator.function(pools)
        else:
            for number, pool in zip(numbers, wanted, strict=True):
                out[number] = first.activation_operator.function(pools[pool])
