"""The runs of the study of operators: a line for each, resumed, with what was chosen."""

from __future__ import annotations

import json

import pytest

from opgrow.bench.operators.study import run_study
from opgrow.bench.operators.variants import EQUAL, FULL, PERCEPTRONS
from opgrow.bench.peers.table_study import TableStudy


def run(folder, variants, **settings):
    """The lines that a study adds."""
    lines = []
    study = TableStudy(["iris"], variants, folder / "runs.jsonl", max_rows=60, **settings)
    run_study(study, lambda line, number, total: lines.append(line))
    return lines


def test_a_line_says_where_it_is_from_and_what_came_of_it(tmp_path):
    first, _, *equal = run(tmp_path, [FULL, PERCEPTRONS, *EQUAL])
    assert first["command"] == (
        f"opgrow bench operators --tables iris --models '{FULL}' --splits 1 --max-rows 60"
    )
    assert (first["seed"], first["rows"], first["status"]) == (0, 60, "done")
    assert first["commit"]
    assert sum(first["chosen"].values()) == first["blocks"]
    known = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    smaller = min(line["parameters"] for line in known[:2])
    assert [line["max_parameters"] for line in equal] == [smaller, smaller]
    assert all(line["parameters"] <= smaller for line in equal)


def test_a_second_start_runs_only_what_is_new(tmp_path):
    run(tmp_path, ["PLN"])
    assert [line["model"] for line in run(tmp_path, ["PLN", "BLS"])] == ["BLS"]
    with pytest.raises(ValueError, match="--max-rows: 60"):
        run_study(TableStudy(["iris"], ["PLN"], tmp_path / "runs.jsonl", max_rows=50), print)


def test_a_fit_that_fails_is_a_line(tmp_path):
    (line,) = run(tmp_path, [f"{FULL} n_min=-1"])
    assert line["status"] == "failed"
    assert "n_min" in line["message"]
