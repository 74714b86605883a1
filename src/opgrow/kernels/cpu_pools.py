"""Pooled nodal operators for one neuron and one tile of rows: the innermost loops of everything on the CPU.

A tile is TILE rows of inputs, feature-major and contiguous: input k of row r lies at ``k * TILE + r``. Behind
the D inputs follow PADDING rows of zeros, and behind the neuron's weights as many zeros, so that loops may
take several inputs a turn: every nodal operator is 0 for a weight of 0, and zeros change no sum and no
correlation. Inner loops have a constant trip count over contiguous memory and vectorise over the rows.

Values are pooled in the loop that computes them. Where all weights of a neuron are within reach, that is the
loop of the operator's near form.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from typing import Any

import numpy as np

from . import cpu_nodal as nodals
from .cpu_math import ONE, ZERO, compiled, item, put
from .cpu_nodal import EXPONENTIAL, by_nodal, reach

#: Rows of a tile; a multiple of every vector width.
TILE = 32
#: Rows of zeros behind the inputs of a tile: those that fill up a turn, and those that correlations look at.
PADDING = 8
SUM, CORRELATION1, CORRELATION2, MAXIMUM = range(4)
_LOWEST = np.float32(-3.4028235e38)


@compiled()
def rooms(n_inputs):
    """Room for a tile, for weights and for reaches; the padding is zero."""
    return (
        np.zeros((n_inputs + PADDING) * TILE, np.float32),
        np.zeros(n_inputs + PADDING, np.float32),
        np.zeros(n_inputs + PADDING, np.float32),
    )


@compiled()
def load_tile(inputs, stride, offset, n_inputs, y):
    """Rows offset .. offset + TILE of feature-major inputs (D * stride) into a tile."""
    for k in range(n_inputs):
        for r in range(TILE):
            put(y, k * TILE + r, item(inputs, k * stride + offset + r))


@compiled()
def fill_reach(nodal, y, n_inputs, far):
    """The largest weight of each input for which the near form holds."""
    for k in range(n_inputs):
        largest = ZERO
        for r in range(TILE):
            value = abs(item(y, k * TILE + r))
            largest = value if value > largest else largest
        far[k] = reach(nodal, largest)


@compiled()
def load_weights(weight, neuron, w):
    for k in range(weight.shape[0]):
        w[k] = weight[k, neuron]


@compiled()
def within_reach(w, far, n_inputs):
    outside = 0
    for k in range(n_inputs):
        outside += abs(item(w, k)) > item(far, k)
    return outside == 0


def _four(psi: Any) -> Any:
    @compiled(inline="always")
    def values(y, at, w0, w1, w2, w3):
        return (
            psi(item(y, at), w0),
            psi(item(y, at + TILE), w1),
            psi(item(y, at + 2 * TILE), w2),
            psi(item(y, at + 3 * TILE), w3),
        )

    return values


def _sum(psi: Any) -> Any:
    """Build the sum of ``psi``, four inputs a turn."""
    values = _four(psi)

    @compiled()
    def add_sum(y, w, n_inputs, state):
        for k in range(0, n_inputs, 4):
            w0, w1, w2, w3 = item(w, k), item(w, k + 1), item(w, k + 2), item(w, k + 3)
            for r in range(TILE):
                a, b, c, d = values(y, k * TILE + r, w0, w1, w2, w3)
                put(state, r, item(state, r) + ((a + b) + (c + d)))

    return add_sum


def _pairs(psi: Any) -> Any:
    """Build the correlation of neighbours."""
    values = _four(psi)

    @compiled()
    def add_pairs(y, w, n_inputs, state):
        for k in range(0, n_inputs, 4):
            w0, w1, w2, w3 = item(w, k), item(w, k + 1), item(w, k + 2), item(w, k + 3)
            for r in range(TILE):
                a, b, c, d = values(y, k * TILE + r, w0, w1, w2, w3)
                before = item(state, TILE + r)
                put(state, r, item(state, r) + ((before * a + a * b) + (b * c + c * d)))
                put(state, TILE + r, d)

    return add_pairs


def _triples(psi: Any) -> Any:
    """Build the correlation of three neighbours."""
    values = _four(psi)

    @compiled()
    def add_triples(y, w, n_inputs, state):
        for k in range(0, n_inputs, 4):
            w0, w1, w2, w3 = item(w, k), item(w, k + 1), item(w, k + 2), item(w, k + 3)
            for r in range(TILE):
                a, b, c, d = values(y, k * TILE + r, w0, w1, w2, w3)
                before, product, bc = item(state, TILE + r), item(state, 2 * TILE + r), b * c
                put(state, r, item(state, r) + ((product * a + before * a * b) + (a * bc + bc * d)))
                put(state, TILE + r, d)
                put(state, 2 * TILE + r, c * d)

    return add_triples


_POOLS = (_sum, _pairs, _triples)


def _all_pools(psi: Any) -> Any:
    """Build all four pools of ``psi`` at once; sums run from input to input, which needs few registers."""

    @compiled(inline="always")
    def step(y, w, total, pair, triple, largest, before, product):
        z = psi(y, w)
        pair_term = before * z
        largest = z if z > largest else largest
        return total + z, pair + pair_term, triple + product * z, largest, z, pair_term

    @compiled()
    def add_all(y, w, n_inputs, state):
        whole = n_inputs - n_inputs % 4
        for k in range(0, whole, 4):
            w0, w1, w2, w3 = item(w, k), item(w, k + 1), item(w, k + 2), item(w, k + 3)
            at = k * TILE
            for r in range(TILE):
                s, c, t = item(state, r), item(state, TILE + r), item(state, 2 * TILE + r)
                m, b, p = item(state, 3 * TILE + r), item(state, 4 * TILE + r), item(state, 5 * TILE + r)
                s, c, t, m, b, p = step(item(y, at + r), w0, s, c, t, m, b, p)
                s, c, t, m, b, p = step(item(y, at + TILE + r), w1, s, c, t, m, b, p)
                s, c, t, m, b, p = step(item(y, at + 2 * TILE + r), w2, s, c, t, m, b, p)
                s, c, t, m, b, p = step(item(y, at + 3 * TILE + r), w3, s, c, t, m, b, p)
                put(state, r, s)
                put(state, TILE + r, c)
                put(state, 2 * TILE + r, t)
                put(state, 3 * TILE + r, m)
                put(state, 4 * TILE + r, b)
                put(state, 5 * TILE + r, p)
        for k in range(whole, n_inputs):  # one by one: padding would count as a maximum
            w0 = item(w, k)
            for r in range(TILE):
                s, c, t = item(state, r), item(state, TILE + r), item(state, 2 * TILE + r)
                m, b, p = item(state, 3 * TILE + r), item(state, 4 * TILE + r), item(state, 5 * TILE + r)
                s, c, t, m, b, p = step(item(y, k * TILE + r), w0, s, c, t, m, b, p)
                put(state, r, s)
                put(state, TILE + r, c)
                put(state, 2 * TILE + r, t)
                put(state, 3 * TILE + r, m)
                put(state, 4 * TILE + r, b)
                put(state, 5 * TILE + r, p)

    return add_all


def _largest(psi: Any) -> Any:
    """Build the maximum of ``psi`` and the first input that has it."""

    @compiled()
    def find(y, w, n_inputs, state, where):
        w0 = item(w, 0)
        for r in range(TILE):
            put(state, r, psi(item(y, r), w0))
            put(where, r, np.int32(0))
        for k in range(1, n_inputs):
            w0 = item(w, k)
            for r in range(TILE):
                z, best = psi(item(y, k * TILE + r), w0), item(state, r)
                put(where, r, np.int32(k) if z > best else item(where, r))
                put(state, r, z if z > best else best)

    return find


_near_sum, _near_pairs, _near_triples = (by_nodal(pool, *nodals.NEAR) for pool in _POOLS)
_far_sum, _far_pairs, _far_triples = (by_nodal(pool, *nodals.VALUES) for pool in _POOLS)
_all = by_nodal(_all_pools, *nodals.VALUES)
# The exponential grows with w y: the maximum of the products is enough.
_far_largest = by_nodal(_largest, nodals.multiplication, nodals.multiplication, *nodals.VALUES[2:])
_near_largest = by_nodal(_largest, None, nodals.multiplication, *nodals.NEAR[2:])


@compiled()
def pool_tile(nodal, pool, y, w, far, n_inputs, state, where):
    """One pool of one neuron for a tile, in state[:TILE]; for maxima, the first input that has it."""
    near = within_reach(w, far, n_inputs)
    if pool == MAXIMUM:
        if near:
            _near_largest(nodal, y, w, n_inputs, state, where)
        else:
            _far_largest(nodal, y, w, n_inputs, state, where)
        if nodal == EXPONENTIAL:
            for r in range(TILE):
                put(state, r, nodals.exponential(item(state, r), ONE))
        return
    for j in range(3 * TILE):
        put(state, j, ZERO)
    if near:
        if pool == SUM:
            _near_sum(nodal, y, w, n_inputs, state)
        elif pool == CORRELATION1:
            _near_pairs(nodal, y, w, n_inputs, state)
        else:
            _near_triples(nodal, y, w, n_inputs, state)
    elif pool == SUM:
        _far_sum(nodal, y, w, n_inputs, state)
    elif pool == CORRELATION1:
        _far_pairs(nodal, y, w, n_inputs, state)
    else:
        _far_triples(nodal, y, w, n_inputs, state)


@compiled()
def pool_tile_all(nodal, y, w, n_inputs, state):
    """All four pools of one neuron: state[p * TILE + r] is pool p of row r; 6 * TILE places."""
    for j in range(6 * TILE):
        put(state, j, ZERO)
    for j in range(3 * TILE, 4 * TILE):
        put(state, j, _LOWEST)
    _all(nodal, y, w, n_inputs, state)
