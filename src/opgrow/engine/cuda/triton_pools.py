"""Pooled nodal operators and their gradients as Triton kernels that never store the N x D x d tensor.

All matrices have rows (samples) as their fastest dimension, so that neighbouring threads read
neighbouring numbers: inputs (groups, D, N), pooled values (groups, d, N). A group is a matrix of weights
of its own, as candidates of a population have them. Every sum is taken by one thread in a fixed order,
and long ones are split into parts that are added in their order: the same input gives the same bits.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import triton
import triton.language as tl

from .triton_math import psi, slope

SUM = tl.constexpr(0)
CORRELATION1 = tl.constexpr(1)
CORRELATION2 = tl.constexpr(2)
MAXIMUM = tl.constexpr(3)
#: All four at once.
ALL = tl.constexpr(4)
#: Triton compiles a kernel anew for numbers that are 1 or divisible by 16 and for pointers that are
#: aligned. These kernels gain nothing from it, and a growing network would meet another combination at
#: every step.
_FORWARD_NUMBERS = (
    "n_rows n_inputs n_neurons part x_group x_input w_group w_input out_part out_pool out_group out_neuron"
).split()
_FORWARD_POINTERS = "x weight out where".split()
_BACKWARD_NUMBERS = (
    "n_inputs n_columns n_summed part values_group values_input values_column others_group others_input "
    "others_summed grad_group grad_column grad_summed out_part out_group out_input out_column"
).split()
_BACKWARD_POINTERS = "values others grad where out".split()


@triton.jit
def _psi_at(x, weight, k, x_input, w_input, NODAL: tl.constexpr, PRECISE: tl.constexpr, APPROX: tl.constexpr):
    y = tl.load(x + k * x_input)[None, :]
    w = tl.load(weight + k * w_input)[:, None]
    return psi(y, w, NODAL, PRECISE, APPROX)


@triton.jit(do_not_specialize=_FORWARD_NUMBERS, do_not_specialize_on_alignment=_FORWARD_POINTERS)
def pool_forward(
    x,
    weight,
    out,
    where,
    n_rows,
    n_inputs,
    n_neurons,
    part,
    x_group,
    x_input,
    w_group,
    w_input,
    out_part,
    out_pool,
    out_group,
    out_neuron,
    NODAL: tl.constexpr,
    POOL: tl.constexpr,
    INDEX: tl.constexpr,
    PRECISE: tl.constexpr,
    APPROX: tl.constexpr,
    NEURONS: tl.constexpr,
    ROWS: tl.constexpr,
    UNROLL: tl.constexpr,
):
    """Pool psi over inputs part * p .. part * (p + 1) for a tile of neurons and rows.

    ``where`` receives the index of the maximum if INDEX; the four results of ALL lie ``out_pool`` apart.
    """
    n_tiles = tl.cdiv(n_neurons, NEURONS)
    row_tile, neuron_tile = tl.program_id(0) // n_tiles, tl.program_id(0) % n_tiles
    group, number = tl.program_id(1).to(tl.int64), tl.program_id(2)
    rows = row_tile * ROWS + tl.arange(0, ROWS)
    neurons = neuron_tile * NEURONS + tl.arange(0, NEURONS)
    start = tl.minimum(number * part, n_inputs)
    stop = tl.minimum(start + part, n_inputs)
    # What lies beyond the edge is computed as well, from the last row or neuron, and not stored.
    x += group * x_group + tl.minimum(rows, n_rows - 1).to(tl.int64)
    weight += group * w_group + tl.minimum(neurons, n_neurons - 1)
    x_step, w_step = tl.cast(x_input, tl.int64), tl.cast(w_input, tl.int64)
    # Tensors of their own: loop variables that begin as the same one came out wrong.
    total = tl.zeros([NEURONS, ROWS], tl.float32)
    pairs = tl.zeros([NEURONS, ROWS], tl.float32)
    triples = tl.zeros([NEURONS, ROWS], tl.float32)
    largest = tl.full([NEURONS, ROWS], float("-inf"), tl.float32)
    index = tl.zeros([NEURONS, ROWS], tl.int32)
    one = tl.zeros([NEURONS, ROWS], tl.float32)
    two = tl.zeros([NEURONS, ROWS], tl.float32)
    if POOL == CORRELATION1 or POOL == CORRELATION2:
        if start > 0:
            one = _psi_at(x, weight, start - 1, x_step, w_step, NODAL, PRECISE, APPROX)
    if POOL == CORRELATION2:
        if start > 1:
            two = _psi_at(x, weight, start - 2, x_step, w_step, NODAL, PRECISE, APPROX)
    x += start * x_step
    weight += start * w_step
    for k in tl.range(start, stop, loop_unroll_factor=UNROLL):
        y = tl.load(x)[None, :]
        w = tl.load(weight)[:, None]
        x += x_step
        weight += w_step
        z = psi(y, w, NODAL, PRECISE, APPROX)
        if POOL == SUM or POOL == ALL:
            total += z
        if POOL == MAXIMUM or POOL == ALL:
            if INDEX:
                index = tl.where(z > largest, k, index)
            largest = tl.maximum(largest, z, propagate_nan=tl.PropagateNan.ALL)
        if POOL == CORRELATION1:
            pairs += z * one
            one = z
        if POOL == CORRELATION2 or POOL == ALL:
            pair = z * one
            if POOL == ALL:
                pairs += pair
            triples += pair * two
            two = one
            one = z
    place = neurons[:, None].to(tl.int64) * out_neuron + rows[None, :]
    inside = (neurons[:, None] < n_neurons) & (rows[None, :] < n_rows)
    out += number * out_part + group * out_group + place
    if POOL == SUM:
        tl.store(out, total, mask=inside)
    elif POOL == CORRELATION1:
        tl.store(out, pairs, mask=inside)
    elif POOL == CORRELATION2:
        tl.store(out, triples, mask=inside)
    elif POOL == MAXIMUM:
        tl.store(out, largest, mask=inside)
        if INDEX:
            tl.store(where + number * out_part + group * out_group + place, index, mask=inside)
    else:
        tl.store(out, total, mask=inside)
        tl.store(out + out_pool, pairs, mask=inside)
        tl.store(out + 2 * out_pool, triples, mask=inside)
        tl.store(out + 3 * out_pool, largest, mask=inside)


@triton.jit
def _psi_of(values, others, NODAL: tl.constexpr, BY_INPUT: tl.constexpr, APPROX: tl.constexpr):
    if BY_INPUT:
        return psi(values, others, NODAL, True, APPROX)
    else:
        return psi(others, values, NODAL, True, APPROX)


@triton.jit
def _values_at(values, k, n_inputs, step, inside):
    """A tile of the values that the gradient is by, zero beyond the inputs, where psi is then 0, too."""
    there = (k >= 0) & (k < n_inputs)
    return tl.load(values + k[:, None].to(tl.int64) * step, mask=there[:, None] & inside[None, :], other=0.0)


@triton.jit
def _others_at(others, k, n_inputs, step):
    there = (k >= 0) & (k < n_inputs)
    return tl.load(others + k.to(tl.int64) * step, mask=there, other=0.0)[:, None]


@triton.jit(do_not_specialize=_BACKWARD_NUMBERS, do_not_specialize_on_alignment=_BACKWARD_POINTERS)
def pool_backward(
    values,
    others,
    grad,
    where,
    out,
    n_inputs,
    n_columns,
    n_summed,
    part,
    values_group,
    values_input,
    values_column,
    others_group,
    others_input,
    others_summed,
    grad_group,
    grad_column,
    grad_summed,
    out_part,
    out_group,
    out_input,
    out_column,
    NODAL: tl.constexpr,
    POOL: tl.constexpr,
    BY_INPUT: tl.constexpr,
    APPROX: tl.constexpr,
    INPUTS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """The gradient by weights (sums over rows) or by inputs (sums over neurons), one kernel for both.

    A tile holds some inputs and some columns: neurons if the gradient is by weights, else rows. The
    ``values`` that the gradient is by (weights, or inputs) stay in registers, and ``others`` (inputs, or
    weights) are read for every term of the sum. Neighbours in a correlation are computed again.
    """
    n_tiles = tl.cdiv(n_columns, COLUMNS)
    input_tile, column_tile = tl.program_id(0) // n_tiles, tl.program_id(0) % n_tiles
    group, number = tl.program_id(1).to(tl.int64), tl.program_id(2)
    k = input_tile * INPUTS + tl.arange(0, INPUTS)
    columns = column_tile * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < n_columns
    start = number * part
    stop = tl.minimum(start + part, n_summed)
    values += group * values_group + columns[None, :].to(tl.int64) * values_column
    others += group * others_group + start.to(tl.int64) * others_summed
    at = group * grad_group + columns.to(tl.int64) * grad_column + start.to(tl.int64) * grad_summed
    grad += at
    where += at
    here = _values_at(values, k, n_inputs, values_input, inside)
    if POOL == CORRELATION1 or POOL == CORRELATION2:
        before = _values_at(values, k - 1, n_inputs, values_input, inside)
        after = _values_at(values, k + 1, n_inputs, values_input, inside)
    if POOL == CORRELATION2:
        before2 = _values_at(values, k - 2, n_inputs, values_input, inside)
        after2 = _values_at(values, k + 2, n_inputs, values_input, inside)
    total = tl.zeros([INPUTS, COLUMNS], tl.float32)
    for _ in range(start, stop):
        g = tl.load(grad, mask=inside, other=0.0)[None, :]
        m = _others_at(others, k, n_inputs, others_input)
        if BY_INPUT:
            d = slope(here, m, NODAL, True, APPROX)
        else:
            d = slope(m, here, NODAL, False, APPROX)
        if POOL == SUM:
            total += g * d
        elif POOL == MAXIMUM:
            chosen = tl.load(where, mask=inside, other=-1)[None, :]
            total += tl.where(chosen == k[:, None], g * d, 0.0)
        else:
            left = _psi_of(before, _others_at(others, k - 1, n_inputs, others_input), NODAL, BY_INPUT, APPROX)
            right = _psi_of(after, _others_at(others, k + 1, n_inputs, others_input), NODAL, BY_INPUT, APPROX)
            if POOL == CORRELATION1:
                total += g * d * (left + right)
            else:
                m = _others_at(others, k - 2, n_inputs, others_input)
                left2 = _psi_of(before2, m, NODAL, BY_INPUT, APPROX)
                m = _others_at(others, k + 2, n_inputs, others_input)
                right2 = _psi_of(after2, m, NODAL, BY_INPUT, APPROX)
                total += g * d * (left * (left2 + right) + right * right2)
        grad += grad_summed
        where += grad_summed
        others += others_summed
    out += number * out_part + group * out_group
    out += k[:, None].to(tl.int64) * out_input + columns[None, :].to(tl.int64) * out_column
    tl.store(out, total, mask=(k < n_inputs)[:, None] & inside[None, :])
