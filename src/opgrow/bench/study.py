"""A study: models on splits of datasets, spread over processes, saved run by run, and resumable."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ..common.version import __version__
from ..growth.devices import check_device
from ..rows import datasets
from .models import check_model
from .protocols import PROTOCOLS, Protocol, draw_inner_split, split_of
from .provenance import commit, machine
from .runs import OVER_BUDGET, SELECTIONS, Run, execute
from .store import Store

__all__ = ["Finished", "Study", "run_study"]

#: Models whose runs take longest, begun first so that no process is left with one at the end.
_SLOW = ("POP", "POPMemH", "POPMemO", "POPFast")

#: A run and what came of it.
Finished = tuple[Run, dict[str, Any]]


@dataclass(frozen=True)
class Study:
    """What to run.

    Attributes
    ----------
    datasets, models : names
    data_home : folder with dataset files, or None
    out : folder; finished runs are kept below it
    protocol : one of `opgrow.bench.protocols.PROTOCOLS`
    n_splits : instead of the protocol's number
    select : where parameters are chosen, one of `opgrow.bench.runs.SELECTIONS`
    inner : split the training rows of each split once more and leave its other rows alone
    budget : seconds for a run, or None
    device : where the methods grow
    n_jobs : processes
    """

    datasets: Sequence[str]
    models: Sequence[str]
    out: Path
    data_home: str | None = None
    protocol: str = "paper"
    n_splits: int | None = None
    select: str = "inner"
    inner: bool = False
    budget: float | None = None
    device: str = "auto"
    n_jobs: int = 1

    def check(self) -> None:
        """Complain about names and values that are not known, before any work."""
        for model in self.models:
            check_model(model)
        check_device(self.device)
        if self.protocol not in PROTOCOLS:
            raise ValueError(f"protocol must be one of {', '.join(PROTOCOLS)}, got {self.protocol!r}")
        if self.select not in SELECTIONS:
            raise ValueError(f"select must be one of {', '.join(SELECTIONS)}, got {self.select!r}")
        for name in self.datasets:
            _, y, given = _load(name, self.data_home)
            split_of(self.rules, y, 0, given)

    @property
    def rules(self) -> Protocol:
        return PROTOCOLS[self.protocol]

    def settings(self, dataset: str) -> dict[str, Any]:
        """What decides the outcome of a run besides its name; a budget decides only whether it ends."""
        data = _fingerprint(dataset, self.data_home)
        rows = self.rules.rows
        return {
            "select": self.select,
            "inner": self.inner,
            "rows": rows,
            "version": __version__,
            "data": data,
        }

    def runs(self) -> list[Run]:
        """All runs, dataset by dataset and split by split."""
        runs = []
        for name in self.datasets:
            n_splits = self.n_splits or self.rules.n_splits(len(_load(name, self.data_home)[1]))
            runs += [Run(name, split, model) for split in range(n_splits) for model in self.models]
        return runs


def run_study(study: Study, on_finished: Callable[[Run, dict[str, Any], bool], None]) -> list[Finished]:
    """Run what has not been run yet; all results in the order of `Study.runs`.

    ``on_finished`` hears of each run, and whether it was known from before. A run that did not end within
    its budget is tried again only if there is more time for it now.
    """
    study.check()
    store = Store(study.out / "runs")
    results: dict[Run, dict[str, Any]] = {}
    for run in study.runs():
        earlier = store.load(run.name, study.settings(run.dataset))
        if earlier is not None and not _deserves_another_try(earlier, study.budget):
            results[run] = earlier
            on_finished(run, earlier, True)
    waiting = [run for run in study.runs() if run not in results]
    waiting.sort(key=lambda run: _slowness(run.model))
    for run, result in _results(study, waiting):
        store.save(run.name, study.settings(run.dataset), result)
        results[run] = result
        on_finished(run, result, False)
    return [(run, results[run]) for run in study.runs()]


def _slowness(model: str) -> int:
    method = model.split()[0]
    return _SLOW.index(method) if method in _SLOW else len(_SLOW)


def _deserves_another_try(earlier: dict[str, Any], budget: float | None) -> bool:
    return earlier["status"] == OVER_BUDGET and (budget is None or budget > earlier.get("budget", 0.0))


def _results(study: Study, runs: Sequence[Run]) -> Any:
    """Results as they come, from this process or from several."""
    if study.n_jobs == 1 or len(runs) < 2:
        return (_task(study, run) for run in runs)
    from joblib import Parallel, delayed

    parallel = Parallel(n_jobs=min(study.n_jobs, len(runs)), return_as="generator_unordered", batch_size=1)
    return parallel(delayed(_task)(study, run) for run in runs)


def _task(study: Study, run: Run) -> Finished:
    x, y, given = _load(run.dataset, study.data_home)
    rules, number = study.rules, run.split
    split = draw_inner_split(y, number) if study.inner else split_of(rules, y, number, given)
    result = execute(run, x, y, split, study.select, study.budget, study.device)
    if study.budget is not None:
        result["budget"] = study.budget
    return run, result | {"commit": commit(), "machine": machine(), "device": study.device}


@lru_cache(maxsize=4)
def _load(name: str, data_home: str | None) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Inputs, classes as codes from 0, and the partition of the rows that comes with them."""
    bunch = datasets.load(name, None if data_home is None else os.fspath(data_home))
    return bunch.data, np.unique(bunch.target, return_inverse=True)[1], bunch.get("split")


@lru_cache(maxsize=64)
def _fingerprint(name: str, data_home: str | None) -> str:
    """A few digits that change with the data."""
    digest = hashlib.sha256()
    for array in _load(name, data_home)[:2]:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:16]
