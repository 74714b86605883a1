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
from .cpu_nodal import (
    DOG,
    EXPONENTIAL,
    GAUSSIAN,
    HARMONIC,
    MULTIPLICATION,
    PYGOP_QUADRATIC,
    QUADRATIC,
    reach,
)

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


def _single_pools(psi: Any) -> tuple[Any, Any, Any]:
    """Build the sum and the correlations of ``psi``, four inputs a turn."""
    values = _four(psi)

    @compiled()
    def add_sum(y, w, n_inputs, state):
        for k in range(0, n_inputs, 4):
            w0, w1, w2, w3 = item(w, k), item(w, k + 1), item(w, k + 2), item(w, k + 3)
            for r in range(TILE):
                a, b, c, d = values(y, k * TILE + r, w0, w1, w2, w3)
                put(state, r, item(state, r) + ((a + b) + (c + d)))

    @compiled()
    def add_pairs(y, w, n_inputs, state):
        for k in range(0, n_inputs, 4):
            w0, w1, w2, w3 = item(w, k), item(w, k + 1), item(w, k + 2), item(w, k + 3)
            for r in range(TILE):
                a, b, c, d = values(y, k * TILE + r, w0, w1, w2, w3)
                before = item(state, TILE + r)
                put(state, r, item(state, r) + ((before * a + a * b) + (b * c + c * d)))
                put(state, TILE + r, d)

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

    return add_sum, add_pairs, add_triples


def _all_pools(psi: Any) -> Any:
    """Build all four pools of ``psi`` at once."""
    values = _four(psi)

    @compiled()
    def add_all(y, w, n_inputs, state):
        whole = n_inputs - n_inputs % 4
        for k in range(0, whole, 4):
            w0, w1, w2, w3 = item(w, k), item(w, k + 1), item(w, k + 2), item(w, k + 3)
            for r in range(TILE):
                a, b, c, d = values(y, k * TILE + r, w0, w1, w2, w3)
                before, product = item(state, 4 * TILE + r), item(state, 5 * TILE + r)
                ab, bc, cd = a * b, b * c, c * d
                put(state, r, item(state, r) + ((a + b) + (c + d)))
                put(state, TILE + r, item(state, TILE + r) + ((before * a + ab) + (bc + cd)))
                triples = (product * a + before * ab) + (a * bc + bc * d)
                put(state, 2 * TILE + r, item(state, 2 * TILE + r) + triples)
                e, f, g = a if a > b else b, c if c > d else d, item(state, 3 * TILE + r)
                e = e if e > f else f
                put(state, 3 * TILE + r, e if e > g else g)
                put(state, 4 * TILE + r, d)
                put(state, 5 * TILE + r, cd)
        for k in range(whole, n_inputs):  # one by one: padding would count as a maximum
            w0 = item(w, k)
            for r in range(TILE):
                z = psi(item(y, k * TILE + r), w0)
                pair, largest = item(state, 4 * TILE + r) * z, item(state, 3 * TILE + r)
                put(state, r, item(state, r) + z)
                put(state, TILE + r, item(state, TILE + r) + pair)
                put(state, 2 * TILE + r, item(state, 2 * TILE + r) + item(state, 5 * TILE + r) * z)
                put(state, 3 * TILE + r, z if z > largest else largest)
                put(state, 4 * TILE + r, z)
                put(state, 5 * TILE + r, pair)

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


