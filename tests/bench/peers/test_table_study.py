"""What a study of tables runs, and what it does not add to."""

from __future__ import annotations

import pytest

from opgrow.bench.peers.table_study import TableStudy


def test_a_study_does_all_tables_and_models_of_a_split_before_the_next(tmp_path):
    study = TableStudy(["iris", "wine"], ["PLN", "BLS"], tmp_path / "runs.jsonl", n_splits=2)
    runs = study.runs()
    assert runs[:4] == [("iris", 0, "PLN"), ("iris", 0, "BLS"), ("wine", 0, "PLN"), ("wine", 0, "BLS")]
    assert runs[4:] == [(table, 1, model) for table, _, model in runs[:4]]


def test_runs_with_other_training_rows_are_not_added_to(tmp_path):
    study = TableStudy(["iris"], ["PLN"], tmp_path / "runs.jsonl", max_rows=60)
    study.check({("iris", 0, "PLN"): {"max_rows": 60}})
    with pytest.raises(ValueError, match="--max-rows: no limit"):
        study.check({("iris", 0, "PLN"): {}})
