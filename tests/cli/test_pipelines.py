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
from opgrow import HeMLGOPClassifier, TableEncoder, WindowFeatures
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
#: Gaps that are marked, dates, codes whose zeros count, and many categories.
MANY = FRAME.assign(
    size=np.where(RNG.random(60) < 0.4, np.nan, SIZE),
    day=[f"2024-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(60)],
    code=[f"00{i % 3}" for i in range(60)],
    street=[f"street {i % 40}" for i in range(60)],
)
Y = np.where((COLOUR == "red") & (SIZE > 0), "yes", "no")
COLUMNS = ColumnTransformer(
    [
        ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["size"]),
        ("texts", OneHotEncoder(sparse_output=False), ["colour"]),
    ]
)


FIRST = {
    "frame": (COLUMNS, FRAME),
    "encoder": (TableEncoder(text=("code",)), MANY),
    "matrix": (StandardScaler(), np.column_stack([SIZE, SIZE**2])),
    "gaps": (StandardScaler(), np.column_stack([MANY["size"], SIZE**2])),
    "nothing": (None, MANY),
}


@pytest.fixture(params=list(FIRST))
def saved(request, tmp_path):
    """A file, the pipeline in it, and its rows."""
    first, x = FIRST[request.param]
    model = HeMLGOPClassifier(**QUICK)
    pipeline = make_pipeline(*[] if first is None else [first], model).fit(x, Y)
    opgrow.save(pipeline, tmp_path / "model.safetensors", target="answer")
    table = x if isinstance(x, pd.DataFrame) else pd.DataFrame(x, columns=["x0", "x1"])
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
    steps = json.loads(run("inspect", path, "--json").stdout)["steps"]
    assert [name for name, _ in steps] == [name for name, _ in pipeline.steps[:-1]]


def test_serve_heeds_the_steps(saved):
    path, pipeline, x = saved
    model = served(path)
    table = table_of_csv(path.with_name("rows.csv").read_bytes(), model, 100)
    answer = model.predict(table)
    assert answer.predictions.tolist() == pipeline.predict(x).tolist()
    np.testing.assert_array_equal(answer.probabilities, pipeline.predict_proba(x))
    assert not answer.notes
    row = {column.name: "green" if column.name == "colour" else 1 for column in model.columns}
    table = table_of_json(json.dumps([row]).encode(), model, 100)
    if isinstance(pipeline[0], ColumnTransformer):
        with pytest.raises(Refused, match="unknown categories"):
            model.predict(table)
    else:
        assert len(model.predict(table).predictions) == 1


@pytest.mark.parametrize("saved", ["matrix", "gaps"], indirect=True)
def test_rows_of_a_folder_go_through_the_steps(saved):
    path, pipeline, x = saved
    folder = path.with_name("rows")
    folder.mkdir()
    np.savez(folder / "0.npz", X=x[:40])
    np.savez(folder / "1.npz", X=x[40:])
    predicted = list(csv.reader(run("predict", path, folder).stdout.splitlines()))[1:]
    assert [row[0] for row in predicted] == pipeline.predict(x).tolist()


def test_windows_of_signals_are_exported_as_c(tmp_path):
    x = RNG.normal(size=(60, 16))
    pipeline = make_pipeline(WindowFeatures(2, bands=2), HeMLGOPClassifier(**QUICK)).fit(x, Y)
    opgrow.save(pipeline, tmp_path / "model.safetensors", target="answer")
    frame = pd.DataFrame(x, columns=[f"x{i}" for i in range(16)]).assign(answer=Y)
    frame.to_csv(tmp_path / "windows.csv", index=False)
    printed = run(
        "export", tmp_path / "model.safetensors", "--format", "c", "--calibration", tmp_path / "windows.csv"
    )
    assert "agreement with the estimator on 60 rows: 100.00 % of the labels" in printed.stdout
    assert "of whole windows" in printed.stdout
    assert "model_window_push" in (tmp_path / "model.h").read_text()
    assert "holds a pipeline" in refused("export", tmp_path / "model.safetensors", "--format", "onnx")


@pytest.mark.parametrize("command", [("export", "--format", "c"), ("report",)])
def test_what_takes_an_estimator_alone_refuses_a_pipeline(saved, command):
    name, *options = command
    assert "holds a pipeline of scikit-learn" in refused(name, saved[0], *options)
