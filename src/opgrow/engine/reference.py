"""The reference: pooled nodal operators as plain, differentiable torch.

Works for every operator, device and floating-point type; the oracle of all tests, and the path of
operators that users register. It stores the N x D x d tensor, chunk by chunk where no gradient is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..operators import OperatorSet

if TYPE_CHECKING:
    from torch import Tensor

#: Elements of the N x D x d tensor that are held at once where no gradient is needed.
CHUNK_ELEMENTS = 1 << 22


def pooled(x: Tensor, weight: Tensor, operator_set: OperatorSet) -> Tensor:
    """rho over the inputs of psi(x, weight): (N, D) and (D, d) to (N, d)."""
    import torch

    nodal, pool = operator_set.nodal_operator.function, operator_set.pool_operator.function

    def compute(rows: Tensor) -> Tensor:
        return pool(nodal(rows[:, :, None], weight[None]))

    chunk = max(1, CHUNK_ELEMENTS // max(1, weight.numel()))
    if x.shape[0] <= chunk or (torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad)):
        return compute(x)
    return torch.cat([compute(rows) for rows in x.split(chunk)])


def features(x: Tensor, weight: Tensor, bias: Tensor, operator_set: OperatorSet) -> Tensor:
    """f(rho(psi(x, weight)) + bias): (N, D) to (N, d)."""
    return operator_set.activation_operator.function(pooled(x, weight, operator_set) + bias)
