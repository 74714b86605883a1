"""A short version of `make chips`: a small network on those chips whose tools are installed."""

from __future__ import annotations

import re
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris

import opgrow
from opgrow import export_c
from opgrow.export.c import exported_program
from opgrow.export.c_text import floating
from opgrow.export.cycles import estimated_cycles
from tests.chips import boards
from tests.chips.boards import BOARDS
from tests.chips.chips import outcomes, write_rows
from tests.export.compiled import needs_compiler
from tests.export.learner import Learner
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
@pytest.mark.skipif(boards.missing(BOARDS["m4"]) is not None, reason=f"{boards.missing(BOARDS['m4'])}")
def test_two_products_at_once_have_the_same_sum_and_take_fewer_instructions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, y = load_digits(return_X_y=True)
    operators = [("multiplication", "sum", "tanh")]
    model = opgrow.HeMLRNClassifier(
        n_min=10, max_neurons=10, max_layers=1, n_estimators=1, operators=operators, random_state=0
    ).fit(x[:, :63], y)  # three of the inputs are left over from groups of four
    without = replace(BOARDS["m4"], flags=(*BOARDS["m4"].flags, "-U__ARM_FEATURE_SIMD32"))
    monkeypatch.setitem(BOARDS, "one by one", without)
    modes = [{"arithmetic": "integer"}, {"arithmetic": "integer", "weights": "int8"}]
    found = list(outcomes(model, "digits", x[:40, :63], ["m4", "one by one"], modes, sizes=False))
    assert [outcome.wrong for outcome in found] == [""] * 4
    for two, one in zip(found[::2], found[1::2], strict=True):
        assert two.ticks < 0.95 * one.ticks


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


#: The model of a firmware: one that has learned a few rows when it is asked for the first prediction.
_LEARNED_HEADER = """\
#include "learner.h"
#define MODEL_N_INPUTS LEARNER_N_INPUTS
#define MODEL_N_OUTPUTS LEARNER_N_OUTPUTS
int model_predict(const float x[MODEL_N_INPUTS]);
void model_scores(const float x[MODEL_N_INPUTS], float out[MODEL_N_OUTPUTS]);
"""
_LEARNED = """\
#include "model.h"

static const float lessons[] = {{ {lessons} }};
static const int labels[] = {{ {labels} }};

static const learner_state *learned(void)
{{
    static learner_state state;
    static int started;
    if (!started) {{
        started = 1;
        learner_start(&state);
        for (int i = 0; i < (int)(sizeof labels / sizeof *labels); i++) {{
            learner_learn(&state, lessons + i * LEARNER_N_INPUTS, labels[i]);
        }}
    }}
    return &state;
}}

int model_predict(const float x[MODEL_N_INPUTS])
{{
    return learner_predict_with(learned(), x);
}}

void model_scores(const float x[MODEL_N_INPUTS], float out[MODEL_N_OUTPUTS])
{{
    learner_scores_with(learned(), x, out);
}}
"""


@needs_compiler
@pytest.mark.parametrize("key", BOARDS)
def test_what_a_chip_learns_is_what_this_machine_learns(key: str, tmp_path: Path) -> None:
    lacks = boards.missing(BOARDS[key])
    if lacks is not None:
        pytest.skip(lacks)
    x, y = load_iris(return_X_y=True)
    rows, labels = np.float32(x[1::10]), y[1::10]
    model = opgrow.HeMLRNClassifier(
        preset=None, n_min=6, max_neurons=6, max_layers=1, forgetting=0.99, random_state=0
    )
    model.partial_fit(x[::2], y[::2])
    (tmp_path / "here").mkdir()
    here = Learner(model, tmp_path / "here", "-ffp-contract=off")
    assert set(here.learn(rows, labels)) == {1}
    shown = np.float32(x[::10])
    export_c(model, tmp_path / "learner.c", learn=True)
    (tmp_path / "model.h").write_text(_LEARNED_HEADER)
    lessons = ", ".join(map(floating, rows.ravel()))
    text = _LEARNED.format(lessons=lessons, labels=", ".join(map(str, labels)))
    (tmp_path / "model.c").write_text(text)
    write_rows(tmp_path / "rows.h", shown, 3, len(shown))
    sources = [boards.FIRMWARE / "main.c", tmp_path / "model.c", tmp_path / "learner.c"]
    done = boards.run(BOARDS[key], boards.build(BOARDS[key], tmp_path, sources, "learning"))
    assert done.labels == here.predict(shown).tolist()
    scores = np.array(done.scores, np.uint32).view(np.float32)
    assert np.abs(scores - here.scores(shown)).max() < 1e-5
    said = re.search(r"at most (\d+) bytes of the stack", (tmp_path / "learner.h").read_text())
    assert said is not None
    assert done.stack <= int(said[1]) + 2 * 64  # and the frames of these functions


def test_rows_are_written_as_numbers_of_c(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.h", np.float32([[1, 2.5], [1e-7, -3]]), 2, 1)
    assert "{\n1.0f, 2.5f, 1.00000001e-07f, -3.0f\n}" in (tmp_path / "rows.h").read_text()
    write_rows(tmp_path / "rows.h", np.int32([[1], [-7]]), 2, 1)
    assert "{\n1, -7\n}" in (tmp_path / "rows.h").read_text()
