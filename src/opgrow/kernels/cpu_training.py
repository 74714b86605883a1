"""One epoch of back-propagation for blocks of any operators, compiled as a single loop.

A training step of a small block is dominated by Python and autograd overhead, so the whole epoch (gather,
forward, batch norm, dropout, head, loss, backward, Adam, constraints) is one compiled function. All
parameters live in one flat vector; ``plan`` says where each block's are and which operators it has:

    nodal, pool, activation, n_inputs, n_neurons, offset, layer, first row of its features in the layer

A block's parameters are stored as weight (D, d), bias, scale, shift (d each); after the last block come
the head's weight (features, outputs) and bias. The head sees the frozen features first, then the last
layer's; it is linear, or a layer of neurons with operators of its own. Inside a step, matrices have features
as rows and samples, padded to whole tiles, as columns.

Functions that call large ones are inlined: numba optimises everything below a function anew for each one.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np

from .cpu_activation import activate, activation_backward
from .cpu_batch import pool_backward, pool_forward
from .cpu_math import ONE, REORDER, TWO, ZERO, compiled, exp
from .cpu_pools import TILE

MEAN_SQUARED_ERROR, CROSS_ENTROPY = range(2)
NODAL, POOL, ACTIVATION, N_INPUTS, N_NEURONS, OFFSET, LAYER, ROW = range(8)
#: Added to variances, here and in every batch norm of a network.
EPSILON = np.float32(1e-8)
_BETA1 = np.float32(0.9)
_BETA2 = np.float32(0.999)
#: As in Keras, which the public implementation of the paper used.
_ADAM_EPSILON = np.float32(1e-7)


@compiled()
def next_random(state):
    """xorshift64*: advance state[0] and return a uniform float32 in [0, 1)."""
    s = state[0]
    s ^= s >> np.uint64(12)
    s ^= s << np.uint64(25)
    s ^= s >> np.uint64(27)
    state[0] = s
    return np.float32((s * np.uint64(2685821657736338717)) >> np.uint64(40)) * np.float32(2.0**-24)


@compiled()
def gather_rows(source, rows, stride, drop, random, out):
    """Columns of ``out`` (features * stride) = the given rows of ``source``, with dropout, padded by 0."""
    n_features = source.shape[1]
    keep_scale = ONE / (ONE - drop)
    for r in range(rows.size):
        row = rows[r]
        for k in range(n_features):
            out[k * stride + r] = source[row, k]
    for k in range(n_features):
        if drop > ZERO:
            for r in range(rows.size):
                out[k * stride + r] *= ZERO if next_random(random) < drop else keep_scale
        for r in range(rows.size, stride):
            out[k * stride + r] = ZERO


@compiled(fastmath=REORDER)
def _mean(values, at, n):
    total = ZERO
    for r in range(n):
        total += values[at + r]
    return total / np.float32(n)


@compiled(fastmath=REORDER)
def _mean_square(values, at, n, centre):
    total = ZERO
    for r in range(n):
        total += (values[at + r] - centre) * (values[at + r] - centre)
    return total / np.float32(n)


@compiled(fastmath=REORDER)
def _inner(a, b, at, n):
    total = ZERO
    for r in range(n):
        total += a[at + r] * b[at + r]
    return total


@compiled()
def add_rows(values, stride, shifts):
    """Add shifts[i] to row i of flat values."""
    for i in range(shifts.size):
        shift = shifts[i]
        for r in range(stride):
            values[i * stride + r] += shift


@compiled(inline="always")
def _block_forward(block, inputs, stride, n_rows, theta, pre, raw, normal, out, where, mean, variance):
    """Features of one block for a batch, normalised with the batch's own statistics.

    All arrays from ``pre`` on are the block's part of the layer.
    """
    n_in, d = block[N_INPUTS], block[N_NEURONS]
    at = block[OFFSET]
    weight = theta[at : at + n_in * d].reshape((n_in, d))
    bias, scale, shift = at + n_in * d, at + n_in * d + d, at + n_in * d + 2 * d
    pool_forward(block[NODAL], block[POOL], inputs, stride, n_rows, weight, pre, where)
    add_rows(pre, stride, theta[bias : bias + d])
    activate(block[ACTIVATION], pre, raw)
    for i in range(d):
        row = i * stride
        mean[i] = _mean(raw, row, n_rows)
        variance[i] = _mean_square(raw, row, n_rows, mean[i])
        centre, factor = mean[i], ONE / np.sqrt(variance[i] + EPSILON)
        g, h = theta[scale + i], theta[shift + i]
        for r in range(n_rows):
            x = (raw[row + r] - centre) * factor
            normal[row + r] = x
            out[row + r] = g * x + h
        for r in range(n_rows, stride):
            out[row + r] = ZERO


@compiled(inline="always")
def _block_backward(
    block, inputs, stride, n_rows, theta, pre, normal, grad, where, variance, grad_theta, grad_inputs
):
    """Turn the gradient by a block's outputs into those by its parameters and inputs."""
    n_in, d = block[N_INPUTS], block[N_NEURONS]
    at = block[OFFSET]
    weight = theta[at : at + n_in * d].reshape((n_in, d))
    grad_weight = grad_theta[at : at + n_in * d].reshape((n_in, d))
    bias, scale, shift = at + n_in * d, at + n_in * d + d, at + n_in * d + 2 * d
    count = np.float32(n_rows)
    for i in range(d):
        row = i * stride
        total = _mean(grad, row, n_rows) * count
        along = _inner(grad, normal, row, n_rows)
        grad_theta[shift + i] += total
        grad_theta[scale + i] += along
        factor = theta[scale + i] / np.sqrt(variance[i] + EPSILON)
        for r in range(n_rows):
            grad[row + r] = factor * (grad[row + r] - (total + normal[row + r] * along) / count)
        for r in range(n_rows, stride):
            grad[row + r] = ZERO
    activation_backward(block[ACTIVATION], pre, grad)
    for i in range(d):
        grad_theta[bias + i] += _mean(grad, i * stride, n_rows) * count
    nodal, pool = block[NODAL], block[POOL]
    pool_backward(nodal, pool, inputs, stride, n_rows, weight, where, grad, grad_weight, grad_inputs)


