"""Pooled nodal operators of a whole block for a mini-batch, and their gradients.

Matrices of a batch are flat: features are rows, and samples, padded to whole tiles (``stride``), are columns.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np

from .cpu_gradient import input_gradient, largest_backward, weight_gradient
from .cpu_math import compiled
from .cpu_pools import MAXIMUM, TILE, fill_reach, load_tile, load_weights, pool_tile, rooms
from .cpu_products import is_product, product_backward, product_forward


@compiled()
def pool_forward(nodal, pool, inputs, stride, n_rows, weight, out, where):
    """Pooled values (d * stride) of a batch; for maxima, ``where`` (d * stride) says which input it was."""
    n_inputs, n_neurons = weight.shape
    if is_product(nodal, pool):
        matrix = inputs[: n_inputs * stride].reshape((n_inputs, stride))
        product_forward(nodal, pool, matrix, weight, out.reshape((n_neurons, stride)))
        return
    y, w, far = rooms(n_inputs)
    state, largest = np.empty(3 * TILE, np.float32), np.empty(TILE, np.int32)
    for offset in range(0, n_rows, TILE):
        load_tile(inputs, stride, offset, n_inputs, y)
        fill_reach(nodal, y, n_inputs, far)
        for i in range(n_neurons):
            load_weights(weight, i, w)
            pool_tile(nodal, pool, y, w, far, n_inputs, state, largest)
            for r in range(TILE):
                out[i * stride + offset + r] = state[r]
            if pool == MAXIMUM:
                for r in range(TILE):
                    where[i * stride + offset + r] = largest[r]


@compiled()
def pool_backward(nodal, pool, inputs, stride, n_rows, weight, where, grad, grad_weight, grad_inputs):
    """Add the gradients of pooled values by the weights and, unless ``grad_inputs`` is empty, the inputs."""
    n_inputs, n_neurons = weight.shape
    if is_product(nodal, pool):
        matrix = inputs[: n_inputs * stride].reshape((n_inputs, stride))
        back = grad_inputs.reshape((grad_inputs.size // stride, stride))
        by_pools = grad.reshape((n_neurons, stride))
        product_backward(nodal, pool, matrix, weight, by_pools, grad_weight, back)
    elif pool == MAXIMUM:
        largest_backward(nodal, inputs, stride, n_rows, weight, where, grad, grad_weight, grad_inputs)
    else:
        weight_gradient(nodal, pool, inputs, stride, n_rows, weight, grad, grad_weight)
        if grad_inputs.size > 0:
            input_gradient(nodal, pool, inputs, stride, n_rows, weight, grad, grad_inputs)
