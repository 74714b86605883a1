"""The rest of a training step beside pools and heads: activation, batch norm and dropout, both ways.

Small steps are bound by the number of launches, so everything that happens to a neuron's values over a
batch is one program. All matrices are (candidates, neurons or outputs, rows); parameters and their
gradients are one row for each candidate, laid out as `opgrow.training.candidates.Shape` says.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import triton
import triton.language as tl

from .triton_math import activate, activation_slope
from .triton_norms import deviation
from .triton_pools import MAXIMUM

#: A neuron's operators are one number: nodal * 64 + pool * 16 + activation.
POOL_UNIT = tl.constexpr(16)
NODAL_UNIT = tl.constexpr(64)


@triton.jit
def activation_of(code):
    """The activation of a neuron's operators."""
    return code % POOL_UNIT


@triton.jit
def pool_of(code):
    """The pool of a neuron's operators."""
    return code % NODAL_UNIT // POOL_UNIT


@triton.jit
def keep(seed, neuron, rows, n_rows, drop):
    """The factor of dropout: 0 or 1 / (1 - drop), the same draw whichever candidate it is for."""
    chance = tl.rand(seed, neuron * n_rows + rows)
    return tl.where(chance >= drop, 1.0 / (1.0 - drop), 0.0)


@triton.jit
def _joined(
    parts, where, index, n_parts, part_stride, is_maximum, there, INDEX: tl.constexpr, PARTS: tl.constexpr
):
    """The parts of a pool put together, and the index of the maximum stored."""
    numbers = tl.arange(0, PARTS)[:, None]
    inside = (numbers < n_parts) & there[None, :]
    apart = parts[None, :] + numbers * part_stride
    if is_maximum:
        values = tl.load(apart, mask=inside, other=float("-inf"))
        if INDEX:
            value, first = tl.max(values, axis=0, return_indices=True, return_indices_tie_break_left=True)
            tl.store(index, tl.load(where + first * part_stride, mask=there, other=0), mask=there)
        else:
            value = tl.max(values, axis=0)
        # A maximum passes over NaN, but what is unknown must stay so.
        value += tl.sum(tl.where(inside & (values != values), values, 0.0), axis=0)
    else:
        value = tl.sum(tl.load(apart, mask=inside, other=0.0), axis=0)
    return value


@triton.jit
def neuron_here(places, codes, n_neurons, theta_stride):
    """The neuron of a program: its number, that of its candidate, that of both, and its operators.

    Then come the place of its bias in theta, and how far behind it the scale and then the shift lie.
    """
    neuron, candidate = tl.program_id(0), tl.program_id(1)
    flat = candidate * n_neurons + neuron
    place = candidate.to(tl.int64) * theta_stride + tl.load(places + 3 * neuron)
    return neuron, candidate, flat, tl.load(codes + flat), place, tl.load(places + 3 * neuron + 1)


@triton.jit
def normalise(
    value,
    total,
    scale,
    size,
    normal,
    out,
    variances,
    sums,
    count,
    seed,
    neuron,
    drop,
    n_rows,
    DROP: tl.constexpr,
    ROWS: tl.constexpr,
    SINGLE: tl.constexpr,
):
    """Batch norm and dropout of a neuron's values, whose sums over tiles are ``total``.

    The values are ``value`` if there is a SINGLE tile, and otherwise lie where the normalised ones are to be.
    The shift lies ``size`` behind the scale, the three sums over batches ``count`` apart.
    """
    lanes = tl.arange(0, ROWS)
    mean = tl.sum(total, axis=0) / n_rows
    square = tl.zeros([ROWS], tl.float32)
    for first in range(0, n_rows, ROWS):
        rows = first + lanes
        there = rows < n_rows
        if not SINGLE:
            value = tl.load(normal + rows, mask=there, other=0.0)
        square += tl.where(there, (value - mean) * (value - mean), 0.0)
    variance = tl.sum(square, axis=0) / n_rows
    tl.store(variances, variance)
    tl.store(sums, tl.load(sums) + mean)
    tl.store(sums + count, tl.load(sums + count) + mean.to(tl.float64) * mean)
    tl.store(sums + 2 * count, tl.load(sums + 2 * count) + variance)
    factor = 1.0 / deviation(variance)
    shift = tl.load(scale + size)
    scale = tl.load(scale)
    for first in range(0, n_rows, ROWS):
        rows = first + lanes
        there = rows < n_rows
        if not SINGLE:
            value = tl.load(normal + rows, mask=there, other=0.0)
        unit = (value - mean) * factor
        tl.store(normal + rows, unit, mask=there)
        result = unit * scale + shift
        if DROP:
            result *= keep(seed, neuron, rows, n_rows, drop)
        tl.store(out + rows, result, mask=there)


