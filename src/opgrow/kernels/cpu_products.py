"""Multiplication and quadratic under the sum and the correlations, as matrix products.

Their values factor into a function of the weight and one of the input, z_k = w_k v_k with v = y or y^2. So do
products of neighbours: z_k z_(k+1) = (w_k w_(k+1)) (v_k v_(k+1)), and a correlation is a product of two
matrices, of neighbouring weights and of neighbouring inputs.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np

from .cpu_math import TWO, ZERO, compiled
from .cpu_nodal import MULTIPLICATION, QUADRATIC
from .cpu_pools import CORRELATION1, MAXIMUM, SUM


@compiled()
def is_product(nodal, pool):
    return pool != MAXIMUM and (nodal == MULTIPLICATION or nodal == QUADRATIC)


@compiled()
def neighbours(values, pool):
    """Products of pool + 1 neighbouring rows."""
    if pool == SUM:
        return values
    if pool == CORRELATION1:
        return values[:-1] * values[1:]
    return values[:-2] * values[1:-1] * values[2:]


@compiled()
def add_spread(pool, grad, values, out):
    """Add the gradient by ``values`` to ``out``, given that by the products of their neighbours."""
    n = values.shape[0]
    if pool == SUM:
        out += grad
    elif pool == CORRELATION1:
        out[: n - 1] += grad * values[1:]
        out[1:] += grad * values[: n - 1]
    else:
        out[: n - 2] += grad * values[1 : n - 1] * values[2:]
        out[1 : n - 1] += grad * values[: n - 2] * values[2:]
        out[2:] += grad * values[: n - 2] * values[1 : n - 1]


@compiled()
def product_forward(nodal, pool, inputs, weight, out):
    """Pooled values (d, rows) of inputs (D, rows) and weights (D, d)."""
    if inputs.shape[0] <= pool:
        out[:] = ZERO
        return
    v = inputs * inputs if nodal == QUADRATIC else inputs
    np.dot(neighbours(weight, pool).T, neighbours(v, pool), out)


@compiled()
def product_backward(nodal, pool, inputs, weight, grad, grad_weight, grad_inputs):
    """Add the gradients by weights (D, d) and, unless it has no rows, by inputs (D, rows)."""
    if inputs.shape[0] <= pool:
        return
    v = inputs * inputs if nodal == QUADRATIC else inputs
    add_spread(pool, np.dot(neighbours(v, pool), grad.T), weight, grad_weight)
    if grad_inputs.shape[0] == 0:
        return
    by_products = np.dot(neighbours(weight, pool), grad)
    if nodal == QUADRATIC:
        by_square = np.zeros_like(v)
        add_spread(pool, by_products, v, by_square)
        grad_inputs += TWO * inputs * by_square
    else:
        add_spread(pool, by_products, v, grad_inputs)
