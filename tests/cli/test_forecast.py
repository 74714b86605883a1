"""``opgrow fit --dry-run``: what a fit would take, said before it is begun."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import opgrow
from opgrow.cli import app, forecast
from opgrow.growth.methods import METHODS


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.npz"
    x, y = np.random.default_rng(0).normal(size=(90, 5)), np.resize(["one", "two", "three"], 90)
    np.savez(path, X=x, y=y)
    return path


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(app, ["fit", *map(str, arguments)])


def test_a_dry_run_tells_and_writes_nothing(table: Path) -> None:
    result = invoke(table, "--dry-run", "--output", table.parent / "m.safetensors")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = dict(line.split(maxsplit=1) for line in result.stdout.splitlines() if line)
    assert lines["rows"] == "72 for training, 18 for validation"
    assert lines["inputs"] == "5"
    assert lines["outputs"] == "3 classes of target"
    assert lines["method"].startswith("HeMLGOPClassifier: 5 networks, ")
    assert lines["memory"].startswith("about ")
    assert lines["model"] == str(table.parent / "m.safetensors")
    assert [path.name for path in table.parent.iterdir()] == [table.name]


@pytest.mark.parametrize("method", METHODS)
def test_a_dry_run_as_json(method: str, table: Path) -> None:
    told = json.loads(invoke(table, "--dry-run", "--json", "--method", method).stdout)
    estimator = getattr(opgrow, f"{method}Classifier")()
    assert told["parameters"] == estimator.plan(90, 5, 3).n_parameters
    assert (told["inputs"], told["outputs"], told["device"]) == (5, 3, "cpu")
    assert told["training_rows"] + told["validation_rows"] == 90
    memory = told["memory"]
    assert memory["peak"] >= memory["libraries"] + memory["data"] > memory["growth"] // 100


def test_a_dry_run_counts_the_rows_of_small_classes_as_a_fit_does(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    labels = ["a"] * 37 + ["b"] * 2 + ["c"] * 3 + ["d"] * 11
    path.write_text("x,target\n" + "".join(f"{i % 7},{label}\n" for i, label in enumerate(labels)))
    options = (path, "--method", "pln", "--output", tmp_path / "m.safetensors", "--json")
    told = json.loads(invoke(*options, "--dry-run").stdout)
    estimator = opgrow.PLNClassifier(random_state=0, callbacks=[heard := Heard()])
    estimator.fit(np.array([[i % 7] for i in range(len(labels))], float), labels)
    assert (told["training_rows"], told["validation_rows"]) == heard.rows


class Heard(opgrow.Callback):
    rows: tuple[int, int]

    def on_growth_start(self, event: Any) -> None:
        self.rows = event.n_rows, event.n_validation


def test_a_dry_run_refuses_what_a_fit_refuses(table: Path, tmp_path: Path) -> None:
    one = tmp_path / "one.csv"
    one.write_text("a,target\n1,x\n2,x\n3,x\n")
    for arguments, why in (
        ((one,), "needs at least 2 classes"),
        ((table, "-p", "n_min=-3"), "n_min must be"),
        ((table, "-p", "weight_range=-1"), "weight_range"),
        ((table, "--task", "regression"), "regression needs numbers"),
        ((table, "--output", tmp_path / "no" / "m"), "There is no folder"),
    ):
        wet, dry = (invoke(*arguments, *more) for more in ((), ("--dry-run",)))
        assert why in dry.stderr
        assert (wet.exit_code, wet.stderr) == (dry.exit_code, dry.stderr) == (2, dry.stderr)


def test_a_fit_that_needs_more_than_there_is_warns_in_a_sentence(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecast, "available_bytes", lambda: 1000)
    options = (table, "--method", "pln", "--output", table.parent / "m.safetensors")
    result = invoke(*options)
    assert result.exit_code == 0
    first, *growth = result.stderr.splitlines()
    assert first.startswith("warning: growth may take about ")
    assert first.endswith("1 MiB are available.")
    assert "warning" not in " ".join(growth)
    assert invoke(*options, "--quiet").stderr == ""
    assert "which is not enough" in invoke(*options, "--dry-run").stdout


def test_a_dry_run_where_the_system_says_nothing_of_memory(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("available_bytes", "resident_bytes", "peak_bytes"):
        monkeypatch.setattr(forecast, name, lambda: None)
    assert "and what Python and its libraries take" in invoke(table, "--dry-run").stdout
