"""``opgrow explain``: sentences, contributions that add up, importance."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from opgrow import HeMLRNClassifier, load, save
from tests.cli.commands import refused, run, write_csv

HEADER = ["age", "colour", "kind"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explain")
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(90):
        age, colour = rng.normal(), rng.choice(["red", "blue"])
        rows.append([f"{age:.3f}", colour, "yes" if age + (colour == "red") > 0.3 else "no"])
    write_csv(folder / "data.csv", HEADER, rows)
    run(
        *("fit", folder / "data.csv", "--target", "kind", "-o", folder / "m.safetensors"),
        *("--method", "hemlrn", "--param", "n_min=4", "--param", "max_neurons=4", "--param", "preset=null"),
        *("--param", "max_layers=1", "--param", "fine_tune_epochs=2"),
    )
    return folder


def test_it_prints_sentences_contributions_and_importance(folder):
    printed = run("explain", folder / "m.safetensors", folder / "data.csv", "--row", 3).stdout
    model = load(folder / "m.safetensors")
    table = np.loadtxt(folder / "data.csv", str, delimiter=",", skiprows=1)
    rows = {"age": table[:, 0].astype(float), "colour": table[:, 1].astype(object)}
    way = model.explain(rows, target="kind").row(3)
    for sentence in way.sentences:
        assert sentence in printed
    lines = printed.splitlines()
    start = lines.index(next(line for line in lines if line == "Row 3, contributions:"))
    told = dict(line.rsplit(maxsplit=1) for line in lines[start + 2 : start + 6])
    total = sum(float(value) for name, value in told.items() if name.split()[0] in ("age", "colour", "mean"))
    assert total == pytest.approx(float(told["output"]), abs=0.02 * (1 + abs(way.outputs[0])))
    assert float(told["output"]) == pytest.approx(way.outputs[0], rel=0.01)
    assert "Mean size of contributions, over 45 rows:" in lines


def test_json_is_the_data_of_the_explanation(folder):
    printed = run("explain", folder / "m.safetensors", folder / "data.csv", "--row", 3, "--row", 5, "--json")
    data = json.loads(printed.stdout)
    assert data["format"] == "opgrow.explanation"
    assert data["file"] == str(folder / "m.safetensors")
    assert [row["row"] for row in data["rows"]] == [3, 5]


def test_a_small_network_is_printed_as_a_formula(folder):
    printed = run("explain", folder / "m.safetensors", folder / "data.csv", "--formula").stdout
    assert "log_odds_of_yes = " in printed


def test_a_pipeline_is_explained_by_what_its_last_step_takes(tmp_path):
    x, y = load_iris(return_X_y=True)
    brief = HeMLRNClassifier(preset=None, n_min=4, max_neurons=4, max_layers=1, random_state=0)
    pipeline = make_pipeline(StandardScaler(), brief).fit(x, y)
    save(pipeline, tmp_path / "p.safetensors")
    data = write_csv(tmp_path / "x.csv", ["a", "b", "c", "d"], x.tolist())
    printed = json.loads(run("explain", tmp_path / "p.safetensors", data, "--row", 9, "--json").stdout)
    np.testing.assert_allclose(printed["rows"][0]["raw"], pipeline.decision_function(x[9:10])[0], rtol=1e-5)


def test_rows_that_are_not_there_are_refused(folder):
    message = refused("explain", folder / "m.safetensors", folder / "data.csv", "--row", 90)
    assert message == "There is no row 90: X has 90 rows, from 0 on."
