"""How candidates are trained: schedule, regularisation, loss and optimiser."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..engine.sums import LOSSES
from .scores import Loss

if TYPE_CHECKING:
    import torch

__all__ = [
    "ADAM_EPSILON",
    "EPOCH_SCORES",
    "KEEP_STATES",
    "LOSS_CODES",
    "SCHEDULES",
    "Optimizer",
    "TuningSettings",
    "batch_bounds",
    "cosine",
    "is_plain",
    "scored_apart",
]

#: As in Keras, which the public implementation of the paper used.
ADAM_EPSILON = 1e-7
#: Losses as the engines in C and on GPUs know them.
LOSS_CODES = {name: code for code, name in enumerate(LOSSES)}

#: When an epoch is scored: after it, as the finished network predicts; or during it, on the batches as
#: training sees them, with dropout and their own statistics, as Keras reports it. Rows that are held out are
#: scored after it in any case.
EPOCH_SCORES = ("after", "during")
#: The state that a training ends with: that of the best score, or that of the last epoch.
KEEP_STATES = ("best", "last")
#: How the learning rate of the final tuning goes.
SCHEDULES = ("constant", "cosine")
#: "adam", or a function from parameter groups (as torch optimisers take them) to a torch optimiser.
Optimizer = str | Callable[[Iterable[dict]], "torch.optim.Optimizer"]


@dataclass(frozen=True)
class TuningSettings:
    """Schedule and regularisation.

    ``learning_rates[i]`` is used for ``epochs[i]`` epochs, or until ``patience`` epochs of it have passed
    without a better score. ``epoch_score`` and ``keep_state`` are one of `EPOCH_SCORES` and `KEEP_STATES`;
    estimators score after an epoch, and `opgrow.bench.replication` asks what scores during it would do.
    """

    loss: Loss = "cross_entropy"
    learning_rates: tuple[float, ...] = (0.01, 0.001, 0.0001)
    epochs: tuple[int, ...] = (20, 40, 40)
    patience: int | None = None
    batch_size: int = 32
    dropout: float = 0.0
    input_dropout: float = 0.0
    weight_decay: float = 0.0
    max_norm: float | None = None
    optimizer: Optimizer = "adam"
    epoch_score: str = "after"
    keep_state: str = "best"
    n_threads: int = 1

    @property
    def title(self) -> str:
        """What tells one tuning of a part from another, as the journal's titles have it."""
        stages = ", ".join(str(epochs) for epochs in self.epochs if epochs > 1) or len(self.epochs)
        return f"epochs [{stages}], dropout {self.dropout}"


def cosine(rate: float, epochs: int) -> tuple[float, ...]:
    """A learning rate for each epoch, which falls from ``rate`` to 0 along half a wave of a cosine.

    Each has six digits: libraries of other machines may compute others beyond those.
    """
    waves = (0.5 + 0.5 * math.cos(math.pi * (number + 0.5) / epochs) for number in range(epochs))
    return tuple(float(f"{rate * wave:.6g}") for wave in waves)


def is_plain(settings: TuningSettings) -> bool:
    """Whether the engines in C and on GPUs know the loss and the optimiser."""
    return isinstance(settings.loss, str) and settings.optimizer == "adam"


def scored_apart(settings: TuningSettings) -> TuningSettings:
    """The same for rows that are held out, which no epoch sees: they are scored after it."""
    return replace(settings, epoch_score="after")


def batch_bounds(n_rows: int, batch_size: int) -> np.ndarray:
    """Borders of batches of nearly equal size, so that no last batch is tiny."""
    n_batches = -(-n_rows // batch_size)
    return np.arange(n_batches + 1, dtype=np.int64) * n_rows // n_batches
