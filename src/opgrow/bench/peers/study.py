"""The study of peers: which runs there are, which are still to be done, and their lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..runs import DONE, FAILED, OVER_BUDGET
from .processes import Request, run_all
from .results import Key, Line, Results
from .table_study import TableStudy, beginning_of

__all__ = ["PeerStudy", "TimeLeft", "run_study"]


@dataclass(frozen=True)
class PeerStudy(TableStudy):
    """What to run, and how.

    Attributes
    ----------
    budget : seconds for a run, or None
    n_jobs : processes at a time
    again : models to run again though they have lines; "failed" means every run that failed
    """

    n_splits: int = 3
    budget: float | None = None
    n_jobs: int = 1
    again: Sequence[str] = ()

    def requests(self) -> list[Request]:
        """All runs, for processes of their own."""
        home = None if self.data_home is None else str(Path(self.data_home).expanduser().resolve())
        return [Request(*run, self.max_rows, home) for run in self.runs()]

    def to_run(self, known: dict[Key, Line]) -> list[Request]:
        """The runs without a line, those to run again, and those that have more time now."""
        self.check(known)
        return [
            request
            for request in self.requests()
            if self._is_wanted(known.get((request.table, request.split, request.model)))
        ]

    def _is_wanted(self, line: Line | None) -> bool:
        if line is None or line["model"] in self.again:
            return True
        if line["status"] == OVER_BUDGET:
            return self.budget is None or self.budget > line.get("budget", 0.0)
        return line["status"] == FAILED and "failed" in self.again


def run_study(study: PeerStudy, on_finished: Callable[[Line, int, int], None]) -> None:
    """Run what has no line yet, and write a line for each run as soon as it ends.

    ``on_finished`` hears of the line, how many runs have ended now, and how many there are to do.
    """
    results = Results(study.file)
    requests = study.to_run(results.lines())
    for number, (request, result) in enumerate(run_all(requests, study.n_jobs, study.budget), 1):
        line = line_of(request, result, study.budget)
        results.add(line)
        on_finished(line, number, len(requests))


def line_of(request: Request, result: dict[str, Any], budget: float | None) -> Line:
    """The line of a run: what it was, where it ran, and what came of it."""
    finite = {k: v for k, v in result.items() if not isinstance(v, float) or np.isfinite(v)}
    if result["status"] == DONE and not {"accuracy", "nrmse"} & finite.keys():
        finite |= {"status": FAILED, "message": "predictions are not finite"}
    key = request.table, request.split, request.model
    beginning = beginning_of("peers", key, request.max_rows, request.data)
    return {**beginning, "budget": budget, **finite}


class TimeLeft:
    """How long the rest will take: runs of a model take as long as those of it that are known.

    Parameters
    ----------
    known : lines of earlier runs
    waiting : models of the runs that are left
    n_jobs : runs at a time
    """

    def __init__(self, known: Iterable[Line], waiting: Iterable[str], n_jobs: int) -> None:
        self._seconds: dict[str, list[float]] = {}
        self._waiting, self._n_jobs = list(waiting), n_jobs
        for line in known:
            self._note(line)

    def _note(self, line: Line) -> None:
        over = line["status"] == OVER_BUDGET
        spent = (
            line.get("budget", 0.0)
            if over
            else line.get("fit_seconds", 0.0) + line.get("predict_seconds", 0.0)
        )
        self._seconds.setdefault(line["model"], []).append(2.0 + spent)  # a process starts in about 2 s

    def after(self, line: Line) -> float:
        """Seconds left, now that another run has ended."""
        self._note(line)
        self._waiting.remove(line["model"])
        means = {model: float(np.mean(seconds)) for model, seconds in self._seconds.items()}
        other = float(np.mean(list(means.values())))
        return sum(means.get(model, other) for model in self._waiting) / self._n_jobs