@triton.jit(
    do_not_specialize=[
        "step",
        "salt",
        "n_rows",
        "n_neurons",
        "n_parts",
        "part_stride",
        "theta_stride",
        "out_stride",
        "out_neuron",
        "share",
    ],
    do_not_specialize_on_alignment=[
        "parts",
        "where",
        "index",
        "theta",
        "pre",
        "normal",
        "out",
        "variances",
        "sums",
        "drop",
    ],
)
def finish_forward(
    parts,
    where,
    index,
    theta,
    places,
    codes,
    pre,
    normal,
    out,
    variances,
    sums,
    base,
    step,
    salt,
    drop,
    n_rows,
    n_neurons,
    n_parts,
    part_stride,
    theta_stride,
    out_stride,
    out_neuron,
    share,
    NORM: tl.constexpr,
    INDEX: tl.constexpr,
    DROP: tl.constexpr,
    PARTS: tl.constexpr,
    ROWS: tl.constexpr,
    SINGLE: tl.constexpr,
):
    """From pooled values to what a neuron hands on: bias, activation, and with NORM batch norm and dropout.

    ``places`` (neurons, 3): where the bias lies in theta, how far behind it the scale and then the shift, and
    the number of inputs. ``codes`` (candidates, neurons): the operators. ``sums`` (3, candidates, neurons)
    gathers mean, squared mean and variance of the batches. ``drop`` (candidates,): shares that dropout leaves
    out. Without NORM a program takes only ``share`` rows.
    """
    neuron, candidate, flat, code, place, size = neuron_here(places, codes, n_neurons, theta_stride)
    is_maximum = pool_of(code) == MAXIMUM
    activation = activation_of(code)
    theta += place
    bias = tl.load(theta)
    start = flat.to(tl.int64) * n_rows
    out += candidate.to(tl.int64) * out_stride + neuron.to(tl.int64) * out_neuron
    lanes = tl.arange(0, ROWS)
    total = tl.zeros([ROWS], tl.float32)
    value = tl.zeros([ROWS], tl.float32)
    begin = tl.program_id(2) * share
    for first in range(begin, tl.minimum(begin + share, n_rows), ROWS):
        rows = first + lanes
        there = rows < n_rows
        at = start + rows
        value = _joined(
            parts + at, where + at, index + at, n_parts, part_stride, is_maximum, there, INDEX, PARTS
        )
        value += bias
        tl.store(pre + at, value, mask=there)
        value = tl.where(there, activate(value, activation), 0.0)
        if NORM:
            total += value
            if not SINGLE:
                tl.store(normal + at, value, mask=there)
        else:
            tl.store(out + rows, value, mask=there)
    if NORM:
        left_out = 0.0
        if DROP:
            left_out = tl.load(drop + candidate)
        count = tl.num_programs(0) * tl.num_programs(1)
        seed = (tl.load(base) + step).to(tl.int32) + salt
        normalise(
            value,
            total,
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
            SINGLE,
        )


@triton.jit(
    do_not_specialize=["step", "salt", "n_rows", "n_neurons", "theta_stride", "grad_stride"],
    do_not_specialize_on_alignment=[
        "grad",
        "out",
        "pre",
        "normal",
        "variances",
        "theta",
        "grad_theta",
        "drop",
    ],
)
def finish_backward(
    grad,
    out,
    pre,
    normal,
    variances,
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
    theta_stride,
    grad_stride,
    NORM: tl.constexpr,
    DROP: tl.constexpr,
    ROWS: tl.constexpr,
):
    """From the gradient by what a neuron hands on to those by its pooled values, ``out``, and parameters."""
    neuron, candidate, flat, code, place, size = neuron_here(places, codes, n_neurons, theta_stride)
    activation = activation_of(code)
    theta += place
    grad_theta += place
    start = flat.to(tl.int64) * n_rows
    grad += candidate.to(tl.int64) * grad_stride + neuron.to(tl.int64) * n_rows
    lanes = tl.arange(0, ROWS)
    seed = (tl.load(base) + step).to(tl.int32) + salt
    left_out = 0.0
    if DROP:
        left_out = tl.load(drop + candidate)
    total = 0.0
    along = 0.0
    factor = 1.0
    if NORM:
        sum_total = tl.zeros([ROWS], tl.float32)
        sum_along = tl.zeros([ROWS], tl.float32)
        for first in range(0, n_rows, ROWS):
            rows = first + lanes
            there = rows < n_rows
            g = tl.load(grad + rows, mask=there, other=0.0)
            if DROP:
                g *= keep(seed, neuron, rows, n_rows, left_out)
            sum_total += g
            sum_along += g * tl.load(normal + start + rows, mask=there, other=0.0)
        total = tl.sum(sum_total, axis=0)
        along = tl.sum(sum_along, axis=0)
        tl.store(grad_theta + size, along)
        tl.store(grad_theta + 2 * size, total)
        factor = tl.load(theta + size) / deviation(tl.load(variances + flat))
    by_bias = tl.zeros([ROWS], tl.float32)
    for first in range(0, n_rows, ROWS):
        rows = first + lanes
        there = rows < n_rows
        g = tl.load(grad + rows, mask=there, other=0.0)
        if NORM:
            if DROP:
                g *= keep(seed, neuron, rows, n_rows, left_out)
            unit = tl.load(normal + start + rows, mask=there, other=0.0)
            g = factor * (g - (total + unit * along) / n_rows)
        g *= activation_slope(tl.load(pre + start + rows, mask=there, other=0.0), activation)
        g = tl.where(there, g, 0.0)
        tl.store(out + start + rows, g, mask=there)
        by_bias += g
    tl.store(grad_theta, tl.sum(by_bias, axis=0))
