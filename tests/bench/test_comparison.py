"""Tests, ranks and diagrams that compare models agree with textbooks, scipy and counting by hand."""

from __future__ import annotations

import random
from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from opgrow.bench.comparison import (
    CriticalDifference,
    average_ranks,
    critical_difference,
    holm,
    wilcoxon_holm,
)
from opgrow.bench.rank_diagram import draw_critical_difference

# Demšar 2006, Table 6. The third digit hides a difference on voting, which the ranks there tell.
DEMSAR = {
    "C4.5": [
        *(0.763, 0.599, 0.954, 0.628, 0.882, 0.936, 0.661),
        *(0.583, 0.775, 1.000, 0.940, 0.619, 0.972, 0.957),
    ],
    "C4.5+m": [
        *(0.768, 0.591, 0.971, 0.661, 0.888, 0.931, 0.668),
        *(0.583, 0.838, 1.000, 0.962, 0.666, 0.981, 0.978),
    ],
    "C4.5+cf": [
        *(0.771, 0.590, 0.968, 0.654, 0.886, 0.916, 0.609),
        *(0.563, 0.866, 1.000, 0.965, 0.614, 0.9751, 0.946),
    ],
    "C4.5+m+cf": [
        *(0.798, 0.569, 0.967, 0.657, 0.898, 0.931, 0.685),
        *(0.625, 0.875, 1.000, 0.962, 0.669, 0.975, 0.970),
    ],
}
SVG = "{http://www.w3.org/2000/svg}"
PROBABILITIES = st.lists(st.floats(0, 1), min_size=1, max_size=12)
NAN = float("nan")


def tables(max_models: int = 6, max_datasets: int = 6) -> st.SearchStrategy[dict[str, list[float]]]:
    score = st.one_of(st.integers(0, 9).map(lambda i: i / 10), st.just(NAN))
    return st.integers(2, max_datasets).flatmap(
        lambda n: st.lists(st.lists(score, min_size=n, max_size=n), min_size=2, max_size=max_models).map(
            lambda rows: {f"model {i}": row for i, row in enumerate(rows)}
        )
    )


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


# Demšar 2006, Table 5 (a), printed with three digits.
@pytest.mark.parametrize(
    ("alpha", "published"),
    [
        (0.05, [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]),
        (0.10, [1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920]),
    ],
)
def test_critical_values_are_those_of_the_textbook(alpha, published):
    for k, q in enumerate(published, 2):
        assert critical_difference(k, 30, alpha) == pytest.approx(q * np.sqrt(k * (k + 1) / 180), rel=1e-3)


def test_ranks_and_critical_differences_of_demsars_example():
    result = average_ranks(DEMSAR)
    assert [(model, round(rank, 3)) for model, rank in result.ranks] == [
        *(("C4.5+m+cf", 1.964), ("C4.5+m", 2.0), ("C4.5+cf", 2.893), ("C4.5", 3.143)),
    ]
    assert result.cd == pytest.approx(1.25, abs=5e-3)
    assert result.groups == (("C4.5+m+cf", "C4.5+m", "C4.5+cf", "C4.5"),)
    loose = average_ranks(DEMSAR, alpha=0.10)
    assert loose.cd == pytest.approx(1.12, abs=5e-3)
    assert loose.groups == (("C4.5+m+cf", "C4.5+m", "C4.5+cf"), ("C4.5+cf", "C4.5"))
    # The paper's 9.28 has no correction for ties: three pairs and one four take 6.5 from a variance of 70.
    assert result.friedman == pytest.approx(9.28 * 70 / 63.5, abs=0.02)
    assert result.iman_davenport == pytest.approx(13 * result.friedman / (14 * 3 - result.friedman))


def test_friedman_is_scipys():
    result = average_ranks(DEMSAR)
    statistic, p = stats.friedmanchisquare(*DEMSAR.values())
    assert (result.friedman, result.friedman_p) == pytest.approx((statistic, p))
    assert result.iman_davenport_p == pytest.approx(stats.f.sf(result.iman_davenport, 3, 39))
    fresh = np.random.default_rng().random((5, 9))
    result = average_ranks({str(i): row for i, row in enumerate(fresh)})
    assert result.friedman_p == pytest.approx(stats.friedmanchisquare(*fresh).pvalue)


