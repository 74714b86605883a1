"""``opgrow bench peers`` as a command: it runs, resumes, summarises, and refuses in one sentence."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from opgrow.cli.bench import app

QUICK = "logistic/ridge regression,HistGradientBoosting"


def invoke(*arguments):
    return CliRunner().invoke(app, ["peers", *map(str, arguments)])


def test_a_second_start_runs_only_what_is_new_and_the_page_has_its_pictures(tmp_path):
    first = invoke("--tables", "iris,diabetes", "--models", QUICK, "--splits", 1, "--out", tmp_path)
    assert first.exit_code == 0, first.output
    assert "[4/4] diabetes/0/HistGradientBoosting: R²" in first.stderr
    second = invoke("--tables", "iris,wine", "--models", QUICK, "--splits", 1, "--out", tmp_path)
    assert "2 of 4 runs are known." in second.stderr
    assert "[2/2] wine/0" in second.stderr
    lines = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_text().splitlines()]
    assert len(lines) == 6
    assert {line["status"] for line in lines} == {"done"}
    page = (tmp_path / "summary.md").read_text()
    for picture in ("classification-sizes.svg", "regression-sizes.svg", "ranks.svg"):
        assert picture in page
        assert (tmp_path / picture).read_text().startswith("<svg")
    again = invoke("--summary", "--out", tmp_path, "--aside", "wine", "--json")
    assert json.loads(again.stdout)["aside"]["tables"] == 1


def test_rows_are_limited_and_runs_with_another_limit_are_refused(tmp_path):
    options = ("--tables", "iris", "--models", "logistic/ridge regression", "--splits", 1, "--out", tmp_path)
    assert invoke(*options, "--max-rows", 30).exit_code == 0
    assert json.loads((tmp_path / "runs.jsonl").read_text())["rows"] == 30
    assert "--max-rows: 30" in str(invoke(*options).exception)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--models", "nosuch"), "unknown model 'nosuch'"),
        (("--tables", "nosuch"), "there is no table or folder 'nosuch'"),
        (("--data", "nosuch"), "there is no data folder 'nosuch'"),
        (("--summary", "--out", "nosuch"), "there is no run in"),
    ],
)
def test_mistakes_are_named_in_one_sentence(arguments, complaint):
    assert complaint in str(invoke(*arguments).exception)
