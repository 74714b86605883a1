"""Gradients of pooled nodal operators, for one block and a batch.

The derivative of a sum by the weights is computed and used in the same loop. For correlations, values and
derivatives of some inputs are stored first, so few that they stay in the fastest cache. The gradient of a
maximum goes to the one input that has it, which the forward pass remembers.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from typing import Any

import numpy as np

from . import cpu_nodal as nodals
from .cpu_math import REORDER, ZERO, compiled, item, put
from .cpu_nodal import MULTIPLICATION, QUADRATIC, by_nodal
from .cpu_pools import (
    CORRELATION1,
    SUM,
    TILE,
    fill_reach,
    load_tile,
    load_weights,
    rooms,
    within_reach,
)

#: Inputs of a neuron whose values are stored at once.
_CHUNK = 48


def _sum_gradient(by_weight: Any) -> Any:
    """Build the gradient of the sum by the weights of one neuron; rows may be added in any order."""

    @compiled(fastmath=REORDER)
    def add(y, w, g, n_inputs, gradient):
        for k in range(n_inputs):
            w0, total = item(w, k), ZERO
            for r in range(TILE):
                total += item(g, r) * by_weight(item(y, k * TILE + r), w0)[1]
            gradient[k] += total

    return add


def _store_both(by_weight: Any) -> Any:
    """Build the loop that stores values and their derivatives by the weight for inputs first .. last."""

    @compiled()
    def store(y, w, first, last, z, slope):
        for k in range(first, last):
            w0, to = item(w, k), (k - first) * TILE
            for r in range(TILE):
                value, derivative = by_weight(item(y, k * TILE + r), w0)
                put(z, to + r, value)
                put(slope, to + r, derivative)

    return store


def _store(function: Any) -> Any:
    """Build the loop that stores function(y, w) for all inputs of a tile."""

    @compiled()
    def store(y, w, n_inputs, out):
        for k in range(n_inputs):
            w0 = item(w, k)
            for r in range(TILE):
                put(out, k * TILE + r, function(item(y, k * TILE + r), w0))

    return store


def _without_products(forms: tuple[Any, ...]) -> list[Any]:
    """Multiplication and quadratic are matrix products, and never come here."""
    return [None if code in (MULTIPLICATION, QUADRATIC) else form for code, form in enumerate(forms)]


_far_sum = by_nodal(_sum_gradient, *_without_products(nodals.BY_WEIGHT))
_near_sum = by_nodal(_sum_gradient, *nodals.NEAR_BY_WEIGHT)
_far_both = by_nodal(_store_both, *_without_products(nodals.BY_WEIGHT))
_near_both = by_nodal(_store_both, *nodals.NEAR_BY_WEIGHT)
_store_values = by_nodal(_store, *_without_products(nodals.VALUES))
_store_slopes = by_nodal(_store, *_without_products(nodals.BY_INPUT))


@compiled(fastmath=REORDER)
def _add_pairs(z, slope, g, first, last, start, gradient):
    """Gradient of correlation1 by inputs first .. last; ``z`` and ``slope`` begin with input ``start``."""
    for k in range(first, last):
        at, total = (k - start) * TILE, ZERO
        for r in range(g.size):  # and not TILE: a short loop is unrolled before it could be vectorised
            neighbours = item(z, at - TILE + r) + item(z, at + TILE + r)
            total += item(g, r) * neighbours * item(slope, at + r)
        gradient[k] += total


@compiled(fastmath=REORDER)
def _add_triples(z, slope, g, first, last, start, gradient):
    """As `_add_pairs`, for correlation2."""
    for k in range(first, last):
        at, total = (k - start) * TILE, ZERO
        for r in range(TILE):
            before, after = item(z, at - TILE + r), item(z, at + TILE + r)
            around = item(z, at - 2 * TILE + r) * before + before * after + after * item(z, at + 2 * TILE + r)
            total += item(g, r) * around * item(slope, at + r)
        gradient[k] += total


@compiled()
def _correlation_gradient(nodal, pool, y, w, far, g, n_inputs, z, slope, gradient):
    """Gradient of a correlation by the weights of one neuron, chunk by chunk.

    ``z`` and ``slope`` are room for _CHUNK + 6 inputs; the first two of ``z`` are zeros, for the inputs that
    come before the first.
    """
    near = within_reach(w, far, n_inputs)
    values, slopes = z[2 * TILE :], slope[2 * TILE :]
    for first in range(0, n_inputs, _CHUNK):
        last = min(first + _CHUNK, n_inputs)
        start = max(first - 2, 0)
        # From two inputs before the chunk to two after it; behind the last input come zeros.
        if near:
            _near_both(nodal, y, w, start, last + 2, values, slopes)
        else:
            _far_both(nodal, y, w, start, last + 2, values, slopes)
        if pool == CORRELATION1:
            _add_pairs(z, slope, g, first, last, start - 2, gradient)
        else:
            _add_triples(z, slope, g, first, last, start - 2, gradient)


def _store_slopes_at(pair: tuple[Any, Any]) -> Any:
    """Build the derivatives of psi by the weight and by the input at one place, into out[0] and out[1]."""
    by_weight, by_input = pair

    @compiled()
    def store(y, w, out):
        put(out, 0, by_weight(y, w)[1])
        put(out, 1, by_input(y, w))

    return store


_slopes_at = by_nodal(_store_slopes_at, *zip(nodals.BY_WEIGHT, nodals.BY_INPUT, strict=True))


@compiled()
def largest_backward(nodal, inputs, stride, n_rows, weight, where, grad, grad_weight, grad_inputs):
    """Add the gradients of maxima; ``where`` (d * stride) says which input was the largest."""
    slopes = np.empty(2, np.float32)
    for i in range(weight.shape[1]):
        for r in range(n_rows):
            k = where[i * stride + r]
            _slopes_at(nodal, inputs[k * stride + r], weight[k, i], slopes)
            grad_weight[k, i] += grad[i * stride + r] * slopes[0]
            if grad_inputs.size > 0:
                grad_inputs[k * stride + r] += grad[i * stride + r] * slopes[1]


@compiled()
def weight_gradient(nodal, pool, inputs, stride, n_rows, weight, grad, grad_weight):
    """Add the gradient of the sum or a correlation to ``grad_weight`` (D, d).

    ``inputs`` is (D * stride) with rows in the inner dimension, padded to whole tiles; ``grad`` is
    (d * stride) with zeros in the padding. Multiplication and quadratic are matrix products, and not here.
    """
    n_inputs, n_neurons = weight.shape
    y, w, far = rooms(n_inputs)
    z, slope = np.zeros((_CHUNK + 6) * TILE, np.float32), np.zeros((_CHUNK + 6) * TILE, np.float32)
    g, gradient = np.empty(TILE, np.float32), np.empty(n_inputs, np.float32)
    for offset in range(0, n_rows, TILE):
        load_tile(inputs, stride, offset, n_inputs, y)
        fill_reach(nodal, y, n_inputs, far)
        for i in range(n_neurons):
            load_weights(weight, i, w)
            for r in range(TILE):
                g[r] = grad[i * stride + offset + r]
            gradient[:] = ZERO
            if pool != SUM:
                _correlation_gradient(nodal, pool, y, w, far, g, n_inputs, z, slope, gradient)
            elif within_reach(w, far, n_inputs):
                _near_sum(nodal, y, w, g, n_inputs, gradient)
            else:
                _far_sum(nodal, y, w, g, n_inputs, gradient)
            for k in range(n_inputs):
                grad_weight[k, i] += gradient[k]


@compiled()
def _add_input_gradient(pool, z, slope, g, n_inputs, back):
    """``z`` is preceded and followed by two rows of zeros."""
    for k in range(n_inputs):
        at = (k + 2) * TILE
        if pool == SUM:
            for r in range(TILE):
                put(back, k * TILE + r, item(back, k * TILE + r) + item(g, r) * item(slope, k * TILE + r))
        elif pool == CORRELATION1:
            for r in range(TILE):
                by_z = item(z, at - TILE + r) + item(z, at + TILE + r)
                value = item(g, r) * by_z * item(slope, k * TILE + r)
                put(back, k * TILE + r, item(back, k * TILE + r) + value)
        else:
            for r in range(TILE):
                before, after = item(z, at - TILE + r), item(z, at + TILE + r)
                by_z = (
                    item(z, at - 2 * TILE + r) * before + before * after + after * item(z, at + 2 * TILE + r)
                )
                value = item(g, r) * by_z * item(slope, k * TILE + r)
                put(back, k * TILE + r, item(back, k * TILE + r) + value)


@compiled()
def input_gradient(nodal, pool, inputs, stride, n_rows, weight, grad, grad_inputs):
    """Add the gradient of the sum or a correlation to ``grad_inputs`` (D * stride); see `weight_gradient`."""
    n_inputs, n_neurons = weight.shape
    y, w, _ = rooms(n_inputs)
    z, slope = np.zeros((n_inputs + 4) * TILE, np.float32), np.empty(n_inputs * TILE, np.float32)
    g, back = np.empty(TILE, np.float32), np.empty(n_inputs * TILE, np.float32)
    values = z[2 * TILE :]
    for offset in range(0, n_rows, TILE):
        load_tile(inputs, stride, offset, n_inputs, y)
        back[:] = ZERO
        for i in range(n_neurons):
            load_weights(weight, i, w)
            for r in range(TILE):
                g[r] = grad[i * stride + offset + r]
            if pool != SUM:
                _store_values(nodal, y, w, n_inputs, values)
            _store_slopes(nodal, y, w, n_inputs, slope)
            _add_input_gradient(pool, z, slope, g, n_inputs, back)
        for k in range(n_inputs):
            for r in range(TILE):
                grad_inputs[k * stride + offset + r] += back[k * TILE + r]
