"""The experiment on readings, run by run: the design first, then what lies around its predicted nearest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...rows import datasets
from ..provenance import commit, machine
from .reading_results import measured, predicted_nearest
from .readings import FACTORS, Bounds, ReadingRun, designed, fit_reading, neighbours, runs_of
from .results_file import ResultsFile

__all__ = ["AROUND", "COLUMNS", "DESIGN", "ReadingStudy", "results_of", "run_readings"]

#: The two parts of the experiment.
DESIGN, AROUND = "design", "around the nearest"
_KEY = ("part", "table", "split", *(factor.name for factor in FACTORS))
COLUMNS = (
    *("commit", "machine", "command"),
    *_KEY,
    *("max_parameters", "seed", "status", "parameters", "topology", "training_accuracy", "accuracy"),
    *("cpu_seconds", "message"),
)
#: The size of POP and PMLP on the paper's small tables is twice as large.
_BOUNDS = Bounds(20_000, 60.0)


@dataclass(frozen=True)
class ReadingStudy:
    """What to run.

    Attributes
    ----------
    tables : names of tables that the paper has, too
    out : the file of results
    n_splits : splits of each table in the design, and in the part around the nearest reading
    """

    tables: Sequence[str]
    out: Path
    command: str
    data_home: str | None = None
    n_splits: tuple[int, int] = (2, 3)
    bounds: Bounds = _BOUNDS


def results_of(path: Path) -> ResultsFile:
    """The file of results."""
    return ResultsFile(path, COLUMNS, _KEY)


def run_readings(study: ReadingStudy, tell: Callable[[str], None]) -> None:
    """Run what the file of results does not have yet, and add a line for each run."""
    results = results_of(study.out)
    tables = {name: _loaded(name, study.data_home) for name in study.tables}
    _run(study, tables, list(runs_of(DESIGN, designed(), tables, study.n_splits[0])), results, tell)
    nearest = predicted_nearest(measured(results.rows(), DESIGN))
    around = runs_of(AROUND, neighbours(nearest), tables, study.n_splits[1])
    _run(study, tables, list(around), results, tell)


def _loaded(name: str, data_home: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Inputs, and classes as codes from 0."""
    bunch = datasets.load(name, data_home)
    return bunch.data, np.unique(bunch.target, return_inverse=True)[1]


def _run(
    study: ReadingStudy,
    tables: dict[str, tuple[np.ndarray, np.ndarray]],
    runs: Sequence[ReadingRun],
    results: ResultsFile,
    tell: Callable[[str], None],
) -> None:
    known = results.known()
    waiting = [run for run in runs if results.key_of(run.row()) not in known]
    for number, run in enumerate(waiting, 1):
        result = fit_reading(run, *tables[run.table], study.bounds)
        bounds: dict[str, Any] = {"max_parameters": study.bounds.max_parameters, "seed": run.split}
        source = {"commit": commit(), "machine": machine(), "command": study.command}
        results.add(source | run.row() | bounds | result)
        what = f"{result['parameters']} parameters, {result['accuracy']}, {result['cpu_seconds']} s"
        tell(f"[{number}/{len(waiting)}] {run.part}, {run.table}, split {run.split}: {what}")