_sum_exponential, _pairs_exponential, _triples_exponential = _single_pools(nodals.exponential)
_sum_harmonic, _pairs_harmonic, _triples_harmonic = _single_pools(nodals.harmonic)
_sum_gaussian, _pairs_gaussian, _triples_gaussian = _single_pools(nodals.gaussian)
_sum_dog, _pairs_dog, _triples_dog = _single_pools(nodals.dog)
_sum_pygop_quadratic, _pairs_pygop_quadratic, _triples_pygop_quadratic = _single_pools(nodals.pygop_quadratic)
_sum_pygop_dog, _pairs_pygop_dog, _triples_pygop_dog = _single_pools(nodals.pygop_dog)
_sum_exponential_near, _pairs_exponential_near, _triples_exponential_near = _single_pools(
    nodals.exponential_near
)
_sum_harmonic_near, _pairs_harmonic_near, _triples_harmonic_near = _single_pools(nodals.harmonic_near)
_sum_gaussian_near, _pairs_gaussian_near, _triples_gaussian_near = _single_pools(nodals.gaussian_near)
_sum_dog_near, _pairs_dog_near, _triples_dog_near = _single_pools(nodals.dog_near)
_sum_multiplication, _pairs_multiplication, _triples_multiplication = _single_pools(nodals.multiplication)
_sum_quadratic, _pairs_quadratic, _triples_quadratic = _single_pools(nodals.quadratic)
_all_multiplication = _all_pools(nodals.multiplication)
_all_exponential = _all_pools(nodals.exponential)
_all_harmonic = _all_pools(nodals.harmonic)
_all_quadratic = _all_pools(nodals.quadratic)
_all_gaussian = _all_pools(nodals.gaussian)
_all_dog = _all_pools(nodals.dog)
_all_pygop_quadratic = _all_pools(nodals.pygop_quadratic)
_all_pygop_dog = _all_pools(nodals.pygop_dog)
_largest_multiplication = _largest(nodals.multiplication)
_largest_harmonic = _largest(nodals.harmonic)
_largest_quadratic = _largest(nodals.quadratic)
_largest_gaussian = _largest(nodals.gaussian)
_largest_dog = _largest(nodals.dog)
_largest_pygop_quadratic = _largest(nodals.pygop_quadratic)
_largest_pygop_dog = _largest(nodals.pygop_dog)
# It grows with w y: the maximum of the products is enough.
_largest_exponential = _largest_exponential_near = _largest_multiplication
_largest_harmonic_near = _largest(nodals.harmonic_near)
_largest_gaussian_near = _largest(nodals.gaussian_near)
_largest_dog_near = _largest(nodals.dog_near)


@compiled()
def _far_sum(nodal, y, w, n_inputs, state):
    if nodal == MULTIPLICATION:
        _sum_multiplication(y, w, n_inputs, state)
    elif nodal == EXPONENTIAL:
        _sum_exponential(y, w, n_inputs, state)
    elif nodal == HARMONIC:
        _sum_harmonic(y, w, n_inputs, state)
    elif nodal == QUADRATIC:
        _sum_quadratic(y, w, n_inputs, state)
    elif nodal == GAUSSIAN:
        _sum_gaussian(y, w, n_inputs, state)
    elif nodal == DOG:
        _sum_dog(y, w, n_inputs, state)
    elif nodal == PYGOP_QUADRATIC:
        _sum_pygop_quadratic(y, w, n_inputs, state)
    else:
        _sum_pygop_dog(y, w, n_inputs, state)


@compiled()
def _near_sum(nodal, y, w, n_inputs, state):
    if nodal == EXPONENTIAL:
        _sum_exponential_near(y, w, n_inputs, state)
    elif nodal == HARMONIC:
        _sum_harmonic_near(y, w, n_inputs, state)
    elif nodal == GAUSSIAN:
        _sum_gaussian_near(y, w, n_inputs, state)
    else:
        _sum_dog_near(y, w, n_inputs, state)


@compiled()
def _far_pairs(nodal, y, w, n_inputs, state):
    if nodal == MULTIPLICATION:
        _pairs_multiplication(y, w, n_inputs, state)
    elif nodal == EXPONENTIAL:
        _pairs_exponential(y, w, n_inputs, state)
    elif nodal == HARMONIC:
        _pairs_harmonic(y, w, n_inputs, state)
    elif nodal == QUADRATIC:
        _pairs_quadratic(y, w, n_inputs, state)
    elif nodal == GAUSSIAN:
        _pairs_gaussian(y, w, n_inputs, state)
    elif nodal == DOG:
        _pairs_dog(y, w, n_inputs, state)
    elif nodal == PYGOP_QUADRATIC:
        _pairs_pygop_quadratic(y, w, n_inputs, state)
    else:
        _pairs_pygop_dog(y, w, n_inputs, state)


