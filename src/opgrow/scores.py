"""How good outputs are: the criteria that decide growth, the losses that tuning descends, calibration.

A `Score` carries the criterion's value and, for ties, the loss. Relative improvements follow the
paper's Eq. 7 and 8: (L - L') / L for losses, (A' - A) / A for accuracies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

__all__ = [
    "CRITERIA",
    "Loss",
    "Score",
    "calibration_error",
    "evaluate",
    "probabilities",
    "reliability",
    "row_losses",
    "temperature",
]

#: A loss by name, or a function of outputs and targets, both (n, outputs), to one loss per row (n,).
Loss = str | Callable[[Tensor, Tensor], Tensor]
#: Criteria, and whether more is better.
CRITERIA = {"accuracy": True, "brier": False, "loss": False}
_LOSSES = ("mse", "cross_entropy")


@dataclass(frozen=True)
class Score:
    """A criterion's value on some data, with the loss to break ties."""

    value: float
    loss: float
    higher_is_better: bool = False

    @property
    def finite(self) -> bool:
        return bool(np.isfinite(self.value) and np.isfinite(self.loss))

    def better_than(self, other: Score | None) -> bool:
        """Whether this score is finite and strictly better than the other one."""
        if not self.finite:
            return False
        if other is None or not other.finite:
            return True
        if self.value != other.value:
            return (self.value > other.value) == self.higher_is_better
        return self.loss < other.loss

    def improvement_over(self, other: Score) -> float:
        """Relative improvement; infinite if there was nothing to divide by but something was won."""
        gain = self.value - other.value if self.higher_is_better else other.value - self.value
        if not np.isfinite(gain):
            return -np.inf
        if other.value == 0:
            return np.inf if gain > 0 else 0.0
        return gain / abs(other.value)

    @property
    def perfect(self) -> bool:
        return self.value == 1.0 if self.higher_is_better else self.value == 0.0

    def reaches(self, target: float) -> bool:
        """Whether this score is at least as good as a value of its criterion."""
        return self.value >= target if self.higher_is_better else self.value <= target


def row_losses(loss: Loss, outputs: Tensor, target: Tensor) -> Tensor:
    """One loss per row: (n, outputs) and (n, outputs) to (n,)."""
    if callable(loss):
        values = loss(outputs, target)
        if not isinstance(values, Tensor) or values.shape != outputs.shape[:1]:
            given = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
            raise ValueError(
                f"a custom loss returns one value per row, {tuple(outputs.shape[:1])}, got {given}"
            )
        return values
    if loss == "mse":
        return (outputs - target).square().mean(dim=1)
    if loss == "cross_entropy":
        return -(target * torch.log_softmax(outputs, dim=1)).sum(dim=1)
    raise ValueError(f"loss must be one of {_LOSSES} or a function, got {loss!r}")


def probabilities(loss: Loss, outputs: np.ndarray) -> np.ndarray:
    """Class probabilities (n, classes): softmax of logits, or least-squares outputs as shares.

    The order of the outputs is kept, so that the class with the largest output is the most probable one:
    of least-squares outputs only negative ones are clipped, and a row without a positive one, which
    nothing speaks for, becomes a softmax.
    """
    outputs = outputs.astype(np.float64)
    largest = outputs.max(axis=1, keepdims=True)
    soft = np.exp(outputs - largest)
    soft /= soft.sum(axis=1, keepdims=True)
    if loss != "mse":
        return soft
    # Divided by the largest first: the sum of outputs far from the data might overflow.
    shares = np.maximum(outputs, 0.0) / np.where(largest > 0, largest, 1.0)
    total = shares.sum(axis=1, keepdims=True)
    return np.where(largest <= 0, soft, shares / np.where(total > 0, total, 1.0))


def evaluate(
    criterion: str, loss: Loss, outputs: np.ndarray, target: np.ndarray, weight: np.ndarray
) -> Score:
    """Score outputs (n, outputs) against targets with row weights."""
    total = float(weight.sum(dtype=np.float64))
    with np.errstate(all="ignore"):
        mean_loss = float((_row_losses(loss, outputs, target) * weight).sum(dtype=np.float64)) / total
        if criterion == "loss":
            value = mean_loss
        elif criterion == "accuracy":
            hit = outputs.argmax(axis=1) == target.argmax(axis=1)
            value = float((hit * weight).sum(dtype=np.float64)) / total
        elif criterion == "brier":
            error = np.square(probabilities(loss, outputs) - target).sum(axis=1)
            value = float((error * weight).sum(dtype=np.float64)) / total
        else:
            raise ValueError(f"criterion must be one of {tuple(CRITERIA)}, got {criterion!r}")
    if not np.isfinite(outputs).all():
        value = np.nan
    return Score(value, mean_loss, CRITERIA[criterion])


def _row_losses(loss: Loss, outputs: np.ndarray, target: np.ndarray) -> np.ndarray:
    # The named losses once more in numpy: they are taken after every epoch, where torch's fixed cost shows.
    if loss == "mse":
        return np.square(outputs - target).mean(axis=1)
    if loss == "cross_entropy":
        shifted = outputs - outputs.max(axis=1, keepdims=True)
        return np.log(np.exp(shifted).sum(axis=1)) - (target * shifted).sum(axis=1)
    with torch.no_grad():
        return row_losses(loss, torch.from_numpy(outputs), torch.from_numpy(target)).numpy()


def temperature(outputs: np.ndarray, target: np.ndarray, weight: np.ndarray) -> float:
    """The factor that turns least-squares outputs into the logits with the least cross-entropy.

    A closed-form head predicts one-hot targets, values around 0 to 1; as logits they would be far too
    timid a start for tuning with cross-entropy.
    """

    def cost(log_factor: float) -> float:
        values = _row_losses("cross_entropy", outputs * np.exp(log_factor), target)
        return float((values * weight).sum(dtype=np.float64))

    # The cost is convex in the factor; golden-section search over e^-1 .. e^4 (0.4 to 55).
    low, high, ratio = -1.0, 4.0, (5**0.5 - 1) / 2
    for _ in range(20):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if cost(left) < cost(right):
            high = right
        else:
            low = left
    return float(np.exp((low + high) / 2))


def reliability(
    confidence: np.ndarray, right: np.ndarray, n_bins: int = 15
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How sure predictions are, and how often they are right, in bins of confidence of equal width.

    Parameters
    ----------
    confidence : array of shape (n,), in [0, 1]
        The probability that each predicted class was given.
    right : array of shape (n,), of bool
    n_bins : int, default=15

    Returns
    -------
    count, mean_confidence, accuracy : arrays of shape (n_bins,); the means of empty bins are 0
    """
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    count = np.bincount(bins, minlength=n_bins)
    divisor = np.maximum(count, 1)
    sure, hits = (np.bincount(bins, values, minlength=n_bins) for values in (confidence, right))
    return count, sure / divisor, hits / divisor


def calibration_error(confidence: np.ndarray, right: np.ndarray, n_bins: int = 15) -> float:
    """Expected calibration error: the mean distance of confidence and accuracy over the rows' bins."""
    count, sure, accuracy = reliability(confidence, right, n_bins)
    return float((count * np.abs(sure - accuracy)).sum() / len(confidence))