def test_iman_and_davenport_by_hand():
    # Rank sums 4, 8 and 12 less the mean of 8: (16 + 0 + 16) · 2 / (4 · 2) = 8 = N (k - 1), the largest.
    agreed = average_ranks({"a": [3, 3, 3, 3], "b": [2, 2, 2, 2], "c": [1, 1, 1, 1]})
    assert (agreed.friedman, agreed.iman_davenport, agreed.iman_davenport_p) == (8, np.inf, 0)
    # One dataset the other way round: sums 6, 8 and 10, so 8 · 2 / 8 = 2 and F = 3 · 2 / (8 - 2) = 1.
    mixed = average_ranks({"a": [3, 3, 3, 1], "b": [2, 2, 2, 2], "c": [1, 1, 1, 3]})
    assert (mixed.friedman, mixed.iman_davenport) == pytest.approx((2, 1))
    equal = average_ranks({"a": [1, 2], "b": [1, 2]})
    assert (equal.friedman_p, equal.iman_davenport_p) == (1, 1)
    assert equal.ranks == (("a", 1.5), ("b", 1.5))


def test_the_lowest_score_can_be_the_best():
    loss = {"a": [0.1, 0.2, 0.3], "b": [0.2, 0.3, 0.1]}
    assert [m for m, _ in average_ranks(loss, higher_is_better=False).ranks] == ["a", "b"]
    assert [m for m, _ in average_ranks(loss).ranks] == ["b", "a"]
    (result,) = wilcoxon_holm(loss, "a", higher_is_better=False)
    assert (result.wins, result.losses) == (1, 2)
    assert result.mean_difference == pytest.approx(0)


def test_runs_that_did_not_finish_take_the_worst_ranks():
    result = average_ranks(
        {"a": [0.5, NAN, NAN], "b": [0.9, 0.1, NAN], "c": [0.7, 0.2, 0.1], "d": [0, NAN, 0]}
    )
    # Ranks on the three datasets: a 3, 3.5, 3.5; b 1, 2, 3.5; c 2, 1, 1; d 4, 3.5, 2.
    assert dict(result.ranks) == pytest.approx({"a": 10 / 3, "b": 6.5 / 3, "c": 4 / 3, "d": 9.5 / 3})
    assert result.unfinished == 4
    alone = average_ranks({"a": [0.0, 0.0], "b": [NAN, NAN], "c": [-1.0, -1.0]})
    assert dict(alone.ranks)["b"] == 3
    nobody = average_ranks({"a": [NAN, 1.0], "b": [NAN, 2.0]})
    assert dict(nobody.ranks) == {"a": 1.75, "b": 1.25}


@settings(max_examples=40, deadline=None)
@given(tables(), st.randoms(use_true_random=False))
def test_ranks_do_not_depend_on_order(table, shuffler: random.Random):
    models = list(table)
    datasets = list(range(len(table[models[0]])))
    shuffler.shuffle(models)
    shuffler.shuffle(datasets)
    assert average_ranks(table) == average_ranks({m: [table[m][i] for i in datasets] for m in models})


@settings(max_examples=40, deadline=None)
@given(tables(max_datasets=20), st.sampled_from([0.05, 0.5, 0.9]))
def test_groups_are_the_maximal_cliques(table, alpha):
    result = average_ranks(table, alpha)
    ranks = dict(result.ranks)
    assert list(ranks.values()) == sorted(ranks.values())
    assert sum(ranks.values()) == pytest.approx(len(ranks) * (len(ranks) + 1) / 2)
    near = {
        frozenset(subset)
        for size in range(2, len(ranks) + 1)
        for subset in combinations(ranks, size)
        if all(abs(ranks[a] - ranks[b]) < result.cd for a, b in combinations(subset, 2))
    }
    maximal = {one for one in near if not any(one < other for other in near)}
    assert {frozenset(group) for group in result.groups} == maximal
    assert len(result.groups) == len(maximal)