@compiled()
def batch_loss(kind, outputs, target, row_weight, rows, stride, count):
    """Weighted loss of a batch's rows over ``count``; ``outputs`` (outputs * stride) becomes its gradient."""
    n_outputs = target.shape[1]
    total = 0.0
    for r in range(rows.size):
        weight = row_weight[rows[r]] / count
        if kind == MEAN_SQUARED_ERROR:
            for c in range(n_outputs):
                error = outputs[c * stride + r] - target[rows[r], c]
                outputs[c * stride + r] = TWO * error * weight / np.float32(n_outputs)
                total += weight * error * error / np.float32(n_outputs)
        else:
            largest = outputs[r]
            for c in range(1, n_outputs):
                largest = max(largest, outputs[c * stride + r])
            norm = ZERO
            for c in range(n_outputs):
                norm += exp(outputs[c * stride + r] - largest)
            log_norm = np.log(norm) + largest
            for c in range(n_outputs):
                t = target[rows[r], c]
                total += weight * t * (log_norm - outputs[c * stride + r])
                outputs[c * stride + r] = weight * (exp(outputs[c * stride + r] - largest) / norm - t)
    for c in range(n_outputs):
        for r in range(rows.size, stride):
            outputs[c * stride + r] = ZERO
    return total


@compiled()
def adam(theta, grad, first, second, decay, rate, step):
    """One step of Adam, written as torch.optim.Adam computes it."""
    size = np.float32(rate / (1.0 - 0.9**step))
    root = np.float32(np.sqrt(1.0 - 0.999**step))
    for j in range(theta.size):
        g = grad[j] + decay[j] * theta[j]
        first[j] = first[j] + (ONE - _BETA1) * (g - first[j])
        second[j] = second[j] * _BETA2 + (ONE - _BETA2) * g * g
        theta[j] -= size * first[j] / (np.sqrt(second[j]) / root + _ADAM_EPSILON)


@compiled()
def limit_norms(plan, theta, max_norm):
    for b in range(plan.shape[0]):
        n_in, d, at = plan[b, N_INPUTS], plan[b, N_NEURONS], plan[b, OFFSET]
        for i in range(d):
            total = ZERO
            for k in range(n_in):
                total += theta[at + k * d + i] * theta[at + k * d + i]
            norm = np.sqrt(total)
            if norm > max_norm:
                for k in range(n_in):
                    theta[at + k * d + i] *= max_norm / norm


