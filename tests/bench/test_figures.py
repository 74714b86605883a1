"""Curves of a study: of the median run, as lines of a file that give the same chart again."""

from __future__ import annotations

import csv
import io

from opgrow.bench.figures import curves_csv, growth_curves, steps_of
from opgrow.bench.runs import DONE, OVER_BUDGET, Run

STEPS = [
    {"kind": "block", "layer": 1, "block": 1, "accepted": True, "curve": [[0.5, 0.25], [0.25, 0.75]]},
    {"kind": "block", "layer": 1, "block": 2, "accepted": False, "curve": [[0.125, 0.5]]},
    {"kind": "fine-tune", "layer": 1, "block": 0, "accepted": True, "curve": [[0.0625, 0.875]]},
]


def lines():
    results = [
        (Run("pima", split, model), {"status": DONE, "accuracy": accuracy, "steps": steps})
        for model in ("HeMLGOP.paper", "PLN")
        for split, accuracy, steps in ((0, 0.9, []), (1, 0.7, []), (2, 0.8, STEPS))
    ]
    results.append((Run("cmc", 0, "HeMLGOP.paper"), {"status": OVER_BUDGET, "seconds": 1.0}))
    return list(csv.DictReader(io.StringIO(curves_csv(results, ["HeMLGOP.paper"]))))


def test_the_median_run_has_a_line_for_each_epoch():
    actual = lines()
    assert len(actual) == 4
    assert {(row["dataset"], row["split"], row["model"]) for row in actual} == {
        ("pima", "2", "HeMLGOP.paper")
    }
    assert [(row["step"], row["loss"], row["score"]) for row in actual[1:3]] == [
        ("1", "0.25", "0.75"),
        ("2", "0.125", "0.5"),
    ]


def test_the_lines_give_the_same_charts():
    for place, name in ((0, "training loss"), (1, "accuracy")):
        assert growth_curves(steps_of(lines()), place, name) == growth_curves({"steps": STEPS}, place, name)
    assert growth_curves({"steps": []}) is None