def test_holm_of_demsars_example():
    # Section 3.2.2: 0.016 and 0.019 are below 0.05 / 3 and 0.05 / 2, 0.607 is not below 0.05.
    assert holm([0.607, 0.016, 0.019]) == pytest.approx([0.607, 0.048, 0.048])


@given(PROBABILITIES)
def test_holm_keeps_the_order_and_lies_between_p_and_bonferroni(p):
    adjusted = holm(p)
    assert np.all(np.diff(adjusted[np.argsort(p, kind="stable")]) >= 0)
    assert np.all(adjusted >= p)
    assert np.all(adjusted <= np.minimum(1, len(p) * np.array(p)))
    np.testing.assert_array_equal(holm(p[::-1]), adjusted[::-1])


@given(PROBABILITIES, st.floats(0.01, 0.5))
def test_holm_rejects_what_the_step_down_test_rejects(p, alpha):
    rejected = 0
    for i, value in enumerate(sorted(p)):
        if value * (len(p) - i) > alpha:
            break
        rejected += 1
    assert (holm(p) <= alpha).sum() == rejected


def test_small_samples_are_tested_exactly():
    base = [0.5] * 5
    scores = {"base": base, "up": [0.51, 0.53, 0.52, 0.54, 0.55], "down": [0.4, 0.3, 0.2, 0.1, 0.6]}
    up, down = wilcoxon_holm(scores, "base")
    # All five signs agree in 2 of 32 cases.
    assert (up.model, up.wins, up.ties, up.losses, up.p) == ("up", 5, 0, 0, 2 / 32)
    # The win is the smallest difference but for an equal loss, ranks 1.5: of 32 sums of ranks, those of
    # no sign and of one or the other small one are as low.
    assert (down.wins, down.losses, down.p) == (1, 4, pytest.approx(6 / 32))
    assert (up.p_holm, down.p_holm) == pytest.approx((4 / 32, 6 / 32))
    assert up.mean_difference == pytest.approx(0.03)
    assert not up.significant


def test_zero_differences_are_ranked_and_dropped():
    scores = {"base": [0.5] * 5, "model": [0.5, 0.5, 0.6, 0.6, 0.7]}
    (result,) = wilcoxon_holm(scores, "base")
    # Three signs are left, and all agree in 2 of 8 cases.
    assert (result.wins, result.ties, result.losses, result.p) == (3, 2, 0, pytest.approx(0.25))


def test_p_values_are_scipys():
    result = {c.model: c for c in wilcoxon_holm(DEMSAR, "C4.5")}
    for model, one in result.items():
        d = np.round(np.subtract(DEMSAR[model], DEMSAR["C4.5"]), 6)
        assert one.p == pytest.approx(stats.wilcoxon(d, zero_method="pratt").pvalue)
        assert (one.wins, one.ties, one.losses) == ((d > 0).sum(), (d == 0).sum(), (d < 0).sum())
        assert one.mean_difference == pytest.approx(d.mean())
    # Demšar's Table 2: R+ = 93 and R- = 12, each with half of the ranks of two zeros.
    d = np.round(np.subtract(DEMSAR["C4.5+m"], DEMSAR["C4.5"]), 6)
    assert stats.wilcoxon(d, zero_method="zsplit").statistic == 12
    assert result["C4.5+m"].significant
    assert not result["C4.5+cf"].significant
    fresh = np.random.default_rng().random((2, 30))
    (one,) = wilcoxon_holm({"a": fresh[0], "b": fresh[1]}, "a")
    assert one.p == pytest.approx(stats.wilcoxon(*fresh, method="exact").pvalue)