@compiled(fastmath=REORDER)
def all_finite(values):
    total = ZERO
    for j in range(values.size):
        total += values[j] * ZERO
    return total == ZERO


@compiled(inline="always")
def head_forward(head, features, stride, n_rows, weight, bias, pre, outputs, where):
    """Outputs (C * stride) of a linear head (``head[NODAL]`` < 0) or of a layer of neurons."""
    n_features, n_outputs = weight.shape
    if head[NODAL] < 0:
        matrix = features.reshape((n_features, stride))
        np.dot(weight.T, matrix, outputs.reshape((n_outputs, stride)))
        add_rows(outputs, stride, bias)
    else:
        pool_forward(head[NODAL], head[POOL], features, stride, n_rows, weight, pre, where)
        add_rows(pre, stride, bias)
        activate(head[ACTIVATION], pre, outputs)


@compiled(inline="always")
def _head_backward(
    head, features, stride, n_rows, weight, pre, where, grad, grad_weight, grad_bias, grad_features
):
    """Gradients of the head by its parameters and inputs; ``grad`` (C * stride) is that by its outputs."""
    n_features, n_outputs = weight.shape
    grad_features[:] = ZERO
    if head[NODAL] < 0:
        by_outputs = grad.reshape((n_outputs, stride))
        np.dot(features.reshape((n_features, stride)), by_outputs.T, grad_weight)
        np.dot(weight, by_outputs, grad_features.reshape((n_features, stride)))
    else:
        activation_backward(head[ACTIVATION], pre, grad)
        pool_backward(
            head[NODAL], head[POOL], features, stride, n_rows, weight, where, grad, grad_weight, grad_features
        )
    for c in range(n_outputs):
        grad_bias[c] = _mean(grad, c * stride, n_rows) * np.float32(n_rows)


