"""Readings change what the paper leaves open, and nothing that it says."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from sklearn.datasets import load_iris

from opgrow import HeMLGOPClassifier
from opgrow.bench.protocols import draw_split
from opgrow.bench.replication.readings import (
    FACTORS,
    TEST_ROWS,
    Bounds,
    ReadingRun,
    changes_of,
    designed,
    fit_reading,
    keeps_to_the_text,
    neighbours,
    runs_of,
)
from opgrow.bench.runs import DONE, FAILED, OVER_BUDGET

X, Y = load_iris(return_X_y=True)
FIRST = {factor.name: next(iter(factor.levels)) for factor in FACTORS}
#: What the paper says: no reading may change it, but for thresholds and the criterion, which are tried.
STATED = {"n_min", "n_step", "max_neurons", "epochs", "learning_rates", "fine_tune_epochs", "operators"}


def test_every_reading_is_one_of_the_estimator():
    seen = Counter()
    for reading in designed():
        changes = changes_of(reading)
        HeMLGOPClassifier.paper("small", **changes).plan(100, 4, 3)
        assert not STATED & changes.keys()
        seen.update(reading.items())
    for factor in FACTORS:
        assert {seen[factor.name, level] for level in factor.levels} == {32 // len(factor.levels)}


def test_neighbours_differ_in_one_thing():
    first, *others = neighbours(FIRST)
    assert first == FIRST
    for other in others:
        assert sum(other[name] != level for name, level in FIRST.items()) == 1
    assert len(others) == sum(len(factor.levels) - 1 for factor in FACTORS)


@pytest.mark.parametrize(
    ("change", "keeps"),
    [
        ({}, True),
        ({"loss": "cross-entropy", "rows that decide": "a fifth held out"}, True),
        ({"rows that decide": TEST_ROWS}, False),
        ({"thresholds": "1e-2"}, False),
        ({"criterion": "loss"}, False),
        ({"dropout of inputs": "0.2"}, False),
    ],
)
def test_what_the_paper_says_can_be_contradicted(change, keeps):
    assert keeps_to_the_text(FIRST | change) == keeps


def test_runs_come_split_by_split():
    runs = list(runs_of("part", [FIRST, FIRST | {"loss": "cross-entropy"}], ["iris", "wine"], 2))
    assert [(r.split, r.table) for r in runs[:5]] == [*[(0, "iris"), (0, "wine")] * 2, (1, "iris")]
    assert runs[0].row() == {"part": "part", "table": "iris", "split": 0, **FIRST}


def fitted(monkeypatch, reading, seconds=60.0):
    """What came of a quick fit, and the settings that it grew with."""
    seen, original = [], HeMLGOPClassifier._settings
    short = {"learning_rates": (0.01,), "epochs": (2,), "fine_tune_epochs": 1}
    paper = HeMLGOPClassifier.paper.__func__

    def settings(self, classification):
        seen.append(original(self, classification))
        return seen[-1]

    monkeypatch.setattr(HeMLGOPClassifier, "_settings", settings)
    monkeypatch.setattr(
        HeMLGOPClassifier, "paper", classmethod(lambda cls, scale, **c: paper(cls, scale, **(c | short)))
    )
    run = ReadingRun("design", "iris", 1, reading)
    return fit_reading(run, X, Y, Bounds(800, seconds)), seen


def test_a_run_says_what_came_of_it(monkeypatch):
    result, _ = fitted(monkeypatch, FIRST)
    assert result["status"] == DONE
    assert 0.5 < result["accuracy"] <= 1
    assert 0 < result["parameters"] <= 800
    assert result["topology"].startswith("4-")
    again, _ = fitted(monkeypatch, FIRST)
    assert {**again, "cpu_seconds": 0} == {**result, "cpu_seconds": 0}


def test_scores_during_an_epoch_change_the_network(monkeypatch):
    first, _ = fitted(monkeypatch, FIRST)
    other, _ = fitted(monkeypatch, FIRST | {"rows that decide": "training rows, during an epoch"})
    assert (first["accuracy"], first["topology"], first["training_accuracy"]) != (
        other["accuracy"],
        other["topology"],
        other["training_accuracy"],
    )


def test_only_one_level_sees_the_test_rows(monkeypatch):
    held = []
    original = HeMLGOPClassifier.fit

    def fit(self, x, y, sample_weight=None, eval_set=None):
        held.append(None if eval_set is None else len(eval_set[1]))
        return original(self, x, y, sample_weight, eval_set)

    monkeypatch.setattr(HeMLGOPClassifier, "fit", fit)
    for level in FACTORS[0].levels:
        fitted(monkeypatch, FIRST | {"rows that decide": level})
    assert held == [None, None, None, len(draw_split(Y, 1).test)]


def test_what_takes_too_long_and_what_fails_are_results(monkeypatch):
    result, _ = fitted(monkeypatch, FIRST, seconds=1e-3)
    assert (result["status"], result["accuracy"]) == (OVER_BUDGET, "")
    run = ReadingRun("design", "iris", 0, FIRST)
    result = fit_reading(run, X * np.nan, Y, Bounds(800, 60.0))
    assert result["status"] == FAILED
    assert "no column to learn from" in result["message"].lower()
