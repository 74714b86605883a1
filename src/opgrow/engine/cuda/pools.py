"""Pooled nodal operators on a GPU: how the Triton kernels are launched, and where a matrix product is better.

Tensors are float32 with rows as their fastest dimension: inputs (G, D, N), weights (G, D, d), pooled values
(G, d, N). A single group of inputs serves all groups of weights. Under Triton's interpreter
(``TRITON_INTERPRET=1``) the same functions run on the CPU, slowly, which is how they are tested.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
import triton
from torch import Tensor
from torch.autograd.function import once_differentiable

from . import triton_pools
from .triton_math import MULTIPLICATION, PYGOP_QUADRATIC, QUADRATIC
from .triton_pools import ALL, MAXIMUM, SUM

__all__ = [
    "COMPILED",
    "Gradients",
    "Pooled",
    "all_pools",
    "count_parts",
    "group_stride",
    "is_product",
    "largest_index",
    "pool_parts",
    "pooled",
]

#: Whether kernels are compiled and not interpreted.
COMPILED = not triton.knobs.runtime.interpret
#: Programs that keep a multiprocessor busy.
_PROGRAMS = 8
#: Least number of terms of a sum that a program takes.
_LEAST = 8
#: Most parts that a sum is cut into: putting them together costs time, too.
_MOST_PARTS = 16


@lru_cache(maxsize=8)
def _n_processors(device: int) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


def _wanted(tensor: Tensor) -> int:
    """Programs that a launch should have, if the work can be cut into so many."""
    return _PROGRAMS * (_n_processors(tensor.device.index or 0) if tensor.is_cuda else 1)


def is_product(nodal: int, pool: int) -> bool:
    """Whether the pooled operator is a matrix product of functions of weights and of inputs."""
    return pool == SUM.value and nodal in (MULTIPLICATION.value, QUADRATIC.value, PYGOP_QUADRATIC.value)


def _factors(nodal: int, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    if nodal == MULTIPLICATION.value:
        return x, weight
    if nodal == QUADRATIC.value:
        return x.square(), weight
    return x.clamp(-10, 10).square(), weight.square()


def group_stride(x: Tensor) -> int:
    """How far the groups of a tensor are apart: 0 where a single one serves all."""
    return x.stride(0) if len(x) > 1 else 0


def _tile(n_rows: int, n_neurons: int) -> tuple[int, int]:
    """Neurons and rows of a program, so that little of the last tile is beyond the edge."""
    if n_rows <= 64:
        return 16, 32 if n_rows <= 32 else 64
    return (8, 128) if n_rows <= 1024 else (4, 512)


def count_parts(x: Tensor, weight: Tensor) -> int:
    """Into how many parts the sum over inputs is cut, so that a small batch fills the card as well."""
    n_inputs, n_rows = x.shape[-2:]
    neurons, rows = _tile(n_rows, weight.shape[-1])
    tiles = triton.cdiv(n_rows, rows) * triton.cdiv(weight.shape[-1], neurons) * weight.shape[0]
    return max(1, min(_wanted(x) // tiles, n_inputs // 16, _MOST_PARTS))


def _forward(
    nodal: int, pool: int, x: Tensor, weight: Tensor, out: Tensor, where: Tensor | None = None
) -> None:
    """Launch the kernel for ``out`` (parts, pools, G, d, N); all pools at once are those of a search."""
    searching = pool == ALL.value
    groups, n_inputs, n_neurons = weight.shape
    n_rows, n_parts = x.shape[-1], out.shape[0]
    assert x.stride(-1) == 1 or n_rows == 1
    assert weight.stride(-1) == 1 or n_neurons == 1
    assert where is None or where.stride()[1:] == out.stride()[2:]
    neurons, rows = _tile(n_rows, n_neurons)
    grid = (triton.cdiv(n_rows, rows) * triton.cdiv(n_neurons, neurons), groups, n_parts)
    triton_pools.pool_forward[grid](
        x,
        weight,
        out,
        out if where is None else where,
        n_rows,
        n_inputs,
        n_neurons,
        triton.cdiv(n_inputs, n_parts),
        group_stride(x),
        x.stride(1),
        weight.stride(0),
        weight.stride(1),
        out.stride(0),
        out.stride(1),
        out.stride(2),
        out.stride(3),
        NODAL=nodal,
        POOL=pool,
        INDEX=where is not None,
        PRECISE=not searching,
        APPROX=COMPILED,
        NEURONS=neurons,
        ROWS=rows,
        UNROLL=8 if searching else 4,
        num_warps=4,
    )


def all_pools(nodal: int, x: Tensor, weight: Tensor) -> Tensor:
    """The four pools of one nodal operator, as a search needs them: (D, N) and (D, d) to (4, d, N)."""
    out = torch.empty(4, weight.shape[1], x.shape[1], device=x.device)
    _forward(nodal, ALL.value, x[None], weight[None], out[None, :, None])
    return out


def pool_parts(
    nodal: int, pool: int, x: Tensor, weight: Tensor, out: Tensor, where: Tensor | None = None
) -> None:
    """Pool parts of the inputs into ``out`` (parts, G, d, N), and the indices of maxima into ``where``.

    What is to come of the parts is their sum or, for the maximum, the largest of them.
    """
    if is_product(nodal, pool):
        inputs, factors = _factors(nodal, x, weight)
        torch.matmul(factors.mT, inputs, out=out[0])
        out[1:] = 0.0
    else:
        _forward(nodal, pool, x, weight, out[:, None], where)


def pooled(nodal: int, pool: int, x: Tensor, weight: Tensor, independent: bool = False) -> Tensor:
    """(G, D, N) and (G, D, d) to (G, d, N).

    ``independent``: what comes of a row does not depend, not even by rounding, on the rows beside it.
    """
    if is_product(nodal, pool):
        inputs, factors = _factors(nodal, x, weight)
        if independent:
            return torch.matmul(factors.mT.double(), inputs.double()).float()
        return torch.matmul(factors.mT, inputs)
    groups, _, n_neurons = weight.shape
    parts = 1 if independent else count_parts(x, weight)
    out = torch.empty(parts, groups, n_neurons, x.shape[-1], device=x.device)
    pool_parts(nodal, pool, x, weight, out)
    if parts == 1:
        return out[0]
    return out.amax(dim=0) if pool == MAXIMUM.value else out.sum(dim=0)


def largest_index(nodal: int, x: Tensor, weight: Tensor) -> Tensor:
    """Which input has the largest psi, (G, d, N) int32; the first one, if there are several."""
    groups, _, n_neurons = weight.shape
    out = torch.empty(count_parts(x, weight), groups, n_neurons, x.shape[-1], device=x.device)
    where = torch.empty(out.shape, dtype=torch.int32, device=x.device)
    pool_parts(nodal, MAXIMUM.value, x, weight, out, where)
    return where.gather(0, out.max(dim=0, keepdim=True).indices)[0]


@dataclass(frozen=True)
class Gradients:
    """What the gradient by the pooled values of an operator is by its weights and by its inputs.

    Attributes
    ----------
    nodal, pool : codes of the operators
    x, weight : the inputs (1 or G, D, N) and the weights (G, D, d)
    grad : by the pooled values, (G, d, N)
    where : which input was the maximum, as `largest_index` has it; of no meaning for other pools
    """

    nodal: int
    pool: int
    x: Tensor
    weight: Tensor
    grad: Tensor
    where: Tensor | None

    def by_weight(self, out: Tensor | None = None) -> Tensor:
        """(G, D, d), in ``out`` if it is given."""
        nodal, x, weight = self.nodal, self.x, self.weight
        out = torch.empty_like(weight) if out is None else out
        if is_product(nodal, self.pool):
            inputs, _ = _factors(nodal, x, weight)
            torch.matmul(inputs, self.grad.mT, out=out)
            return out.mul_(2 * weight) if nodal == PYGOP_QUADRATIC.value else out
        operators = nodal, self.pool
        return _backward(operators, weight, x.transpose(-1, -2), self.grad, self.where, out, by_input=False)

    def by_input(self, out: Tensor | None = None) -> Tensor:
        """(G, D, N), in ``out`` if it is given."""
        nodal, x, weight = self.nodal, self.x, self.weight
        if out is None:
            out = torch.empty(weight.shape[0], *x.shape[1:], device=x.device)
        if is_product(nodal, self.pool):
            _, factors = _factors(nodal, x, weight)
            torch.matmul(factors, self.grad, out=out)
            if nodal == QUADRATIC.value:
                out.mul_(2 * x)
            elif nodal == PYGOP_QUADRATIC.value:
                out.mul_(torch.where(x.abs() <= 10, 2 * x, 0.0))
            return out
        operators, grad = (nodal, self.pool), self.grad.transpose(-1, -2)
        where = None if self.where is None else self.where.transpose(-1, -2)
        return _backward(operators, x, weight.transpose(-1, -2), grad, where, out, by_input=True)


def _backward(
    operators: tuple[int, int],
    values: Tensor,
    others: Tensor,
    grad: Tensor,
    where: Tensor | None,
    out: Tensor,
    by_input: bool,
) -> Tensor:
    """The gradient by ``values`` (G, D, columns), into ``out`` of the same shape.

    ``values`` are the weights and ``others`` (G, terms, D) the inputs, or the other way round; ``grad`` is
    (G, columns, terms), and ``operators`` are the codes of the nodal operator and the pool.
    """
    groups, n_inputs, n_columns = out.shape
    n_terms = others.shape[1]
    assert where is None or where.stride() == grad.stride()
    # (G, d, N) is (columns, terms) by weight; by input it comes transposed.
    strides = (grad.stride(1), grad.stride(2))
    columns = 32 if by_input else 8
    column_tiles, most_parts = triton.cdiv(n_columns, columns) * groups, max(1, n_terms // _LEAST)
    wanted = _wanted(out)
    # The largest tile, 16 elements for each thread, that still leaves the card enough programs.
    sizes = (16, 8, 4) if by_input else (64, 32, 16)
    enough = [size for size in sizes if triton.cdiv(n_inputs, size) * column_tiles * most_parts >= wanted]
    inputs = min(enough[0] if enough else sizes[-1], triton.next_power_of_2(n_inputs))
    tiles = triton.cdiv(n_inputs, inputs) * column_tiles
    parts = min(max(1, wanted // tiles), most_parts)
    into = out[None] if parts == 1 else torch.empty(parts, *out.shape, device=out.device)
    grid = (triton.cdiv(n_inputs, inputs) * triton.cdiv(n_columns, columns), groups, parts)
    triton_pools.pool_backward[grid](
        values,
        others,
        grad,
        grad if where is None else where,
        into,
        n_inputs,
        n_columns,
        n_terms,
        triton.cdiv(n_terms, parts),
        group_stride(values),
        values.stride(1),
        values.stride(2),
        group_stride(others),
        others.stride(2),
        others.stride(1),
        grad.stride(0),
        *strides,
        into.stride(0),
        into.stride(1),
        into.stride(2),
        into.stride(3),
        NODAL=operators[0],
        POOL=operators[1],
        BY_INPUT=by_input,
        APPROX=COMPILED,
        INPUTS=inputs,
        COLUMNS=columns,
        num_warps=1,
    )
    return out if parts == 1 else torch.sum(into, dim=0, out=out)


class Pooled(torch.autograd.Function):
    """The kernels as a differentiable function: (N, D) and (D, d) to (N, d)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, nodal: int, pool: int, independent: bool) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.operators = nodal, pool
        columns = x.detach().T.contiguous()[None]
        return pooled(nodal, pool, columns, weight.detach().contiguous()[None], independent)[0].T

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        nodal, pool = ctx.operators
        x, weight = (tensor.detach() for tensor in ctx.saved_tensors)
        columns, weight, slope = x.T.contiguous()[None], weight.contiguous()[None], grad.T.contiguous()[None]
        where = largest_index(nodal, columns, weight) if pool == MAXIMUM.value else None
        gradients = Gradients(nodal, pool, columns, weight, slope, where)
        by_input = gradients.by_input()[0].T if ctx.needs_input_grad[0] else None
        by_weight = gradients.by_weight()[0] if ctx.needs_input_grad[1] else None
        return by_input, by_weight, None, None, None