@compiled()
def train_epoch(
    x,
    frozen,
    target,
    row_weight,
    order,
    bounds,
    plan,
    widths,
    head,
    theta,
    first,
    second,
    decay,
    step,
    rate,
    loss,
    dropout,
    input_dropout,
    max_norm,
    seed,
    moments,
):
    """Train for one epoch, in place.

    Parameters
    ----------
    x, frozen, target : (N, D), (N, F) and (N, outputs) float32
    row_weight : (N,) float32 with mean 1
    order : (N,) int64, the shuffled rows; batch b is ``order[bounds[b]:bounds[b + 1]]``
    plan : (blocks, 8) int64; widths : (layers,) int64, features of each layer
    head : (3,) int64, operators of the head, or -1 for a linear one
    theta, first, second, decay : (parameters,) float32; Adam's moments and the decay of each parameter
    step : int, steps taken before this epoch; rate : learning rate
    loss : int; dropout, input_dropout, max_norm : float32 (0: off); seed : uint64, not 0
    moments : (2, neurons) float32, becomes the mean and variance of all features over the epoch's batches

    Returns
    -------
    mean loss over the epoch's batches, steps taken so far, batches skipped for non-finite gradients
    """
    n_layers = widths.size
    n_outputs = target.shape[1]
    n_frozen = frozen.shape[1]
    n_features = n_frozen + widths[n_layers - 1]
    total_width = widths.sum()
    largest = 0
    for b in range(bounds.size - 1):
        largest = max(largest, bounds[b + 1] - bounds[b])
    stride = (largest + TILE - 1) // TILE * TILE

    layer_row = np.zeros(n_layers + 1, np.int64)
    for layer in range(n_layers):
        layer_row[layer + 1] = layer_row[layer] + widths[layer]
    inputs = np.empty(x.shape[1] * stride, np.float32)
    pre, raw = np.empty(total_width * stride, np.float32), np.empty(total_width * stride, np.float32)
    out, grad = np.empty(total_width * stride, np.float32), np.empty(total_width * stride, np.float32)
    normal = np.zeros(total_width * stride, np.float32)
    where = np.empty(total_width * stride, np.int32)
    keep = np.empty(total_width * stride if dropout > ZERO else 0, np.float32)
    mean, variance = np.empty(total_width, np.float32), np.empty(total_width, np.float32)
    features = np.empty(n_features * stride, np.float32)
    grad_features = np.empty(n_features * stride, np.float32)
    head_pre, outputs = np.empty(n_outputs * stride, np.float32), np.empty(n_outputs * stride, np.float32)
    head_where = np.empty(n_outputs * stride, np.int32)
    grad_theta = np.empty(theta.size, np.float32)
    sums = np.zeros((3, total_width), np.float64)
    nothing = np.empty(0, np.float32)
    random = np.empty(1, np.uint64)
    random[0] = seed

    head_at = theta.size - n_features * n_outputs - n_outputs
    head_end = head_at + n_features * n_outputs
    head_weight = theta[head_at:head_end].reshape((n_features, n_outputs))
    grad_head = grad_theta[head_at:head_end].reshape((n_features, n_outputs))
    last = layer_row[n_layers - 1] * stride
    end = total_width * stride
    keep_scale = ONE / (ONE - dropout)
    epoch_loss = 0.0
    skipped = 0

    for batch in range(bounds.size - 1):
        rows = order[bounds[batch] : bounds[batch + 1]]
        n_rows = rows.size
        gather_rows(x, rows, stride, input_dropout, random, inputs)
        gather_rows(frozen, rows, stride, dropout, random, features)
        for b in range(plan.shape[0]):
            layer = plan[b, LAYER]
            start = layer_row[layer] + plan[b, ROW]
            stop = start + plan[b, N_NEURONS]
            here, after = start * stride, stop * stride
            if layer == 0:
                source = inputs
            else:
                source = out[layer_row[layer - 1] * stride : layer_row[layer] * stride]
            _block_forward(
                plan[b],
                source,
                stride,
                n_rows,
                theta,
                pre[here:after],
                raw[here:after],
                normal[here:after],
                out[here:after],
                where[here:after],
                mean[start:stop],
                variance[start:stop],
            )
            if dropout > ZERO:
                for j in range(here, after):
                    keep[j] = ZERO if next_random(random) < dropout else keep_scale
                    out[j] *= keep[j]
        for j in range(total_width):
            sums[0, j] += mean[j]
            sums[1, j] += np.float64(mean[j]) * mean[j]
            sums[2, j] += variance[j]
        features[n_frozen * stride :] = out[last:end]
        head_forward(
            head, features, stride, n_rows, head_weight, theta[head_end:], head_pre, outputs, head_where
        )
        epoch_loss += batch_loss(loss, outputs, target, row_weight, rows, stride, np.float32(rows.size))

        grad_theta[:] = ZERO
        _head_backward(
            head,
            features,
            stride,
            n_rows,
            head_weight,
            head_pre,
            head_where,
            outputs,
            grad_head,
            grad_theta[head_end:],
            grad_features,
        )
        grad[:last] = ZERO
        grad[last:end] = grad_features[n_frozen * stride :]
        for b in range(plan.shape[0] - 1, -1, -1):
            layer = plan[b, LAYER]
            start = layer_row[layer] + plan[b, ROW]
            stop = start + plan[b, N_NEURONS]
            here, after = start * stride, stop * stride
            if dropout > ZERO:
                for j in range(here, after):
                    grad[j] *= keep[j]
            if layer == 0:
                source = inputs
                back = nothing
            else:
                source = out[layer_row[layer - 1] * stride : layer_row[layer] * stride]
                back = grad[layer_row[layer - 1] * stride : layer_row[layer] * stride]
            _block_backward(
                plan[b],
                source,
                stride,
                n_rows,
                theta,
                pre[here:after],
                normal[here:after],
                grad[here:after],
                where[here:after],
                variance[start:stop],
                grad_theta,
                back,
            )
        if not all_finite(grad_theta):
            skipped += 1
            continue
        step += 1
        adam(theta, grad_theta, first, second, decay, rate, step)
        if max_norm > ZERO:
            limit_norms(plan, theta, max_norm)
    # Over all rows, a variance is the mean of the batches' variances plus the variance of their means.
    n_batches = bounds.size - 1
    for j in range(total_width):
        centre = sums[0, j] / n_batches
        moments[0, j] = centre
        moments[1, j] = max(sums[1, j] / n_batches - centre * centre, 0.0) + sums[2, j] / n_batches
    return epoch_loss / n_batches, step, skipped