@compiled()
def _near_pairs(nodal, y, w, n_inputs, state):
    if nodal == EXPONENTIAL:
        _pairs_exponential_near(y, w, n_inputs, state)
    elif nodal == HARMONIC:
        _pairs_harmonic_near(y, w, n_inputs, state)
    elif nodal == GAUSSIAN:
        _pairs_gaussian_near(y, w, n_inputs, state)
    else:
        _pairs_dog_near(y, w, n_inputs, state)


@compiled()
def _far_triples(nodal, y, w, n_inputs, state):
    if nodal == MULTIPLICATION:
        _triples_multiplication(y, w, n_inputs, state)
    elif nodal == EXPONENTIAL:
        _triples_exponential(y, w, n_inputs, state)
    elif nodal == HARMONIC:
        _triples_harmonic(y, w, n_inputs, state)
    elif nodal == QUADRATIC:
        _triples_quadratic(y, w, n_inputs, state)
    elif nodal == GAUSSIAN:
        _triples_gaussian(y, w, n_inputs, state)
    elif nodal == DOG:
        _triples_dog(y, w, n_inputs, state)
    elif nodal == PYGOP_QUADRATIC:
        _triples_pygop_quadratic(y, w, n_inputs, state)
    else:
        _triples_pygop_dog(y, w, n_inputs, state)


@compiled()
def _near_triples(nodal, y, w, n_inputs, state):
    if nodal == EXPONENTIAL:
        _triples_exponential_near(y, w, n_inputs, state)
    elif nodal == HARMONIC:
        _triples_harmonic_near(y, w, n_inputs, state)
    elif nodal == GAUSSIAN:
        _triples_gaussian_near(y, w, n_inputs, state)
    else:
        _triples_dog_near(y, w, n_inputs, state)


@compiled()
def _all(nodal, y, w, n_inputs, state):
    if nodal == MULTIPLICATION:
        _all_multiplication(y, w, n_inputs, state)
    elif nodal == EXPONENTIAL:
        _all_exponential(y, w, n_inputs, state)
    elif nodal == HARMONIC:
        _all_harmonic(y, w, n_inputs, state)
    elif nodal == QUADRATIC:
        _all_quadratic(y, w, n_inputs, state)
    elif nodal == GAUSSIAN:
        _all_gaussian(y, w, n_inputs, state)
    elif nodal == DOG:
        _all_dog(y, w, n_inputs, state)
    elif nodal == PYGOP_QUADRATIC:
        _all_pygop_quadratic(y, w, n_inputs, state)
    else:
        _all_pygop_dog(y, w, n_inputs, state)


@compiled()
def _far_largest(nodal, y, w, n_inputs, state, where):
    if nodal == MULTIPLICATION:
        _largest_multiplication(y, w, n_inputs, state, where)
    elif nodal == EXPONENTIAL:
        _largest_exponential(y, w, n_inputs, state, where)
    elif nodal == HARMONIC:
        _largest_harmonic(y, w, n_inputs, state, where)
    elif nodal == QUADRATIC:
        _largest_quadratic(y, w, n_inputs, state, where)
    elif nodal == GAUSSIAN:
        _largest_gaussian(y, w, n_inputs, state, where)
    elif nodal == DOG:
        _largest_dog(y, w, n_inputs, state, where)
    elif nodal == PYGOP_QUADRATIC:
        _largest_pygop_quadratic(y, w, n_inputs, state, where)
    else:
        _largest_pygop_dog(y, w, n_inputs, state, where)


@compiled()
def _near_largest(nodal, y, w, n_inputs, state, where):
    if nodal == EXPONENTIAL:
        _largest_exponential_near(y, w, n_inputs, state, where)
    elif nodal == HARMONIC:
        _largest_harmonic_near(y, w, n_inputs, state, where)
    elif nodal == GAUSSIAN:
        _largest_gaussian_near(y, w, n_inputs, state, where)
    else:
        _largest_dog_near(y, w, n_inputs, state, where)


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
