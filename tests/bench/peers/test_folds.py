"""A table that is cut into folds comes back as it was, each row in one test part."""

from __future__ import annotations

import numpy as np
import pytest

from opgrow.bench.peers.folds import FoldedTable, load_fold, write_folds
from opgrow.rows.tables import Table

N = 40


def table() -> Table:
    rng = np.random.default_rng(0)
    texts = rng.choice(["red", "", "ü,\n", None], N).astype(object)
    numbers = np.where(rng.random(N) < 0.2, np.nan, rng.normal(size=N))
    return Table({"row": np.arange(N, dtype=np.float64), "a/b": texts, "number": numbers})


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_rows_are_whole_and_each_is_tested_once(tmp_path, task):
    x = table()
    labels = np.array(["no", "yes"])
    y = labels[np.arange(N) % 2] if task == "classification" else np.arange(N) / 7
    write_folds(FoldedTable(x, y, task, ("a/b",), 4, 1), tmp_path)
    tested = []
    for number in range(4):
        split = load_fold(tmp_path, number)
        assert (split.task, split.text) == (task, ("a/b",))
        assert split.n_classes == (2 if task == "classification" else 0)
        for part, target in ((split.x_train, split.y_train), (split.x_test, split.y_test)):
            rows = part.columns["row"].astype(int)
            assert part.columns["a/b"].tolist() == x.columns["a/b"][rows].tolist()
            np.testing.assert_array_equal(part.columns["number"], x.columns["number"][rows])
            expected = labels[target] if task == "classification" else target
            np.testing.assert_array_equal(expected, y[rows])
        if task == "classification":
            assert split.y_test.mean() == 0.5  # stratified
        tested += split.x_test.columns["row"].astype(int).tolist()
    assert sorted(tested) == list(range(N))


def test_classes_with_few_rows_are_no_obstacle(tmp_path):
    y = np.array(["a"] * 20 + ["b"] * 19 + ["c"])
    write_folds(FoldedTable(table(), y, "classification", (), 5), tmp_path)
    assert sum((load_fold(tmp_path, number).y_test == 2).sum() for number in range(5)) == 1
    each = np.array([f"class {i}" for i in range(N)])
    write_folds(FoldedTable(table(), each, "classification", (), 5), tmp_path)
    assert len(load_fold(tmp_path, 0).y_test) == N // 5
