"""A file of results grows line by line, and knows what it has."""

from __future__ import annotations

import pytest

from opgrow.bench.replication.results_file import ResultsFile


def results(tmp_path, columns=("table", "split", "accuracy")):
    return ResultsFile(tmp_path / "new" / "runs.csv", columns, ("table", "split"))


def test_lines_are_added_and_known(tmp_path):
    file = results(tmp_path)
    assert file.rows() == []
    for split in range(2):
        file.add({"table": "a, b", "split": split, "accuracy": 0.5})
    assert file.rows()[1] == {"table": "a, b", "split": "1", "accuracy": "0.5"}
    assert file.known() == {("a, b", "0"), ("a, b", "1")}
    assert file.key_of({"table": "a, b", "split": 1, "accuracy": 0}) in file.known()


def test_a_line_that_was_cut_off_counts_for_nothing(tmp_path):
    file = results(tmp_path)
    file.add({"table": "a", "split": 0, "accuracy": 0.5})
    with file.path.open("a") as stream:
        stream.write("b,1")
    assert file.known() == {("a", "0")}
    file.add({"table": "c", "split": 2, "accuracy": 0.5})
    assert file.known() == {("a", "0"), ("c", "2")}


def test_a_file_with_other_columns_is_refused(tmp_path):
    results(tmp_path).add({"table": "a", "split": 0, "accuracy": 0.5})
    with pytest.raises(ValueError, match=r"must have the columns table, split, got table, split, accuracy"):
        results(tmp_path, ("table", "split")).rows()
