"""``opgrow bench operators`` as a command: it runs, summarises, and refuses in one sentence."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from opgrow.cli.bench import app


def invoke(*arguments):
    return CliRunner().invoke(app, ["operators", *map(str, arguments)])


def test_runs_are_compared_and_summarised(tmp_path):
    first = invoke("--tables", "iris,diabetes", "--models", "PLN", "--max-rows", 60, "--out", tmp_path)
    assert first.exit_code == 0, first.output
    assert "[4/4] diabetes/0/PLN: R²" in first.stderr
    assert "| the default, against PLN |" in first.stdout
    assert (tmp_path / "summary.md").read_text().strip() == first.stdout.strip()
    (answer,) = json.loads(invoke("--summary", "--out", tmp_path, "--json").stdout)
    assert set(answer["differences"]) == {"iris", "diabetes"}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--models", "nosuch"), "unknown model 'nosuch'"),
        (("--tables", "nosuch"), "there is no table or folder 'nosuch'"),
        (("--summary", "--out", "nosuch"), "there is no run in"),
    ],
)
def test_mistakes_are_named_in_one_sentence(arguments, complaint):
    assert complaint in str(invoke(*arguments).exception)