def test_rounding_breaks_no_ties():
    # 0.3 - 0.2, 0.4 - 0.3 and 0.9 - 0.8 differ in their last bits, as do 0.1 + 0.2 and 0.3.
    scores = {"base": [0.2, 0.4, 0.8, 0.3], "model": [0.3, 0.3, 0.9, 0.1 + 0.2]}
    (result,) = wilcoxon_holm(scores, "base")
    assert (result.wins, result.ties, result.losses) == (2, 1, 1)
    assert result.p == 1  # the loss has the same rank as the wins
    assert average_ranks({"a": [0.3, 0.3], "b": [0.1 + 0.2, 0.3]}).ranks == (("a", 1.5), ("b", 1.5))
    huge = average_ranks({"a": [1e-9, 1e-9], "b": [2e-9, 2e-9], "c": [1e9, 1e9]})
    assert [rank for _, rank in huge.ranks] == [1, 2, 3]


def test_pairs_without_both_scores_are_left_out_and_counted():
    scores = {
        "base": [0.5, 0.5, NAN, 0.5, 0.5],
        "some": [0.6, NAN, 0.9, 0.7, 0.8],
        "none": [NAN] * 5,
        "same": [0.5, 0.5, 0.5, 0.5, 0.5],
    }
    some, none, same = wilcoxon_holm(scores, "base")
    (whole,) = wilcoxon_holm({"base": [0.5] * 3, "some": [0.6, 0.7, 0.8]}, "base")
    assert (some.left_out, some.wins, some.p) == (2, 3, whole.p)
    assert some.mean_difference == whole.mean_difference
    assert (none.left_out, none.wins, none.ties, none.losses, none.p, none.significant) == (
        5,
        0,
        0,
        0,
        1,
        False,
    )
    assert np.isnan(none.mean_difference)
    assert (same.left_out, same.ties, same.p, same.p_holm, same.mean_difference) == (1, 4, 1, 1, 0)


@settings(max_examples=25, deadline=None)
@given(tables(max_models=4), st.randoms(use_true_random=False))
def test_comparisons_do_not_depend_on_order(table, shuffler: random.Random):
    models = list(table)
    splits = list(range(len(table[models[0]])))
    shuffler.shuffle(models)
    shuffler.shuffle(splits)
    result = {c.model: c for c in wilcoxon_holm(table, "model 0")}
    for other in wilcoxon_holm({m: [table[m][i] for i in splits] for m in models}, "model 0"):
        one = result.pop(other.model)
        assert (one.wins, one.ties, one.losses, one.left_out) == (
            *(other.wins, other.ties, other.losses, other.left_out),
        )
        assert (one.p, one.p_holm) == pytest.approx((other.p, other.p_holm))
        assert one.mean_difference == pytest.approx(other.mean_difference, nan_ok=True)
    assert not result


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({}, "at least 2 models, got 0"),
        ({"a": [1.0]}, "at least 2 models, got 1"),
        ({"a": [1.0, 2.0], "b": [1.0]}, "got 2 for 'a' and 1 for 'b'"),
        ({"a": [1.0, 2.0], "b": [1.0, np.inf]}, "finite, or NaN .* for 'b'"),
        ({"a": [], "b": []}, r"a sequence of numbers, got an array \(0,\) for 'a'"),
        ({"a": [[1.0]], "b": [[1.0]]}, "a sequence of numbers"),
    ],
)
def test_bad_scores_get_one_sentence(scores, message):
    for check in (average_ranks, lambda given: wilcoxon_holm(given, "a")):
        with pytest.raises(ValueError, match=message) as caught:
            check(scores)
        assert "\n" not in str(caught.value)


def test_other_bad_input_gets_one_sentence():
    scores = {"a": [1.0], "b": [2.0]}
    with pytest.raises(ValueError, match="unknown reference 'c'; known are: a, b"):
        wilcoxon_holm(scores, "c")
    with pytest.raises(ValueError, match="at least 2 datasets, got 1"):
        average_ranks(scores)
    with pytest.raises(ValueError, match="at least 2 models and 1 dataset, got n_models=1 and n_datasets=5"):
        critical_difference(1, 5)
    for use in (lambda: wilcoxon_holm(scores, "a", alpha=5), lambda: critical_difference(3, 5, alpha=0)):
        with pytest.raises(ValueError, match="alpha lies between 0 and 1"):
            use()


