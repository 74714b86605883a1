"""Steps of back-propagation for the rows of a batch that one process holds.

`cpu_training` runs an epoch as one loop. When a batch is divided among processes, statistics and gradients
are added up between the pieces below, which `opgrow.distributed` calls in turn. Matrices are as in
`cpu_training`: features are rows, and samples, padded to whole tiles (``stride``), are columns.

Whatever is random about a row follows from its number among all rows, so it does not matter who holds it.
Sums over rows are in double precision, and padding may stand between the rows (``gaps`` are its columns), so
that the tiles do not depend on it either.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np

from .cpu_math import ONE, REORDER, ZERO, compiled
from .cpu_nodal import QUADRATIC
from .cpu_products import add_spread, neighbours
from .cpu_training import EPSILON, adam, add_rows, all_finite, batch_loss, limit_norms

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


@compiled()
def _mixed(z):
    """The output function of splitmix64: all bits of the result depend on all bits of ``z``."""
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


@compiled()
def draw_batches(numbers, seed, n_batches, out):
    """A random batch, from 0, for each row by its number among all rows."""
    for i in range(numbers.size):
        key = _mixed(np.uint64(numbers[i]) * _GOLDEN + seed) >> np.uint64(32)
        out[i] = np.int64((key * np.uint64(n_batches)) >> np.uint64(32))


@compiled()
def seed_rows(numbers, seed, states):
    """Start the random numbers of each row."""
    for r in range(numbers.size):
        states[r] = _mixed(_mixed(np.uint64(numbers[r]) * _GOLDEN + seed) + seed) | np.uint64(1)


@compiled()
def digest_rows(words, first, total):
    """Add to ``total`` (1,), wrapping, a number for each row (n, words) and its place: ``first`` and on."""
    for r in range(words.shape[0]):
        state = _mixed(np.uint64(first + r) * _GOLDEN)
        for j in range(words.shape[1]):
            state = (state ^ words[r, j]) * _FIRST
            state ^= state >> np.uint64(29)
        total[0] += np.int64(_mixed(state))


@compiled()
def drop_out(values, n_features, stride, states, rate, keep):
    """Multiply features (features * stride) by ``keep``, drawn for each row from its own random numbers."""
    scale = ONE / (ONE - rate)
    for k in range(n_features):
        for r in range(states.size):
            s = states[r]
            s ^= s >> np.uint64(12)
            s ^= s << np.uint64(25)
            s ^= s >> np.uint64(27)
            states[r] = s
            chance = np.float32((s * np.uint64(2685821657736338717)) >> np.uint64(40)) * np.float32(2.0**-24)
            keep[k * stride + r] = ZERO if chance < rate else scale
            values[k * stride + r] *= keep[k * stride + r]


@compiled()
def blank(values, n_features, stride, gaps):
    """Set the columns of padding to 0."""
    for k in range(n_features):
        for c in range(gaps.size):
            values[k * stride + gaps[c]] = ZERO


@compiled(fastmath=REORDER)
def _total(values, at, n):
    total = 0.0
    for r in range(n):
        total += np.float64(values[at + r])
    return total


@compiled(fastmath=REORDER)
def _product_total(a, b, at, n):
    total = 0.0
    for r in range(n):
        total += np.float64(a[at + r]) * np.float64(b[at + r])
    return total


@compiled()
def feature_sums(values, beside, stride, sums):
    """Column i of ``sums`` (2, features): the totals of feature i and of its products with ``beside``."""
    for i in range(sums.shape[1]):
        sums[0, i] = _total(values, i * stride, stride)
        sums[1, i] = _product_total(values, beside, i * stride, stride)


@compiled()
def normalise(raw, stride, gaps, mean, variance, scale, shift, normal, out):
    """Batch-normalised features with statistics of the whole batch."""
    for i in range(mean.size):
        row = i * stride
        centre, factor = mean[i], ONE / np.sqrt(variance[i] + EPSILON)
        for r in range(stride):
            x = (raw[row + r] - centre) * factor
            normal[row + r] = x
            out[row + r] = scale[i] * x + shift[i]
    blank(normal, mean.size, stride, gaps)
    blank(out, mean.size, stride, gaps)


@compiled()
def norm_backward(grad, normal, stride, gaps, count, sums, variance, scale):
    """Gradient by a block's raw features, from that by its outputs and the sums of the whole batch."""
    for i in range(variance.size):
        row = i * stride
        total, along = np.float32(sums[0, i] / count), np.float32(sums[1, i] / count)
        factor = scale[i] / np.sqrt(variance[i] + EPSILON)
        for r in range(stride):
            grad[row + r] = factor * (grad[row + r] - (total + normal[row + r] * along))
    blank(grad, variance.size, stride, gaps)


@compiled()
def add_totals(values, stride, out):
    """Add the total of each feature over the rows to ``out``."""
    for i in range(out.size):
        out[i] += _total(values, i * stride, stride)


@compiled()
def product_gradient(nodal, pool, inputs, weight, grad, out):
    """Add the gradient of a matrix product by its weights (D, d): `cpu_products` in double precision."""
    if inputs.shape[0] <= pool:
        return
    v = inputs * inputs if nodal == QUADRATIC else inputs
    products = np.dot(neighbours(v, pool).astype(np.float64), grad.astype(np.float64).T)
    add_spread(pool, products, weight, out)


@compiled()
def linear_head(
    features,
    stride,
    target,
    row_weight,
    rows,
    count,
    loss,
    weight,
    bias,
    outputs,
    by_weight,
    by_bias,
    by_features,
):
    """Loss of the rows over ``count``, all rows of the batch, and its gradients by head and features.

    The last of ``row_weight`` is 0: it is that of padding, whose rows are -1.
    """
    n_features, n_outputs = weight.shape
    matrix, predicted = features.reshape((n_features, stride)), outputs.reshape((n_outputs, stride))
    np.dot(weight.T, matrix, predicted)
    add_rows(outputs, stride, bias)
    total = batch_loss(loss, outputs, target, row_weight, rows, stride, count)
    np.dot(matrix.astype(np.float64), predicted.astype(np.float64).T, by_weight)
    np.dot(weight, predicted, by_features.reshape((n_features, stride)))
    add_totals(outputs, stride, by_bias)
    return total


@compiled()
def update(plan, theta, grad, first, second, decay, rate, step, max_norm):
    """One step of Adam, unless the gradient is not finite; whether it was taken."""
    if not all_finite(grad):
        return False
    adam(theta, grad, first, second, decay, rate, step)
    if max_norm > ZERO:
        limit_norms(plan, theta, max_norm)
    return True
