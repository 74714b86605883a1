"""Commands on model files that hold a pipeline: the steps are heeded, or the file is refused."""

from __future__ import annotations

import csv
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import opgrow
from opgrow import HeMLGOPClassifier, TableEncoder
from opgrow.cli.serving.bodies import table_of_csv, table_of_json
from opgrow.cli.serving.limits import Refused
from opgrow.cli.serving.model import served
from tests.cli.commands import refused, run

QUICK = {
    "preset": None,
    "max_layers": 1,
    "max_neurons": 8,
    "n_min": 4,
    "epochs": (2, 2, 2),
    "random_state": 0,
}
RNG = np.random.default_rng(0)
SIZE, COLOUR = RNG.normal(size=60).round(3), RNG.choice(["red", "blue"], 60)
FRAME = pd.DataFrame({"size": np.where(RNG.random(60) < 0.1, np.nan, SIZE), "colour": COLOUR})
Y = np.where((COLOUR == "red") & (SIZE > 0), "yes", "no")
COLUMNS = ColumnTransformer(
    [
        ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["size"]),
        ("texts", OneHotEncoder(sparse_output=False), ["colour"]),
    ]
)


@pytest.fixture(params=["frame", "encoder", "matrix"])
def saved(request, tmp_path):
    """A file, the pipeline in it, and its rows."""
    first = {"frame": COLUMNS, "encoder": TableEncoder(), "matrix": StandardScaler()}[request.param]
    x = FRAME if request.param != "matrix" else np.column_stack([SIZE, SIZE**2])
    pipeline = make_pipeline(first, HeMLGOPClassifier(**QUICK)).fit(x, Y)
    opgrow.save(pipeline, tmp_path / "model.safetensors", target="answer")
    table = FRAME if request.param != "matrix" else pd.DataFrame(x, columns=["x0", "x1"])
    table.assign(answer=Y).to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path / "model.safetensors", pipeline, x


def test_predict_evaluate_and_inspect_heed_the_steps(saved):
    path, pipeline, x = saved
    rows = path.with_name("rows.csv")
    predicted = list(csv.reader(run("predict", path, rows).stdout.splitlines()))[1:]
    assert [row[0] for row in predicted] == pipeline.predict(x).tolist()
    scores = json.loads(run("evaluate", path, rows, "--json").stdout)["scores"]
    assert scores["accuracy"] == pytest.approx(pipeline.score(x, Y))
    assert type(pipeline[0]).__name__ in run("inspect", path).stdout
    assert len(json.loads(run("inspect", path, "--json").stdout)["steps"]) == 1


def test_serve_heeds_the_steps(saved):
    path, pipeline, x = saved
    model = served(path)
    table = table_of_csv(path.with_name("rows.csv").read_bytes(), model, 100)
    assert model.predict(table).predictions.tolist() == pipeline.predict(x).tolist()
    row = {column.name: "green" if column.name == "colour" else 1 for column in model.columns}
    table = table_of_json(json.dumps([row]).encode(), model, 100)
    if isinstance(pipeline[0], ColumnTransformer):
        with pytest.raises(Refused, match="unknown categories"):
            model.predict(table)
    else:
        assert len(model.predict(table).predictions) == 1


@pytest.mark.parametrize("command", [("export", "--format", "c"), ("report",)])
def test_what_takes_an_estimator_alone_refuses_a_pipeline(saved, command):
    name, *options = command
    assert "holds a pipeline of scikit-learn" in refused(name, saved[0], *options)
