"""From the parameters of decisions and of back-propagation, which several families share, to settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from ...common.checks import (
    check_choice,
    check_integer,
    check_number,
    check_numbers,
    is_auto,
    is_integer,
    is_listed,
)
from ...common.team import current
from ...training.scores import Loss
from ...training.settings import KEEP_STATES, SCHEDULES, Optimizer, TuningSettings, cosine

__all__ = [
    "DecisionParameters",
    "TuningParameters",
    "dropouts_of",
    "fine_tuning_of",
    "loss_of",
    "sized_of",
    "tuning_of",
]


#: The first of the automatic learning rates, and by which factor each is smaller than the one before: for
#: squared error, to which a closed-form head is a good start, and for other losses.
_SQUARED, _OTHERWISE = (0.003, 6), (0.01, 10)


class DecisionParameters(Protocol):
    """What decides growth."""

    criterion: str


class TuningParameters(DecisionParameters, Protocol):
    """The parameters of back-propagation."""

    loss: Loss
    learning_rates: str | Sequence[float]
    epochs: Sequence[int]
    patience: int | None
    keep_state: str
    batch_size: int | str
    dropout: float | Sequence[float]
    input_dropout: float
    weight_decay: str | float
    max_norm: float | None
    optimizer: Optimizer
    fine_tune_epochs: int | str
    fine_tune_learning_rate: float
    fine_tune_schedule: str
    fine_tune_dropout: float | None


def loss_of(p: TuningParameters, classification: bool) -> Loss:
    """The loss that tuning minimises."""
    loss = ("cross_entropy" if classification else "mse") if is_auto(p.loss) else p.loss
    if not callable(loss):
        losses = ("mse", "cross_entropy") if classification else ("mse",)
        check_choice("loss", loss, losses, auto=True, function=True)
    return loss


def dropouts_of(p: TuningParameters) -> tuple[float, ...]:
    """The values of dropout to choose from."""
    return check_numbers("dropout", p.dropout, lambda v: 0 <= v < 1, "in [0, 1)")


def tuning_of(p: TuningParameters, loss: Loss, n_threads: int) -> TuningSettings:
    """Schedule and regularisation, with the first dropout; `sized_of` has the rest."""
    if not is_auto(p.batch_size):
        check_integer("batch_size", p.batch_size, 1, " or 'auto'")
    if p.patience is not None:
        check_integer("patience", p.patience, 1, " or None")
    check_choice("keep_state", p.keep_state, KEEP_STATES)
    check_number("input_dropout", p.input_dropout, 0.0, 0.999)
    if not is_auto(p.weight_decay):
        check_number("weight_decay", p.weight_decay, 0.0, 1e6, "'auto' or ")
    if p.max_norm is not None:
        check_number("max_norm", p.max_norm, 1e-6, np.inf, "None or ")
    if not callable(p.optimizer):
        check_choice("optimizer", p.optimizer, ("adam",), function=True)
    rates, epochs = _schedule_of(p, loss)
    return TuningSettings(
        loss=loss,
        learning_rates=rates,
        epochs=epochs,
        patience=p.patience,
        dropout=dropouts_of(p)[0],
        input_dropout=float(p.input_dropout),
        max_norm=p.max_norm,
        keep_state=p.keep_state,
        optimizer=p.optimizer,
        n_threads=n_threads,
    )


def _schedule_of(p: TuningParameters, loss: Loss) -> tuple[tuple[float, ...], tuple[int, ...]]:
    epochs: tuple[Any, ...] = tuple(p.epochs) if is_listed(p.epochs) else (p.epochs,)
    if not all(is_integer(e) and e >= 0 for e in epochs):
        raise ValueError(f"epochs must be a sequence of integers of at least 0, got {p.epochs!r}")
    if is_auto(p.learning_rates):
        first, fall = _SQUARED if loss == "mse" else _OTHERWISE
        return tuple(first / fall**stage for stage in range(len(epochs))), tuple(int(e) for e in epochs)
    rates = check_numbers(
        "learning_rates",
        p.learning_rates,
        lambda v: 0 <= v < np.inf,
        "at least 0",
        empty=True,
        otherwise="'auto', ",
    )
    if len(rates) != len(epochs):
        raise ValueError(
            f"learning_rates and epochs must have the same length, got {len(rates)} and {len(epochs)}"
        )
    return rates, tuple(int(e) for e in epochs)


def fine_tuning_of(
    p: TuningParameters, tuning: TuningSettings, automatic: int | None = None
) -> TuningSettings:
    """Settings of the final tuning, from those of the others; ``automatic`` epochs where these are "auto"."""
    epochs: Any = p.fine_tune_epochs
    if automatic is not None and is_auto(epochs):
        epochs = automatic
    check_integer("fine_tune_epochs", epochs, 0, "" if automatic is None else " or 'auto'")
    check_number("fine_tune_learning_rate", p.fine_tune_learning_rate, 0.0, 1e6)
    check_choice("fine_tune_schedule", p.fine_tune_schedule, SCHEDULES)
    if p.fine_tune_dropout is not None:
        check_number("fine_tune_dropout", p.fine_tune_dropout, 0.0, 0.999, "None or ")
        tuning = replace(tuning, dropout=float(p.fine_tune_dropout))
    rate, epochs = float(p.fine_tune_learning_rate), int(epochs)
    if p.fine_tune_schedule == "cosine":
        return replace(tuning, learning_rates=cosine(rate, epochs), epochs=(1,) * epochs)
    return replace(tuning, learning_rates=(rate,), epochs=(epochs,))


def sized_of(p: TuningParameters, n_rows: int) -> dict[str, Any]:
    """What depends on the number of training rows: the weight decay, and the size of a mini-batch."""
    decay = 0.4 / n_rows if is_auto(p.weight_decay) else float(p.weight_decay)
    # Few rows need many steps; from many rows, larger batches learn as much in less time.
    bounds = current().batch_sizes or (32, 512)
    size = min(max(1 << max(n_rows // 64, 1).bit_length() - 1, bounds[0]), bounds[1])
    return {"weight_decay": decay, "batch_size": size if is_auto(p.batch_size) else int(p.batch_size)}
