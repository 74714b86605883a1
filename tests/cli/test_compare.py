"""``opgrow compare``: the table before a choice, for tables with text and gaps."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from tests.cli.commands import refused, run, write_csv

QUICK = "linear,boosting,HeMLGOP preset=null max_layers=1 max_neurons=10 epochs=[2,2,2]"


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """A table in which the text decides, with gaps, many rare words, dates, and numbers that are codes."""
    rng = np.random.default_rng(0)
    n = 300
    colour, size = rng.choice(["red", "blue", ""], n), rng.normal(size=n).round(3)
    word, code = [f"word {i % 290}" for i in range(n)], rng.integers(1, 4, n)
    label = np.where((colour == "red") ^ (rng.random(n) < 0.05), "yes", "no")
    number = (colour == "red") * 10 + size
    days = np.datetime64("2024-01-31") + rng.permutation(n)
    gappy = [np.where(rng.random(n) < 0.1, "", values.astype(str)) for values in (size, days)]
    rows = zip(colour, *gappy, word, code, label, number, strict=True)
    path = tmp_path_factory.mktemp("compare") / "data.csv"
    return write_csv(path, ["colour", "size", "day", "word", "code", "label", "number"], rows)


def test_the_table_says_what_a_choice_needs(data):
    result = run("compare", data, "--target", "label", "--drop", "number", "--models", QUICK, "--folds", 2)
    head = result.stdout.splitlines()[0].split("  ")
    assert [word.strip() for word in head if word.strip()] == [
        *("model", "accuracy", "log loss", "fit s", "µs a row", "parameters")
    ]
    assert "± 0.0" in result.stdout
    assert " has the best accuracy, 0.9" in result.stdout
    assert "[6/6] fold 2, HeMLGOP preset=null" in result.stderr
    assert "text       2: 'colour'" in result.stderr  # what was decided about the columns
    assert "'day'" in result.stderr
    assert "failed" not in result.stdout


def test_numbers_as_json(data):
    options = ("--target", "number", "--drop", "label", "--text", "code", "--folds", "2", "--json")
    result = run("compare", data, *options, "--models", "linear,forest", "--jobs", "2")
    found = json.loads(result.stdout)
    assert (found["task"], found["rows"], found["columns"], found["folds"]) == ("regression", 300, 5, 2)
    best, other = found["models"]
    assert {best["model"], other["model"]} == {"logistic/ridge regression", "random forest"}
    assert best["score"] > 0.8
    assert best["loss"] < 2.5
    assert best["fit_seconds"] > 0
    assert best["row_microseconds"] > 0
    assert best["parameters"] > 0
    assert found["verdict"].startswith(f"{best['model']} has the best R²")


def test_time_that_is_over_leaves_models_out(data):
    options = ("--target", "label", "--folds", "50", "--seconds", "6", "--json")
    found = json.loads(run("compare", data, *options, "--models", "linear,boosting").stdout)
    assert all(one["folds"] < 50 for one in found["models"])
    assert any("not begun" in one["message"] or "not finished" in one["message"] for one in found["models"])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--target", "nosuch"), "has no column 'nosuch'"),
        (("--target", "label", "--models", "nosuch"), "unknown model 'nosuch'"),
        (("--target", "label", "--models", "HeMLGOP nosuch=1"), "HeMLGOP has no parameter 'nosuch'"),
        (("--target", "label", "--folds", "1"), "--folds"),
        (("--target", "label", "--task", "regression"), "regression needs numbers"),
    ],
)
def test_mistakes_are_named(data, options, says):
    assert says in refused("compare", data, *options)


def test_too_few_rows_and_folders_are_named(tmp_path):
    path = write_csv(tmp_path / "few.csv", ["a", "y"], [[i, i % 2] for i in range(6)])
    assert refused("compare", path, "--target", "y").endswith("has 6 rows, too few for 5 folds.")
    assert "takes a single file" in refused("compare", tmp_path, "--target", "y")


@pytest.mark.slow
def test_titanic(data):
    folder = os.environ.get("OPGROW_DATA")
    if not folder:
        pytest.skip("OPGROW_DATA names no folder of data")
    path = Path(folder) / "classification" / "titanic.csv"
    options = ("--target", "target", "--folds", "3", "--json")
    found = json.loads(run("compare", path, *options, "--models", "linear,boosting,default").stdout)
    assert all(one["score"] > 0.75 for one in found["models"])
