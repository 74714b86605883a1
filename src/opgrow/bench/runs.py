"""One run of an experiment: choose parameters on training data, fit, measure on test rows.

A run never fails its study: what did not finish in time, or failed, is a result that says so. Parameters are
chosen on rows that are split off the training rows, or on the protocol's validation rows; choosing them on
the test rows, as some published figures may have been, is possible and labelled as optimistic. Where nothing
is chosen, only models with the paper's settings see the validation rows, on which they decide their growth.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..training.scores import calibration_error
from . import models
from .budget import OverBudget, time_limit
from .models import split_name
from .protocols import Split, hold_out, size_of

__all__ = ["DONE", "FAILED", "OVER_BUDGET", "SELECTIONS", "Run", "execute"]

DONE, OVER_BUDGET, FAILED = "done", "over budget", "failed"
#: Where parameters are chosen: on training or validation rows, not at all, or on the test rows (optimistic).
SELECTIONS = ("inner", "none", "test")


@dataclass(frozen=True)
class Run:
    """A model, by its full name, on a split of a dataset."""

    dataset: str
    split: int
    model: str

    @property
    def name(self) -> str:
        return f"{self.dataset}/{self.split}/{self.model}"


def execute(
    run: Run,
    x: np.ndarray,
    y: np.ndarray,
    split: Split,
    select: str = "inner",
    budget: float | None = None,
    device: str = "auto",
) -> dict[str, Any]:
    """What came of a run, as plain data; ``y`` holds the codes of classes."""
    started = time.perf_counter()
    try:
        with time_limit(budget), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # notices about convergence
            return {"status": DONE, **_measure(run, x, y, split, select, device)}
    except OverBudget as error:
        status, message = OVER_BUDGET, str(error)
    except Exception as error:
        status, message = FAILED, f"{type(error).__name__}: {error}".splitlines()[0]
    return {"status": status, "message": message, "seconds": time.perf_counter() - started}


def _measure(
    run: Run, x: np.ndarray, y: np.ndarray, split: Split, select: str, device: str
) -> dict[str, Any]:
    def fit(parameters: dict[str, Any], train: np.ndarray, validation: np.ndarray | None) -> Any:
        unseen = select == "none" and not split_name(run.model)[1]
        held = None if validation is None or unseen else (x[validation], y[validation])
        return _estimator(run, size_of(len(y)), parameters, device).fit(x[train], y[train], eval_set=held)

    started = time.perf_counter()
    chosen = _choose(run, x, y, split, select, fit)
    selected = time.perf_counter()
    estimator = fit(chosen, split.train, split.validation)
    fitted = time.perf_counter()
    network = estimator.network_
    return {
        "accuracy": float(estimator.score(x[split.test], y[split.test])),
        "training_accuracy": float(estimator.score(x[split.train], y[split.train])),
        "seconds": fitted - selected,
        "selection_seconds": selected - started,
        "chosen": chosen,
        "parameters": int(network.n_parameters()),
        "calibration": _calibration(estimator, x[split.test], y[split.test]),
        "flops": int(network.flops()),
        "topology": network.topology(),
        "operators": _operators(network),
        "steps": [_step(step) for step in estimator.history_],
    }


def _choose(
    run: Run, x: np.ndarray, y: np.ndarray, split: Split, select: str, fit: Callable[..., Any]
) -> dict[str, Any]:
    """The parameters with the best accuracy on the rows that ``select`` means; the first of several."""
    if select not in SELECTIONS:
        raise ValueError(f"select must be one of {SELECTIONS}, got {select!r}")
    grid: Sequence[dict[str, Any]] = models.grid_of(run.model, size_of(len(y)))
    if select == "none":
        return {}
    if len(grid) == 1:
        return dict(grid[0])
    train, scored, held = split.train, split.validation, split.validation
    if select == "test":
        scored = split.test
    elif scored is None:
        train, scored = hold_out(y, split.train, run.split)
    accuracies = [fit(parameters, train, held).score(x[scored], y[scored]) for parameters in grid]
    return dict(grid[int(np.argmax(accuracies))])


def _estimator(run: Run, size: str, parameters: dict[str, Any], device: str) -> Any:
    """The model with chosen parameters; those in its name come first."""
    where = {} if device == "auto" else {"device": device}
    return models.build(run.model, size, run.split, **(parameters | where))


def _calibration(estimator: Any, x: np.ndarray, y: np.ndarray) -> float | None:
    """How far probabilities of the predicted class are from accuracies; None for models without any."""
    if not hasattr(estimator, "predict_proba"):
        return None
    probabilities = estimator.predict_proba(x)
    right = np.asarray(estimator.classes_)[probabilities.argmax(axis=1)] == y
    return calibration_error(probabilities.max(axis=1), right)


def _operators(network: Any) -> list[dict[str, Any]]:
    return [
        {"layer": number, "set": str(block.operator_set), "neurons": block.n_neurons}
        for number, layer in enumerate(network.layers, 1)
        for block in layer
    ]


def _step(step: Any) -> dict[str, Any]:
    """What the figures of a study show of a growth step."""
    return {
        "kind": step.kind,
        "layer": step.layer,
        "block": step.block,
        "accepted": step.accepted,
        "parameters": step.n_parameters,
        "score": step.score.value,
        "curve": [[epoch.train_loss, epoch.score.value] for epoch in step.curve],
    }
