"""Gradients of pooled nodal operators.

For one neuron and one tile of rows, z and its derivatives are stored for all inputs, each (D * TILE), with
the neuron's weights spread out to the same shape: long flat loops over contiguous memory. For a tiny block
the forward pass remembers both (`pools_remembered`), and the backward pass need not compute them again.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from typing import Any

import numpy as np

from . import cpu_nodal as nodals
from .cpu import CORRELATION1, CORRELATION2, MAXIMUM, SUM, TILE
from .cpu_math import ONE, REORDER, ZERO, compiled
from .cpu_nodal import (
    DOG,
    EXPONENTIAL,
    GAUSSIAN,
    HARMONIC,
    MULTIPLICATION,
    PYGOP_QUADRATIC,
    QUADRATIC,
)


def _derivatives(psi_by_weight: Any, psi_by_input: Any) -> Any:
    """Build the two loops that store z with its derivative by the weight, and that by the input.

    z is preceded and followed by two rows of zeros, so that the correlations need no special cases.
    """

    @compiled()
    def by_weight(y, w, z, derivative):
        for j in range(y.size):
            value, slope = psi_by_weight(y[j], w[j])
            z[j + 2 * TILE] = value
            derivative[j] = slope

    @compiled()
    def by_input(y, w, derivative):
        for j in range(y.size):
            derivative[j] = psi_by_input(y[j], w[j])

    return by_weight, by_input


_multiplication_weight, _multiplication_input = _derivatives(
    nodals.multiplication_by_weight, nodals.multiplication_by_input
)
_exponential_weight, _exponential_input = _derivatives(
    nodals.exponential_by_weight, nodals.exponential_by_input
)
_harmonic_weight, _harmonic_input = _derivatives(nodals.harmonic_by_weight, nodals.harmonic_by_input)
_quadratic_weight, _quadratic_input = _derivatives(nodals.quadratic_by_weight, nodals.quadratic_by_input)
_gaussian_weight, _gaussian_input = _derivatives(nodals.gaussian_by_weight, nodals.gaussian_by_input)
_dog_weight, _dog_input = _derivatives(nodals.dog_by_weight, nodals.dog_by_input)
_pygop_quadratic_weight, _pygop_quadratic_input = _derivatives(
    nodals.pygop_quadratic_by_weight, nodals.pygop_quadratic_by_input
)
_pygop_dog_weight, _pygop_dog_input = _derivatives(nodals.pygop_dog_by_weight, nodals.pygop_dog_by_input)


@compiled()
def _weight_derivatives(nodal, y, w, z, derivative):
    if nodal == MULTIPLICATION:
        _multiplication_weight(y, w, z, derivative)
    elif nodal == EXPONENTIAL:
        _exponential_weight(y, w, z, derivative)
    elif nodal == HARMONIC:
        _harmonic_weight(y, w, z, derivative)
    elif nodal == QUADRATIC:
        _quadratic_weight(y, w, z, derivative)
    elif nodal == GAUSSIAN:
        _gaussian_weight(y, w, z, derivative)
    elif nodal == DOG:
        _dog_weight(y, w, z, derivative)
    elif nodal == PYGOP_QUADRATIC:
        _pygop_quadratic_weight(y, w, z, derivative)
    else:
        _pygop_dog_weight(y, w, z, derivative)


@compiled()
def _input_derivatives(nodal, y, w, derivative):
    if nodal == MULTIPLICATION:
        _multiplication_input(y, w, derivative)
    elif nodal == EXPONENTIAL:
        _exponential_input(y, w, derivative)
    elif nodal == HARMONIC:
        _harmonic_input(y, w, derivative)
    elif nodal == QUADRATIC:
        _quadratic_input(y, w, derivative)
    elif nodal == GAUSSIAN:
        _gaussian_input(y, w, derivative)
    elif nodal == DOG:
        _dog_input(y, w, derivative)
    elif nodal == PYGOP_QUADRATIC:
        _pygop_quadratic_input(y, w, derivative)
    else:
        _pygop_dog_input(y, w, derivative)


@compiled(inline="always")
def _pool_slope(pool, z, at):
    """d rho / d z at one place, for the sum and the correlations; z is padded by two rows."""
    if pool == SUM:
        return ONE
    before, after = z[at + TILE], z[at + 3 * TILE]
    if pool == CORRELATION1:
        return before + after
    return z[at] * before + before * after + after * z[at + 4 * TILE]


# The sums over rows may be reordered; nothing in here rounds by adding constants.
@compiled(fastmath=REORDER)
def _add_weight_gradient(pool, z, derivative, grad, grad_at, grad_weight, neuron):
    for k in range(grad_weight.shape[0]):
        total = ZERO
        if pool == SUM:
            for r in range(TILE):
                total += grad[grad_at + r] * derivative[k * TILE + r]
        elif pool == CORRELATION1:
            for r in range(TILE):
                slope = _pool_slope(CORRELATION1, z, k * TILE + r)
                total += grad[grad_at + r] * slope * derivative[k * TILE + r]
        else:
            for r in range(TILE):
                slope = _pool_slope(CORRELATION2, z, k * TILE + r)
                total += grad[grad_at + r] * slope * derivative[k * TILE + r]
        grad_weight[k, neuron] += total


@compiled()
def _add_input_gradient(pool, z, derivative, grad, grad_at, grad_inputs, stride, offset, n_inputs):
    for k in range(n_inputs):
        to = k * stride + offset
        for r in range(TILE):
            slope = _pool_slope(pool, z, k * TILE + r)
            grad_inputs[to + r] += grad[grad_at + r] * slope * derivative[k * TILE + r]


@compiled()
def _largest_inputs(z, n_inputs, largest, where):
    """The first input with the largest z, for each row of a tile."""
    for r in range(TILE):
        largest[r] = z[2 * TILE + r]
        where[r] = 0
    for k in range(1, n_inputs):
        for r in range(TILE):
            bigger = z[(k + 2) * TILE + r] > largest[r]
            largest[r] = z[(k + 2) * TILE + r] if bigger else largest[r]
            where[r] = np.int32(k) if bigger else where[r]


@compiled()
def _spread(inputs, stride, offset, y):
    """A tile of inputs (D * stride) as contiguous rows (D * TILE)."""
    for k in range(y.size // TILE):
        for r in range(TILE):
            y[k * TILE + r] = inputs[k * stride + offset + r]


@compiled()
def _spread_weights(weight, neuron, w):
    for k in range(weight.shape[0]):
        for r in range(TILE):
            w[k * TILE + r] = weight[k, neuron]


@compiled()
def _pool(pool, z, n_inputs, out, at):
    """One pool of a padded z, into out[at : at + TILE]."""
    for r in range(TILE):
        out[at + r] = z[2 * TILE + r] if pool == MAXIMUM else ZERO
    for k in range(n_inputs):
        here = (k + 2) * TILE
        if pool == SUM:
            for r in range(TILE):
                out[at + r] += z[here + r]
        elif pool == CORRELATION1:
            for r in range(TILE):
                out[at + r] += z[here + r] * z[here + TILE + r]
        elif pool == CORRELATION2:
            for r in range(TILE):
                out[at + r] += z[here + r] * z[here + TILE + r] * z[here + 2 * TILE + r]
        else:
            for r in range(TILE):
                out[at + r] = z[here + r] if z[here + r] > out[at + r] else out[at + r]


@compiled()
def memory_size(n_inputs, n_neurons, stride):
    """Floats that `pools_remembered` stores for a batch: z with its padding, and its derivative."""
    return (stride // TILE) * n_neurons * (2 * n_inputs + 4) * TILE


@compiled()
def pools_remembered(nodal, pool, inputs, stride, n_rows, weight, out, memory):
    """Pooled values into ``out`` (d * stride); what their gradient needs into ``memory``.

    The padding of ``memory`` must be zero and stays so.
    """
    n_inputs, n_neurons = weight.shape
    y = np.empty(n_inputs * TILE, np.float32)
    w = np.empty(n_inputs * TILE, np.float32)
    slot = (2 * n_inputs + 4) * TILE
    for offset in range(0, n_rows, TILE):
        _spread(inputs, stride, offset, y)
        for i in range(n_neurons):
            start = ((offset // TILE) * n_neurons + i) * slot
            z = memory[start : start + (n_inputs + 4) * TILE]
            derivative = memory[start + (n_inputs + 4) * TILE : start + slot]
            _spread_weights(weight, i, w)
            _weight_derivatives(nodal, y, w, z, derivative)
            _pool(pool, z, n_inputs, out, i * stride + offset)


@compiled()
def pools_backward(nodal, pool, inputs, stride, n_rows, weight, grad, grad_weight, grad_inputs, memory):
    """Add the gradients of pooled values to ``grad_weight`` (D, d) and ``grad_inputs`` (D * stride).

    ``inputs`` is (D * stride) with rows in the inner dimension, padded to whole tiles; ``grad`` is
    (d * stride) with zeros in the padding. An empty ``grad_inputs`` skips the gradient by the inputs.
    ``memory`` is what `pools_remembered` has stored, or empty.
    """
    n_inputs, n_neurons = weight.shape
    y = np.empty(n_inputs * TILE, np.float32)
    w = np.empty(n_inputs * TILE, np.float32)
    slot = (2 * n_inputs + 4) * TILE
    remembered = memory.size > 0
    own = np.zeros(slot, np.float32)
    largest = np.empty(TILE, np.float32)
    where = np.empty(TILE, np.int32)
    for offset in range(0, n_rows, TILE):
        if not remembered or grad_inputs.size > 0:
            _spread(inputs, stride, offset, y)
        for i in range(n_neurons):
            at = i * stride + offset
            start = ((offset // TILE) * n_neurons + i) * slot if remembered else 0
            source = memory if remembered else own
            z = source[start : start + (n_inputs + 4) * TILE]
            derivative = source[start + (n_inputs + 4) * TILE : start + slot]
            if not remembered or grad_inputs.size > 0:
                _spread_weights(weight, i, w)
            if not remembered:
                _weight_derivatives(nodal, y, w, z, derivative)
            if pool == MAXIMUM:
                _largest_inputs(z, n_inputs, largest, where)
                for r in range(TILE):
                    grad_weight[where[r], i] += grad[at + r] * derivative[where[r] * TILE + r]
            else:
                _add_weight_gradient(pool, z, derivative, grad, at, grad_weight, i)
            if grad_inputs.size == 0:
                continue
            _input_derivatives(nodal, y, w, derivative)
            if pool == MAXIMUM:
                for r in range(TILE):
                    to = where[r] * stride + offset + r
                    grad_inputs[to] += grad[at + r] * derivative[where[r] * TILE + r]
            else:
                _add_input_gradient(pool, z, derivative, grad, at, grad_inputs, stride, offset, n_inputs)
