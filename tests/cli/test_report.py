"""``opgrow report`` and ``opgrow fit --report``: pages from files, and errors in one line."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

from opgrow import HeMLRNClassifier, HeMLRNRegressor
from tests.cli.commands import refused, run

EVIL = '<b>colour & "name"</b>'
QUICK = [
    "--method",
    "hemlrn",
    "--param",
    "n_min=6",
    "--param",
    "preset=null",
    "--param",
    "max_layers=1",
    "--param",
    "fine_tune_epochs=2",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables with text and gaps, a model, and the page that was written with it."""
    folder = tmp_path_factory.mktemp("report")
    rng = np.random.default_rng(0)
    for name, n in (("train", 90), ("test", 40)):
        with open(folder / f"{name}.csv", "w", newline="") as file:
            write = csv.writer(file)
            write.writerow(["age", EVIL, "kind"])
            for _ in range(n):
                age, colour = rng.normal(), rng.choice(["red", "<i>blue</i>"])
                seen = age + (colour == "red") + 0.3 * rng.normal()
                write.writerow([f"{age:.3f}", colour, "<yes>" if seen > 0.3 else "no"])
    run(
        *("fit", folder / "train.csv", "--target", "kind", "-o", folder / "m.safetensors", *QUICK),
        *("--validation", folder / "test.csv", "--report", folder / "fit.html"),
    )
    return folder


def test_a_model_file_becomes_a_page_beside_it(folder):
    printed = run("report", folder / "m.safetensors").stdout
    page = (folder / "m.html").read_text()
    assert str(folder / "m.html") in printed
    assert "that predicts kind" in page
    assert "opgrow report model.safetensors test.csv" in page  # how to say how good it is
    assert "a model file does not keep them" in page
    assert f"{(folder / 'm.safetensors').stat().st_size / 1e3:.1f} kB" in page
    assert "&lt;b&gt;colour &amp; " in page
    assert "<b>colour" not in page
    assert "<i>blue" not in page


def test_a_table_says_how_good_the_model_is(folder, tmp_path):
    page = tmp_path / "page.html"
    page.write_text("old")
    arguments = "report", folder / "m.safetensors", folder / "test.csv", "--out", page
    result = json.loads(run(*arguments, "--json").stdout)
    accuracy = result["scores"]["accuracy"]
    assert result["rows"] == 40
    assert result["output"] == str(page)
    assert result["bytes"] == page.stat().st_size
    assert accuracy == json.loads(run("evaluate", *arguments[1:3], "--json").stdout)["scores"]["accuracy"]
    text = page.read_text()
    assert f"<b>{100 * accuracy:.1f} %</b>" in text
    assert "40 rows." in text
    assert "rows of test.csv" in text
    assert 'id="confusion"' in text
    assert "true &lt;yes&gt;, predicted" in text
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_fit_writes_a_page_with_the_whole_history_and_the_validation_rows(folder):
    text = (folder / "fit.html").read_text()
    assert 'id="training"' in text  # curves, which the model file does not keep
    assert "validation rows, which also decided what was kept" in text
    assert 'id="confusion"' in text
    assert "40 rows." in text


def test_fit_without_validation_rows_says_nothing_on_quality(folder, tmp_path):
    run(
        *("fit", folder / "train.csv", "--target", "kind", "-o", tmp_path / "m.safetensors", *QUICK),
        *("--report", tmp_path / "fit.html", "--quiet"),
    )
    assert 'id="confusion"' not in (tmp_path / "fit.html").read_text()


@pytest.mark.parametrize("regression", [False, True])
def test_models_that_were_saved_in_python_have_pages_too(tmp_path, regression, recwarn):
    frame = (load_diabetes if regression else load_iris)(as_frame=True).frame
    X, y = frame.drop(columns="target"), frame["target"]
    cls = HeMLRNRegressor if regression else HeMLRNClassifier
    cls(n_min=5, max_layers=1, fine_tune_epochs=0, random_state=0).fit(X, y).save(tmp_path / "m.safetensors")
    frame.to_csv(tmp_path / "table.csv", index=False)
    run("report", tmp_path / "m.safetensors", tmp_path / "table.csv")
    text = (tmp_path / "m.html").read_text()
    assert ('id="scatter-1"' if regression else 'id="confusion"') in text
    assert str(X.columns[0]) in text
    assert not [warning for warning in recwarn if "feature names" in str(warning.message)]


def test_errors_are_one_line_and_leave_the_files(folder, tmp_path):
    model, table = folder / "m.safetensors", folder / "test.csv"
    before = model.read_bytes(), table.read_bytes()
    assert "the model file itself" in refused("report", model, "--out", model)
    assert "the table itself" in refused("report", model, table, "--out", table)
    assert "no file" in refused("report", tmp_path / "none.safetensors")
    assert "no folder" in refused("report", model, "--out", tmp_path / "no" / "page.html")
    assert "no table was given" in refused("report", model, "--target", "kind")
    assert "no column 'sort'" in refused("report", model, table, "--target", "sort")
    assert "not a complete safetensors file" in refused("report", table)
    (tmp_path / "odd.csv").write_text("age,kind\n1,maybe\n")
    assert refused("report", model, tmp_path / "odd.csv", "--out", tmp_path / "page.html")
    fit = ["fit", folder / "train.csv", "--target", "kind", *QUICK, "-o", tmp_path / "m.safetensors"]
    assert "the table itself" in refused(*fit, "--report", folder / "train.csv")
    assert "cannot both be written" in refused(*fit, "--report", tmp_path / "m.safetensors")
    assert "no folder" in refused(*fit, "--report", tmp_path / "no" / "page.html")
    assert (model.read_bytes(), table.read_bytes()) == before
    assert [path.name for path in tmp_path.iterdir()] == ["odd.csv"]
