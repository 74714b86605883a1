"""`opgrow bench speed`: what is measured, and how it is told."""

from __future__ import annotations

import sys

from sklearn.datasets import load_iris
from typer.testing import CliRunner

from opgrow import POPClassifier
from opgrow.bench.speed import Row, _other_fits, measure
from opgrow.cli.bench import app
from opgrow.rows import datasets


def test_speed_measures_kernels_search_and_tuning():
    rows = list(measure(None, 1, quick=True))
    assert len(rows) == 7
    assert all(row.value > 0 for row in rows)
    assert all(peer > 0 for row in rows for peer in row.peers.values())


def test_speed_fits_the_methods_of_the_papers_table(monkeypatch):
    few = {"widths": [3], "operators": [("harmonic", "sum", "tanh")], "epochs": [2], "learning_rates": [0.01]}
    monkeypatch.setattr(
        sys.modules["opgrow.bench.speed"],
        "POPClassifier",
        lambda **settings: POPClassifier(**(settings | few)),
    )
    monkeypatch.setattr(datasets, "load", lambda name, data_home: load_iris())
    rows = list(_other_fits(None, 1, pop=True))
    assert [row.name.partition("(")[0] for row in rows] == [
        *("PMLPClassifier", "PLNClassifier", "BLSClassifier", "POPClassifier"),
    ]
    assert all(row.value > 0 for row in rows)
    assert "at most 100 epochs a training, patience 5; paper 14 s" in rows[0].note
    assert "layers searched 1, kept 1; at most 2 epochs a training, patience 5; paper" in rows[-1].note


def test_pop_is_a_fit_and_quick_leaves_fits_out():
    result = CliRunner().invoke(app, ["speed", "--quick", "--pop"])
    assert isinstance(result.exception, ValueError)
    assert "--pop" in str(result.exception)


def test_a_row_of_speed_names_its_ratios():
    row = Row("step", 10.0, "us", {"torch": 250.0}, "warm")
    assert row.text() == "step: 10 us; torch 250 (25 x as fast)  [warm]"
    rate = Row("forward", 3.0, "G elements/s", {"torch": 4.0})
    assert rate.text() == "forward: 3 G elements/s; torch 4 (0.75 x as fast)"
    assert row.plain()["peers"] == {"torch": 250.0}
