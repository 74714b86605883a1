"""Scores of candidates on a device, as `opgrow.scores.evaluate` has them on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ..scores import CRITERIA, Loss, Score, row_losses
from .memory import shrinking
from .rows import Chunk, DevicePart

__all__ = ["score_rows", "to_scores"]


def score_rows(
    part: DevicePart,
    criterion: str,
    loss: Loss,
    outputs: Callable[[Chunk], Tensor],
    n_candidates: int,
    bytes_per_row: int,
) -> Tensor:
    """Criterion and mean loss of all candidates over the rows of a part: (2, K) float64.

    ``outputs`` maps a chunk of rows to (K, C, n).
    """

    def work() -> Tensor:
        sums = torch.zeros(2, n_candidates, dtype=torch.float64, device=part.device)
        for chunk in part.chunks(part.chunk_rows(bytes_per_row + 16 * n_candidates * part.n_outputs)):
            sums += _sums(criterion, loss, outputs(chunk), chunk)
        return sums / part.total_weight

    return shrinking(part.budget, work, "scoring")


def _sums(criterion: str, loss: Loss, outputs: Tensor, chunk: Chunk) -> Tensor:
    k, c, n = outputs.shape
    target, weight = chunk.target, chunk.weight
    if loss == "mse":
        losses = (outputs - target).square().mean(dim=1)
    elif loss == "cross_entropy":
        logs = torch.log_softmax(outputs, dim=1)
        losses = -(logs * target).sum(dim=1)
    else:
        flat, wanted = outputs.permute(0, 2, 1).reshape(k * n, c), target.T.repeat(k, 1)
        losses = row_losses(loss, flat, wanted).reshape(k, n)
    sum_loss = (losses * weight).sum(dim=1, dtype=torch.float64)
    if criterion == "loss":
        value = sum_loss
    elif criterion == "accuracy":
        hit = outputs.argmax(dim=1) == target.argmax(dim=0)
        value = (hit * weight).sum(dim=1, dtype=torch.float64)
    else:
        error = (_probabilities(loss, outputs) - target).square().sum(dim=1)
        value = (error * weight).sum(dim=1, dtype=torch.float64)
    unknown = ~outputs.isfinite().flatten(1).all(dim=1)
    return torch.stack([value.masked_fill(unknown, torch.nan), sum_loss])


def _probabilities(loss: Loss, outputs: Tensor) -> Tensor:
    """`opgrow.scores.probabilities` of (k, classes, n) outputs."""
    soft = torch.softmax(outputs, dim=1)
    if loss != "mse":
        return soft
    largest = outputs.amax(dim=1, keepdim=True)
    shares = outputs.clamp(min=0.0) / torch.where(largest > 0, largest, 1.0)
    total = shares.sum(dim=1, keepdim=True)
    return torch.where(largest <= 0, soft, shares / torch.where(total > 0, total, 1.0))


def to_scores(criterion: str, found: Tensor) -> list[Score]:
    """(2, K) values and losses as scores on the host."""
    values: Sequence[Sequence[float]] = found.cpu().tolist()
    return [Score(value, loss, CRITERIA[criterion]) for value, loss in zip(*values, strict=True)]
