"""The command line: whole flows on real files, and every expected error in one line."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from typer.testing import CliRunner

import opgrow
from opgrow.cli import app
from opgrow.estimators import files as persistence
from opgrow.growth.methods import METHODS
from tests.cli.commands import refused, run, write_csv

QUICK = [
    *("--param", "n_min=6", "--param", "n_step=3", "--param", "epochs=3,2"),
    *("--param", "learning_rates=0.01,0.001"),
    *("--param", "fine_tune_epochs=2", "--param", "max_layers=1"),
]
RANDOM = [*QUICK, "--method", "hemlrn"]


def people(n: int, seed: int) -> list[list[Any]]:
    """Numbers and text with gaps, and a class that depends on both."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        age, colour = round(float(rng.normal()), 3), str(rng.choice(["red", "blue", "green"]))
        kind = "yes" if age + (colour == "red") > 0.3 else "no"
        gap = rng.random()
        rows.append([f"row{i}", "" if gap < 0.1 else age, "NA" if gap > 0.95 else colour, kind])
    return rows


HEADER = ["id", "age", "colour", "kind"]


def fit(folder: Path, model: Path, *options: Any) -> None:
    run("fit", folder / "train.csv", "--target", "kind", "--drop", "id", "-o", model, *options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with training and test tables and the model that was fitted on them."""
    folder = tmp_path_factory.mktemp("people")
    write_csv(folder / "train.csv", HEADER, people(120, 0))
    write_csv(folder / "test.csv", HEADER, people(60, 1))
    fit(folder, folder / "m.safetensors", *QUICK)
    return folder


# --- flows ---


def test_from_table_to_predictions_with_text_and_gaps(folder: Path, tmp_path: Path) -> None:
    model, test = folder / "m.safetensors", folder / "test.csv"
    predictions = tmp_path / "predictions.csv"
    assert run("predict", model, test, "--proba", "--output", predictions).stdout == ""
    with open(predictions, newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["prediction", "p_no", "p_yes"]
    assert len(rows) == 60
    for row in rows:
        assert float(row["p_no"]) + float(row["p_yes"]) == pytest.approx(1)
        assert row["prediction"] == ("yes" if float(row["p_yes"]) > float(row["p_no"]) else "no")
    assert list(tmp_path.iterdir()) == [predictions]

    truth = [row[-1] for row in people(60, 1)]
    hits = np.mean([row["prediction"] == kind for row, kind in zip(rows, truth, strict=True)])
    actual = json.loads(run("evaluate", model, test, "--json").stdout)
    assert actual["target"] == "kind"
    assert actual["rows"] == 60
    assert actual["scores"]["accuracy"] == pytest.approx(hits)
    assert set(actual["scores"]) == {"accuracy", "balanced_accuracy", "macro_f1", "log_loss"}
    shares = [float(row[f"p_{kind}"]) for row, kind in zip(rows, truth, strict=True)]
    assert actual["scores"]["log_loss"] == pytest.approx(-np.mean(np.log(shares)), rel=1e-6)
    assert f"accuracy {hits:.4g}" in run("evaluate", model, test).stdout

    # The same model from Python.
    frame = {
        name: list(column) for name, column in zip(HEADER, zip(*people(60, 1), strict=True), strict=True)
    }
    frame["age"] = [np.nan if age == "" else age for age in frame["age"]]
    frame["colour"] = [None if colour == "NA" else colour for colour in frame["colour"]]
    assert opgrow.load(model).predict(frame).tolist() == [row["prediction"] for row in rows]


def test_predictions_go_to_standard_output_by_default(folder: Path) -> None:
    first = run("predict", folder / "m.safetensors", folder / "test.csv").stdout
    assert run("predict", folder / "m.safetensors", folder / "test.csv", "--output", "-").stdout == first
    header, *rows = first.splitlines()
    assert header == "prediction"
    assert len(rows) == 60
    assert set(rows) <= {"yes", "no"}


def test_inspect_tells_everything_about_the_model(folder: Path) -> None:
    text = run("inspect", folder / "m.safetensors").stdout
    network = opgrow.load(folder / "m.safetensors").network_
    for part in (
        "HeMLGOPClassifier, written by opgrow " + opgrow.__version__,
        repr(network),
        "Predicts kind.",
        "Classes: no, yes",
        "3 categories, a column for each: 'blue', 'green', 'red'; one for gaps",
        "(fine-tuning)",
    ):
        assert part in text
    actual = json.loads(run("inspect", folder / "m.safetensors", "--json").stdout)
    assert actual["network"] == network.describe()
    assert [column["name"] for column in actual["columns"]] == ["age", "colour"]
    assert actual["classes"] == ["no", "yes"]
    assert actual["library"] == opgrow.__version__
    assert actual["parameters"]["n_min"] == 6
    assert actual["history"][0]["kind"] == "block"


def test_fit_prints_growth_network_and_scores(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "model.safetensors"
    arguments = ["fit", folder / "train.csv", "--target", "kind", "--drop", "id", "-o", output, *QUICK]
    result = run(*arguments, "--validation", folder / "test.csv")
    assert all(line.split()[0] in ("network", "HeMLGOP", "done:") for line in result.stderr.splitlines())
    estimator = persistence.read(output).estimator
    for part in (
        "Growth",
        repr(estimator.network_),
        "training   accuracy",
        "validation accuracy",
        str(output),
    ):
        assert part in result.stdout

    actual = json.loads(run(*arguments, "--validation", folder / "test.csv", "--json").stdout)
    assert actual["task"] == "classification"
    assert actual["target"] == "kind"
    assert actual["topology"] == estimator.network_.topology()
    scored = json.loads(run("evaluate", output, folder / "test.csv", "--json").stdout)
    assert actual["scores"]["validation"] == scored["scores"]
    quiet = run(*arguments, "--quiet")
    assert (quiet.stdout, quiet.stderr) == ("", "")


def test_the_seed_decides(folder: Path, tmp_path: Path) -> None:
    def grown(seed: int) -> str:
        output = tmp_path / "model.safetensors"
        fit(folder, output, "--seed", seed, *RANDOM)
        return str(run("predict", output, folder / "test.csv", "--proba").stdout)

    assert grown(3) == grown(3)
    assert grown(3) != grown(4)


def test_whole_numbers_are_classes_and_print_as_in_the_file(tmp_path: Path) -> None:
    x, y = load_iris(return_X_y=True)
    rows = [[*row, 10 * int(code) - 10] for row, code in zip(x.tolist(), y, strict=True)]
    data = write_csv(tmp_path / "iris.csv", ["a", "b", "c", "d", "target"], rows)
    model = tmp_path / "iris.safetensors"
    weights = 'class_weight={"-10": 2, "0": 1, "10": 1.5}'  # JSON has no other keys than text
    run("fit", data, "--output", model, "--param", weights, *RANDOM)  # the column "target" needs no naming
    assert persistence.read(model).estimator.class_weight == {-10: 2, 0: 1, 10: 1.5}
    header, *lines = run("predict", model, data, "--proba").stdout.splitlines()
    assert header == "prediction,p_-10,p_0,p_10"
    assert {line.split(",")[0] for line in lines} == {"-10", "0", "10"}
    assert json.loads(run("evaluate", model, data, "--json").stdout)["scores"]["accuracy"] > 0.8


def test_labels_that_no_integer_holds_stay_apart(tmp_path: Path) -> None:
    rows = [[i % 2, [1e300, 1e301][i % 2]] for i in range(40)]
    data, model = write_csv(tmp_path / "far.csv", ["x", "target"], rows), tmp_path / "far.safetensors"
    run("fit", data, *RANDOM, "-q", "-o", model)
    assert json.loads(run("evaluate", model, data, "--json").stdout)["scores"]["accuracy"] == 1


def test_fractions_may_be_classes_if_they_are_said_to_be_labels(tmp_path: Path) -> None:
    x, y = load_iris(return_X_y=True)
    rows = [[*row, (0.5, 1, 1.5)[code]] for row, code in zip(x.tolist(), y, strict=True)]
    data = write_csv(tmp_path / "iris.csv", ["a", "b", "c", "d", "target"], rows)
    model = tmp_path / "iris.safetensors"
    assert refused("fit", data, "--output", model, "--task", "classification") == (
        "The target 'target' holds numbers that are not whole, such as 0.5, and classes are whole numbers or "
        "text: say --task regression, or --text target if they are labels."
    )
    run("fit", data, "--output", model, "--text", "target", *RANDOM)
    lines = run("predict", model, data).stdout.splitlines()
    assert set(lines[1:]) == {"0.5", "1", "1.5"}
    assert json.loads(run("evaluate", model, data, "--json").stdout)["scores"]["accuracy"] > 0.8


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_regression_from_every_kind_of_file(ending: str, tmp_path: Path) -> None:
    x, y = (array[:150] for array in load_diabetes(return_X_y=True))
    names = [f"f{i}" for i in range(x.shape[1])]
    data = tmp_path / f"diabetes.{ending}"
    if ending == "npz":
        np.savez(data, X=x, y=y, feature_names=np.array(names))
    elif ending == "parquet":
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        pandas.DataFrame(x, columns=names).assign(target=y).to_parquet(data)
    else:
        write_csv(data, [*names, "target"], np.column_stack([x, y]).tolist())
    model = tmp_path / "model.safetensors"
    fitted = json.loads(run("fit", data, "--output", model, "--json", *RANDOM).stdout)
    assert fitted["task"] == "regression"
    header, *lines = run("predict", model, data).stdout.splitlines()
    assert header == "prediction"
    errors = np.array(lines, dtype=float) - y
    scores = json.loads(run("evaluate", model, data, "--json").stdout)["scores"]
    assert scores["rmse"] == pytest.approx(np.sqrt(np.mean(errors**2)))
    assert scores["mae"] == pytest.approx(np.mean(np.abs(errors)))
    assert scores["r2"] == pytest.approx(1 - np.mean(errors**2) / np.var(y))
    assert scores == fitted["scores"]["training"]
    assert "--proba needs a classifier" in refused("predict", model, data, "--proba")


#: Quick settings of every method, by family.
SCHEDULE = ["--param", "epochs=3,2,1", "--param", "fine_tune_epochs=2"]
SETS = ["--param", 'operators=[["gaussian", "sum", "tanh"], ["multiplication", "sum", "elu"]]']
LAYERS = [*SCHEDULE, "--param", "widths=[6,5]", "--param", "layer_threshold=-100"]
SEARCH = [*LAYERS, *SETS]
SETTINGS = {
    **dict.fromkeys(("HeMLGOP", "HoMLGOP", "HeMLRN", "HoMLRN"), QUICK),
    **dict.fromkeys(("POP", "POPFast", "POPMemO", "POPMemH"), SEARCH),
    "PMLP": LAYERS,
    "PLN": ["--param", "n_min=8", "--param", "n_step=2", "--param", "max_layers=2"],
    "BLS": ["--param", "n_min=20", "--param", "max_neurons=20"],
}


#: What sets the networks of some methods apart, as `inspect` prints it.
SHOWN = {
    "POP": [" pass 4 ", "\n             head "],
    "POPMemO": [" x multiplication/sum/identity"],
    "POPMemH": [" x multiplication/sum/identity"],
    "PLN": ["4 x multiplication/sum/relu, no norm, no bias", "relu, unit norm, no bias"],
    "BLS": ["10 x multiplication/sum/sigmoid, no norm (2 such blocks)", "2 outputs, sees all layers"],
}


@pytest.mark.parametrize("method", METHODS)
def test_every_method_by_name_and_the_papers_settings(method: str, folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "model.safetensors"
    arguments = ["fit", folder / "train.csv", "--target", "kind", "--drop", "id", "-o", output]
    arguments += ["--method", method.lower(), "--paper", "small", *SETTINGS[method]]
    actual = json.loads(run(*arguments, "--json").stdout)
    assert actual["estimator"] == f"{method}Classifier"
    shown = json.loads(run("inspect", output, "--json").stdout)
    parameters = shown["parameters"]
    assert parameters["criterion"] == "accuracy"  # the paper's
    assert parameters.get("n_min", 20) in (6, 8, 20)  # ours
    assert parameters.get("widths", [6, 5]) == [6, 5]
    assert shown["network"] == actual["network"]
    text = run("inspect", output).stdout
    assert ("head: linear, 2 outputs" in text) == (method != "POP")
    for part in SHOWN.get(method, []):
        assert part in text


def test_a_parameter_of_other_methods_is_refused_in_one_line(folder: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.safetensors"
    fit = ("fit", folder / "train.csv", "--target", "kind", "--drop", "id", "-o", model, "--method")
    assert refused(*fit, "pop", "--param", "n_min=3").endswith(
        "POPClassifier has no parameter 'n_min': it belongs to HeMLGOP, HoMLGOP, HeMLRN, HoMLRN, PLN, BLS."
    )
    assert "it belongs to PLN." in refused(*fit, "BLS", "--param", "alpha=2")
    assert "did you mean 'widths'?" in refused(*fit, "pmlp", "--param", "width=[3]")
    assert "widths must be a sequence of integers" in refused(*fit, "pmlp", "--param", "widths=[0]")
    assert "memory must be one of 'pca', 'lda'" in refused(*fit, "popmemo", "--param", "memory=ica")
    assert list(tmp_path.iterdir()) == []


def test_a_model_saved_in_python_predicts_a_table(tmp_path: Path) -> None:
    x, y = load_iris(return_X_y=True)
    settings = {"n_min": 6, "max_layers": 1, "random_state": 0}
    model, data = tmp_path / "model.safetensors", tmp_path / "iris.npz"
    np.savez(data, X=x, y=y)
    estimator = opgrow.HeMLRNClassifier(**settings).fit(x, y == 1)
    estimator.save(model)
    predicted = run("predict", model, data).stdout.splitlines()[1:]
    assert predicted == [str(value) for value in estimator.predict(x)]

    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(x, columns=["a", "b", "c", "d"])
    estimator = opgrow.HeMLRNRegressor(**settings).fit(frame, np.column_stack([y, -y]))
    estimator.save(model)
    shuffled = frame[["d", "b", "a", "c"]].assign(more=1.0)
    shuffled.to_csv(tmp_path / "iris.csv", index=False)
    result = run("predict", model, tmp_path / "iris.csv")
    assert result.stderr == "note: 1 column that fit did not use is ignored: 'more'\n"
    rows = list(csv.reader(io.StringIO(result.stdout)))
    assert rows[0] == ["prediction_0", "prediction_1"]
    assert np.allclose(np.array(rows[1:], dtype=float), estimator.predict(frame), atol=1e-5)
    text = write_csv(tmp_path / "text.csv", ["a", "b", "c", "d"], [["x", 1, 2, 3]])
    assert "'a' holds text" in refused("predict", model, text)


def test_demo_compares_three_models_on_the_same_split() -> None:
    actual = json.loads(run("demo", "--dataset", "iris", "--json").stdout)
    assert [row["model"] for row in actual["results"]] == [
        "HeMLGOP",
        "LogisticRegression",
        "MLPClassifier(200, 200)",
    ]
    assert (actual["training_rows"], actual["test_rows"]) == (90, 60)
    hemlgop, logistic, perceptron = actual["results"]
    assert hemlgop["parameters"] == actual["network"]["parameters"]
    assert logistic["parameters"] == 4 * 3 + 3
    assert perceptron["parameters"] == 4 * 200 + 200 + 200 * 200 + 200 + 200 * 3 + 3
    assert all(row["score"] > 0.85 for row in actual["results"])


# --- errors ---


def test_errors_of_usage_and_input_are_one_line(folder: Path, tmp_path: Path) -> None:
    train, model = folder / "train.csv", folder / "m.safetensors"
    output = tmp_path / "model.safetensors"
    fit = ("fit", train, "--target", "kind", "--drop", "id", "-o", output)
    assert "no column 'target', so name the target with --target" in refused("fit", train)
    assert "it has 'id', 'age', 'colour', 'kind'" in refused("fit", train)
    assert "no column 'sort'" in refused("fit", train, "--target", "sort")
    assert refused(*fit, "--param", "nmin=3").endswith("no parameter 'nmin': did you mean 'n_min'?")
    assert "no parameter 'callbacks'" in refused(*fit, "--param", "callbacks=[]")
    assert "KEY=VALUE" in refused(*fit, "--param", "n_min")
    assert "n_min must be an integer" in refused(*fit, "--param", "n_min=many")
    assert "'zip'" in refused(*fit, "--drop", "zip")
    assert "target 'kind' cannot be dropped" in refused(*fit, "--drop", "kind")
    assert "no column left" in refused(*fit, "--drop", "age,colour")
    assert "holds text" in refused(*fit, "--task", "regression")
    assert "There is no file" in refused("fit", tmp_path / "none.csv")
    assert "Cannot tell the format" in refused("fit", tmp_path / "none.doc")
    assert "There is no folder" in refused(*fit[:-1], tmp_path / "no" / "m.safetensors")
    assert "not a file that can be replaced" in refused(*fit[:-1], tmp_path)
    assert "is the table itself" in refused(*fit[:-1], train)
    assert "is the table itself" in refused("predict", model, train, "-o", train)
    assert "is the model file itself" in refused("predict", model, train, "-o", model)
    assert "There is no file" in refused("inspect", tmp_path / "none")
    assert "is not a complete safetensors file" in refused("inspect", train)
    assert "lacks 'age'" in refused("predict", model, write_csv(tmp_path / "t.csv", ["a"], [[1]]))
    assert "There is no folder" in refused("predict", model, train, "-o", tmp_path / "no" / "p.csv")
    assert "Missing argument" in refused("fit")
    assert "No such option" in refused("fit", train, "--fast")
    assert "'trees'" in refused(*fit, "--method", "trees")
    assert "No such command" in refused("train")
    weights = 'class_weight={"maybe": 2}'
    assert "names the class 'maybe'; the classes are no, yes" in refused(*fit, "--param", weights)
    assert "There is no data set 'nothing'" in refused("demo", "--dataset", "nothing")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv"]


def test_missing_and_unknown_target_values_are_counted_and_named(folder: Path, tmp_path: Path) -> None:
    rows = people(30, 2)
    for row in rows[:3]:
        row[-1] = ""
    gaps = write_csv(tmp_path / "gaps.csv", HEADER, rows)
    output = tmp_path / "model.safetensors"
    message = "The target 'kind' of .* is missing in 3 of 30 rows"
    for arguments in (
        ("fit", gaps, "--target", "kind", "--drop", "id", "-o", output),
        ("fit", folder / "train.csv", "--target", "kind", "--drop", "id", "-o", output, "--validation", gaps),
        ("evaluate", folder / "m.safetensors", gaps),
    ):
        assert re.match(message, refused(*arguments))
    for row in rows[:3]:
        row[-1] = "perhaps"
    strange = write_csv(tmp_path / "strange.csv", HEADER, rows)
    assert "the class 'perhaps', which the model does not know" in refused(
        "evaluate", folder / "m.safetensors", strange
    )
    assert not output.exists()


def test_a_failing_write_leaves_the_old_files(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, predictions = tmp_path / "out.safetensors", tmp_path / "out.csv"
    output.write_text("old")
    predictions.write_text("old")

    def fail(*arguments: Any) -> None:
        raise OSError(28, "No space left on device", "a part beside it")

    monkeypatch.setattr(os, "replace", fail)
    fit = ("fit", folder / "train.csv", "--target", "kind", "--drop", "id", "-o", output, *RANDOM, "-q")
    assert refused(*fit) == f"No space left on device: {output}"
    predict = ("predict", folder / "m.safetensors", folder / "test.csv", "-o", predictions)
    assert refused(*predict) == f"No space left on device: {predictions}"
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old", "old"]
    assert sorted(tmp_path.iterdir()) == [predictions, output]


def test_unexpected_errors_show_their_traceback_only_when_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any, **more: Any) -> None:
        raise ZeroDivisionError("a fault\nof ours")

    monkeypatch.setattr(persistence, "read", fail)
    monkeypatch.delenv("OPGROW_DEBUG", raising=False)
    line = refused("inspect", folder / "m.safetensors")
    assert line == "ZeroDivisionError: a fault of ours (unexpected; OPGROW_DEBUG=1 shows where)"
    monkeypatch.setenv("OPGROW_DEBUG", "1")
    result = CliRunner().invoke(app, ["inspect", str(folder / "m.safetensors")])
    assert isinstance(result.exception, ZeroDivisionError)


def test_a_missing_extra_is_one_line_with_the_pip_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "table.parquet").write_bytes(b"PAR1")
    assert "pip install 'opgrow[tables]'" in refused("fit", tmp_path / "table.parquet")


def test_an_interrupt_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: Any, **more: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(persistence, "read", interrupt)
    result = run("inspect", folder / "m.safetensors", code=130)
    assert result.stderr.strip() == "error: interrupted"


# --- the command itself ---


def test_version_and_help() -> None:
    assert run("--version").stdout == f"opgrow {opgrow.__version__}\n"
    assert "Usage" in run().stdout
    help_text = run("--help").stdout
    for command in ("demo", "fit", "predict", "evaluate", "inspect"):
        assert command in help_text
        assert "Usage" in run(command, "--help").stdout


def test_in_a_process_of_its_own(folder: Path, tmp_path: Path) -> None:
    def opgrow_command(*arguments: Any) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "opgrow", *map(str, arguments)]
        environment = {**os.environ, "PYTHONPATH": str(Path(opgrow.__file__).parents[1])}
        return subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
        )

    done = opgrow_command("fit", folder / "train.csv", "--target", "kind", "--drop", "id", "--json", *RANDOM)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["model"] == "model.safetensors"
    here = run("predict", tmp_path / "model.safetensors", folder / "test.csv", "--proba").stdout
    there = opgrow_command("predict", "model.safetensors", folder / "test.csv", "--proba")
    assert (there.returncode, there.stdout) == (0, here)
    failed = opgrow_command("predict", "nothing.safetensors", folder / "test.csv")
    assert (failed.returncode, failed.stdout) == (2, "")
    assert failed.stderr == "error: There is no file 'nothing.safetensors'.\n"


# --- folders ---


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of Parquet files, and one of NPY files, with the rows of iris."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    folder = tmp_path_factory.mktemp("parts")
    x, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))
    x, y = x[order], y[order]
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    (folder / "table").mkdir()
    for part, rows in enumerate(np.array_split(np.arange(len(x)), 3)):
        columns = {"id": rows.astype(np.float64), **{f"c{i}": x[rows, i] for i in range(4)}}
        table = pa.table({**columns, "kind": names[rows]})
        pq.write_table(table, folder / "table" / f"part{part}.parquet", row_group_size=20)
    (folder / "arrays").mkdir()
    np.save(folder / "arrays" / "X.npy", x)
    np.save(folder / "arrays" / "y.npy", x[:, 0] * 2 + 1)
    return folder


def test_a_folder_is_fitted_predicted_and_evaluated(parts: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.safetensors"
    options = ["--target", "kind", "--drop", "id", *RANDOM, "--param", "memory_limit=1MB", "--json", "-q"]
    fitted = json.loads(run("fit", parts / "table", *options, "-o", model).stdout)
    assert fitted["rows"] == 150
    assert fitted["task"] == "classification"
    assert fitted["scores"]["training"]["accuracy"] > 0.9
    actual = json.loads(run("evaluate", model, parts / "table", "--json").stdout)
    assert actual["scores"]["accuracy"] == pytest.approx(fitted["scores"]["training"]["accuracy"])
    run("predict", model, parts / "table", "--proba", "-o", tmp_path / "out.csv")
    rows = list(csv.DictReader((tmp_path / "out.csv").open()))
    assert len(rows) == 150
    # One file of the folder as a table is predicted in the same way.
    alone = run("predict", model, parts / "table" / "part0.parquet").stdout.split()[1:]
    assert [row["prediction"] for row in rows[:50]] == alone
    assert float(rows[0]["p_setosa"]) + float(rows[0]["p_versicolor"]) < 1.0001


def test_a_folder_of_arrays_is_a_regression(parts: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.safetensors"
    fitted = json.loads(run("fit", parts / "arrays", *RANDOM, "--json", "-q", "-o", model).stdout)
    assert fitted["task"] == "regression"
    assert fitted["target"] == "y"
    assert json.loads(run("evaluate", model, parts / "arrays", "--json").stdout)["scores"]["r2"] > 0.9
    assert run("predict", model, parts / "arrays").stdout.count("\n") == 151


def test_what_folders_cannot_do_is_refused(parts: Path, tmp_path: Path) -> None:
    table, arrays = parts / "table", parts / "arrays"
    assert "has no column 'target'" in refused("fit", table)
    assert "has no column 'nothing' to drop" in refused("fit", table, "--target", "kind", "--drop", "nothing")
    assert "arrays have none" in refused("fit", arrays, "--drop", "a")
    assert "need a table file" in refused("fit", arrays, "--validation", table / "part0.parquet")
    assert "takes no source" in refused("fit", arrays, "--method", "pop")
    assert "holds no .parquet files" in refused("fit", tmp_path)
