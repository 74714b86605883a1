"""CPU kernels: pooled nodal operators, compiled by numba.

Rows run in the inner, vectorised dimension. A tile of ``TILE`` rows is transposed once, so that every
inner loop has a constant trip count over contiguous memory, and the running pools of one neuron stay in
registers over four inputs. The N x D x d tensor of the formulas never exists.

Every function is single-threaded and releases the GIL; callers spread rows or candidates over threads.
Operators are chosen by their integer codes, outside of the inner loops.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from typing import Any

import numpy as np

from . import cpu_nodal as nodals
from .cpu_math import ZERO, compiled
from .cpu_nodal import (
    DOG,
    EXPONENTIAL,
    GAUSSIAN,
    HARMONIC,
    MULTIPLICATION,
    PYGOP_QUADRATIC,
    QUADRATIC,
)

#: Rows of a tile; a multiple of every vector width.
TILE = 32
_LOWEST = np.float32(-3.4028235e38)

SUM, CORRELATION1, CORRELATION2, MAXIMUM = range(4)


def _tile_pools(psi: Any) -> Any:
    """Build the loop that computes all four pools of ``psi`` for one neuron and one tile of inputs.

    ``inputs`` holds input k of row r at ``k * stride + offset + r``. One array holds all running pools,
    at constant distances, so that LLVM sees they do not overlap; four inputs a turn keep them in
    registers.
    """

    @compiled(inline="always")
    def step(y, w, total, pair, triple, largest, before, product):
        z = psi(y, w)
        pair_term = before * z
        largest = z if z > largest else largest
        return total + z, pair + pair_term, triple + product * z, largest, z, pair_term

    @compiled()
    def pools(inputs, stride, offset, weight, neuron, state):
        for r in range(TILE):
            state[r] = ZERO
            state[TILE + r] = ZERO
            state[2 * TILE + r] = ZERO
            state[3 * TILE + r] = _LOWEST
            state[4 * TILE + r] = ZERO  # z of the previous input
            state[5 * TILE + r] = ZERO  # product of the two previous z
        n_inputs = weight.shape[0]
        whole = n_inputs - n_inputs % 4
        for k in range(0, whole, 4):
            w0, w1 = weight[k, neuron], weight[k + 1, neuron]
            w2, w3 = weight[k + 2, neuron], weight[k + 3, neuron]
            at = k * stride + offset
            for r in range(TILE):
                s, c, t, m, b, p = (
                    state[r],
                    state[TILE + r],
                    state[2 * TILE + r],
                    state[3 * TILE + r],
                    state[4 * TILE + r],
                    state[5 * TILE + r],
                )
                s, c, t, m, b, p = step(inputs[at + r], w0, s, c, t, m, b, p)
                s, c, t, m, b, p = step(inputs[at + stride + r], w1, s, c, t, m, b, p)
                s, c, t, m, b, p = step(inputs[at + 2 * stride + r], w2, s, c, t, m, b, p)
                s, c, t, m, b, p = step(inputs[at + 3 * stride + r], w3, s, c, t, m, b, p)
                state[r] = s
                state[TILE + r] = c
                state[2 * TILE + r] = t
                state[3 * TILE + r] = m
                state[4 * TILE + r] = b
                state[5 * TILE + r] = p
        for k in range(whole, n_inputs):
            w0 = weight[k, neuron]
            at = k * stride + offset
            for r in range(TILE):
                z = psi(inputs[at + r], w0)
                p = state[4 * TILE + r] * z
                state[r] += z
                state[TILE + r] += p
                state[2 * TILE + r] += state[5 * TILE + r] * z
                state[3 * TILE + r] = z if z > state[3 * TILE + r] else state[3 * TILE + r]
                state[4 * TILE + r] = z
                state[5 * TILE + r] = p

    return pools


_pools_multiplication = _tile_pools(nodals.multiplication)
_pools_exponential = _tile_pools(nodals.exponential)
_pools_harmonic = _tile_pools(nodals.harmonic)
_pools_quadratic = _tile_pools(nodals.quadratic)
_pools_gaussian = _tile_pools(nodals.gaussian)
_pools_dog = _tile_pools(nodals.dog)
_pools_pygop_quadratic = _tile_pools(nodals.pygop_quadratic)
_pools_pygop_dog = _tile_pools(nodals.pygop_dog)


@compiled()
def tile_pools(nodal, inputs, stride, offset, weight, neuron, state):
    """All four pools of one neuron for TILE rows: ``state[p * TILE + r]`` is pool p of row r."""
    if nodal == MULTIPLICATION:
        _pools_multiplication(inputs, stride, offset, weight, neuron, state)
    elif nodal == EXPONENTIAL:
        _pools_exponential(inputs, stride, offset, weight, neuron, state)
    elif nodal == HARMONIC:
        _pools_harmonic(inputs, stride, offset, weight, neuron, state)
    elif nodal == QUADRATIC:
        _pools_quadratic(inputs, stride, offset, weight, neuron, state)
    elif nodal == GAUSSIAN:
        _pools_gaussian(inputs, stride, offset, weight, neuron, state)
    elif nodal == DOG:
        _pools_dog(inputs, stride, offset, weight, neuron, state)
    elif nodal == PYGOP_QUADRATIC:
        _pools_pygop_quadratic(inputs, stride, offset, weight, neuron, state)
    else:
        _pools_pygop_dog(inputs, stride, offset, weight, neuron, state)


@compiled()
def _load_tile(x, start, rows, tile):
    """Transpose rows start .. start + rows of x (N, D) into tile (D * TILE), padded with zeros."""
    for r in range(rows):
        for k in range(x.shape[1]):
            tile[k * TILE + r] = x[start + r, k]
    for k in range(x.shape[1]):
        for r in range(rows, TILE):
            tile[k * TILE + r] = ZERO


@compiled()
def all_pools(nodal, x, weight, out):
    """Pool psi(x, weight) in all four ways.

    Parameters: x (N, D), weight (D, d), out (4, d, N); float32, rows of x contiguous.
    """
    tile = np.empty(x.shape[1] * TILE, np.float32)
    state = np.empty(6 * TILE, np.float32)
    for start in range(0, x.shape[0], TILE):
        rows = min(TILE, x.shape[0] - start)
        _load_tile(x, start, rows, tile)
        for i in range(weight.shape[1]):
            tile_pools(nodal, tile, TILE, 0, weight, i, state)
            for p in range(4):
                for r in range(rows):
                    out[p, i, start + r] = state[p * TILE + r]


@compiled()
def one_pool(nodal, pool, x, weight, out):
    """Pool psi(x, weight) in one way, into out (N, d)."""
    tile = np.empty(x.shape[1] * TILE, np.float32)
    state = np.empty(6 * TILE, np.float32)
    for start in range(0, x.shape[0], TILE):
        rows = min(TILE, x.shape[0] - start)
        _load_tile(x, start, rows, tile)
        for i in range(weight.shape[1]):
            tile_pools(nodal, tile, TILE, 0, weight, i, state)
            for r in range(rows):
                out[start + r, i] = state[pool * TILE + r]
