"""A layer of few inputs in one launch each way: pools, activations, batch norm and their gradients.

Where blocks and batches are small, launches take most of the time. A program has one neuron and all rows of a
batch, and reads the neuron's operators from memory, so that blocks and candidates of different operators
share a launch. Large layers are better off with the tiles of `opgrow.engine.cuda.triton_pools`.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import triton
import triton.language as tl

from .triton_math import activate, activation_slope, psi, slope
from .triton_norms import deviation
from .triton_pools import CORRELATION2, MAXIMUM, SUM
from .triton_training import NODAL_UNIT, activation_of, keep, neuron_here, normalise, pool_of

#: What is computed of a nodal operator: its value, or its derivative by the weight or by the input.
_PSI, _BY_WEIGHT, _BY_INPUT = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2)


@triton.jit
def _operands(x, weight, k, n_inputs, x_input, size, there):
    """Inputs and weights number ``k``, (inputs, rows) and (inputs, 1); zero beyond, where psi is 0, too."""
    inside = (k >= 0) & (k < n_inputs)
    w = tl.load(weight + k * size, mask=inside, other=0.0)[:, None]
    y = tl.load(x + k[:, None].to(tl.int64) * x_input, mask=inside[:, None] & there[None, :], other=0.0)
    return y, w


@triton.jit
def _computed(y, w, NODAL: tl.constexpr, WHAT: tl.constexpr, APPROX: tl.constexpr):
    """psi, or its derivative by the weight or by the input."""
    if WHAT == _PSI:
        z = psi(y, w, NODAL, True, APPROX)
    else:
        z = slope(y, w, NODAL, WHAT == _BY_INPUT, APPROX)
    return z


@triton.jit
def _computed_at(
    x, weight, k, n_inputs, x_input, size, there, nodal, WHAT: tl.constexpr, APPROX: tl.constexpr
):
    """`_computed` at inputs and weights number ``k``, whatever the nodal operator is."""
    y, w = _operands(x, weight, k, n_inputs, x_input, size, there)
    if nodal == 0:
        z = _computed(y, w, 0, WHAT, APPROX)
    elif nodal == 1:
        z = _computed(y, w, 1, WHAT, APPROX)
    elif nodal == 2:
        z = _computed(y, w, 2, WHAT, APPROX)
    elif nodal == 3:
        z = _computed(y, w, 3, WHAT, APPROX)
    elif nodal == 4:
        z = _computed(y, w, 4, WHAT, APPROX)
    elif nodal == 5:
        z = _computed(y, w, 5, WHAT, APPROX)
    elif nodal == 6:
        z = _computed(y, w, 6, WHAT, APPROX)
    else:
        z = _computed(y, w, 7, WHAT, APPROX)
    return z


@triton.jit
def _psi_at(x, weight, k, n_inputs, x_input, size, there, nodal, APPROX: tl.constexpr):
    return _computed_at(x, weight, k, n_inputs, x_input, size, there, nodal, _PSI, APPROX)


@triton.jit
def _pooled_slope(
    x,
    weight,
    index,
    k,
    n_inputs,
    x_input,
    size,
    there,
    nodal,
    pool,
    BY: tl.constexpr,
    APPROX: tl.constexpr,
):
    """The derivative of a pool by the inputs or weights number ``k``: (inputs, rows)."""
    d = _computed_at(x, weight, k, n_inputs, x_input, size, there, nodal, BY, APPROX)
    if pool == MAXIMUM:
        chosen = tl.load(index, mask=there, other=-1)
        d = tl.where(chosen[None, :] == k[:, None], d, 0.0)
    elif pool != SUM:
        left = _psi_at(x, weight, k - 1, n_inputs, x_input, size, there, nodal, APPROX)
        right = _psi_at(x, weight, k + 1, n_inputs, x_input, size, there, nodal, APPROX)
        beside = left + right
        if pool == CORRELATION2:
            left2 = _psi_at(x, weight, k - 2, n_inputs, x_input, size, there, nodal, APPROX)
            right2 = _psi_at(x, weight, k + 2, n_inputs, x_input, size, there, nodal, APPROX)
            beside = left * (left2 + right) + right * right2
        d *= beside
    return d


@triton.jit(
    do_not_specialize=(
        "step salt n_rows n_neurons x_group x_input theta_stride out_stride out_neuron"
    ).split(),
    do_not_specialize_on_alignment="x theta pre normal index out variances sums drop".split(),
)
def layer_forward(
    x,
    theta,
    places,
    codes,
    pre,
    normal,
    index,
    out,
    variances,
    sums,
    base,
    step,
    salt,
    drop,
    n_rows,
    n_neurons,
    x_group,
    x_input,
    theta_stride,
    out_stride,
    out_neuron,
    NORM: tl.constexpr,
    DROP: tl.constexpr,
    APPROX: tl.constexpr,
    INPUTS: tl.constexpr,
    ROWS: tl.constexpr,
):
    """From inputs (1 or K, D, n) to what a neuron hands on; the arguments are those of `finish_forward`.

    ``pre`` receives the values before the activation, and ``index`` the input that was the maximum.
    """
    neuron, candidate, flat, code, place, size = neuron_here(places, codes, n_neurons, theta_stride)
    nodal, pool = code // NODAL_UNIT, pool_of(code)
    n_inputs = tl.load(places + 3 * neuron + 2)
    theta += place
    weight = theta - n_inputs * size
    rows = tl.arange(0, ROWS)
    there = rows < n_rows
    x += candidate.to(tl.int64) * x_group + rows[None, :]
    lanes = tl.arange(0, INPUTS)
    start = flat.to(tl.int64) * n_rows
    value = tl.zeros([ROWS], tl.float32)
    if pool == MAXIMUM:
        value += float("-inf")
        unknown = tl.zeros([ROWS], tl.float32)
        chosen = tl.zeros([ROWS], tl.int32)
        for first in range(0, n_inputs, INPUTS):
            k = first + lanes
            z = _psi_at(x, weight, k, n_inputs, x_input, size, there, nodal, APPROX)
            z = tl.where((k < n_inputs)[:, None], z, float("-inf"))
            best, which = tl.max(z, axis=0, return_indices=True, return_indices_tie_break_left=True)
            chosen = tl.where(best > value, first + which, chosen)
            value = tl.maximum(value, best)
            # A maximum passes over NaN, but what is unknown must stay so.
            unknown += tl.sum(tl.where(z != z, z, 0.0), axis=0)
        value += unknown
        tl.store(index + start + rows, chosen, mask=there)
    else:
        for first in range(0, n_inputs, INPUTS):
            k = first + lanes
            z = _psi_at(x, weight, k, n_inputs, x_input, size, there, nodal, APPROX)
            if pool != SUM:
                z *= _psi_at(x, weight, k - 1, n_inputs, x_input, size, there, nodal, APPROX)
            if pool == CORRELATION2:
                z *= _psi_at(x, weight, k - 2, n_inputs, x_input, size, there, nodal, APPROX)
            value += tl.sum(z, axis=0)
    value += tl.load(theta)
    tl.store(pre + start + rows, value, mask=there)
    value = tl.where(there, activate(value, activation_of(code)), 0.0)
    out += candidate.to(tl.int64) * out_stride + neuron.to(tl.int64) * out_neuron
    if NORM:
        left_out = 0.0
        if DROP:
            left_out = tl.load(drop + candidate)
        count = tl.num_programs(0) * tl.num_programs(1)
        seed = (tl.load(base) + step).to(tl.int32) + salt
        normalise(
            value,
            value,
            theta + size,
            size,
            normal + start,
            out,
            variances + flat,
            sums + flat,
            count,
            seed,
            neuron,
            left_out,
            n_rows,
            DROP,
            ROWS,
            True,
        )
    else:
        tl.store(out + rows, value, mask=there)


@triton.jit(
    do_not_specialize="step salt n_rows n_neurons x_group x_input theta_stride grad_stride".split(),
    do_not_specialize_on_alignment="grad x pre normal index variances by_pool theta grad_theta drop".split(),
)
def layer_backward(
    grad,
    x,
    pre,
    normal,
    index,
    variances,
    by_pool,
    theta,
    grad_theta,
    places,
    codes,
    base,
    step,
    salt,
    drop,
    n_rows,
    n_neurons,
    x_group,
    x_input,
    theta_stride,
    grad_stride,
    NORM: tl.constexpr,
    DROP: tl.constexpr,
    APPROX: tl.constexpr,
    INPUTS: tl.constexpr,
    ROWS: tl.constexpr,
):
    """From the gradient by what a neuron hands on to those by its parameters and by its pooled values."""
    neuron, candidate, flat, code, place, size = neuron_here(places, codes, n_neurons, theta_stride)
    nodal, pool = code // NODAL_UNIT, pool_of(code)
    n_inputs = tl.load(places + 3 * neuron + 2)
    theta += place
    grad_theta += place
    rows = tl.arange(0, ROWS)
    there = rows < n_rows
    start = flat.to(tl.int64) * n_rows
    g = tl.load(grad + candidate.to(tl.int64) * grad_stride + neuron * n_rows + rows, mask=there, other=0.0)
    if NORM:
        if DROP:
            seed = (tl.load(base) + step).to(tl.int32) + salt
            g *= keep(seed, neuron, rows, n_rows, tl.load(drop + candidate))
        unit = tl.load(normal + start + rows, mask=there, other=0.0)
        total, along = tl.sum(g, axis=0), tl.sum(g * unit, axis=0)
        tl.store(grad_theta + size, along)
        tl.store(grad_theta + 2 * size, total)
        factor = tl.load(theta + size) / deviation(tl.load(variances + flat))
        g = factor * (g - (total + unit * along) / n_rows)
    g *= activation_slope(tl.load(pre + start + rows, mask=there, other=0.0), activation_of(code))
    g = tl.where(there, g, 0.0)
    tl.store(grad_theta, tl.sum(g, axis=0))
    tl.store(by_pool + start + rows, g, mask=there)
    x += candidate.to(tl.int64) * x_group + rows[None, :]
    weight = theta - n_inputs * size
    by_weight = grad_theta - n_inputs * size
    for first in range(0, n_inputs, INPUTS):
        k = first + tl.arange(0, INPUTS)
        chosen = index + start + rows
        d = _pooled_slope(
            x, weight, chosen, k, n_inputs, x_input, size, there, nodal, pool, _BY_WEIGHT, APPROX
        )
        tl.store(by_weight + k * size, tl.sum(d * g[None, :], axis=1), mask=k < n_inputs)


@triton.jit(
    do_not_specialize=(
        "n_rows n_neurons n_inputs skip part x_group x_input theta_stride out_part out_group".split()
    ),
    do_not_specialize_on_alignment="x by_pool index theta out".split(),
)
def layer_by_input(
    x,
    by_pool,
    index,
    theta,
    places,
    codes,
    out,
    n_rows,
    n_neurons,
    n_inputs,
    skip,
    part,
    x_group,
    x_input,
    theta_stride,
    out_part,
    out_group,
    APPROX: tl.constexpr,
    INPUTS: tl.constexpr,
    ROWS: tl.constexpr,
):
    """The gradient by inputs from number ``skip`` on, summed over neurons part * p .. part * (p + 1).

    A program has some inputs and rows, and goes from neuron to neuron; the parts are to be added.
    """
    n_tiles = tl.cdiv(n_rows, ROWS)
    candidate, number = tl.program_id(1), tl.program_id(2)
    place = tl.program_id(0) // n_tiles * INPUTS + tl.arange(0, INPUTS)
    k = skip + place
    rows = tl.program_id(0) % n_tiles * ROWS + tl.arange(0, ROWS)
    there = rows < n_rows
    x += candidate.to(tl.int64) * x_group + rows[None, :]
    theta += candidate.to(tl.int64) * theta_stride
    total = tl.zeros([INPUTS, ROWS], tl.float32)
    for neuron in range(number * part, tl.minimum(number * part + part, n_neurons)):
        flat = candidate * n_neurons + neuron
        code = tl.load(codes + flat)
        size, fan_in = tl.load(places + 3 * neuron + 1), tl.load(places + 3 * neuron + 2)
        weight = theta + tl.load(places + 3 * neuron) - fan_in * size
        at = flat.to(tl.int64) * n_rows + rows
        g = tl.load(by_pool + at, mask=there, other=0.0)
        nodal, pool = code // NODAL_UNIT, pool_of(code)
        d = _pooled_slope(
            x, weight, index + at, k, fan_in, x_input, size, there, nodal, pool, _BY_INPUT, APPROX
        )
        total += d * g[None, :]
    out += number.to(tl.int64) * out_part + candidate.to(tl.int64) * out_group
    inside = (k < n_inputs)[:, None] & there[None, :]
    tl.store(out + place[:, None].to(tl.int64) * n_rows + rows[None, :], total, mask=inside)
