"""Scores of candidates on a device, as `opgrow.engine.evaluation` has them on the host."""

from __future__ import annotations

import torch
from torch import Tensor

from .rows import Chunk

__all__ = ["score_sums"]


def score_sums(criterion: str, loss: str, outputs: Tensor, rows: Chunk) -> Tensor:
    """Sums (4, K) over rows of outputs (K, C, n): weighted criterion and loss, weight, rows not finite."""
    target, weight = rows.target, rows.weight
    if loss == "mse":
        losses = (outputs - target).square().mean(dim=1)
    else:
        losses = -(torch.log_softmax(outputs, dim=1) * target).sum(dim=1)
    sum_loss = (losses * weight).sum(dim=1, dtype=torch.float64)
    if criterion == "loss":
        value = sum_loss
    elif criterion == "accuracy":
        hit = outputs.argmax(dim=1) == target.argmax(dim=0)
        value = (hit * weight).sum(dim=1, dtype=torch.float64)
    else:
        error = (_probabilities(loss, outputs) - target).square().sum(dim=1)
        value = (error * weight).sum(dim=1, dtype=torch.float64)
    invalid = (~outputs.isfinite().all(dim=1)).sum(dim=1, dtype=torch.float64)
    total = weight.sum(dtype=torch.float64).expand_as(value)
    return torch.stack([value, sum_loss, total, invalid])


def _probabilities(loss: str, outputs: Tensor) -> Tensor:
    """`opgrow.training.scores.probabilities` of (k, classes, n) outputs."""
    soft = torch.softmax(outputs, dim=1)
    if loss != "mse":
        return soft
    largest = outputs.amax(dim=1, keepdim=True)
    shares = outputs.clamp(min=0.0) / torch.where(largest > 0, largest, 1.0)
    total = shares.sum(dim=1, keepdim=True)
    return torch.where(largest <= 0, soft, shares / torch.where(total > 0, total, 1.0))
