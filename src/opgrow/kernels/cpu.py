"""CPU kernels: pooled nodal operators of many rows and neurons, compiled by numba.

The N x D x d tensor of the formulas never exists: a tile of rows is transposed once, and the loops of
`cpu_pools` run over it for every neuron. Every function is single-threaded and releases the GIL; callers
spread rows or candidates over threads. Operators are chosen by their integer codes, outside of the inner
loops.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np

from .cpu_math import ZERO, compiled
from .cpu_nodal import MULTIPLICATION, QUADRATIC
from .cpu_pools import (
    MAXIMUM,
    SUM,
    TILE,
    load_weights,
    pool_tile,
    pool_tile_all,
    rooms,
)

__all__ = ["MAXIMUM", "MULTIPLICATION", "QUADRATIC", "SUM", "TILE", "all_pools", "one_pool"]


@compiled()
def _transpose_tile(x, start, rows, y):
    """Transpose rows start .. start + rows of x (N, D) into a tile, padded with zeros."""
    y[:] = ZERO
    for r in range(rows):
        for k in range(x.shape[1]):
            y[k * TILE + r] = x[start + r, k]


@compiled()
def all_pools(nodal, x, weight, out):
    """Pool psi(x, weight) in all four ways.

    Parameters: x (N, D), weight (D, d), out (4, d, N); float32, rows of x contiguous.
    """
    n_inputs = x.shape[1]
    y, w, _ = rooms(n_inputs)
    state = np.empty(6 * TILE, np.float32)
    for start in range(0, x.shape[0], TILE):
        rows = min(TILE, x.shape[0] - start)
        _transpose_tile(x, start, rows, y)
        for i in range(weight.shape[1]):
            load_weights(weight, i, w)
            pool_tile_all(nodal, y, w, n_inputs, state)
            for p in range(4):
                for r in range(rows):
                    out[p, i, start + r] = state[p * TILE + r]


@compiled()
def one_pool(nodal, pool, x, weight, out):
    """Pool psi(x, weight) in one way, into out (N, d).

    Near forms are left alone: they may round differently, and whether a tile can use them depends on all its
    rows, but a prediction should not depend on the rows beside it.
    """
    n_inputs = x.shape[1]
    y, w, nowhere = rooms(n_inputs)
    state, where = np.empty(3 * TILE, np.float32), np.empty(TILE, np.int32)
    for start in range(0, x.shape[0], TILE):
        rows = min(TILE, x.shape[0] - start)
        _transpose_tile(x, start, rows, y)
        for i in range(weight.shape[1]):
            load_weights(weight, i, w)
            pool_tile(nodal, pool, y, w, nowhere, n_inputs, state, where)
            for r in range(rows):
                out[start + r, i] = state[r]
