"""Nothing about a table is guessed silently: the command line says what it decided, or what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.utils import check_random_state

import opgrow
from opgrow.estimators import files as persistence
from opgrow.rows.preparation import split_rows
from tests.cli.commands import refused, run, write_csv

QUICK = ["--method", "pln", "-p", "n_min=6", "-p", "n_step=2", "-p", "max_layers=1"]


def decided(*arguments: Any) -> dict[str, list[str]]:
    """What a fit would say before it grows, by label."""
    actual: dict[str, list[str]] = {}
    for line in run("fit", *arguments, "--dry-run").stdout.split("\n\n")[0].splitlines():
        label, words = line.split(maxsplit=1)
        actual.setdefault(label, []).append(words)
    return actual


def people(n: int) -> list[list[Any]]:
    """Rows of name, age with a gap and a stray text, postcode, size and kind."""
    rows: list[list[Any]] = [
        [f"person {i}", 20 + i % 30, f"{i % 3:03d}", "" if i == 4 else "sml"[i % 3], ("no", "yes")[i % 2]]
        for i in range(n)
    ]
    rows[1][1] = "unknown"
    return rows


HEADER = ["name", "age", "post", "size", "kind"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "people.csv", HEADER, people(40))


def test_every_decision_is_printed_with_the_option_that_says_otherwise(table: Path) -> None:
    assert decided(table, "--target", "kind", "--drop", "name") == {
        "table": [
            "40 rows; names from its first row, commas between fields, decimal point "
            "(otherwise: --no-header, --decimal)"
        ],
        "target": ["'kind': classification with 2 classes, because it holds text"],
        "numbers": ["1: 'post' (otherwise: --text NAME)"],
        "text": [
            "2: 'age' (31 categories, each as a mean of the target, such as 'unknown'), 'size' (3 "
            "categories, such as 'l', 1 gap) (otherwise: --numeric NAME)"
        ],
        "dropped": ["'name'"],
        "note": [
            "'age' is text, because 1 of 40 values are no numbers, such as 'unknown': "
            "--numeric age takes these as missing",
            "'age' has 31 categories, which are means of the target: --max-categories 31 gives each an input "
            "of its own, --drop age leaves the column out",
        ],
    }
    otherwise = decided(
        *(table, "--target", "kind", "--drop", "name", "--text", "post"),
        *("--numeric", "age", "--max-categories", 2, "--task", "classification"),
    )
    assert otherwise["target"] == ["'kind': classification with 2 classes, as --task says"]
    assert otherwise["numbers"] == ["1: 'age' (otherwise: --text NAME)"]
    assert otherwise["text"][0].startswith("2: 'post' (3 categories, each as a mean of the")
    assert otherwise["note"] == [
        "1 of 40 values of 'age' are text, such as 'unknown', and count as missing",
        "'post' has 3 categories, which are means of the target: --max-categories 3 gives each an input of "
        "its own, --drop post leaves the column out",
        "'size' has 3 categories, which are means of the target: --max-categories 3 gives each an input of "
        "its own, --drop size leaves the column out",
    ]
    assert "--numeric concerns inputs" in refused("fit", table, "--target", "age", "--numeric", "age")
    assert "no column 'zip'" in refused("fit", table, "--target", "kind", "--text", "zip")
    dropped = " ".join(decided(table, "--target", "kind")["dropped"])
    assert dropped == "1: 'name' (its text is different in every row, as an identifier's)"


def test_decisions_are_in_the_json_and_not_said_when_quiet(table: Path, tmp_path: Path) -> None:
    fit = ("fit", table, "--target", "kind", "--drop", "name", *QUICK, "-o", tmp_path / "m.safetensors")
    result = run(*fit, "--json")
    assert result.stderr == ""
    actual = json.loads(result.stdout)["decisions"]
    assert [item["about"] for item in actual] == [
        "table",
        "target",
        "numbers",
        "text",
        "dropped",
        "note",
        "note",
    ]
    assert actual[4]["text"] == "'name'"
    quiet = run(*fit, "-q")
    assert (quiet.stdout, quiet.stderr) == ("", "")
    loud = run(*fit)
    assert loud.stdout.startswith("table      40 rows;")
    assert loud.stderr.splitlines()[-2].startswith("PLN grew ")
    assert loud.stderr.splitlines()[-1].startswith("done: ")


def test_a_fit_ends_with_the_score_on_rows_that_were_not_trained_on(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 3)).round(3)
    y = (x[:, 0] + rng.normal(size=90) > 0).astype(int)
    data = write_csv(tmp_path / "t.csv", ["a", "b", "c", "target"], np.column_stack([x, y]).tolist())
    model = tmp_path / "m.safetensors"
    fit = ("fit", data, "--method", "hemlrn", "-p", "preset=null", "-p", "n_min=6", "-p", "max_layers=1")
    actual = json.loads(run(*fit, "--json", "-o", model).stdout)["scores"]
    seed = check_random_state(0).randint(2**31 - 1)
    _, held = split_rows(90, 0.2, y, np.random.default_rng([seed, 0]))
    estimator = persistence.read(model).estimator
    share = estimator.predict_proba(x[held].astype(np.float32))
    brier = np.mean(np.sum((share - np.eye(2)[y[held]]) ** 2, axis=1))
    assert actual["held_out"] == {"brier": pytest.approx(brier, rel=1e-4)}
    closing = run(*fit, "-o", model).stdout
    said = f"held out   brier {brier:.4g} (rows that were not trained on, but decided what was kept)"
    assert said in closing
    everything = json.loads(run(*fit, "--json", "-o", model, "-p", "validation_fraction=0").stdout)
    assert set(everything["scores"]) == {"training"}
    judged = json.loads(run(*fit, "--json", "-o", model, "--validation", data).stdout)["scores"]
    assert set(judged) == {"training", "validation"}


def test_decimal_commas_are_noticed_and_said(tmp_path: Path) -> None:
    data = tmp_path / "comma.csv"
    data.write_text("a;target\n" + "".join(f"{i},5;{i % 2}\n" for i in range(20)))
    assert "semicolons between fields, decimal comma" in decided(data)["table"][0]
    assert decided(data)["numbers"] == ["1: 'a' (otherwise: --text NAME)"]
    assert decided(data, "--decimal", ".")["text"][0].startswith("1: 'a' (20 categories, such as '0,5')")
    data.write_text("a,target\n" + "".join(f'"{i},500",{i % 2}\n' for i in range(20)))
    assert "--decimal ," in refused("fit", data)
    assert decided(data, "--decimal", ",")["numbers"] == ["1: 'a' (otherwise: --text NAME)"]


def test_a_file_without_header_loses_no_row(tmp_path: Path) -> None:
    data, model = tmp_path / "plain.csv", tmp_path / "m.safetensors"
    rows = [f"{i % 7}.5,{i % 5},{('yes', 'no')[i % 2]}\n" for i in range(20)]
    data.write_text("".join(rows))
    message = refused("fit", data, "--target", "x2")
    assert "has no header row" in message
    assert "--no-header" in message
    fitted = run("fit", data, "--no-header", "--target", "x2", "-o", model, *QUICK, "--json").stdout
    assert json.loads(fitted)["rows"] == 20
    assert "no header, so columns are named x0, x1" in fitted
    assert "--no-header" in refused("predict", model, data)
    assert run("predict", model, data, "--no-header").stdout.count("\n") == 21
    assert json.loads(run("evaluate", model, data, "--no-header", "--json").stdout)["rows"] == 20
    run("report", model, data, "--no-header", "-o", tmp_path / "r.html")


def test_dates_become_numbers_unless_they_are_said_to_be_text(tmp_path: Path) -> None:
    rows = [[f"2024-05-{i + 1:02d}", i % 7, i % 2] for i in range(20)]
    data = write_csv(tmp_path / "dates.csv", ["when", "n", "target"], rows)
    [said] = decided(data)["dates"]
    assert said.startswith("1: 'when' (days and the place in the week, such as '2024-05-01')")
    assert decided(data, "--drop", "when")["dropped"] == ["'when'"]
    assert decided(data, "--text", "when")["text"][0].startswith("1: 'when' (20 categories")
    assert "The target 'when' holds dates or times" in refused("fit", data, "--target", "when")
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.read_csv(data, parse_dates=["when"])
    frame.to_parquet(tmp_path / "dates.parquet")
    assert decided(tmp_path / "dates.parquet")["dates"][0].startswith("1: 'when' (days and the place")
    assert decided(tmp_path / "dates.parquet", "--drop", "when")["dropped"] == ["'when'"]


def test_whole_numbers_that_look_like_codes_are_classes(tmp_path: Path) -> None:
    rows = [[i % 7, i % 26, 0.5 * (i % 35), i // 5] for i in range(260)]
    data = write_csv(tmp_path / "letters.csv", ["a", "letter", "float", "count"], rows)

    def said(target: str, *more: str) -> str:
        return decided(data, "--target", target, *more)["target"][0]

    assert said("letter").startswith(
        "'letter': classification with 26 classes, because the whole numbers from 0"
    )
    assert said("letter").endswith("(otherwise: --task regression)")
    assert said("letter", "--task", "regression").startswith("'letter': regression, as --task says")
    assert said("float").startswith(
        "'float': regression, because it holds numbers that are not whole, such as 0.5"
    )
    assert "not whole, such as 0.5" in refused("fit", data, "--target", "float", "--task", "classification")
    assert said("float", "--text", "float").startswith("'float': classification with 35 classes")


def test_few_rows_of_a_class_and_strays_in_a_target_are_noted(tmp_path: Path) -> None:
    rows = [[i, "n/a" if i == 3 else i % 5] for i in range(20)]
    data = write_csv(tmp_path / "t.csv", ["a", "target"], rows)
    assert decided(data)["note"] == [
        "1 class has a single row, which no other row can confirm",
        "'target' is text, because 1 of 20 values are no numbers, such as 'n/a': "
        "leave these rows out for a regression",
    ]


def test_titanic_as_it_comes(data_home: Path) -> None:
    data = data_home / "classification" / "titanic.csv"
    if not data.exists():
        pytest.skip("needs classification/titanic.csv in the folder of OPGROW_DATA")
    assert decided(data)["note"] == [
        "'cabin' has 186 categories, which are means of the target: --max-categories 186 gives each an input "
        "of its own, --drop cabin leaves the column out"
    ]
    assert "note" not in decided(data, "--drop", "cabin")
    assert "note" not in decided(data, "--max-categories", 186)


def test_unseen_categories_and_columns_are_counted(tmp_path: Path) -> None:
    rows = [[i % 5, f"{i % 3:03d}", "ab"[i % 2], i % 2] for i in range(30)]
    rows[0][1] = "A1"
    header, model = ["n", "code", "t", "target"], tmp_path / "m.safetensors"
    train = write_csv(tmp_path / "train.csv", header, rows)
    run("fit", train, "-o", model, *QUICK, "-q")
    assert run("predict", model, train).stderr == ""

    rows = [[1, "001", "a", 0, 5], [1, "002", "new", 0, 5], [1, "002", "new", 0, 5], [1, "000", "", 1, 5]]
    test = write_csv(tmp_path / "test.csv", [*header, "more"], rows)
    notes = [
        "note: 1 column that fit did not use is ignored: 'more'",
        # The codes, digits only here, are known: they are read as text, with their zeros.
        "note: 2 of 4 rows have categories in 't' that were not seen in fit, such as 'new'; "
        "1 of 4 rows have no value in 't', which fit never saw",
    ]
    for command in ("predict", "evaluate"):
        assert run(command, model, test).stderr.splitlines() == notes
    assert run("report", model, test, "-o", tmp_path / "r.html").stderr.splitlines() == notes
    fitted = run("fit", train, "--validation", test, "-o", model, *QUICK).stdout
    assert f"note       validation: {notes[1].removeprefix('note: ')}" in fitted
    far = write_csv(tmp_path / "far.csv", header[:3], [[1e6, "001", "a"]])
    for proba in ([], ["--proba"]):
        assert run("predict", model, far, *proba).stderr.startswith("note: 1 of 1 rows lies far outside")
        assert run("predict", model, far, *proba).stderr.count("\n") == 1
    # Codes with zeros in front are those of the training rows: other digits give other predictions.
    x = opgrow.load(model).table_.transform({"n": [1], "code": ["001"], "t": ["a"]})
    assert x[0].sum() == 3


def test_outputs_with_another_suffix_are_refused_before_any_work(table: Path, tmp_path: Path) -> None:
    fit = ("fit", tmp_path / "absent.csv", "-o")  # which nobody has looked for yet
    assert (
        refused(*fit, "model.pdf") == "A model is written to a .safetensors file, got --output 'model.pdf'."
    )
    assert "A report is written to a .html file, got --report 'r.txt'" in refused(
        *fit, "m.safetensors", "--report", "r.txt"
    )
    absent = tmp_path / "absent.safetensors"
    assert "A report is written to a .html file" in refused("report", absent, "-o", "x.txt")
    assert "predictions is written to a .csv file" in refused("predict", absent, table, "-o", "p.xlsx")
    assert list(tmp_path.iterdir()) == [table]
