"""The whole training of one candidate of POP's search, compiled: epochs, scores, and the best state.

A candidate is one hidden block with a head; hundreds of them, of equal shape, are spread over threads, and
none of them returns to Python before it is done. Two things differ from the tuning of a single block, both
for speed: with validation rows, scores are taken with the statistics that the epoch's batches had, so that
no training row is looked at twice; without, scores are taken every few epochs only.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import numpy as np

from .cpu_activation import activate
from .cpu_batch import pool_forward
from .cpu_math import ZERO, compiled
from .cpu_pools import TILE
from .cpu_training import (
    ACTIVATION,
    CROSS_ENTROPY,
    EPSILON,
    N_INPUTS,
    N_NEURONS,
    NODAL,
    POOL,
    add_rows,
    head_forward,
    next_random,
    train_epoch,
)

ACCURACY, BRIER, LOSS = range(3)
#: Rows that are evaluated at once; whole tiles.
_ROWS = 4 * TILE
#: Epochs between two scores on training rows.
EVERY = 5


@compiled()
def shuffle(order, seed):
    """A permutation of 0 .. n - 1, the same for the same seed."""
    state = np.empty(1, np.uint64)
    state[0] = seed
    for i in range(order.size):
        order[i] = i
    for i in range(order.size - 1, 0, -1):
        # 24 bits are enough to choose among rows once; beyond, two draws are put together.
        j = np.int64(np.float64(next_random(state)) * 16777216.0) * 16777216
        j += np.int64(np.float64(next_random(state)) * 16777216.0)
        j %= i + 1
        order[i], order[j] = order[j], order[i]


@compiled(inline="always")
def _raw_features(x, start, n_rows, block, theta, inputs, raw, where):
    """Features before the batch norm for some rows, feature-major."""
    n_in, d = block[N_INPUTS], block[N_NEURONS]
    inputs[:] = ZERO
    for r in range(n_rows):
        for k in range(n_in):
            inputs[k * _ROWS + r] = x[start + r, k]
    weight = theta[: n_in * d].reshape((n_in, d))
    stride = np.int64(_ROWS)  # not a literal, for which numba would compile everything below once more
    pool_forward(block[NODAL], block[POOL], inputs, stride, n_rows, weight, raw, where)
    add_rows(raw, stride, theta[n_in * d : n_in * d + d])
    activate(block[ACTIVATION], raw, raw)


@compiled()
def feature_moments(x, row_weight, block, theta, moments):
    """Weighted mean and variance of the features over all rows, into ``moments`` (2, d)."""
    d = block[N_NEURONS]
    inputs, raw = np.empty(block[N_INPUTS] * _ROWS, np.float32), np.empty(d * _ROWS, np.float32)
    where = np.empty(d * _ROWS, np.int32)
    sums = np.zeros((2, d), np.float64)
    total = 0.0
    for start in range(0, x.shape[0], _ROWS):
        n_rows = min(_ROWS, x.shape[0] - start)
        _raw_features(x, start, n_rows, block, theta, inputs, raw, where)
        for r in range(n_rows):
            total += row_weight[start + r]
        for i in range(d):
            for r in range(n_rows):
                value = np.float64(raw[i * _ROWS + r])
                sums[0, i] += row_weight[start + r] * value
                sums[1, i] += row_weight[start + r] * value * value
    for i in range(d):
        mean = sums[0, i] / total
        moments[0, i] = mean
        moments[1, i] = max(sums[1, i] / total - mean * mean, 0.0)


@compiled()
def candidate_outputs(x, frozen, block, head, theta, moments, outputs):
    """Outputs (N, C) with the given statistics of the features."""
    n_in, d = block[N_INPUTS], block[N_NEURONS]
    n_frozen, n_outputs = frozen.shape[1], outputs.shape[1]
    n_features = n_frozen + d
    inputs, raw = np.empty(n_in * _ROWS, np.float32), np.empty(d * _ROWS, np.float32)
    where = np.empty(d * _ROWS, np.int32)
    features = np.zeros(n_features * _ROWS, np.float32)
    pre, out = np.empty(n_outputs * _ROWS, np.float32), np.empty(n_outputs * _ROWS, np.float32)
    head_where = np.empty(n_outputs * _ROWS, np.int32)
    scale, shift, at = n_in * d + d, n_in * d + 2 * d, n_in * d + 3 * d
    end = at + n_features * n_outputs
    head_weight = theta[at:end].reshape((n_features, n_outputs))
    for start in range(0, x.shape[0], _ROWS):
        n_rows = min(_ROWS, x.shape[0] - start)
        _raw_features(x, start, n_rows, block, theta, inputs, raw, where)
        for r in range(n_rows):
            for k in range(n_frozen):
                features[k * _ROWS + r] = frozen[start + r, k]
        for i in range(d):
            factor = theta[scale + i] / np.sqrt(moments[1, i] + EPSILON)
            offset = theta[shift + i] - moments[0, i] * factor
            for r in range(_ROWS):
                features[(n_frozen + i) * _ROWS + r] = raw[i * _ROWS + r] * factor + offset
        stride = np.int64(_ROWS)
        head_forward(head, features, stride, n_rows, head_weight, theta[end:], pre, out, head_where)
        for c in range(n_outputs):
            for r in range(n_rows):
                outputs[start + r, c] = out[c * _ROWS + r]


@compiled()
def score_outputs(criterion, loss, outputs, target, row_weight):
    """The criterion and the mean loss, as `opgrow.scores.evaluate` has them."""
    n_outputs = outputs.shape[1]
    p = np.empty(n_outputs, np.float64)
    total, sum_loss, value = 0.0, 0.0, 0.0
    finite = True
    for r in range(outputs.shape[0]):
        weight = np.float64(row_weight[r])
        total += weight
        best, wanted = 0, 0
        for c in range(n_outputs):
            finite = finite and np.isfinite(outputs[r, c])
            best = c if outputs[r, c] > outputs[r, best] else best
            wanted = c if target[r, c] > target[r, wanted] else wanted
        row_loss, norm, largest = 0.0, 0.0, np.float64(outputs[r, best])
        if loss == CROSS_ENTROPY:
            for c in range(n_outputs):
                p[c] = np.exp(outputs[r, c] - largest)
                norm += p[c]
            for c in range(n_outputs):
                row_loss += target[r, c] * (np.log(norm) - (outputs[r, c] - largest))
        else:
            for c in range(n_outputs):
                error = np.float64(outputs[r, c]) - target[r, c]
                row_loss += error * error / n_outputs
                # As `opgrow.scores.probabilities`: shares of positive outputs or, without any, a softmax.
                output = np.float64(outputs[r, c])
                p[c] = max(output, 0.0) if largest > 0 else np.exp(output - largest)
                norm += p[c]
        sum_loss += weight * row_loss
        if criterion == ACCURACY:
            value += weight if best == wanted else 0.0
        elif criterion == BRIER:
            for c in range(n_outputs):
                error = p[c] / norm - target[r, c]
                value += weight * error * error
    if criterion == LOSS:
        value = sum_loss
    return value / total if finite else np.nan, sum_loss / total


@compiled()
def _better(criterion, value, loss, best_value, best_loss):
    """As `opgrow.scores.Score.better_than`."""
    if not (np.isfinite(value) and np.isfinite(loss)):
        return False
    if not (np.isfinite(best_value) and np.isfinite(best_loss)):
        return True
    if value != best_value:
        return (value > best_value) == (criterion == ACCURACY)
    return loss < best_loss


@compiled()
def train_candidate(
    x,
    frozen,
    target,
    row_weight,
    held_x,
    held_frozen,
    held_target,
    held_weight,
    bounds,
    plan,
    widths,
    head,
    theta,
    moments,
    current,
    first,
    second,
    counts,
    scores,
    draws,
    decay,
    rates,
    epochs,
    patience,
    loss,
    criterion,
    dropout,
    input_dropout,
    max_norm,
    most,
):
    """Train a candidate by its schedule for at most some epochs; whether the schedule is at its end.

    Parameters are as in `train_epoch`. ``held_...`` are the validation rows, possibly none; ``rates`` and
    ``epochs`` the schedule; ``patience`` epochs without a better score end a learning rate (0: never).

    What the training goes on from is read and written: ``theta`` and ``moments`` (2, d) of the best state,
    ``scores`` its criterion and loss, ``current`` the parameters as they are, ``draws`` (1,) the random
    numbers, and ``counts``: stage of the schedule (-1 before the first score), epochs there, those of them
    without a better score, epochs in all, the epoch of the best state (0 being the untouched start), steps,
    and batches skipped for non-finite gradients.
    """
    validates = held_x.shape[0] > 0
    block = plan[0]
    outputs = np.empty((held_x.shape[0] if validates else x.shape[0], target.shape[1]), np.float32)
    now = np.empty_like(moments)
    order = np.empty(x.shape[0], np.int64)
    stage, used, waited, done = counts[0], counts[1], counts[2], counts[3]
    best_epoch, step, skipped = counts[4], counts[5], counts[6]
    left = most
    while stage < rates.size:
        if stage >= 0 and (used >= epochs[stage] or (patience > 0 and waited >= patience)):
            stage += 1
            used = 0
            waited = 0
            continue
        if left == 0:
            break
        left -= 1
        if stage >= 0:
            next_random(draws)
            shuffle(order, draws[0])
            next_random(draws)
            _, step, skips = train_epoch(
                x,
                frozen,
                target,
                row_weight,
                order,
                bounds,
                plan,
                widths,
                head,
                current,
                first,
                second,
                decay,
                step,
                rates[stage],
                loss,
                dropout,
                input_dropout,
                max_norm,
                draws[0],
                now,
            )
            skipped += skips
            done += 1
            used += 1
            waited += 1
            last = used == epochs[stage] or waited == patience
            if not validates and not last and done % EVERY != 0:
                continue
        if stage < 0 or not validates:
            feature_moments(x, row_weight, block, current, now)
        if validates:
            candidate_outputs(held_x, held_frozen, block, head, current, now, outputs)
            value, mean_loss = score_outputs(criterion, loss, outputs, held_target, held_weight)
        else:
            candidate_outputs(x, frozen, block, head, current, now, outputs)
            value, mean_loss = score_outputs(criterion, loss, outputs, target, row_weight)
        if stage < 0 or _better(criterion, value, mean_loss, scores[0], scores[1]):
            scores[0], scores[1], best_epoch, waited = value, mean_loss, done, 0
            theta[:] = current
            moments[:] = now
        if stage < 0:
            stage += 1
    counts[:] = np.array([stage, used, waited, done, best_epoch, step, skipped])
    return stage >= rates.size
