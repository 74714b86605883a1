"""One run of an experiment: choose parameters on training data, fit, measure on test rows.

A run never fails its study: what did not finish in time, or failed, is a result that says so. Parameters are
chosen on rows that are split off the training rows, or on the protocol's validation rows; choosing them on
the test rows, as some published figures may have been, is possible and labelled as optimistic.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .budget import OverBudget, time_limit
from .models import GRIDS, METHODS, PEERS, n_parameters
from .protocols import Split, hold_out

__all__ = ["DONE", "FAILED", "OVER_BUDGET", "SELECTIONS", "Run", "execute"]

DONE, OVER_BUDGET, FAILED = "done", "over budget", "failed"
#: Where parameters are chosen: on training or validation rows, not at all, or on the test rows (optimistic).
SELECTIONS = ("inner", "none", "test")


@dataclass(frozen=True)
class Run:
    """A model on a split of a dataset."""

    dataset: str
    split: int
    model: str

    @property
    def name(self) -> str:
        return f"{self.dataset}/{self.split}/{self.model}"


def execute(
    run: Run, x: np.ndarray, y: np.ndarray, split: Split, select: str = "inner", budget: float | None = None
) -> dict[str, Any]:
    """What came of a run, as plain data; ``y`` holds the codes of classes."""
    started = time.perf_counter()
    try:
        with time_limit(budget), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # convergence notices of peers
            return {"status": DONE, **_measure(run, x, y, split, select)}
    except OverBudget as error:
        status, message = OVER_BUDGET, str(error)
    except Exception as error:
        status, message = FAILED, f"{type(error).__name__}: {error}".splitlines()[0]
    return {"status": status, "message": message, "seconds": time.perf_counter() - started}


def _measure(run: Run, x: np.ndarray, y: np.ndarray, split: Split, select: str) -> dict[str, Any]:
    started = time.perf_counter()
    chosen = _choose(run, x, y, split, select)
    selected = time.perf_counter()
    estimator = _fit(run, chosen, x, y, split.train, split.validation)
    fitted = time.perf_counter()
    network = getattr(estimator, "network_", None)
    result: dict[str, Any] = {
        "accuracy": float(estimator.score(x[split.test], y[split.test])),
        "training_accuracy": float(estimator.score(x[split.train], y[split.train])),
        "seconds": fitted - selected,
        "selection_seconds": selected - started,
        "chosen": chosen,
        "parameters": n_parameters(estimator),
    }
    if network is not None:
        result |= {
            "flops": int(network.flops()),
            "topology": network.topology(),
            "operators": _operators(network),
            "steps": [_step(step) for step in estimator.history_],
        }
    return result


def _choose(run: Run, x: np.ndarray, y: np.ndarray, split: Split, select: str) -> dict[str, Any]:
    """The parameters with the best accuracy on the rows that ``select`` means; the first of several."""
    if select not in SELECTIONS:
        raise ValueError(f"select must be one of {SELECTIONS}, got {select!r}")
    grid: Sequence[dict[str, Any]] = GRIDS.get(run.model, ({},))
    if select == "none":
        return {}
    if len(grid) == 1:
        return dict(grid[0])
    train, scored, held = split.train, split.validation, split.validation
    if select == "test":
        scored = split.test
    elif scored is None:
        train, scored = hold_out(y, split.train, run.split)
    accuracies = []
    for parameters in grid:
        estimator = _fit(run, parameters, x, y, train, held)
        accuracies.append(estimator.score(x[scored], y[scored]))
    return dict(grid[int(np.argmax(accuracies))])


def _fit(
    run: Run,
    parameters: dict[str, Any],
    x: np.ndarray,
    y: np.ndarray,
    train: np.ndarray,
    validation: np.ndarray | None,
) -> Any:
    if run.model in PEERS:
        return PEERS[run.model](run.split).fit(x[train], y[train])
    estimator = METHODS[run.model](random_state=run.split, **parameters)
    held = None if validation is None else (x[validation], y[validation])
    return estimator.fit(x[train], y[train], eval_set=held)


def _operators(network: Any) -> list[dict[str, Any]]:
    return [
        {"layer": number, "set": str(block.operator_set), "neurons": block.n_neurons}
        for number, layer in enumerate(network.hidden, 1)
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
