"""Features of blocks as a differentiable torch function: by the engine, by Triton, or by plain torch."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..common.extras import has
from ..common.threads import map_rows
from ..operators import OperatorSet
from . import reference
from .features import CHUNK_ROWS, compiled_features
from .native import native

__all__ = ["features"]


def features(x: Tensor, weight: Tensor, bias: Tensor, operator_set: OperatorSet) -> Tensor:
    """f(rho(psi(x, weight)) + bias), a block's raw output, differentiable: (N, D) to (N, d)."""
    single = x.dtype == weight.dtype == torch.float32
    tracing = torch.compiler.is_compiling() or torch.jit.is_tracing()
    if operator_set.codes is None or not single or tracing:
        return reference.features(x, weight, bias, operator_set)
    if x.device.type == "cpu":
        return _Features.apply(x, weight, bias, operator_set)
    if x.device.type == "cuda" and _has_triton():
        from .cuda.pools import Pooled

        # A prediction should not depend on the rows beside it; products in single precision do there.
        predicting = not torch.is_grad_enabled()
        nodal, pool, _ = operator_set.codes
        pooled = Pooled.apply(x, weight, nodal, pool, predicting)
        return operator_set.activation_operator.function(pooled + bias)
    return reference.features(x, weight, bias, operator_set)


@lru_cache(maxsize=1)
def _has_triton() -> bool:
    return has("triton")


class _Features(torch.autograd.Function):
    """The engine as a differentiable torch function."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, operator_set: OperatorSet) -> Tensor:
        ctx.save_for_backward(x, weight, bias)
        ctx.operator_set = operator_set
        rows, columns, shift = (tensor.detach().numpy() for tensor in (x, weight, bias))
        return torch.from_numpy(
            compiled_features(rows, columns, shift, operator_set, torch.get_num_threads())
        )

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        wanted = ctx.needs_input_grad[:3]
        if torch.is_grad_enabled():  # somebody wants to differentiate the gradient: let torch build it
            leaves = ctx.saved_tensors
            out = reference.features(leaves[0], leaves[1], leaves[2], ctx.operator_set)
            chosen = [leaf for leaf, want in zip(leaves, wanted, strict=True) if want]
            gradients = iter(torch.autograd.grad(out, chosen, grad, create_graph=True))
            return (*(next(gradients) if want else None for want in wanted), None)
        tensors = (*ctx.saved_tensors, grad)
        x, weight, bias, slope = (tensor.detach().contiguous().numpy() for tensor in tensors)

        def compute(start: int, stop: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
            rows = slice(start, stop)
            return native().gradients(ctx.operator_set.codes, x[rows], weight, bias, slope[rows], wanted[0])

        parts = map_rows(compute, max(len(x), 1), CHUNK_ROWS, torch.get_num_threads())
        by_weight, by_bias, by_x = zip(*parts, strict=True)
        return (
            torch.from_numpy(np.concatenate(by_x)) if wanted[0] else None,
            torch.from_numpy(np.sum(by_weight, axis=0)),
            torch.from_numpy(np.sum(by_bias, axis=0)),
            None,
        )
