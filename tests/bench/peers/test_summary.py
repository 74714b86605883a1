"""The summary of a study: paired tests, ranks and what is left out, against values known otherwise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from opgrow.bench.comparison import critical_difference
from opgrow.bench.peers.models import DEFAULT, PERCEPTRONS
from opgrow.bench.peers.summary import corrected_t_test, summarize


def line(table, split, model, accuracy, **more):
    known = {"task": "classification", "rows": 60, "test_rows": 40, "status": "done", "accuracy": accuracy}
    return {"table": table, "split": split, "model": model} | known | more


def study(scores):
    """Lines of models whose accuracies on splits are given by table."""
    return [
        line(table, split, model, accuracy)
        for model, tables in scores.items()
        for table, accuracies in tables.items()
        for split, accuracy in enumerate(accuracies)
    ]


def test_without_shared_rows_the_corrected_test_is_the_paired_t_test():
    differences = np.random.default_rng(0).normal(0.5, 1, 8)
    expected = stats.ttest_1samp(differences, 0).pvalue
    assert corrected_t_test(differences, 0) == pytest.approx(expected)
    assert corrected_t_test(differences, 2 / 3) > expected


def test_the_corrected_test_of_three_differences_by_hand():
    # Mean 2, s = 1, n = 3: t = 2 / sqrt(1/3 + 2/3) = 2, and P(|t| > 2) with two degrees of freedom is
    # 1 - 2 / sqrt(2 + 4).
    assert corrected_t_test(np.array([1.0, 2.0, 3.0]), 2 / 3) == pytest.approx(1 - 2 / np.sqrt(6))


@pytest.mark.parametrize(("differences", "p"), [([0.1], 1.0), ([0.0, 0.0], 1.0), ([0.1, 0.1], 0.0)])
def test_the_corrected_test_without_any_spread(differences, p):
    assert corrected_t_test(np.array(differences), 0.5) == p


def test_wins_are_those_that_the_paired_test_finds():
    ours = {"clear": [0.9, 0.91, 0.92], "noisy": [0.9, 0.5, 0.9], "behind": [0.6, 0.61, 0.62]}
    theirs = {"clear": [0.7, 0.71, 0.72], "noisy": [0.5, 0.9, 0.6], "behind": [0.8, 0.81, 0.82]}
    (duel,) = summarize(study({DEFAULT: ours, "random forest": theirs})).duels()
    assert (duel.wins, duel.ties, duel.losses) == (1, 1, 1)
    assert (duel.ahead, duel.behind) == (2, 1)
    assert duel.p == stats.wilcoxon([0.2, 0.1, -0.2]).pvalue


def test_ranks_and_their_critical_difference():
    scores = {DEFAULT: 0.9, PERCEPTRONS: 0.8, "random forest": 0.7}
    lines = study({model: {f"t{i}": [score] for i in range(4)} for model, score in scores.items()})
    ranking = summarize(lines).ranks()
    assert dict(ranking.ranks) == {DEFAULT: 1, PERCEPTRONS: 2, "random forest": 3}
    assert ranking.cd == critical_difference(3, 4)
    assert ranking.cd == pytest.approx(2.343 * np.sqrt(3 * 4 / (6 * 4)), abs=1e-3)  # q of Demšar's Table 5


def test_a_run_that_failed_takes_the_worst_rank_and_is_in_no_mean():
    lines = study({DEFAULT: {"a": [0.5], "b": [0.6]}, "random forest": {"a": [0.9], "b": [0.9]}})
    lines[2] = {k: v for k, v in lines[2].items() if k != "accuracy"} | {"status": "failed"}
    summary = summarize(lines)
    assert dict(summary.ranks().ranks) == {DEFAULT: 1.5, "random forest": 1.5}
    assert summary.common("classification") == ["b"]
    assert summary.mean(DEFAULT, "accuracy") == 0.6


def test_a_model_that_has_only_begun_is_left_out_and_so_are_splits_that_others_lack():
    lines = study({DEFAULT: {t: [0.5, 0.5] for t in "abc"}, "LightGBM": {t: [0.4] for t in "abc"}})
    summary = summarize([*lines, line("a", 0, "CatBoost", 0.9)])
    assert summary.begun == ("CatBoost",)
    assert summary.splits == (("a", 0), ("b", 0), ("c", 0))
