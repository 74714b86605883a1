"""Steps of back-propagation on batches that are divided among ranks.

Each epoch every row draws its batch by its number among all rows, so a batch does not depend on who holds its
rows. A step adds up, over ranks: the statistics of each layer's features on the way forward, the two sums that
their gradients need on the way back, and the gradient by all parameters with the loss beside it. Then every
rank takes the same step of Adam.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..engines import LOSS_CODES, Shape, TuningData, TuningSettings
from .group import Group

__all__ = ["Batches", "ShardEngine", "draw_epoch"]

#: What the parts of a step send, as the traffic counts it.
FORWARD, BACKWARD, GRADIENT = "batch statistics", "their gradients", "gradients"


@dataclass(frozen=True)
class Batches:
    """The batches of an epoch: rows here, in the order of their batches, and how many rows each has in all."""

    order: np.ndarray
    bounds: np.ndarray
    counts: np.ndarray

    def __iter__(self) -> Any:
        """Rows here and the number of rows on all ranks, for each batch that has any."""
        for number, count in enumerate(self.counts):
            if count:
                yield self.order[self.bounds[number] : self.bounds[number + 1]], float(count)

    @property
    def largest(self) -> int:
        """Rows here of the largest batch."""
        return int(np.diff(self.bounds).max())


def draw_epoch(numbers: np.ndarray, total_rows: int, batch_size: int, seed: int, group: Group) -> Batches:
    """Divide all rows into batches of about equal size; every rank gets its rows of each."""
    from ..kernels import cpu_shards

    n_batches = -(-total_rows // batch_size)
    batch = np.empty(len(numbers), np.int64)
    cpu_shards.draw_batches(numbers, np.uint64(seed), n_batches, batch)
    order = np.argsort(batch.astype(np.min_scalar_type(n_batches)), kind="stable")
    here = np.bincount(batch, minlength=n_batches)
    bounds = np.concatenate([[0], np.cumsum(here)])
    return Batches(order, bounds, group.sum(here, "sizes of batches"))


@dataclass(frozen=True)
class _Piece:
    """A block: its row of the plan, its place in the layer, its parameters and their gradients."""

    nodal: int
    pool: int
    activation: int
    start: int
    stop: int
    theta: Any
    grad: Any


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
    ) -> None:
        from ..kernels import cpu_batch

        self.shape, self.theta, self.train, self.settings = shape, theta, train, settings
        self.group, self.numbers, self.total_rows = group, numbers, total_rows
        self.tile = cpu_batch.TILE
        self.first, self.second = np.zeros_like(theta), np.zeros_like(theta)
        self.decay = shape.decay(settings.weight_decay)
        self.loss = LOSS_CODES[settings.loss]  # type: ignore[index]
        self.steps = 0
        self.sent = np.zeros(shape.size + 1, np.float32)
        self.grad = self.sent[:-1]
        self.layers = self._pieces()
        self.head, self.by_head = shape.head(theta), shape.head(self.grad)
        self.moments = [np.zeros((2, width)) for width in shape.widths]
        self.slopes = [np.zeros((2, width)) for width in shape.widths]
        self.nothing = np.empty(0, np.float32)
        self.room = 0

    def _pieces(self) -> list[list[_Piece]]:
        plan = iter(self.shape.plan)
        layers: list[list[_Piece]] = []
        for views, grads in zip(self.shape.blocks(self.theta), self.shape.blocks(self.grad), strict=True):
            layers.append([])
            for view, grad in zip(views, grads, strict=True):
                nodal, pool, activation, _, d, _, _, column = (int(entry) for entry in next(plan))
                layers[-1].append(_Piece(nodal, pool, activation, column, column + d, view, grad))
        return layers

    def epoch(self, rate: float, seed: int) -> tuple[float, int]:
        """Train for one epoch; the mean loss of its batches and the number of those skipped."""
        from ..kernels import cpu_shards

        size, max_norm = self.settings.batch_size, np.float32(self.settings.max_norm or 0.0)
        batches = draw_epoch(self.numbers, self.total_rows, size, seed, self.group)
        self._allocate(-(-batches.largest // self.tile) * self.tile)
        total, n_batches, skipped = 0.0, 0, 0
        sent = torch.from_numpy(self.sent)
        for rows, count in batches:
            self.sent[:] = 0.0
            self._step(rows, count, seed)
            self.group.sum_(sent, GRADIENT)
            total += float(self.sent[-1])
            n_batches += 1
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

    def _step(self, rows: np.ndarray, count: float, seed: int) -> None:
        """Add this rank's share of the gradient, and of the loss, of one batch."""
        from ..kernels import cpu_shards

        n, last = rows.size, len(self.layers) - 1
        stride = -(-n // self.tile) * self.tile
        states = self.states[:n]
        if n:
            self._stage(rows, stride, states, seed)
        source = self.inputs
        for number in range(len(self.layers)):
            self._forward(number, source, n, stride, count, states)
            source = self.out[number]
        if n:
            shape, train = self.shape, self.train
            frozen, end = shape.n_frozen * stride, shape.n_features * stride
            self.features[frozen:end] = self.out[last][: end - frozen]
            self.sent[-1] = cpu_shards.linear_head(
                self.features[:end],
                stride,
                train.target,
                train.weight,
                rows,
                np.float32(count),
                self.loss,
                *self.head,
                self.outputs[: shape.n_outputs * stride],
                *self.by_head,
                self.by_features[:end],
            )
            self.grads[last][: end - frozen] = self.by_features[frozen:end]
        for number in range(last, -1, -1):
            source = self.inputs if number == 0 else self.out[number - 1]
            self._backward(number, source, n, stride, count)

    def _stage(self, rows: np.ndarray, stride: int, states: np.ndarray, seed: int) -> None:
        """Copy a batch's inputs and frozen features, with dropout."""
        from ..kernels import cpu_shards, cpu_training

        settings, train, off = self.settings, self.train, np.float32(0)
        cpu_shards.seed_rows(self.numbers[rows], np.uint64(seed), states)
        sides = (train.x, self.inputs, settings.input_dropout), (train.frozen, self.features, settings.dropout)
        for values, room, drop in sides:
            width = values.shape[1]
            if width:
                cpu_training.gather_rows(values, rows, stride, off, states, room)
                if drop > 0:
                    cpu_shards.drop_out(room, width, stride, states, np.float32(drop), self.dropped)

    def _forward(
        self, number: int, source: np.ndarray, n: int, stride: int, count: float, states: np.ndarray
    ) -> None:
        from ..kernels import cpu_activation, cpu_batch, cpu_shards, cpu_training

        sums = self.moments[number]
        sums[:] = 0.0
        for piece in self.layers[number] if n else ():
            span = slice(piece.start * stride, piece.stop * stride)
            pre, raw = self.pre[number][span], self.raw[number][span]
            where = self.where[number][span]
            cpu_batch.pool_forward(
                piece.nodal, piece.pool, source, stride, n, piece.theta.weight, pre, where
            )
            cpu_training.add_rows(pre, stride, piece.theta.bias)
            cpu_activation.activate(piece.activation, pre, raw)
        width = sums.shape[1]
        if n:
            raw = self.raw[number]
            cpu_shards.feature_sums(raw, raw, stride, n, sums)
        self.group.sum_(torch.from_numpy(sums), FORWARD)
        mean = sums[0] / count
        variance = np.maximum(sums[1] / count - np.square(mean), 0.0)
        sums[0], sums[1] = mean, variance
        if not n:
            return
        centre, spread = mean.astype(np.float32), variance.astype(np.float32)
        for piece in self.layers[number]:
            part, span = slice(piece.start, piece.stop), slice(piece.start * stride, piece.stop * stride)
            cpu_shards.normalise(
                self.raw[number][span],
                stride,
                n,
                centre[part],
                spread[part],
                piece.theta.scale,
                piece.theta.shift,
                self.normal[number][span],
                self.out[number][span],
            )
        if self.settings.dropout > 0:
            drop = np.float32(self.settings.dropout)
            cpu_shards.drop_out(self.out[number], width, stride, states, drop, self.keep[number])

    def _backward(self, number: int, source: np.ndarray, n: int, stride: int, count: float) -> None:
        from ..kernels import cpu_activation, cpu_batch, cpu_shards

        sums, grad = self.slopes[number], self.grads[number]
        sums[:] = 0.0
        if n:
            if self.settings.dropout > 0:
                end = sums.shape[1] * stride
                grad[:end] *= self.keep[number][:end]
            cpu_shards.feature_sums(grad, self.normal[number], stride, n, sums)
        for piece in self.layers[number]:
            piece.grad.shift[:], piece.grad.scale[:] = sums[:, piece.start : piece.stop]
        self.group.sum_(torch.from_numpy(sums), BACKWARD)
        if not n:
            return
        variance, back = self.moments[number][1].astype(np.float32), self.nothing
        if number > 0:
            back = self.grads[number - 1][: self.layers[number - 1][-1].stop * stride]
            back[:] = 0.0
        for piece in self.layers[number]:
            part, span = slice(piece.start, piece.stop), slice(piece.start * stride, piece.stop * stride)
            by_pool = grad[span]
            cpu_shards.norm_backward(
                by_pool,
                self.normal[number][span],
                stride,
                n,
                count,
                np.ascontiguousarray(sums[:, part]),
                variance[part],
                piece.theta.scale,
            )
            cpu_activation.activation_backward(piece.activation, self.pre[number][span], by_pool)
            cpu_shards.add_totals(by_pool, stride, n, piece.grad.bias)
            cpu_batch.pool_backward(
                piece.nodal,
                piece.pool,
                source,
                stride,
                n,
                piece.theta.weight,
                self.where[number][span],
                by_pool,
                piece.grad.weight,
                back,
            )
