"""The experiment runs what is missing, and the command shows its tables."""

from __future__ import annotations

import csv

from typer.testing import CliRunner

from opgrow.bench.replication import reading_study
from opgrow.bench.replication.reading_study import AROUND, DESIGN, ReadingStudy, results_of, run_readings
from opgrow.bench.replication.readings import designed
from opgrow.bench.runs import DONE
from opgrow.cli.bench import app

N_AROUND = 15


def quick(monkeypatch):
    """Runs that end at once; those that were fitted."""
    fitted = []

    def fit(run, x, y, bounds):
        fitted.append(run)
        small = run.reading["rows that decide"] == "a fifth held out"
        return {
            "status": DONE,
            "parameters": (800 if small else 9000) + len(run.table),
            "topology": "8-60-2",
            "training_accuracy": 0.9,
            "accuracy": 0.7 + 0.001 * run.split,
            "cpu_seconds": 0.5,
            "message": "",
        }

    monkeypatch.setattr(reading_study, "fit_reading", fit)
    monkeypatch.setattr(reading_study, "_loaded", lambda name, home: (None, None))
    return fitted


def test_an_experiment_goes_on_where_it_was_interrupted(tmp_path, monkeypatch):
    fitted, told = quick(monkeypatch), []
    study = ReadingStudy(("pima", "cmc"), tmp_path / "readings.csv", "opgrow bench readings", n_splits=(1, 2))
    run_readings(study, told.append)
    assert len(fitted) == len(told) == 2 * len(designed()) + 2 * 2 * N_AROUND
    assert [run.part for run in fitted] == [DESIGN] * 64 + [AROUND] * 4 * N_AROUND
    lines = study.out.read_text().splitlines(keepends=True)
    study.out.write_text("".join(lines[:40]))
    again = quick(monkeypatch)
    run_readings(study, told.append)
    assert len(again) == len(fitted) - 39
    assert sorted(study.out.read_text().splitlines()) == sorted(line.rstrip("\n") for line in lines)
    nearest = fitted[-2 * N_AROUND].reading
    assert nearest["rows that decide"] == "a fifth held out"
    assert results_of(study.out).rows()[0]["command"] == "opgrow bench readings"


def test_the_command_shows_tables_and_names_no_folder_of_the_machine(tmp_path, monkeypatch):
    quick(monkeypatch)
    out = tmp_path / "readings.csv"
    arguments = ["readings", "--data", str(tmp_path), "--splits", "1", "--around", "1", "--out", str(out)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "## What no reading reaches" in result.stdout
    assert f"[{3 * N_AROUND}/{3 * N_AROUND}]" in result.stderr
    with out.open(newline="") as file:
        [command] = {row["command"] for row in csv.DictReader(file)}
    assert command.startswith(
        "opgrow bench readings --data DIR --tables pima,cmc,yeast --splits 1 --around 1"
    )
    assert str(tmp_path) not in command
