"""Ridge regression from running sums against one that numpy solves from all rows at once."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from opgrow.closed_form.incremental_ridge import IncrementalRidge
from opgrow.closed_form.running_ridge import RunningRidge
from opgrow.common.errors import NotFiniteError

N, P, C = 230, 12, 3


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    features = rng.normal(size=(N, P)) * rng.uniform(0.1, 9, P) + rng.normal(size=P) * 20
    target = features[:, :C] * 0.3 + rng.normal(size=(N, C))
    return features, target, rng.uniform(0.1, 4, N)


def solved(features, target, weight, ridge, count=None):
    """The solution by numpy: standardised features, weights of mean 1, a free intercept."""
    count = len(features) if count is None else count
    share = weight / weight.sum()
    mean, target_mean = share @ features, share @ target
    centred = features - mean
    scale = np.sqrt(share @ centred**2)
    root = np.sqrt(share * count)[:, None]
    z, y = centred / scale * root, (target - target_mean) * root
    left = np.concatenate([z, np.sqrt(ridge) * np.eye(features.shape[1])])
    right = np.concatenate([y, np.zeros((features.shape[1], target.shape[1]))])
    head = np.linalg.lstsq(left, right, rcond=None)[0] / scale[:, None]
    return head, target_mean - mean @ head


def running(parts, n_targets=C, forgetting=1.0):
    sums = RunningRidge.start(P, n_targets)
    for part in parts:
        sums = sums.extended(*part, forgetting)
    return sums


def cut(rows, borders):
    return [[array[start:stop] for array in rows] for start, stop in pairwise(borders)]


def assert_equal(solution, expected):
    np.testing.assert_allclose(solution.weight, expected[0], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(solution.intercept, expected[1], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("borders", [[0, N], [0, 1, 2, 200, N], list(range(N + 1))], ids=["1", "4", "N"])
@pytest.mark.parametrize("ridge", [0.01, 10.0])
def test_chunks_of_any_size_give_the_solution_of_all_rows(rows, borders, ridge):
    assert_equal(running(cut(rows, borders)).solve(ridge), solved(*rows, ridge))


def test_the_order_of_the_rows_does_not_matter(rows):
    order = np.random.default_rng(1).permutation(N)
    mixed = [array[order] for array in rows]
    assert_equal(running(cut(mixed, [0, 70, 100, N])).solve(1.0), solved(*rows, 1.0))


@pytest.mark.parametrize("borders", [[0, N], [0, 1, 60, N], list(range(N + 1))], ids=["1", "3", "N"])
def test_a_row_counts_less_with_each_row_after_it(rows, borders):
    features, target, weight = rows
    remembered = 0.98 ** np.arange(N - 1, -1, -1.0)
    expected = solved(features, target, weight * remembered, 1.0, remembered.sum())
    assert_equal(running(cut(rows, borders), forgetting=0.98).solve(1.0), expected)


def test_a_new_target_was_zero_in_all_rows_before(rows):
    features, target, weight = rows
    target = np.array(target)
    target[:150, 1] = 0
    early = running([[features[:150], target[:150, [0, 2]], weight[:150]]], 2)
    sums = early.with_targets(np.array([0, -1, 1])).extended(features[150:], target[150:], weight[150:])
    assert_equal(sums.solve(1.0), solved(features, target, weight, 1.0))


def test_many_rows_in_one_call_are_summed_in_pieces():
    rng = np.random.default_rng(2)
    features, weight = rng.normal(size=(2500, P)).astype(np.float32), np.ones(2500)
    target = rng.normal(size=(2500, C))
    assert_equal(
        running([[features, target, weight]]).solve(1.0), solved(features.astype(float), target, weight, 1.0)
    )


def test_a_large_mean_costs_no_digits(rows):
    features, target, weight = rows
    far = running(cut((features + 1e4, target, weight), [0, 10, N])).solve(1.0)
    np.testing.assert_allclose(far.weight, solved(*rows, 1.0)[0], rtol=1e-8, atol=1e-8)


def test_the_units_of_the_weights_do_not_matter(rows):
    features, target, weight = rows
    assert_equal(running([[features, target, weight * 1e-3]]).solve(1.0), solved(*rows, 1.0))


def test_it_agrees_with_the_regression_that_grows_by_features(rows):
    features, target, weight = rows[0].astype(np.float32), rows[1], rows[2] / rows[2].mean()
    expected = IncrementalRidge.start(target, weight, ridge=1.0).extend(features).head()
    assert_equal(running([[features, target, weight]]).solve(1.0), expected)


def test_a_feature_that_never_changes_has_no_weight():
    rng = np.random.default_rng(3)
    features = rng.normal(size=(50, P))
    features[:, 4] = 7.0
    solution = running([[features, rng.normal(size=(50, C)), np.ones(50)]]).solve(0.1)
    np.testing.assert_allclose(solution.weight[4], 0, atol=1e-12)
    assert np.isfinite(solution.weight).all()


def test_generalised_cross_validation_chooses_the_ridge(rows):
    features, target, weight = rows
    ridges = (0.01, 0.1, 1.0, 10.0, 1e4)
    unit = weight * N / weight.sum()
    share = weight / weight.sum()
    centred = features - share @ features
    z = centred / np.sqrt(share @ centred**2)
    gram = (z * unit[:, None]).T @ z
    errors = []
    for ridge in ridges:
        head, intercept = solved(features, target, weight, ridge)
        freedom = 1 + np.trace(np.linalg.solve(gram + ridge * np.eye(P), gram))
        error = (unit[:, None] * (target - features @ head - intercept) ** 2).sum()
        errors.append(error / (1 - freedom / N) ** 2)
    assert running([rows]).best_ridge(ridges) == ridges[int(np.argmin(errors))]


def test_sums_stay_what_they_are_when_others_are_made_of_them(rows):
    first = running([[array[:100] for array in rows]])
    before = first.gram.copy(), first.weight
    first.extended(*(array[100:] for array in rows), 0.9)
    np.testing.assert_array_equal(first.gram, before[0])
    assert first.weight == before[1]


def test_features_that_are_not_finite_are_refused(rows):
    features = rows[0].copy()
    features[3, 3] = np.inf
    with pytest.raises(NotFiniteError, match="not finite"):
        running([[features, rows[1], rows[2]]])
