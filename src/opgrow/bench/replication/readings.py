"""Readings of the HeMLGOP paper: one level of everything that its text leaves open.

A designed experiment fits HeMLGOP under many readings on the paper's public tables. The paper's stated
settings are those of `HeMLGOPClassifier.paper`; a reading changes what is not stated, and nothing else. With
accuracy on fewer than 10,000 rows a threshold of 1e-4 asks for one more row that is right, relative to
whatever: what an improvement is relative to can only matter for larger thresholds and for losses.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...estimators import HeMLGOPClassifier
from ...growth.methods.hemlgop import BlockSettings
from ..budget import OverBudget, time_limit
from ..protocols import draw_split
from ..runs import DONE, FAILED, OVER_BUDGET
from .factorial import resolution_four

__all__ = [
    "FACTORS",
    "TEST_ROWS",
    "Bounds",
    "Factor",
    "Reading",
    "ReadingRun",
    "changes_of",
    "designed",
    "fit_reading",
    "keeps_to_the_text",
    "neighbours",
    "runs_of",
]

#: The level of each factor, by its name.
Reading = dict[str, str]


@dataclass(frozen=True)
class Factor:
    """Something that the paper leaves open, and what its levels change; four levels take two columns.

    Of one that is ``stated``, the paper says the first level; the other one asks what it would change.
    """

    name: str
    levels: dict[str, dict[str, Any]]
    stated: bool = False

    @property
    def n_columns(self) -> int:
        return int(math.log2(len(self.levels)))


#: Rows whose use makes accuracies optimistic: what a reading with them reaches is no estimate.
TEST_ROWS = "the test rows"
#: What the text does not say, with the reading of `HeMLGOPClassifier.paper` before this experiment first.
FACTORS = (
    Factor(
        "rows that decide",
        {
            "training rows, after an epoch": {},
            "training rows, during an epoch": {},
            "a fifth held out": {"validation_fraction": 0.2},
            TEST_ROWS: {},
        },
    ),
    Factor("range of weights", {"2 pi": {"weight_range": 2 * math.pi}, "1": {"weight_range": 1.0}}),
    Factor("loss", {"squared error": {"loss": "mse"}, "cross-entropy": {"loss": "cross_entropy"}}),
    Factor(
        "criterion",
        {
            "accuracy": {"criterion": "accuracy", "search_score": "accuracy"},
            "loss": {"criterion": "loss", "search_score": "loss"},
        },
        stated=True,
    ),
    Factor("state kept", {"best": {"keep_state": "best"}, "last": {"keep_state": "last"}}),
    Factor("batch size", {"32": {"batch_size": 32}, "128": {"batch_size": 128}}),
    Factor("dropout", {"0.1": {"dropout": 0.1}, "0.5": {"dropout": 0.5}}),
    Factor("dropout of inputs", {"0": {"input_dropout": 0.0}, "0.2": {"input_dropout": 0.2}}, stated=True),
    Factor("ridge", {"1": {"ridge": 1.0}, "best of three": {"ridge": (0.1, 1.0, 10.0)}}),
    Factor(
        "weights kept small by",
        {
            "decay 1e-4": {"weight_decay": 1e-4, "max_norm": None},
            "norm of 2": {"weight_decay": 0.0, "max_norm": 2.0},
        },
    ),
    Factor(
        "thresholds",
        {
            "1e-4": {"block_threshold": 1e-4, "layer_threshold": 1e-4},
            "1e-2": {"block_threshold": 1e-2, "layer_threshold": 1e-2},
        },
        stated=True,
    ),
    Factor("inputs", {"standardised": {"standardize": True}, "raw": {"standardize": False}}),
)
#: What all readings share, unless they hold rows out.
_SHARED: dict[str, Any] = {"validation_fraction": 0.0, "n_jobs": 1}


def changes_of(reading: Reading) -> dict[str, Any]:
    """The parameters of `HeMLGOPClassifier.paper` that a reading sets; some readings need more than those."""
    changes = dict(_SHARED)
    for factor in FACTORS:
        changes |= factor.levels[reading[factor.name]]
    return changes


def designed() -> list[Reading]:
    """The readings of the designed experiment."""
    signs = resolution_four(sum(factor.n_columns for factor in FACTORS))
    readings = []
    for row in (signs > 0).astype(int):
        reading, at = {}, 0
        for factor in FACTORS:
            bits = row[at : at + factor.n_columns]
            number = int((bits * 2 ** np.arange(factor.n_columns)).sum())
            reading[factor.name] = list(factor.levels)[number]
            at += factor.n_columns
        readings.append(reading)
    return readings


def keeps_to_the_text(reading: Reading) -> bool:
    """Whether a reading contradicts nothing that the paper says, and decides on no test rows."""
    first = all(reading[f.name] == next(iter(f.levels)) for f in FACTORS if f.stated)
    return first and TEST_ROWS not in reading.values()


def neighbours(reading: Reading) -> list[Reading]:
    """A reading and all that differ from it in one thing."""
    others = [
        reading | {factor.name: level}
        for factor in FACTORS
        for level in factor.levels
        if level != reading[factor.name]
    ]
    return [reading, *others]


@dataclass(frozen=True)
class ReadingRun:
    """A reading on a split of a table; ``part`` is the part of the experiment that it belongs to."""

    part: str
    table: str
    split: int
    reading: Reading

    def row(self) -> dict[str, Any]:
        """What identifies it in a file of results."""
        return {"part": self.part, "table": self.table, "split": self.split, **self.reading}


class _ScoredDuring(HeMLGOPClassifier):
    """HeMLGOP that scores epochs while it trains, which no parameter of the estimators does."""

    def _settings(self, classification: bool) -> BlockSettings:
        settings = super()._settings(classification)
        tuning, last = (replace(s, epoch_score="during") for s in (settings.tuning, settings.fine_tuning))
        return replace(settings, tuning=tuning, fine_tuning=last)


@dataclass(frozen=True)
class Bounds:
    """What ends a run: parameters of the network, and seconds."""

    max_parameters: int
    seconds: float


def fit_reading(run: ReadingRun, x: np.ndarray, y: np.ndarray, bounds: Bounds) -> dict[str, Any]:
    """Fit a reading, and say what came of it; ``y`` holds the codes of classes."""
    split = draw_split(y, run.split)
    during = run.reading["rows that decide"] == "training rows, during an epoch"
    model = (_ScoredDuring if during else HeMLGOPClassifier).paper(
        "small", random_state=run.split, max_parameters=bounds.max_parameters, **changes_of(run.reading)
    )
    on_test = run.reading["rows that decide"] == TEST_ROWS
    held = (x[split.test], y[split.test]) if on_test else None
    started = time.process_time()
    try:
        with time_limit(bounds.seconds), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(x[split.train], y[split.train], eval_set=held)
    except OverBudget as error:
        return _unfinished(OVER_BUDGET, started, error)
    except Exception as error:
        return _unfinished(FAILED, started, error)
    network = model.network_
    return {
        "status": DONE,
        "parameters": network.n_parameters(),
        "topology": network.topology(),
        "training_accuracy": round(float(model.score(x[split.train], y[split.train])), 5),
        "accuracy": round(float(model.score(x[split.test], y[split.test])), 5),
        "cpu_seconds": round(time.process_time() - started, 2),
        "message": "",
    }


def _unfinished(status: str, started: float, error: Exception) -> dict[str, Any]:
    message = f"{type(error).__name__}: {error}".splitlines()[0]
    seconds = round(time.process_time() - started, 2)
    empty = dict.fromkeys(("parameters", "topology", "training_accuracy", "accuracy"), "")
    return {"status": status, **empty, "cpu_seconds": seconds, "message": message}


def runs_of(
    part: str, readings: Iterable[Reading], tables: Iterable[str], n_splits: int
) -> Iterator[ReadingRun]:
    """Every reading on every table, split by split, so that what is interrupted has all readings first."""
    chosen, named = list(readings), list(tables)
    for split in range(n_splits):
        for reading in chosen:
            for table in named:
                yield ReadingRun(part, table, split, reading)
