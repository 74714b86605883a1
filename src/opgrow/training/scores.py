"""How good outputs are: the criteria that decide growth, the losses that tuning descends, calibration.

A `Score` carries the criterion's value and, for ties, the loss. Relative improvements follow the
paper's Eq. 7 and 8: (L - L') / L for losses, (A' - A) / A for accuracies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..common.extras import require_torch
from ..engine.native import native
from ..engine.sums import LOSSES

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "CRITERIA",
    "Loss",
    "Score",
    "calibration_error",
    "evaluate",
    "nothing_left",
    "probabilities",
    "reliability",
    "row_losses",
    "temperature",
]

#: A loss by name, or a function of outputs and targets, both (n, outputs), to one loss per row (n,).
Loss = str | Callable[["Tensor", "Tensor"], "Tensor"]
#: Criteria, and whether more is better.
CRITERIA = {"accuracy": True, "brier": False, "loss": False}
#: Below these scores nothing is left to gain: a Brier score of 1e-4 is a doubt of less than one percent, and
#: the targets of regression have a variance of 1.
_NEGLIGIBLE = {"brier": 1e-4, "loss": 1e-6}


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

    def reaches(self, target: float) -> bool:
        """Whether this score is at least as good as a value of its criterion."""
        return self.value >= target if self.higher_is_better else self.value <= target


def nothing_left(criterion: str, value: float) -> bool:
    """Whether a score is so good that nothing is left to gain."""
    return value >= 1.0 if CRITERIA[criterion] else value <= _NEGLIGIBLE[criterion]


def row_losses(loss: Loss, outputs: Tensor, target: Tensor) -> Tensor:
    """One loss per row of torch tensors: (n, outputs) and (n, outputs) to (n,)."""
    import torch

    if callable(loss):
        values = loss(outputs, target)
        if not isinstance(values, torch.Tensor) or values.shape != outputs.shape[:1]:
            description = tuple(values.shape) if isinstance(values, torch.Tensor) else type(values).__name__
            raise ValueError(
                f"a custom loss returns one value per row, {tuple(outputs.shape[:1])}, got {description}"
            )
        return values
    if loss == "mse":
        return (outputs - target).square().mean(dim=1)
    if loss == "cross_entropy":
        return -(target * torch.log_softmax(outputs, dim=1)).sum(dim=1)
    raise ValueError(f"loss must be one of {LOSSES} or a function, got {loss!r}")


def probabilities(loss: Loss, outputs: np.ndarray) -> np.ndarray:
    """Class probabilities (n, classes): softmax of logits, or least-squares outputs as shares.

    The order of the outputs is kept, so that the class with the largest output is the most probable one:
    of least-squares outputs only negative ones are clipped, and a row without a positive one, which
    nothing speaks for, becomes a softmax.
    """
    return native().probabilities(np.ascontiguousarray(outputs, np.float64), logits=loss != "mse")


def evaluate(
    criterion: str, loss: Loss, outputs: np.ndarray, target: np.ndarray, weight: np.ndarray
) -> Score:
    """Score outputs (n, outputs) against targets with row weights."""
    arrays = [np.ascontiguousarray(array, np.float32) for array in (outputs, target, weight)]
    if not callable(loss):
        return Score(*native().score(criterion, loss, *arrays), CRITERIA[criterion])
    # What speaks for a class under a custom loss is read like a logit.
    mean_loss = _custom_loss(loss, *arrays)
    value, _ = native().score("accuracy" if criterion == "loss" else criterion, "cross_entropy", *arrays)
    if criterion == "loss" and not np.isnan(value):
        value = mean_loss
    return Score(value, mean_loss, CRITERIA[criterion])


def _custom_loss(loss: Loss, outputs: np.ndarray, target: np.ndarray, weight: np.ndarray) -> float:
    torch = require_torch("A custom loss")
    with torch.no_grad(), np.errstate(all="ignore"):
        values = row_losses(loss, torch.from_numpy(outputs), torch.from_numpy(target)).numpy()
        return float((values * weight).sum(dtype=np.float64) / weight.sum(dtype=np.float64))


def temperature(outputs: np.ndarray, target: np.ndarray, weight: np.ndarray) -> float:
    """The factor that turns least-squares outputs into the logits with the least cross-entropy.

    A closed-form head predicts one-hot targets, values around 0 to 1; as logits they would be far too
    timid a start for tuning with cross-entropy.
    """
    arrays = (np.ascontiguousarray(array, np.float32) for array in (outputs, target, weight))
    return native().temperature(*arrays)


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
