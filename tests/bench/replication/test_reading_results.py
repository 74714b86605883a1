"""Results of readings: distances from the printed figures, and what main effects predict."""

from __future__ import annotations

import math

import pytest

from opgrow.bench.replication.reading_results import (
    LEVELS,
    POINTS,
    distance,
    effects_of,
    measured,
    predicted_nearest,
)
from opgrow.bench.replication.readings import TEST_ROWS, designed, keeps_to_the_text
from opgrow.bench.runs import DONE, OVER_BUDGET

#: The factors by which sizes change, and the points by which accuracies do.
SIZES = {"a fifth held out": 0.125, "0.5": 1.5}
POINTS_OF = {"a fifth held out": 2.0, TEST_ROWS: 5.0, "raw": -1.0}


def rows(readings, part="design", tables=("pima", "cmc"), splits=2):
    """Results that follow main effects exactly."""
    lines = []
    for reading in readings:
        size = 6400 * math.prod(SIZES.get(level, 1.0) for level in reading.values())
        accuracy = 60 + sum(POINTS_OF.get(level, 0.0) for level in reading.values())
        for table in tables:
            for split in range(splits):
                lines.append(
                    {
                        "part": part,
                        "table": table,
                        "split": str(split),
                        **reading,
                        "status": DONE,
                        "parameters": str(round(size)),
                        "accuracy": str(accuracy / 100 + 0.01 * split),
                        "training_accuracy": "0.9",
                    }
                )
    return lines


def test_readings_have_their_runs_by_table():
    lines = rows(designed()[:3]) + rows(designed()[:1], "around")
    results = measured(lines)
    assert [one.part for one in results] == ["design"] * 3 + ["around"]
    assert results[0].reading == designed()[0]
    assert len(results[0].parameters["cmc"]) == len(results[0].accuracy["pima"]) == 2
    assert [one.reading for one in measured(lines, "around")] == [designed()[0]]


def test_a_reading_with_a_run_that_did_not_end_is_left_out():
    lines = rows(designed()[:2])
    lines[1] |= {"status": OVER_BUDGET, "parameters": "", "accuracy": ""}
    assert [one.reading for one in measured(lines)] == [designed()[1]]


def test_distances_are_from_the_printed_figures():
    printed = {"pima": math.log(800), "cmc": math.log(900)}
    accuracies = {"pima": 81.81, "cmc": 60.37}
    assert distance(printed, accuracies) == pytest.approx(0, abs=1e-9)
    larger = {name: size + 1 for name, size in printed.items()}
    assert distance(larger, accuracies) == pytest.approx(math.sqrt(1 / 2))
    worse = {name: accuracy - POINTS for name, accuracy in accuracies.items()}
    assert distance(printed, worse) == pytest.approx(math.sqrt(1 / 2))
    assert distance(larger, worse) == pytest.approx(1)


def test_the_effects_of_the_design_are_found():
    sizes, accuracies = effects_of(measured(rows(designed())))
    for effect in sizes:
        assert effect.effect == pytest.approx(math.log2(SIZES.get(effect.level, 1.0)), abs=1e-2), effect
    for effect in accuracies:
        assert effect.effect == pytest.approx(POINTS_OF.get(effect.level, 0.0), abs=1e-6), effect
    assert len(sizes) == sum(len(levels) - 1 for levels in LEVELS.values())


def test_the_nearest_reading_is_predicted_from_main_effects_and_keeps_to_the_text():
    nearest = predicted_nearest(measured(rows(designed())))
    assert nearest["rows that decide"] == "a fifth held out"
    assert nearest["dropout"] == "0.1"
    assert nearest["inputs"] == "standardised"
    assert keeps_to_the_text(nearest)
