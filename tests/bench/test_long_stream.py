"""A stream of very many rows: it is the same in whatever way it is read, and each model learns all of it."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from opgrow.bench import long_stream, provenance
from opgrow.bench.long_stream import chunk_of_rows, learn_long, measure_long
from opgrow.cli import app


def test_chunks_are_drawn_by_their_number_and_their_labels_follow_a_rule():
    x, y = chunk_of_rows(3, 5000, 4)
    again, labels = chunk_of_rows(3, 5000, 4)
    np.testing.assert_array_equal(x, again)
    np.testing.assert_array_equal(y, labels)
    assert (chunk_of_rows(4, 5000, 4)[0] != x).all()
    rule = x[:, 0] ** 2 + x[:, 1] ** 2 + x[:, 2] / 2 > 0.6
    assert (rule != y).mean() == pytest.approx(0.05, abs=0.01)


def test_every_row_is_learned_once_and_the_time_is_that_of_learning(monkeypatch):
    clock = SimpleNamespace(now=0.0)
    learned = []

    class Model:
        def partial_fit(self, x, y, classes):
            learned.append(x)
            clock.now += 5.0 if len(learned) == 1 else 1e-3

        def predict(self, x):
            return np.zeros(len(x))

    monkeypatch.setitem(long_stream.MODELS, "model", Model)
    monkeypatch.setattr(long_stream.time, "process_time", lambda: clock.now)
    line = learn_long("model", 2500, 5, 100)
    assert [len(x) for x in learned] == [100] * 25
    np.testing.assert_array_equal(learned[7], chunk_of_rows(7, 100, 5)[0])
    assert line["first_seconds"] == 5.0
    assert line["microseconds_a_row"] == 10.0
    assert [rows for rows, _ in line["resident_mib"]] == [100, 1000, 2500]
    assert line["peak_mib"] >= 0
    assert 0.3 < line["accuracy"] < 0.7


def test_what_is_known_is_not_measured_again(tmp_path):
    """By the command, which also writes what it finds, a line for each model."""
    out = tmp_path / "new" / "long.jsonl"
    arguments = [
        "bench",
        "prequential",
        "--long",
        "1500",
        "--inputs",
        "4",
        "--chunk",
        "500",
        "--out",
        str(out),
    ]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["model"] for line in lines] == list(long_stream.LONG_MODELS)
    assert all(line["rows"] == 1500 and line["inputs"] == 4 and line["chunk"] == 500 for line in lines)
    again = CliRunner().invoke(app, arguments)
    assert again.exit_code == 0
    assert again.stdout == ""
    assert len(out.read_text().splitlines()) == len(lines)


def test_another_commit_measures_anew(monkeypatch):
    monkeypatch.setattr(provenance, "commit", lambda: "new")
    old = {
        "stream": "long",
        "model": "SGDClassifier",
        "rows": 1000,
        "inputs": 4,
        "chunk": 500,
        "commit": "old",
    }
    (line,) = measure_long(1000, 4, 500, ["SGDClassifier"], [old])
    assert line["commit"] == "new"
    assert list(measure_long(1000, 4, 500, ["SGDClassifier"], [line])) == []
