"""How (nodal, pool) and its gradient are computed; `features` chooses the way.

``reference`` is plain torch and serves everything; ``cpu`` is compiled by numba, ``cuda`` by Triton, and they
serve the built-in operators in float32. Importing this package compiles nothing.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..operators import OperatorSet
from . import reference
from .cache_folder import choose_cache_folder
from .threads import map_rows

__all__ = ["compiled_features", "features", "reference"]

choose_cache_folder()  # before any kernel is imported

#: Rows handed to a thread at once.
_CHUNK_ROWS = 4096


def features(x: Tensor, weight: Tensor, bias: Tensor, operator_set: OperatorSet) -> Tensor:
    """f(rho(psi(x, weight)) + bias), a block's raw output, differentiable: (N, D) to (N, d)."""
    single = x.dtype == weight.dtype == torch.float32
    tracing = torch.compiler.is_compiling() or torch.jit.is_tracing()
    if operator_set.codes is None or not single or tracing:
        return reference.features(x, weight, bias, operator_set)
    # A prediction should not depend on the rows beside it; products in single precision do.
    predicting = not torch.is_grad_enabled()
    if x.device.type == "cpu":
        return _Features.apply(x, weight, bias, operator_set, predicting)
    if x.device.type == "cuda" and _has_triton():
        from .cuda import Pooled

        nodal, pool, _ = operator_set.codes
        pooled = Pooled.apply(x, weight, nodal, pool, predicting)
        return operator_set.activation_operator.function(pooled + bias)
    return reference.features(x, weight, bias, operator_set)


@lru_cache(maxsize=1)
def _has_triton() -> bool:
    return find_spec("triton") is not None


def compiled_features(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, operator_set: OperatorSet, n_threads: int = 1
) -> np.ndarray:
    """`features` for float32 arrays and without gradient; any operator set."""
    codes = operator_set.codes
    if codes is None:
        with torch.no_grad():
            inputs, w, b = (torch.from_numpy(np.ascontiguousarray(a)) for a in (x, weight, bias))
            return reference.features(inputs, w, b, operator_set).numpy()
    from . import cpu_activation

    nodal, pool, activation = codes
    out = np.empty((x.shape[0], weight.shape[1]), np.float32)

    def compute(start: int, stop: int) -> None:
        rows = out[start:stop]
        _pool_rows(nodal, pool, x[start:stop], weight, rows, precise=True)
        rows += bias
        cpu_activation.activate(activation, rows.reshape(-1), rows.reshape(-1))

    map_rows(compute, x.shape[0], _CHUNK_ROWS, n_threads)
    return out


def _pool_rows(
    nodal: int, pool: int, x: np.ndarray, weight: np.ndarray, out: np.ndarray, precise: bool
) -> None:
    from . import cpu

    if pool == cpu.SUM and nodal in (cpu.MULTIPLICATION, cpu.QUADRATIC):
        dtype: Any = np.float64 if precise else np.float32
        y: Any = x.astype(dtype, copy=False)
        with np.errstate(over="ignore", invalid="ignore"):
            out[:] = (y if nodal == cpu.MULTIPLICATION else y * y) @ weight.astype(dtype, copy=False)
    else:
        cpu.one_pool(nodal, pool, x, weight, out)


class _Features(torch.autograd.Function):
    """The compiled kernels as a differentiable torch function."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, operator_set: OperatorSet, precise: bool
    ) -> Tensor:
        from . import cpu_activation

        nodal, pool, activation = operator_set.codes  # type: ignore[misc]
        rows, columns = x.detach().contiguous().numpy(), weight.detach().contiguous().numpy()
        shift = bias.detach().numpy()
        before = np.empty((rows.shape[0], columns.shape[1]), np.float32)
        out = np.empty_like(before)

        def compute(start: int, stop: int) -> None:
            _pool_rows(nodal, pool, rows[start:stop], columns, before[start:stop], precise)
            before[start:stop] += shift
            cpu_activation.activate(activation, before[start:stop].reshape(-1), out[start:stop].reshape(-1))

        map_rows(compute, rows.shape[0], _CHUNK_ROWS, torch.get_num_threads())
        # Clamps and maxima inside the kernels lose NaN; what is unknown must stay so.
        out[np.isnan(rows).any(axis=1)] = np.nan
        ctx.save_for_backward(x, weight, bias)
        ctx.before, ctx.operator_set = before, operator_set
        return torch.from_numpy(out)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():  # somebody wants to differentiate the gradient: let torch build it
            leaves, wanted = ctx.saved_tensors, ctx.needs_input_grad[:3]
            out = reference.features(leaves[0], leaves[1], leaves[2], ctx.operator_set)
            chosen = [leaf for leaf, want in zip(leaves, wanted, strict=True) if want]
            found = iter(torch.autograd.grad(out, chosen, grad, create_graph=True))
            return (*(next(found) if want else None for want in wanted), None, None)
        from . import cpu, cpu_activation, cpu_batch

        x, weight = (tensor.detach().contiguous().numpy() for tensor in ctx.saved_tensors[:2])
        nodal, pool, activation = ctx.operator_set.codes
        (n_rows, n_inputs), n_neurons = x.shape, weight.shape[1]
        slope = grad.detach().contiguous().numpy().copy()
        cpu_activation.activation_backward(activation, ctx.before.reshape(-1), slope.reshape(-1))
        grad_x = np.empty((n_rows, n_inputs), np.float32)
        grad_weights = np.zeros((-(-n_rows // _CHUNK_ROWS), n_inputs, n_neurons), np.float32)

        def compute(start: int, stop: int) -> None:
            rows = stop - start
            stride = -(-rows // cpu.TILE) * cpu.TILE
            inputs, grads, back = (np.zeros((n, stride), np.float32) for n in (n_inputs, n_neurons, n_inputs))
            inputs[:, :rows], grads[:, :rows] = x[start:stop].T, slope[start:stop].T
            by_weight = grad_weights[start // _CHUNK_ROWS]
            where = np.zeros(n_neurons * stride, np.int32)
            if pool == cpu.MAXIMUM:  # which inputs were the largest
                pooled = np.empty(n_neurons * stride, np.float32)
                cpu_batch.pool_forward(nodal, pool, inputs.reshape(-1), stride, rows, weight, pooled, where)
            flat = (inputs.reshape(-1), stride, rows, weight, where, grads.reshape(-1))
            cpu_batch.pool_backward(nodal, pool, *flat, by_weight, back.reshape(-1))
            grad_x[start:stop] = back[:, :rows].T

        map_rows(compute, n_rows, _CHUNK_ROWS, torch.get_num_threads())
        by_weight, by_bias = torch.from_numpy(grad_weights.sum(axis=0)), torch.from_numpy(slope.sum(axis=0))
        return torch.from_numpy(grad_x), by_weight, by_bias, None, None
