"""The results file: lines are added, survive interruptions, and replace earlier ones of the same run."""

from __future__ import annotations

import pytest

from opgrow.bench.peers.results import Results


def run(model, **more):
    return {"table": "iris", "split": 0, "model": model, "status": "done"} | more


def test_a_later_line_replaces_an_earlier_one(tmp_path):
    results = Results(tmp_path / "new" / "runs.jsonl")
    assert results.lines() == {}
    for one in (run("a", accuracy=0.5), run("b", budget=None), run("a", accuracy=0.25)):
        results.add(one)
    assert list(results.lines().values()) == [run("a", accuracy=0.25), run("b")]
    assert len(results.path.read_text().splitlines()) == 3


def test_a_line_that_was_cut_off_is_the_only_one_lost(tmp_path):
    results = Results(tmp_path / "runs.jsonl")
    results.add(run("a"))
    with results.path.open("a") as file:
        file.write('{"table": "ir')
    results.add(run("b"))
    assert [line["model"] for line in results.lines().values()] == ["a", "b"]


def test_another_file_is_refused(tmp_path):
    path = tmp_path / "runs.jsonl"
    path.write_text('{"table": "iris"}\n')
    with pytest.raises(ValueError, match="line 1, is not a run"):
        Results(path).lines()
