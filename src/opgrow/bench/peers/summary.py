"""What the lines of a study say: means, paired tests, ranks, costs and structures, as numbers.

Models are compared where all of them have run. A model with lines on fewer than half of the tables has only
begun: it is left out, and so are splits on which one of the others has no line yet. A run that failed or took
too long has no score; it is left out of means and differences, and takes the worst rank.

The score of a line is its accuracy, or 1 - nrmse for regression, so that tables of both kinds can be ranked
together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from ..comparison import CriticalDifference, average_ranks, wilcoxon_holm
from ..runs import DONE
from .metrics import METRICS
from .models import CLASSIC, DEFAULT, OURS, PEERS
from .results import Key, Line, key_of

__all__ = ["Behind", "Duel", "Summary", "corrected_t_test", "score", "summarize"]

_NAN = float("nan")


def score(line: Line) -> float:
    """How good a run is, the higher the better; NaN if it did not finish."""
    if line["status"] != DONE:
        return _NAN
    return line["accuracy"] if line["task"] == "classification" else 1 - line["nrmse"]


@dataclass(frozen=True)
class Duel:
    """The reference against one model, table by table.

    Attributes
    ----------
    ahead, behind : tables on which the reference's mean score is higher, or lower
    wins, ties, losses : tables on which a paired test over splits finds it better, no different, or worse
    difference : mean over tables of the reference's score less the model's
    p, p_holm : Wilcoxon's signed-rank test over tables, and with Holm's correction for all models
    """

    model: str
    ahead: int
    behind: int
    wins: int
    ties: int
    losses: int
    difference: float
    p: float
    p_holm: float


@dataclass(frozen=True)
class Behind:
    """A table, the score of the default on it, and the best score of the classic peers."""

    table: str
    ours: float
    peer: str
    best: float


@dataclass(frozen=True)
class Summary:
    """The lines on which models can be compared.

    Attributes
    ----------
    models : in the order of the study
    tables : names, with the task of each
    lines : by table, split and model; complete for ``splits``
    splits : (table, split) on which every model has a line
    begun : models that are left out as they have run on too few tables, or none
    """

    models: tuple[str, ...]
    tables: dict[str, str]
    lines: dict[Key, Line]
    splits: tuple[tuple[str, int], ...]
    begun: tuple[str, ...] = ()

    def tables_of(self, task: str | None) -> list[str]:
        return [name for name, one in self.tables.items() if task in (None, one)]

    def values(self, model: str, table: str, what: str | Callable[[Line], float]) -> np.ndarray:
        """A value on each split of a table, NaN where a line has none."""
        lines = [self.lines[name, split, model] for name, split in self.splits if name == table]
        get = (
            what if callable(what) else lambda line: line.get(what, _NAN) if line["status"] == DONE else _NAN
        )
        return np.array([get(line) for line in lines], dtype=np.float64)

    def scores(self, model: str, task: str | None = None) -> np.ndarray:
        """The mean score on each table, NaN where no split finished."""
        return np.array([_mean(self.values(model, table, score)) for table in self.tables_of(task)])

    def finished(self, model: str) -> int:
        """Tables on which at least one split finished."""
        return int((~np.isnan(self.scores(model))).sum())

    def mean(self, model: str, metric: str) -> float:
        """Mean over the tables of a task on which every model finished every split."""
        task = next(task for task, metrics in METRICS.items() if metric in metrics)
        return _mean(np.array([_mean(self.values(model, table, metric)) for table in self.common(task)]))

    def common(self, task: str) -> list[str]:
        return [
            table
            for table in self.tables_of(task)
            if all(not np.isnan(self.values(model, table, score)).any() for model in self.models)
        ]

    def median(self, model: str, what: str, task: str | None = None) -> float:
        """Median over the tables of a task, or all, of the mean over splits that finished."""
        values = np.array([_mean(self.values(model, table, what)) for table in self.tables_of(task)])
        values = values[~np.isnan(values)]
        return float(np.median(values)) if len(values) else _NAN

    def ranks(self) -> CriticalDifference | None:
        """Average ranks over tables, if there are enough of both."""
        if len(self.models) < 2 or len(self.tables) < 2:
            return None
        return average_ranks({model: self.scores(model) for model in self.models})

    def duels(self, reference: str = DEFAULT) -> list[Duel]:
        """The reference against every other model."""
        if reference not in self.models or len(self.models) < 2:
            return []
        tests = wilcoxon_holm({model: self.scores(model) for model in self.models}, reference)
        found = []
        for test in tests:
            outcomes = [self.outcome(reference, test.model, table) for table in self.tables]
            wins, ties, losses = (sum(one == kind for one in outcomes) for kind in (1, 0, -1))
            counts = test.losses, test.wins, wins, ties, losses  # the test has the other model's view
            found.append(Duel(test.model, *counts, -test.mean_difference, test.p, test.p_holm))
        return found

    def outcome(self, first: str, second: str, table: str) -> int | None:
        """1 if the first model is better on a table, -1 if worse, 0 if a paired test finds no difference.

        None without a common split. The test is `corrected_t_test` over splits, two-sided at 5 %.
        """
        differences = self.values(first, table, score) - self.values(second, table, score)
        differences = differences[~np.isnan(differences)]
        if not len(differences):
            return None
        one = next(self.lines[name, split, first] for name, split in self.splits if name == table)
        p = corrected_t_test(differences, one.get("test_rows", 2) / one.get("rows", 3))
        return int(np.sign(differences.mean())) if p < 0.05 else 0

    def worst(self, count: int = 5) -> list[Behind]:
        """The tables on which the default is farthest behind the best of the classic peers."""
        peers = [model for model in CLASSIC if model in self.models]
        if DEFAULT not in self.models or not peers:
            return []
        found = []
        for table, ours in zip(self.tables, self.scores(DEFAULT), strict=True):
            scores = {model: _mean(self.values(model, table, score)) for model in peers}
            known = {model: value for model, value in scores.items() if not np.isnan(value)}
            if known and not np.isnan(ours):
                best = max(known, key=lambda model: known[model])
                found.append(Behind(table, float(ours), best, known[best]))
        return sorted(found, key=lambda one: one.ours - one.best)[:count]


def corrected_t_test(differences: np.ndarray, test_share: float) -> float:
    """The two-sided p-value of a mean difference over splits that share rows; 1 for fewer than two splits.

    Nadeau and Bengio, Inference for the Generalization Error (Machine Learning 52, 2003): the variance of the
    mean is s² (1/n + test rows / training rows), where a t-test on independent differences has s² / n.

    Parameters
    ----------
    differences : ndarray of shape (n_splits,)
    test_share : test rows for each training row
    """
    n = len(differences)
    if n < 2:
        return 1.0
    mean = float(differences.mean())
    noise = float(differences.std(ddof=1)) * float(np.sqrt(1 / n + test_share))
    if noise <= 1e-12:
        return 1.0 if abs(mean) <= 1e-12 else 0.0
    return float(2 * stats.t.sf(abs(mean) / noise, n - 1))


def summarize(lines: Iterable[Line], tables: Sequence[str] | None = None) -> Summary:
    """The part of the lines, of some tables or of all, on which models can be compared."""
    kept = {key_of(line): line for line in lines if tables is None or line["table"] in tables}
    tasks = {line["table"]: line["task"] for line in kept.values() if "task" in line}
    seen: dict[str, set[str]] = {}
    for table, _, model in kept:
        seen.setdefault(model, set()).add(table)
    order = [*OURS, *PEERS]
    names = sorted(seen, key=lambda model: order.index(model) if model in order else len(order))
    models = [model for model in names if 2 * len(seen[model]) >= len(tasks)]
    splits = [
        (table, split)
        for table, split in dict.fromkeys((table, split) for table, split, _ in kept)
        if all((table, split, model) in kept for model in models) and table in tasks
    ]
    there = {table for table, _ in splits}
    return Summary(
        tuple(models),
        {table: task for table, task in tasks.items() if table in there},
        kept,
        tuple(splits),
        tuple(model for model in names if model not in models),
    )


def _mean(values: np.ndarray) -> float:
    values = values[~np.isnan(values)]
    return float(values.mean()) if len(values) else _NAN
