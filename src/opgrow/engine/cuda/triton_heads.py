"""Losses, and linear heads of few outputs: from features to gradients in two launches.

All matrices are (candidates, features or outputs, rows). Targets, weights of rows and features may be those
of all candidates: what lies between the candidates' is then 0.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import triton
import triton.language as tl

MEAN_SQUARED_ERROR = tl.constexpr(0)
CROSS_ENTROPY = tl.constexpr(1)


@triton.jit
def _loss(y, t, share, there, row_there, n_outputs, KIND: tl.constexpr):
    """Losses of rows, each by its share, and their gradients by outputs ``y`` (outputs, rows)."""
    if KIND == MEAN_SQUARED_ERROR:
        error = y - t
        loss = tl.sum(error * error, axis=0) * share / n_outputs
        slope = error * (2.0 * share / n_outputs)[None, :]
    else:
        largest = tl.max(tl.where(there, y, float("-inf")), axis=0)
        largest = tl.where(row_there, largest, 0.0)
        shifted = y - largest[None, :]
        power = tl.where(there, tl.exp(shifted), 0.0)
        norm = tl.where(row_there, tl.sum(power, axis=0), 1.0)
        loss = tl.sum(tl.where(there, t * (tl.log(norm)[None, :] - shifted), 0.0), axis=0) * share
        slope = (power / norm[None, :] - t) * share[None, :]
    return loss, tl.where(there, slope, 0.0)


@triton.jit(
    do_not_specialize=[
        "n_rows",
        "n_outputs",
        "output_stride",
        "target_group",
        "target_stride",
        "weight_group",
    ],
    do_not_specialize_on_alignment=["outputs", "target", "weight", "losses"],
)
def loss_backward(
    outputs,
    target,
    weight,
    losses,
    n_rows,
    n_outputs,
    output_stride,
    target_group,
    target_stride,
    weight_group,
    KIND: tl.constexpr,
    OUTPUTS: tl.constexpr,
    ROWS: tl.constexpr,
):
    """The mean weighted loss of a batch, in parts, and its gradient in the place of ``outputs``."""
    tile, candidate = tl.program_id(0), tl.program_id(1)
    rows = tile * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, OUTPUTS)
    row_there = rows < n_rows
    there = (columns < n_outputs)[:, None] & row_there[None, :]
    at = columns[:, None] * n_rows + rows[None, :]
    outputs += candidate.to(tl.int64) * output_stride + at
    target += candidate.to(tl.int64) * target_group
    weight += candidate.to(tl.int64) * weight_group
    y = tl.load(outputs, mask=there, other=0.0)
    t = tl.load(target + columns[:, None] * target_stride + rows[None, :], mask=there, other=0.0)
    share = tl.load(weight + rows, mask=row_there, other=0.0) / n_rows
    loss, slope = _loss(y, t, share, there, row_there, n_outputs, KIND)
    tl.store(outputs, slope, mask=there)
    tl.store(losses + candidate * tl.num_programs(0) + tile, tl.sum(loss, axis=0))


@triton.jit(
    do_not_specialize=(
        "n_rows n_features n_outputs n_frozen x_group x_feature w_group target_group target_stride "
        "weight_group out_group slope_group"
    ).split(),
    do_not_specialize_on_alignment="x weight target row_weight losses out slope".split(),
)
def head_loss(
    x,
    weight,
    target,
    row_weight,
    losses,
    out,
    slope,
    n_rows,
    n_features,
    n_outputs,
    n_frozen,
    x_group,
    x_feature,
    w_group,
    target_group,
    target_stride,
    weight_group,
    out_group,
    slope_group,
    KIND: tl.constexpr,
    FEATURES: tl.constexpr,
    OUTPUTS: tl.constexpr,
    ROWS: tl.constexpr,
):
    """A linear head's loss on some rows, and its gradients by outputs and by features.

    ``x`` (features, rows) ends with a row of ones, ``weight`` (features, outputs) with the biases. ``out``
    (outputs, rows) are the gradients by outputs, ``slope`` those by the features between the first
    ``n_frozen`` and the ones. A program has all outputs of its rows.
    """
    tile, candidate = tl.program_id(0), tl.program_id(1).to(tl.int64)
    rows = tile * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, OUTPUTS)
    row_there, column_there = rows < n_rows, columns < n_outputs
    there = column_there[:, None] & row_there[None, :]
    x += candidate * x_group
    weight += candidate * w_group
    y = tl.zeros([OUTPUTS, ROWS], tl.float32)
    for first in range(0, n_features, FEATURES):
        features = first + tl.arange(0, FEATURES)
        feature_there = features < n_features
        w = tl.load(
            weight + features[None, :] * n_outputs + columns[:, None],
            mask=feature_there[None, :] & column_there[:, None],
            other=0.0,
        )
        values = tl.load(
            x + features[:, None].to(tl.int64) * x_feature + rows[None, :],
            mask=feature_there[:, None] & row_there[None, :],
            other=0.0,
        )
        y += tl.dot(w, values, input_precision="ieee")
    target += candidate * target_group + columns[:, None] * target_stride + rows[None, :]
    t = tl.load(target, mask=there, other=0.0)
    share = tl.load(row_weight + candidate * weight_group + rows, mask=row_there, other=0.0) / n_rows
    loss, by_output = _loss(y, t, share, there, row_there, n_outputs, KIND)
    tl.store(losses + candidate * tl.num_programs(0) + tile, tl.sum(loss, axis=0))
    tl.store(out + candidate * out_group + columns[:, None] * n_rows + rows[None, :], by_output, mask=there)
    n_neurons = n_features - n_frozen - 1
    weight += n_frozen * n_outputs
    slope += candidate * slope_group
    for first in range(0, n_neurons, FEATURES):
        neurons = first + tl.arange(0, FEATURES)
        neuron_there = neurons < n_neurons
        w = tl.load(
            weight + neurons[:, None] * n_outputs + columns[None, :],
            mask=neuron_there[:, None] & column_there[None, :],
            other=0.0,
        )
        by_feature = tl.dot(w, by_output, input_precision="ieee")
        place = neurons[:, None] * n_rows + rows[None, :]
        tl.store(slope + place, by_feature, mask=neuron_there[:, None] & row_there[None, :])


@triton.jit(
    do_not_specialize="n_rows n_features n_outputs x_group x_feature grad_group out_group".split(),
    do_not_specialize_on_alignment="x grad out".split(),
)
def head_gradient(
    x,
    grad,
    out,
    n_rows,
    n_features,
    n_outputs,
    x_group,
    x_feature,
    grad_group,
    out_group,
    FEATURES: tl.constexpr,
    OUTPUTS: tl.constexpr,
    ROWS: tl.constexpr,
):
    """The gradient by a linear head's weights: x (features, rows) by grad (outputs, rows), few of which."""
    features = tl.program_id(0) * FEATURES + tl.arange(0, FEATURES)
    columns = tl.arange(0, OUTPUTS)
    candidate = tl.program_id(1).to(tl.int64)
    feature_there, column_there = features < n_features, columns < n_outputs
    x += candidate * x_group + features[:, None].to(tl.int64) * x_feature
    grad += candidate * grad_group + columns[None, :] * n_rows
    total = tl.zeros([FEATURES, OUTPUTS], tl.float32)
    for first in range(0, n_rows, ROWS):
        rows = first + tl.arange(0, ROWS)
        row_there = rows < n_rows
        values = tl.load(x + rows[None, :], mask=feature_there[:, None] & row_there[None, :], other=0.0)
        g = tl.load(grad + rows[:, None], mask=row_there[:, None] & column_there[None, :], other=0.0)
        total += tl.dot(values, g, input_precision="ieee")
    out += candidate * out_group + features[:, None] * n_outputs + columns[None, :]
    tl.store(out, total, mask=feature_there[:, None] & column_there[None, :])
