"""The steps of `distributed.engine` with torch autograd: for operators, losses and optimisers of users."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..engine.native import native
from ..engine.shards import FROZEN, HIDDEN, INPUTS
from ..engines import ReferenceEngine, Shape, TuningData, TuningSettings
from ..kernels.differentiable import features
from ..network import NORM_EPSILON
from ..scores import row_losses
from .engine import BACKWARD, FORWARD, GRADIENT, draw_epoch
from .group import Group

__all__ = ["ShardReference"]


class _Added(torch.autograd.Function):
    """The sum over ranks, of values forward and of their gradients backward."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, group: Group) -> Tensor:
        ctx.group = group
        return group.sum_(values.clone(), FORWARD)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return ctx.group.sum_(grad.contiguous().clone(), BACKWARD), None


class ShardReference(ReferenceEngine):
    """Plain torch on the rows of all ranks; ``data`` are those here."""

    def __init__(
        self,
        shape: Shape,
        theta: Tensor,
        data: Sequence[Tensor],
        settings: TuningSettings,
        group: Group,
        numbers: np.ndarray,
        total_rows: int,
        cuts: tuple[int, ...],
    ) -> None:
        super().__init__(shape, theta, data, settings)
        self.group, self.numbers, self.total_rows, self.cuts = group, numbers, total_rows, cuts

    def use(self, train: TuningData, numbers: np.ndarray, total_rows: int) -> None:  # type: ignore[override]
        """Go on with other rows."""
        self.data, self.numbers, self.total_rows, self.cuts = train.tensors(), numbers, total_rows, ()

    def epoch(self, rate: float, seed: int) -> tuple[float, int]:  # type: ignore[override]
        """Train for one epoch; the mean loss of its batches and the number of those skipped."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        size = self.settings.batch_size
        batches = draw_epoch(self.numbers, self.cuts, self.total_rows, size, seed, self.group)
        total, n_batches, skipped = 0.0, 0, 0
        for batch in batches:
            self.optimizer.zero_grad()
            loss = self._shard_loss(batch.rows, batch.count, seed)
            loss.backward()
            sent = torch.cat([*(_grad(p).reshape(-1) for p in self.parameters), loss.detach().reshape(1)])
            sent = sent.double()
            self.group.sum_(sent, GRADIENT)
            total += float(sent[-1])
            n_batches += 1
            if not sent[:-1].isfinite().all():
                skipped += 1
                continue
            pieces = sent[:-1].split([p.numel() for p in self.parameters])
            for parameter, piece in zip(self.parameters, pieces, strict=True):
                parameter.grad = piece.reshape(parameter.shape).to(parameter.dtype)
            self.optimizer.step()
            self._limit_norms()
        return total / n_batches, skipped

    def _shard_loss(self, rows: np.ndarray, count: float, seed: int) -> Tensor:
        """The share of this rank in a batch's mean loss."""
        index = torch.from_numpy(rows).to(self.theta.device)
        x, frozen, target, weight = (tensor[index] for tensor in self.data)
        settings, sets = self.settings, iter(self.shape.sets)
        numbers, done = self.numbers[rows], 0

        def dropped(values: Tensor, side: int, rate: float) -> Tensor:
            """Dropout as the compiled steps have it, from the numbers of the rows."""
            if rate <= 0 or not values.numel():
                return values
            columns = (done if side == HIDDEN else 0, values.shape[1])
            keep = native().keep(seed, side, numbers, columns, rate)
            return values * torch.from_numpy(keep).to(values.device)

        x = dropped(x, INPUTS, settings.input_dropout)
        frozen = dropped(frozen, FROZEN, settings.dropout)
        for layer in self.layers:
            raw = torch.cat([features(x, w, b, next(sets)) for w, b, _, _ in layer], dim=1)
            scale, shift = (torch.cat([block[i] for block in layer]) for i in (2, 3))
            sums = torch.stack([raw.double().sum(dim=0), raw.double().square().sum(dim=0)])
            mean, square = _Added.apply(sums, self.group) / count
            variance = (square - mean.square()).clamp_min(0.0)
            normal = (raw - mean.float()) / torch.sqrt(variance.float() + NORM_EPSILON)
            x = dropped(normal * scale + shift, HIDDEN, settings.dropout)
            done += x.shape[1]
        weight_out, bias_out = self.head
        outputs = torch.cat([frozen, x], dim=1) @ weight_out + bias_out
        return (row_losses(settings.loss, outputs, target) * weight).sum() / count


def _grad(parameter: Tensor) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
