"""What a fit will do and the memory that it will take: for ``opgrow fit --dry-run``, and to warn in time."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import typer
from sklearn.base import is_classifier

from opgrow.cli import common
from opgrow.common.machine import available_bytes, peak_bytes, resident_bytes
from opgrow.estimators.fit.array_data import divide_rows
from opgrow.estimators.parameters import n_threads
from opgrow.estimators.resources import Plan, plan_fit
from opgrow.network.drawing.svg import counted
from opgrow.rows.tables import Table, TableEncoder

__all__ = ["Forecast", "forecast_of", "show_plan", "warn_of_memory"]

_MIB = 1 << 20
#: What the scores after a fit take of a row and an output: outputs, and probabilities while they are made.
_SCORED_BYTES = 4 + 3 * 8
#: What a row takes while its label is compared as text.
_LABEL_BYTES = 200


@dataclass(frozen=True)
class Encoded:
    """The matrix that will be made of a table, by its size alone."""

    shape: tuple[int, int]
    nbytes: int

    @classmethod
    def of(cls, table: Table, encoder: TableEncoder) -> Encoded:
        """What a fitted encoder makes of a table, in double precision."""
        shape = len(table), len(encoder.get_feature_names_out())
        return cls(shape, 8 * shape[0] * shape[1])

    def __len__(self) -> int:
        return self.shape[0]


@dataclass(frozen=True)
class Forecast:
    """A plan and the memory of the whole process, in bytes.

    Attributes
    ----------
    plan : what the fit will do
    divided : rows of the first network for training and for validation
    n_threads : threads of the whole fit
    libraries : Python, its libraries and all else that is there without data
    data : the inputs and targets, as they are in memory before growth
    growth : what growth, or at its end the scores, take beside these
    peak : the most that the process will have had, or None where the system does not say what it has
    available : what the process could still take when it was asked, or None
    """

    plan: Plan
    divided: tuple[int, int]
    n_threads: int
    libraries: int | None
    data: int
    growth: int
    peak: int | None
    available: int | None

    @property
    def too_much(self) -> bool:
        return self.available is not None and self.growth > self.available


def forecast_of(estimator: Any, x: np.ndarray | Encoded, y: np.ndarray, eval_set: Any = None) -> Forecast:
    """What a fit will do and take; it refuses parameters that the fit would refuse.

    Inputs and targets are in memory when this is called, and all libraries are loaded.
    """
    classes, codes = np.unique(y, return_inverse=True) if is_classifier(estimator) else (None, None)
    n_outputs = 1 if classes is None else len(classes)
    n_held = None if eval_set is None else len(eval_set[0])
    plan = plan_fit(estimator, len(x), x.shape[1], n_outputs, n_held)
    divided = plan.n_rows, plan.n_held
    if eval_set is None:
        rng, fraction = np.random.default_rng(0), estimator.validation_fraction
        train, rest = divide_rows(len(x), codes, plan.n_networks, fraction, rng)[0]
        divided = (len(x), 0) if train is None or rest is None else (len(train), len(rest))
    tables = x.nbytes + y.nbytes + (0 if eval_set is None else sum(a.nbytes for a in eval_set))
    targets = len(x) * n_outputs * (4 if classes is not None else 8)  # which the fit makes of y
    growth = max(plan.growth, len(x) * (_SCORED_BYTES * n_outputs + _LABEL_BYTES))
    now, before = resident_bytes(), peak_bytes() or 0
    return Forecast(
        plan,
        divided,
        n_threads(estimator.n_jobs),
        libraries=None if now is None else max(0, now - tables),
        data=tables + targets,
        growth=growth,
        peak=None if now is None else max(before, now + targets + growth),
        available=available_bytes(),
    )


def warn_of_memory(forecast: Forecast) -> None:
    """Print a warning if growth may take more memory than there is."""
    if forecast.too_much:
        assert forecast.available is not None
        typer.echo(
            f"warning: growth may take about {_size(forecast.growth)} of memory, and "
            f"{_size(forecast.available)} are available.",
            err=True,
        )


def show_plan(
    forecast: Forecast, estimator: Any, output: Path, task: str, target: str, as_json: bool
) -> None:
    """Print what would be done."""
    if as_json:
        common.print_json(_data(forecast, estimator, output, task, target))
        return
    console = common.console()
    for name, words in _lines(forecast, estimator, output, target).items():
        console.print(f"{name:<10} {words}", soft_wrap=True)


def _data(forecast: Forecast, estimator: Any, output: Path, task: str, target: str) -> dict[str, Any]:
    plan, (train, held) = forecast.plan, forecast.divided
    return {
        "estimator": type(estimator).__name__,
        "task": task,
        "target": target,
        "training_rows": train,
        "validation_rows": held,
        "inputs": plan.n_inputs,
        "outputs": plan.n_outputs,
        "networks": plan.n_networks,
        "side_by_side": plan.side_by_side,
        "distills": plan.distills,
        "parameters": plan.n_parameters,
        "device": plan.device,
        "threads": forecast.n_threads,
        "memory": {
            "peak": forecast.peak,
            "libraries": forecast.libraries,
            "data": forecast.data,
            "growth": forecast.growth,
            "available": forecast.available,
        },
        "model": str(output),
    }


def _lines(forecast: Forecast, estimator: Any, output: Path, target: str) -> dict[str, str]:
    plan, (train, held) = forecast.plan, forecast.divided
    kind = "classes" if hasattr(estimator, "class_weight") else "target" if plan.n_outputs == 1 else "targets"
    held_words = f"{held:,} for validation" if held else "none for validation"
    several = f"{plan.n_networks} networks, {plan.side_by_side} at a time, averaged"
    network = "1 network" if plan.n_networks == 1 else several
    if plan.distills:
        network += ", and one that learns from it and takes its place"
    there = " (in place of the file that is there)" if output.exists() else ""
    return {
        "rows": f"{train:,} for training, {held_words}",
        "inputs": f"{plan.n_inputs:,}",
        "outputs": f"{plan.n_outputs:,} {kind} of {target}",
        "method": f"{type(estimator).__name__}: {network}",
        "parameters": f"{plan.n_parameters:,} at most",
        "device": plan.device
        + (f", {counted(forecast.n_threads, 'thread')}" if plan.device == "cpu" else ""),
        "memory": _memory(forecast),
        "model": f"{output}{there}",
    }


def _memory(forecast: Forecast) -> str:
    parts = f"{_size(forecast.data)} data, {_size(forecast.growth)} growth"
    if forecast.peak is None or forecast.libraries is None:
        words = (
            f"about {_size(forecast.data + forecast.growth)}, and what Python and its libraries take: {parts}"
        )
    else:
        words = f"about {_size(forecast.peak)} at the peak: {_size(forecast.libraries)} libraries, {parts}"
    if forecast.available is not None:
        words += f"; {_size(forecast.available)} are available" + (
            ", which is not enough" if forecast.too_much else ""
        )
    return words


def _size(n_bytes: int) -> str:
    return f"{n_bytes / (1 << 30):.1f} GiB" if n_bytes >= 1 << 30 else f"{max(1, round(n_bytes / _MIB))} MiB"
