"""The tables of the experiment say what its lines say."""

from __future__ import annotations

from opgrow.bench.replication.reading_study import AROUND, DESIGN
from opgrow.bench.replication.reading_tables import tables_of
from opgrow.bench.replication.readings import TEST_ROWS, designed, neighbours
from tests.bench.replication.test_reading_results import rows


def tables(lines):
    return {table.name: table for table in tables_of(lines)}


def test_all_tables_of_an_experiment_that_is_complete():
    nearest = designed()[0] | {"rows that decide": "a fifth held out"}
    actual = tables(rows(designed(), DESIGN) + rows(neighbours(nearest), AROUND))
    assert list(actual) == ["effects", "nearest", "around", "reach"]
    held = next(row for row in actual["effects"].rows if row[1] == "a fifth held out")
    assert held[3].startswith("0.12 (0.12 to 0.13)")
    assert held[4] == "+2.0 ± 0.0"
    printed, *ranked = actual["nearest"].rows
    assert printed[3:] == ("81.81 %, 0.8k", "60.37 %, 0.9k")
    for kind in ("keeps to the text", "contradicts the text", "decides on test rows"):
        group = [row for row in ranked if row[1] == kind]
        distances = [float(row[2]) for row in group]
        assert distances == sorted(distances)
        assert all((TEST_ROWS in row[0]) == (kind == "decides on test rows") for row in group)
        assert all(("thresholds" in row[0]) <= (kind != "keeps to the text") for row in group)
    assert "dropout: 0.5" in {row[0] for row in actual["around"].rows}
    [pima, cmc] = actual["reach"].rows
    assert pima[:2] == ("pima", "81.81")
    assert cmc[5] == "0.9k"


def test_figures_are_shown_before_the_second_part():
    assert "around" not in tables(rows(designed(), DESIGN))
