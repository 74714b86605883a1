"""Steps of back-propagation on batches that are divided among ranks.

Each epoch every row draws its batch by its number among all rows, so a batch does not depend on who holds its
rows. A step adds up over ranks: the statistics of each layer's features on the way forward, the two sums that
their gradients need on the way back, and the gradient by all parameters with the loss beside it. Then every
rank takes the same step of Adam.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..engines import LOSS_CODES, Shape, TuningData, TuningSettings, fill
from .group import Group

__all__ = ["BACKWARD", "FORWARD", "GRADIENT", "Batch", "ShardEngine", "draw_epoch"]

#: What the parts of a step send, as the traffic counts it.
FORWARD, BACKWARD, GRADIENT = "batch statistics", "their gradients", "gradients"


@dataclass(frozen=True)
class Batch:
    """What a rank holds of a batch.

    Attributes
    ----------
    rows : rows here, -1 for padding, which stands at the end of each cell; spans : the borders of the cells
    gaps : where the padding is; count : rows of the batch on all ranks
    """

    rows: np.ndarray
    spans: np.ndarray
    gaps: np.ndarray
    count: float

    @property
    def stride(self) -> int:
        return len(self.rows)


def draw_epoch(
    numbers: np.ndarray,
    cuts: tuple[int, ...],
    total_rows: int,
    batch_size: int,
    tile: int,
    seed: int,
    group: Group,
) -> Iterator[Batch]:
    """Divide all rows into batches of about equal size, and pad the cells of each to whole tiles."""
    from ..kernels import cpu_shards

    n_batches, n_cells = -(-total_rows // batch_size), len(cuts) + 1
    batch = np.empty(len(numbers), np.int64)
    cpu_shards.draw_batches(numbers, np.uint64(seed), n_batches, batch)
    counts = group.sum(np.bincount(batch, minlength=n_batches), "sizes of batches")
    cell = np.searchsorted(cuts, np.arange(len(numbers)), side="right")
    key = batch * n_cells + cell
    order = np.argsort(key.astype(np.min_scalar_type(n_batches * n_cells)), kind="stable")
    sizes = np.bincount(key, minlength=n_batches * n_cells)
    starts, borders = _borders(sizes), _borders(-(-sizes // tile) * tile)
    layout = np.full(borders[-1], -1)
    place = np.repeat(borders[:-1] - starts[:-1], sizes) + np.arange(len(order))
    layout[place] = order
    for number in range(n_batches):
        spans = borders[number * n_cells : (number + 1) * n_cells + 1]
        rows = layout[spans[0] : spans[-1]]
        if counts[number]:
            yield Batch(rows, spans - spans[0], np.flatnonzero(rows < 0), float(counts[number]))


def _borders(sizes: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(sizes)])


@dataclass(frozen=True)
class _Piece:
    """A block: its operators, its place in the layer, its parameters and their gradients."""

    nodal: int
    pool: int
    activation: int
    start: int
    stop: int
    theta: Any
    grad: Any
    scratch: np.ndarray

    def span(self, stride: int) -> slice:
        return slice(self.start * stride, self.stop * stride)


class ShardEngine:
    """The compiled steps, for built-in operators and losses, Adam, and a linear head."""

    def __init__(
        self,
        shape: Shape,
        theta: np.ndarray,
        train: TuningData,
        settings: TuningSettings,
        group: Group,
        numbers: np.ndarray,
        total_rows: int,
        cuts: tuple[int, ...],
    ) -> None:
        from ..kernels import cpu_batch

        self.shape, self.theta, self.train, self.settings = shape, theta, train, settings
        self.group, self.numbers, self.total_rows, self.cuts = group, numbers, total_rows, cuts
        self.tile = cpu_batch.TILE
        self.weight = np.append(train.weight, np.float32(0))  # the last is that of padding
        self.first, self.second, self.grad = (np.zeros_like(theta) for _ in range(3))
        self.decay = shape.decay(settings.weight_decay)
        self.loss = LOSS_CODES[settings.loss]  # type: ignore[index]
        self.steps = 0
        self.sent = np.zeros(shape.size + 1)
        self.layers = self._pieces()
        self.head, self.by_head = shape.head(theta), shape.head(self.sent[:-1])
        self.moments, self.slopes = ([np.zeros((2, width)) for width in shape.widths] for _ in range(2))
        self.room = 0

    def use(self, train: TuningData, numbers: np.ndarray, total_rows: int) -> None:
        """Go on with other rows."""
        self.train, self.numbers, self.total_rows, self.cuts = train, numbers, total_rows, ()
        self.weight = np.append(train.weight, np.float32(0))

    def state(self) -> dict[str, np.ndarray]:
        """What an epoch goes on from, beside the parameters: the same on all ranks."""
        return {"first": self.first, "second": self.second, "step": np.array([self.steps])}

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        """Go on from what `state` has said."""
        step = np.zeros(1, np.int64)
        for target, name in ((self.first, "first"), (self.second, "second"), (step, "step")):
            fill(target, arrays, name)
        self.steps = int(step[0])

    def _pieces(self) -> list[list[_Piece]]:
        plan, grads = iter(self.shape.plan), self.shape.blocks(self.sent[:-1])
        layers: list[list[_Piece]] = []
        for views, slopes in zip(self.shape.blocks(self.theta), grads, strict=True):
            layers.append([])
            for view, slope in zip(views, slopes, strict=True):
                nodal, pool, activation, _, d, _, _, column = (int(entry) for entry in next(plan))
                room = np.empty_like(view.weight)
                layers[-1].append(_Piece(nodal, pool, activation, column, column + d, view, slope, room))
        return layers

    def epoch(self, rate: float, seed: int) -> tuple[float, int]:
        """Train for one epoch; the mean loss of its batches and the number of those skipped."""
        from ..kernels import cpu_shards

        size, max_norm = self.settings.batch_size, np.float32(self.settings.max_norm or 0.0)
        batches = draw_epoch(self.numbers, self.cuts, self.total_rows, size, self.tile, seed, self.group)
        total, n_batches, skipped = 0.0, 0, 0
        for batch in batches:
            self._allocate(batch.stride)
            self.sent[:] = 0.0
            self._step(batch, seed)
            self.group.sum_(torch.from_numpy(self.sent), GRADIENT)
            total += float(self.sent[-1])
            n_batches += 1
            self.grad[:] = self.sent[:-1]
            taken = cpu_shards.update(
                self.shape.plan,
                self.theta,
                self.grad,
                self.first,
                self.second,
                self.decay,
                float(rate),
                self.steps + 1,
                max_norm,
            )
            self.steps += taken
            skipped += not taken
        return total / n_batches, skipped

    def _allocate(self, stride: int) -> None:
        """Room for batches of so many rows here, for good unless a larger one comes."""
        if stride <= self.room:
            return
        self.room, shape = stride, self.shape

        def room(n: int) -> np.ndarray:
            return np.zeros(int(n) * stride, np.float32)

        self.inputs = room(self.train.x.shape[1])
        self.pre, self.raw, self.normal, self.out, self.grads, self.keep = (
            [room(width) for width in shape.widths] for _ in range(6)
        )
        self.where = [np.zeros(int(width) * stride, np.int32) for width in shape.widths]
        self.features, self.by_features = room(shape.n_features), room(shape.n_features)
        self.outputs = room(shape.n_outputs)
        self.dropped = room(max(self.train.x.shape[1], shape.n_frozen))
        self.states = np.empty(stride, np.uint64)

    def _step(self, batch: Batch, seed: int) -> None:
        """Add this rank's share of the gradient, and of the loss, of one batch."""
        from ..kernels import cpu_shards

        stride, last = batch.stride, len(self.layers) - 1
        if stride:
            self._stage(batch, seed)
        for number in range(len(self.layers)):
            self._forward(number, batch)
        if stride:
            shape = self.shape
            frozen, end = shape.n_frozen * stride, shape.n_features * stride
            self.features[frozen:end] = self.out[last][: end - frozen]
            self.sent[-1] = cpu_shards.linear_head(
                self.features[:end],
                stride,
                self.train.target,
                self.weight,
                batch.rows,
                np.float32(batch.count),
                self.loss,
                *self.head,
                self.outputs[: shape.n_outputs * stride],
                *self.by_head,
                self.by_features[:end],
            )
            self.grads[last][: end - frozen] = self.by_features[frozen:end]
        for number in range(last, -1, -1):
            self._backward(number, batch)

    def _stage(self, batch: Batch, seed: int) -> None:
        """Copy a batch's inputs and frozen features, with dropout."""
        from ..kernels import cpu_shards, cpu_training

        settings, train, off = self.settings, self.train, np.float32(0)
        stride, states = batch.stride, self.states[: batch.stride]
        cpu_shards.seed_rows(self.numbers[batch.rows], np.uint64(seed), states)
        sides = (
            (train.x, self.inputs, settings.input_dropout),
            (train.frozen, self.features, settings.dropout),
        )
        for values, room, drop in sides:
            width = values.shape[1]
            if width:
                cpu_training.gather_rows(values, batch.rows, stride, off, states, room)
                cpu_shards.blank(room, width, stride, batch.gaps)
                if drop > 0:
                    cpu_shards.drop_out(room, width, stride, states, np.float32(drop), self.dropped)

    def _forward(self, number: int, batch: Batch) -> None:
        from ..kernels import cpu_activation, cpu_batch, cpu_shards, cpu_training

        stride, sums, raw = batch.stride, self.moments[number], self.raw[number]
        source = self.inputs if number == 0 else self.out[number - 1]
        width = sums.shape[1]
        sums[:] = 0.0
        if stride:
            for piece in self.layers[number]:
                span, weight = piece.span(stride), piece.theta.weight
                pre, where = self.pre[number][span], self.where[number][span]
                cpu_batch.pool_forward(piece.nodal, piece.pool, source, stride, stride, weight, pre, where)
                cpu_training.add_rows(pre, stride, piece.theta.bias)
                cpu_activation.activate(piece.activation, pre, raw[span])
            cpu_shards.blank(raw, width, stride, batch.gaps)
            cpu_shards.feature_sums(raw, raw, stride, sums)
        self.group.sum_(torch.from_numpy(sums), FORWARD)
        sums /= batch.count
        sums[1] = np.maximum(sums[1] - np.square(sums[0]), 0.0)
        if not stride:
            return
        mean, variance = sums.astype(np.float32)
        for piece in self.layers[number]:
            part, span = slice(piece.start, piece.stop), piece.span(stride)
            cpu_shards.normalise(
                raw[span],
                stride,
                batch.gaps,
                mean[part],
                variance[part],
                piece.theta.scale,
                piece.theta.shift,
                self.normal[number][span],
                self.out[number][span],
            )
        if self.settings.dropout > 0:
            drop, states = np.float32(self.settings.dropout), self.states[:stride]
            cpu_shards.drop_out(self.out[number], width, stride, states, drop, self.keep[number])

    def _backward(self, number: int, batch: Batch) -> None:
        from ..kernels import cpu_activation, cpu_shards

        stride, sums, grad = batch.stride, self.slopes[number], self.grads[number]
        sums[:] = 0.0
        if stride:
            if self.settings.dropout > 0:
                end = sums.shape[1] * stride
                grad[:end] *= self.keep[number][:end]
            cpu_shards.feature_sums(grad, self.normal[number], stride, sums)
        for piece in self.layers[number]:
            piece.grad.shift[:], piece.grad.scale[:] = sums[:, piece.start : piece.stop]
        self.group.sum_(torch.from_numpy(sums), BACKWARD)
        if not stride:
            return
        variance = self.moments[number][1].astype(np.float32)
        if number > 0:
            self.grads[number - 1][: self.layers[number - 1][-1].stop * stride] = 0.0
        for piece in self.layers[number]:
            part, span = slice(piece.start, piece.stop), piece.span(stride)
            cpu_shards.norm_backward(
                grad[span],
                self.normal[number][span],
                stride,
                batch.gaps,
                batch.count,
                np.ascontiguousarray(sums[:, part]),
                variance[part],
                piece.theta.scale,
            )
            cpu_activation.activation_backward(piece.activation, self.pre[number][span], grad[span])
            cpu_shards.add_totals(grad[span], stride, piece.grad.bias)
            self._pool_backward(number, piece, batch)

    def _pool_backward(self, number: int, piece: _Piece, batch: Batch) -> None:
        """Gradients by a block's weights, cell by cell, and by the features of the layer below."""
        from ..kernels import cpu_gradient, cpu_pools, cpu_products, cpu_shards

        stride, weight, scratch = batch.stride, piece.theta.weight, piece.scratch
        n_inputs, nodal, pool = len(weight), piece.nodal, piece.pool
        span = piece.span(stride)
        grad, where = self.grads[number][span], self.where[number][span]
        source, back = self.inputs, np.empty(0, np.float32)
        if number > 0:
            source, back = self.out[number - 1], self.grads[number - 1][: n_inputs * stride]
        if cpu_products.is_product(nodal, pool):
            matrix, by_pool = source[: n_inputs * stride].reshape(n_inputs, stride), grad.reshape(-1, stride)
            cpu_shards.product_gradient(nodal, pool, matrix, weight, by_pool, piece.grad.weight)
            if number > 0:
                below = back.reshape(n_inputs, stride)
                cpu_products.product_backward(nodal, pool, matrix, weight, by_pool, scratch, below)
            return
        for start, stop in zip(batch.spans[:-1], batch.spans[1:], strict=True):
            n, here = int(stop - start), (source[start:], stride, int(stop - start), weight)
            if not n:
                continue
            scratch[:] = 0.0
            if pool == cpu_pools.MAXIMUM:
                cpu_gradient.largest_backward(
                    nodal, *here, where[start:], grad[start:], scratch, back[start:] if number > 0 else back
                )
            else:
                cpu_gradient.weight_gradient(nodal, pool, *here, grad[start:], scratch)
            piece.grad.weight[:] += scratch
        if number > 0 and pool != cpu_pools.MAXIMUM:
            cpu_gradient.input_gradient(nodal, pool, source, stride, stride, weight, grad, back)
