"""A short version of `make chips`: a small network on those chips whose tools are installed."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris

import opgrow
from opgrow import export_c
from opgrow.export.c import exported_program
from opgrow.export.cycles import estimated_cycles
from tests.chips import boards
from tests.chips.boards import BOARDS
from tests.chips.chips import outcomes, write_rows
from tests.export.compiled import needs_compiler
from tests.export.signals import pipeline, signals


@pytest.fixture(scope="module")
def model() -> opgrow.HeMLRNClassifier:
    operators = [("exponential", "sum", "tanh")]
    return opgrow.HeMLRNClassifier(
        n_min=6, max_layers=1, epochs=(5,), operators=operators, random_state=0
    ).fit(*load_iris(return_X_y=True))


@needs_compiler
@pytest.mark.parametrize("key", BOARDS)
def test_a_network_says_the_same_on_a_chip(key: str, model: opgrow.HeMLRNClassifier) -> None:
    lacks = boards.missing(BOARDS[key])
    if lacks is not None:
        pytest.skip(lacks)
    x = load_iris(return_X_y=True)[0][::10]
    found = list(outcomes(model, "iris", x, [key], [{}, {"arithmetic": "integer"}]))
    assert [outcome.wrong for outcome in found] == ["", ""]
    for outcome, arithmetic in zip(found, ("float", "integer"), strict=True):
        assert (outcome.ram, outcome.rows) == (0, 15)  # tables are in flash, and nothing is kept
        assert 0 < outcome.flash < 12_000
        assert 0 < outcome.stack < 1000  # of 2,048 bytes on an ATmega328P
        estimated = estimated_cycles(
            exported_program(model, "float32", arithmetic), "float32", arithmetic, key
        )
        assert estimated == pytest.approx(outcome.ticks, rel=0.3)


@needs_compiler
@pytest.mark.parametrize("key", BOARDS)
def test_windows_of_signals_say_the_same_on_a_chip(key: str) -> None:
    lacks = boards.missing(BOARDS[key])
    if lacks is not None:
        pytest.skip(lacks)
    x, y = signals(60, 32, 2)
    model = pipeline(x, y, n_channels=2)
    (found,) = outcomes(model, "tones", x[:12], [key], [{}])
    assert found.wrong == ""
    assert (found.ram, found.rows) == (0, 12)
    with tempfile.TemporaryDirectory() as folder:
        export_c(model, Path(folder) / "model.c")
        said = re.search(r"at most (\d+) bytes of stack", (Path(folder) / "model.h").read_text())
    assert said is not None
    assert found.stack <= int(said[1])


def test_rows_are_written_as_numbers_of_c(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.h", np.float32([[1, 2.5], [1e-7, -3]]), 2, 1)
    assert "{\n1.0f, 2.5f, 1.00000001e-07f, -3.0f\n}" in (tmp_path / "rows.h").read_text()
    write_rows(tmp_path / "rows.h", np.int32([[1], [-7]]), 2, 1)
    assert "{\n1, -7\n}" in (tmp_path / "rows.h").read_text()