def test_the_diagram_shows_ranks_groups_and_the_critical_difference():
    svg = draw_critical_difference(average_ranks(DEMSAR, alpha=0.10))
    assert texts(svg) == [
        *("CD = 1.12", "1", "2", "3", "4"),
        *("C4.5+m+cf (1.96)", "C4.5+m (2.00)", "C4.5+cf (2.89)", "C4.5 (3.14)"),
    ]
    drawn = ElementTree.fromstring(svg)
    bars = drawn.findall(f"{SVG}g[@stroke-width='4']/{SVG}line")
    assert len(bars) == 2
    assert len({bar.get("y1") for bar in bars}) == 2, "overlapping bars lie on levels of their own"
    colours = {e.get(key) for e in drawn.iter() for key in ("fill", "stroke")} - {None}
    assert colours == {"currentColor"}


@given(st.lists(st.text(max_size=12), min_size=2, max_size=4, unique=True))
@settings(max_examples=40, deadline=None)
def test_any_name_makes_well_formed_xml(names):
    svg = draw_critical_difference(average_ranks({name: [0.1, 0.2] for name in names}))
    assert len(texts(svg)) == 1 + 2 * len(names)
    svg.encode()


def test_names_are_escaped():
    name = "<script>alert('&amp;')</script> & \"1 < 2\""
    svg = draw_critical_difference(average_ranks({name: [1, 2], "null\0": [0, 1]}))
    assert "<script>" not in svg
    assert texts(svg)[-2:] == [f"{name} (1.00)", "null\N{REPLACEMENT CHARACTER} (2.00)"]


@pytest.mark.parametrize("n_models", [2, 3, 20])
@pytest.mark.parametrize("n_datasets", [2, 200])
def test_everything_lies_on_the_canvas_and_labels_apart(n_models, n_datasets):
    scores = np.random.default_rng(n_models).random((n_models, n_datasets))
    result = average_ranks({f"a model with a long name {i}": row for i, row in enumerate(scores)})
    drawn = ElementTree.fromstring(draw_critical_difference(result))
    _, _, width, height = map(float, drawn.get("viewBox", "").split())
    for line in drawn.iter(f"{SVG}line"):
        assert all(0 <= float(line.get(key, "nan")) <= width for key in ("x1", "x2"))
        assert all(0 <= float(line.get(key, "nan")) <= height for key in ("y1", "y2"))
    places = {}
    for text in drawn.iter(f"{SVG}text"):
        x, y, letters = float(text.get("x", "nan")), float(text.get("y", "nan")), 7 * len(text.text or "")
        anchor = text.get("text-anchor")
        start = x - letters * {"start": 0, "middle": 0.5, "end": 1}[anchor]
        assert start >= 0
        assert start + letters <= width
        assert 12 <= y + 2 <= height
        if anchor != "middle":
            places.setdefault(anchor, []).append(y)
    for heights in places.values():
        assert min(np.diff(sorted(heights)), default=99) >= 15


def test_bars_that_do_not_overlap_share_a_level():
    ranks = (("a", 1.0), ("b", 1.5), ("c", 3.5), ("d", 4.0))
    result = CriticalDifference(ranks, 1.0, (("a", "b"), ("c", "d")), 0, 1, 0, 1, 9, 0.05)
    bars = ElementTree.fromstring(draw_critical_difference(result)).findall(f"{SVG}g[@stroke-width='4']/*")
    assert [bar.get("y1") for bar in bars] == [bars[0].get("y1")] * 2
    assert float(bars[0].get("x2")) < float(bars[1].get("x1"))
    alone = CriticalDifference(ranks, 0.1, (), 0, 1, 0, 1, 9, 0.05)
    assert not ElementTree.fromstring(draw_critical_difference(alone)).findall(f"{SVG}g[@stroke-width='4']/*")
