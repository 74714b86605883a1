"""What the lines of the study of operators say, against values known otherwise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from opgrow.bench.comparison import holm
from opgrow.bench.operators.answers import answers, shares
from opgrow.bench.operators.page import page
from opgrow.bench.operators.variants import FULL, PERCEPTRONS, Question

ONE = Question("all, against perceptrons", FULL, PERCEPTRONS)
OTHER = Question("all, against PLN", FULL, "PLN")


def line(table, split, model, accuracy, **more):
    known = {"status": "done", "task": "classification", "accuracy": accuracy, "parameters": 100}
    return {"table": table, "split": split, "model": model, "fit_cpu_seconds": 1.0, **known, **more}


def lines_of(rng, n_tables=9, n_splits=2):
    """Lines of three variants with random scores."""
    return [
        line(f"t{table}", split, model, accuracy=float(rng.random()), chosen={"gaussian/sum/tanh": 1})
        for model in (FULL, PERCEPTRONS, "PLN")
        for table in range(n_tables)
        for split in range(n_splits)
    ]


def test_splits_of_a_table_are_one_observation_of_the_test():
    lines = lines_of(np.random.default_rng(0))
    scores = {
        model: np.array([one["accuracy"] for one in lines if one["model"] == model])
        .reshape(9, 2)
        .mean(axis=1)
        for model in (FULL, PERCEPTRONS, "PLN")
    }
    found = answers(lines, [ONE, OTHER])
    for answer, other in zip(found, (PERCEPTRONS, "PLN"), strict=True):
        differences = scores[FULL] - scores[other]
        assert answer.mean == pytest.approx(differences.mean())
        assert answer.error == pytest.approx(stats.sem(differences))
        assert answer.p == pytest.approx(stats.wilcoxon(differences).pvalue)
        assert (answer.ahead, answer.behind) == ((differences > 0).sum(), (differences < 0).sum())
    assert [one.p_holm for one in found] == pytest.approx(list(holm([one.p for one in found])))


def test_a_table_counts_where_both_finished():
    lines = lines_of(np.random.default_rng(1), n_tables=3, n_splits=1)
    lines[0] = lines[0] | {"status": "failed"}
    (answer,) = answers(lines, [ONE])
    assert set(answer.differences) == {"t1", "t2"}
    assert answers(lines[:2], [ONE]) == []


def test_sizes_and_times_are_geometric_means_of_ratios():
    lines = [
        line("a", 0, FULL, 0.5, parameters=200, fit_cpu_seconds=4.0),
        line("a", 0, PERCEPTRONS, 0.5),
        line("b", 0, FULL, 0.5, parameters=800, fit_cpu_seconds=1.0),
        line("b", 0, PERCEPTRONS, 0.5),
    ]
    (answer,) = answers(lines, [ONE])
    assert (answer.size, answer.time) == pytest.approx((4.0, 2.0))
    assert (answer.level, answer.p) == (2, 1.0)


def test_shares_are_means_over_runs():
    lines = [
        line("a", 0, FULL, 0.5, chosen={"gaussian/sum/tanh": 3, "multiplication/sum/relu": 1}),
        line("b", 0, FULL, 0.5, chosen={"multiplication/maximum/tanh": 1}),
    ]
    found = shares(lines, FULL)
    assert found["nodal"] == pytest.approx({"multiplication": 0.625, "gaussian": 0.375})
    assert found["pool"] == pytest.approx({"maximum": 0.5, "sum": 0.5})


def test_the_page_has_a_row_for_each_comparison():
    text = page(lines_of(np.random.default_rng(2)))
    assert "| all operators, against multiplication and sum alone |" in text
    assert "| the default, against PLN |" in text
    assert "gaussian 100 %" in text
