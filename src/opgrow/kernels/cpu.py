"""CPU kernels: pooled nodal operators and their gradients, compiled by numba.

Rows run in the inner, vectorised dimension. A tile of ``TILE`` rows is transposed once, so that every
inner loop has a constant trip count over contiguous memory, and the running pools of one neuron stay in
registers over four inputs. The N x D x d tensor of the formulas never exists.

Every function is single-threaded and releases the GIL; callers spread rows or candidates over threads.
Operators are chosen by their integer codes, outside of the inner loops.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .cpu_math import (
    CLAMP,
    FOUR,
    INV_PI,
    LOG2E,
    ONE,
    REORDER,
    TWO,
    ZERO,
    bounded_exp2,
    bounded_exp2m1,
    clamp,
    compiled,
    exp,
    expm1,
    sigmoid,
    sin_cos_pi,
    sin_pi,
    softplus_negative,
    tanh,
)

#: Rows of a tile; a multiple of every vector width.
TILE = 32
_LOWEST = np.float32(-3.4028235e38)

MULTIPLICATION, EXPONENTIAL, HARMONIC, QUADRATIC, GAUSSIAN, DOG, PYGOP_QUADRATIC, PYGOP_DOG = range(8)
SUM, CORRELATION1, CORRELATION2, MAXIMUM = range(4)
SIGMOID, TANH, RELU, SOFTPLUS, INVERSE_ABSOLUTE, ELU, PYGOP_SOFTPLUS = range(7)


# --- the nodal operators: value, and value with the derivatives by weight and by input -------------


@compiled(inline="always")
def _multiplication(y, w):  # type: ignore[no-untyped-def]
    return w * y


@compiled(inline="always")
def _exponential(y, w):  # type: ignore[no-untyped-def]
    return bounded_exp2m1(w * LOG2E * y)


@compiled(inline="always")
def _harmonic(y, w):  # type: ignore[no-untyped-def]
    return sin_pi(w * INV_PI * y)


@compiled(inline="always")
def _quadratic(y, w):  # type: ignore[no-untyped-def]
    return w * (y * y)


@compiled(inline="always")
def _gaussian(y, w):  # type: ignore[no-untyped-def]
    return w * bounded_exp2(-w * LOG2E * (y * y))


@compiled(inline="always")
def _dog(y, w):  # type: ignore[no-untyped-def]
    return w * y * bounded_exp2(-w * LOG2E * (y * y))


@compiled(inline="always")
def _pygop_quadratic(y, w):  # type: ignore[no-untyped-def]
    z = w * clamp(y, -CLAMP, CLAMP)
    return z * z


@compiled(inline="always")
def _pygop_dog(y, w):  # type: ignore[no-untyped-def]
    c = clamp(y, -CLAMP, CLAMP)
    return w * y * bounded_exp2(-w * LOG2E * (c * c))


@compiled(inline="always")
def _inside(x):  # type: ignore[no-untyped-def]
    """1 where clamping leaves x alone and passes its gradient, else 0."""
    return ONE if abs(x) <= CLAMP else ZERO


@compiled(inline="always")
def _multiplication_by_weight(y, w):  # type: ignore[no-untyped-def]
    return w * y, y


@compiled(inline="always")
def _multiplication_by_input(y, w):  # type: ignore[no-untyped-def]
    return w


@compiled(inline="always")
def _exponential_by_weight(y, w):  # type: ignore[no-untyped-def]
    z = bounded_exp2m1(w * LOG2E * y)
    return z, y * (z + ONE) * _inside(w * y)


@compiled(inline="always")
def _exponential_by_input(y, w):  # type: ignore[no-untyped-def]
    return w * bounded_exp2(w * LOG2E * y) * _inside(w * y)


@compiled(inline="always")
def _harmonic_by_weight(y, w):  # type: ignore[no-untyped-def]
    sine, cosine = sin_cos_pi(w * INV_PI * y)
    return sine, y * cosine


@compiled(inline="always")
def _harmonic_by_input(y, w):  # type: ignore[no-untyped-def]
    return w * sin_cos_pi(w * INV_PI * y)[1]


@compiled(inline="always")
def _quadratic_by_weight(y, w):  # type: ignore[no-untyped-def]
    return w * (y * y), y * y


@compiled(inline="always")
def _quadratic_by_input(y, w):  # type: ignore[no-untyped-def]
    return TWO * w * y


@compiled(inline="always")
def _gaussian_by_weight(y, w):  # type: ignore[no-untyped-def]
    a = w * (y * y)
    e = bounded_exp2(-a * LOG2E)
    return w * e, e * (ONE - a * _inside(a))


@compiled(inline="always")
def _gaussian_by_input(y, w):  # type: ignore[no-untyped-def]
    a = w * (y * y)
    return -TWO * w * w * y * bounded_exp2(-a * LOG2E) * _inside(a)


@compiled(inline="always")
def _dog_by_weight(y, w):  # type: ignore[no-untyped-def]
    a = w * (y * y)
    e = bounded_exp2(-a * LOG2E)
    return w * y * e, y * e * (ONE - a * _inside(a))


@compiled(inline="always")
def _dog_by_input(y, w):  # type: ignore[no-untyped-def]
    a = w * (y * y)
    return w * bounded_exp2(-a * LOG2E) * (ONE - TWO * a * _inside(a))


@compiled(inline="always")
def _pygop_quadratic_by_weight(y, w):  # type: ignore[no-untyped-def]
    c = clamp(y, -CLAMP, CLAMP)
    return w * c * w * c, TWO * w * c * c


@compiled(inline="always")
def _pygop_quadratic_by_input(y, w):  # type: ignore[no-untyped-def]
    return TWO * w * w * y * _inside(y)


@compiled(inline="always")
def _pygop_dog_by_weight(y, w):  # type: ignore[no-untyped-def]
    c = clamp(y, -CLAMP, CLAMP)
    a = w * (c * c)
    e = bounded_exp2(-a * LOG2E)
    return w * y * e, y * e * (ONE - a * _inside(a))


@compiled(inline="always")
def _pygop_dog_by_input(y, w):  # type: ignore[no-untyped-def]
    c = clamp(y, -CLAMP, CLAMP)
    a = w * (c * c)
    return w * bounded_exp2(-a * LOG2E) * (ONE - TWO * a * _inside(a) * _inside(y))


# --- forward: running pools over one tile of rows ---------------------------------------------------


def _tile_pools(psi: Any) -> Any:
    """Build the loop that computes all four pools of ``psi`` for one neuron and one tile of inputs.

    ``inputs`` holds input k of row r at ``k * stride + offset + r``. One array holds all running pools,
    at constant distances, so that LLVM sees they do not overlap; four inputs a turn keep them in
    registers.
    """

    @compiled(inline="always")
    def step(y, w, total, pair, triple, largest, before, product):  # type: ignore[no-untyped-def]
        z = psi(y, w)
        pair_term = before * z
        largest = z if z > largest else largest
        return total + z, pair + pair_term, triple + product * z, largest, z, pair_term

    @compiled()
    def pools(inputs, stride, offset, weight, neuron, state):  # type: ignore[no-untyped-def]
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


_pools_multiplication = _tile_pools(_multiplication)
_pools_exponential = _tile_pools(_exponential)
_pools_harmonic = _tile_pools(_harmonic)
_pools_quadratic = _tile_pools(_quadratic)
_pools_gaussian = _tile_pools(_gaussian)
_pools_dog = _tile_pools(_dog)
_pools_pygop_quadratic = _tile_pools(_pygop_quadratic)
_pools_pygop_dog = _tile_pools(_pygop_dog)


@compiled()
def tile_pools(nodal, inputs, stride, offset, weight, neuron, state):  # type: ignore[no-untyped-def]
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
def _load_tile(x, start, rows, tile):  # type: ignore[no-untyped-def]
    """Transpose rows start .. start + rows of x (N, D) into tile (D * TILE), padded with zeros."""
    for r in range(rows):
        for k in range(x.shape[1]):
            tile[k * TILE + r] = x[start + r, k]
    for k in range(x.shape[1]):
        for r in range(rows, TILE):
            tile[k * TILE + r] = ZERO


@compiled()
def all_pools(nodal, x, weight, out):  # type: ignore[no-untyped-def]
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
def one_pool(nodal, pool, x, weight, out):  # type: ignore[no-untyped-def]
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


# --- backward ---------------------------------------------------------------------------------------
#
# For one neuron and tile, z and its derivatives are stored for all inputs, each (D * TILE), with the
# neuron's weights spread out to the same shape: long flat loops over contiguous memory.


def _derivatives(psi_by_weight: Any, psi_by_input: Any) -> Any:
    """Build the two loops that store z with its derivative by the weight, and that by the input.

    z is preceded and followed by two rows of zeros, so that the correlations need no special cases.
    """

    @compiled()
    def by_weight(y, w, z, derivative):  # type: ignore[no-untyped-def]
        for j in range(y.size):
            value, slope = psi_by_weight(y[j], w[j])
            z[j + 2 * TILE] = value
            derivative[j] = slope

    @compiled()
    def by_input(y, w, derivative):  # type: ignore[no-untyped-def]
        for j in range(y.size):
            derivative[j] = psi_by_input(y[j], w[j])

    return by_weight, by_input


_multiplication_weight, _multiplication_input = _derivatives(_multiplication_by_weight, _multiplication_by_input)
_exponential_weight, _exponential_input = _derivatives(_exponential_by_weight, _exponential_by_input)
_harmonic_weight, _harmonic_input = _derivatives(_harmonic_by_weight, _harmonic_by_input)
_quadratic_weight, _quadratic_input = _derivatives(_quadratic_by_weight, _quadratic_by_input)
_gaussian_weight, _gaussian_input = _derivatives(_gaussian_by_weight, _gaussian_by_input)
_dog_weight, _dog_input = _derivatives(_dog_by_weight, _dog_by_input)
_pygop_quadratic_weight, _pygop_quadratic_input = _derivatives(
    _pygop_quadratic_by_weight, _pygop_quadratic_by_input
)
_pygop_dog_weight, _pygop_dog_input = _derivatives(_pygop_dog_by_weight, _pygop_dog_by_input)


@compiled()
def _weight_derivatives(nodal, y, w, z, derivative):  # type: ignore[no-untyped-def]
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
def _input_derivatives(nodal, y, w, derivative):  # type: ignore[no-untyped-def]
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
def _pool_slope(pool, z, at):  # type: ignore[no-untyped-def]
    """d rho / d z at one place, for the sum and the correlations; z is padded by two rows."""
    if pool == SUM:
        return ONE
    before, after = z[at + TILE], z[at + 3 * TILE]
    if pool == CORRELATION1:
        return before + after
    return z[at] * before + before * after + after * z[at + 4 * TILE]


# The sums over rows may be reordered; nothing in here rounds by adding constants.
@compiled(fastmath=REORDER)
def _add_weight_gradient(pool, z, derivative, grad, grad_at, grad_weight, neuron):  # type: ignore[no-untyped-def]
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
def _add_input_gradient(pool, z, derivative, grad, grad_at, grad_inputs, stride, offset, n_inputs):  # type: ignore[no-untyped-def]
    for k in range(n_inputs):
        to = k * stride + offset
        for r in range(TILE):
            slope = _pool_slope(pool, z, k * TILE + r)
            grad_inputs[to + r] += grad[grad_at + r] * slope * derivative[k * TILE + r]


@compiled()
def _largest_inputs(z, n_inputs, largest, where):  # type: ignore[no-untyped-def]
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
def pools_backward(  # type: ignore[no-untyped-def]
    nodal, pool, inputs, stride, n_rows, weight, grad, grad_weight, grad_inputs
):
    """Add the gradients of pooled values to ``grad_weight`` (D, d) and ``grad_inputs`` (D * stride).

    ``inputs`` is (D * stride) with rows in the inner dimension, padded to whole tiles; ``grad`` is
    (d * stride) with zeros in the padding. An empty ``grad_inputs`` skips the gradient by the inputs.
    """
    n_inputs, n_neurons = weight.shape
    y = np.empty(n_inputs * TILE, np.float32)
    w = np.empty(n_inputs * TILE, np.float32)
    z = np.zeros((n_inputs + 4) * TILE, np.float32)
    derivative = np.empty(n_inputs * TILE, np.float32)
    largest = np.empty(TILE, np.float32)
    where = np.empty(TILE, np.int32)
    for offset in range(0, n_rows, TILE):
        for k in range(n_inputs):
            for r in range(TILE):
                y[k * TILE + r] = inputs[k * stride + offset + r]
        for i in range(n_neurons):
            at = i * stride + offset
            for k in range(n_inputs):
                for r in range(TILE):
                    w[k * TILE + r] = weight[k, i]
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


# --- activations ------------------------------------------------------------------------------------


def _elementwise(function: Any) -> Any:
    @compiled()
    def apply(x, out):  # type: ignore[no-untyped-def]
        for j in range(x.size):
            out[j] = function(x[j])

    return apply


@compiled(inline="always")
def _relu(x):  # type: ignore[no-untyped-def]
    return x if x > ZERO else ZERO


@compiled(inline="always")
def _inverse_absolute(x):  # type: ignore[no-untyped-def]
    return x / (ONE + abs(x))


@compiled(inline="always")
def _elu(x):  # type: ignore[no-untyped-def]
    return x if x >= ZERO else expm1(x)


@compiled(inline="always")
def _pygop_softplus(x):  # type: ignore[no-untyped-def]
    return softplus_negative(clamp(x, -CLAMP, CLAMP))


_apply_sigmoid = _elementwise(sigmoid)
_apply_tanh = _elementwise(tanh)
_apply_relu = _elementwise(_relu)
_apply_softplus = _elementwise(softplus_negative)
_apply_inverse_absolute = _elementwise(_inverse_absolute)
_apply_elu = _elementwise(_elu)
_apply_pygop_softplus = _elementwise(_pygop_softplus)


@compiled()
def activate(activation, x, out):  # type: ignore[no-untyped-def]
    """out = f(x) for flat float32 arrays."""
    if activation == SIGMOID:
        _apply_sigmoid(x, out)
    elif activation == TANH:
        _apply_tanh(x, out)
    elif activation == RELU:
        _apply_relu(x, out)
    elif activation == SOFTPLUS:
        _apply_softplus(x, out)
    elif activation == INVERSE_ABSOLUTE:
        _apply_inverse_absolute(x, out)
    elif activation == ELU:
        _apply_elu(x, out)
    else:
        _apply_pygop_softplus(x, out)


# Slopes are computed without 1 - y, which loses all digits where an activation saturates.


@compiled(inline="always")
def _sigmoid_slope(x):  # type: ignore[no-untyped-def]
    return sigmoid(x) * sigmoid(-x)


@compiled(inline="always")
def _tanh_slope(x):  # type: ignore[no-untyped-def]
    return FOUR * sigmoid(TWO * x) * sigmoid(-TWO * x)


@compiled(inline="always")
def _relu_slope(x):  # type: ignore[no-untyped-def]
    return ONE if x > ZERO else ZERO


@compiled(inline="always")
def _softplus_slope(x):  # type: ignore[no-untyped-def]
    return -sigmoid(-x)


@compiled(inline="always")
def _inverse_absolute_slope(x):  # type: ignore[no-untyped-def]
    return ONE / ((ONE + abs(x)) * (ONE + abs(x)))


@compiled(inline="always")
def _elu_slope(x):  # type: ignore[no-untyped-def]
    return ONE if x >= ZERO else exp(x)


@compiled(inline="always")
def _pygop_softplus_slope(x):  # type: ignore[no-untyped-def]
    return -sigmoid(-x) * _inside(x)


def _elementwise_backward(slope: Any) -> Any:
    @compiled()
    def apply(x, grad):  # type: ignore[no-untyped-def]
        for j in range(x.size):
            grad[j] *= slope(x[j])

    return apply


_back_sigmoid = _elementwise_backward(_sigmoid_slope)
_back_tanh = _elementwise_backward(_tanh_slope)
_back_relu = _elementwise_backward(_relu_slope)
_back_softplus = _elementwise_backward(_softplus_slope)
_back_inverse_absolute = _elementwise_backward(_inverse_absolute_slope)
_back_elu = _elementwise_backward(_elu_slope)
_back_pygop_softplus = _elementwise_backward(_pygop_softplus_slope)


@compiled()
def activation_backward(activation, x, grad):  # type: ignore[no-untyped-def]
    """Multiply ``grad`` by f'(x); flat arrays."""
    if activation == SIGMOID:
        _back_sigmoid(x, grad)
    elif activation == TANH:
        _back_tanh(x, grad)
    elif activation == RELU:
        _back_relu(x, grad)
    elif activation == SOFTPLUS:
        _back_softplus(x, grad)
    elif activation == INVERSE_ABSOLUTE:
        _back_inverse_absolute(x, grad)
    elif activation == ELU:
        _back_elu(x, grad)
    else:
        _back_pygop_softplus(x, grad)
