"""Sums with further features: exact where the rows say so, and what they estimate elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from opgrow.closed_form.running_ridge import RunningRidge
from opgrow.closed_form.widening import widened


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(4)
    old = rng.normal(size=(3000, 6)) + 2
    new = np.tanh(old[:, :4] @ rng.normal(size=(4, 3))) + 0.3 * rng.normal(size=(3000, 3))
    target = new @ rng.normal(size=(3, 2)) + old[:, :2] + 0.1 * rng.normal(size=(3000, 2))
    return old, new, target, rng.uniform(0.5, 2, 3000)


def exact(rows):
    old, new, target, weight = rows
    return RunningRidge.start(9, 2).extended(np.concatenate([old, new], axis=1), target, weight)


def from_some(rows, n_left, offset=0.0):
    old, new, target, weight = rows
    sums = RunningRidge.start(6, 2).extended(old, target, weight)
    return widened(sums, *(array[:n_left] for array in (old, new + offset, target, weight)))


def test_what_was_known_of_the_old_features_stays(rows):
    sums, expected = from_some(rows, 100), exact(rows)
    np.testing.assert_allclose(sums.gram[:6, :6], expected.gram[:6, :6], rtol=1e-12)
    np.testing.assert_allclose(sums.cross[:6], expected.cross[:6], rtol=1e-12)
    np.testing.assert_allclose(sums.mean[:6], expected.mean[:6], rtol=1e-12)
    assert (sums.count, sums.weight) == (expected.count, expected.weight)


def test_with_all_rows_left_the_head_is_that_of_all_rows_but_for_the_ridge(rows):
    ours, expected = from_some(rows, 3000).solve(1.0), exact(rows).solve(1.0)
    np.testing.assert_allclose(ours.weight, expected.weight, atol=2e-2)
    np.testing.assert_allclose(ours.intercept, expected.intercept, atol=5e-2)


def test_a_tenth_of_the_rows_tells_nearly_as_much(rows):
    """The error over all rows is far below that without the new features, and near the least possible one."""
    old, new, target, weight = rows

    def error(solution, features):
        return (weight[:, None] * (target - features @ solution.weight - solution.intercept) ** 2).mean()

    both = np.concatenate([old, new], axis=1)
    least = error(exact(rows).solve(1.0), both)
    without = error(RunningRidge.start(6, 2).extended(old, target, weight).solve(1.0), old)
    ours = error(from_some(rows, 300).solve(1.0), both)
    assert least < ours < least + 0.1 * (without - least)


def test_the_sums_are_those_of_features_that_could_exist(rows):
    for n_left in (5, 40):
        assert np.linalg.eigvalsh(from_some(rows, n_left, offset=50.0).gram).min() > -1e-8


def test_rows_that_follow_are_added_exactly(rows):
    old, new, target, weight = rows
    sums = from_some(rows, 500)
    both = np.concatenate([old, new], axis=1)
    more = sums.extended(both, target, weight)
    expected = sums.weight + weight.sum()
    assert more.weight == pytest.approx(expected, rel=1e-12)
    share = weight.sum() / expected
    step = weight @ both / weight.sum() - sums.mean
    direct = exact(rows).gram
    between = sums.weight * share * np.outer(step, step)
    np.testing.assert_allclose(more.gram, sums.gram + direct + between, rtol=1e-9, atol=1e-7)
