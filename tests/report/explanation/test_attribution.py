"""Shapley values, beside their definition."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from opgrow.report.explanation.attribution import attribute

ALL, FEW = 1 << 20, 1
SINGLES = [slice(i, i + 1) for i in range(4)]


def entangled(rows):
    """Two outputs in which inputs act together."""
    a, b, c, d = rows.T
    return np.stack([a * b + np.sin(c) * d, np.maximum(a, c) - b * d * a], axis=1)


def by_definition(function, row, background, groups):
    """The mean gain of each group over all orders and all background rows, one after the other."""
    gains = np.zeros((len(groups), function(row[None]).shape[1]))
    orders = list(permutations(range(len(groups))))
    for start in background:
        for order in orders:
            moved, before = start.copy(), function(start[None])[0]
            for number in order:
                moved[groups[number]] = row[groups[number]]
                now = function(moved[None])[0]
                gains[number] += now - before
                before = now
    return gains / len(orders) / len(background)


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(7, 4))


@pytest.mark.parametrize("groups", [SINGLES, [slice(0, 2), slice(2, 3), slice(3, 4)]])
def test_all_sets_give_the_values_of_the_definition(rows, groups):
    row, background = rows[0], rows[1:]
    actual = attribute(entangled, row, background, groups, ALL, np.random.default_rng(0))
    assert actual.method == "exact"
    np.testing.assert_allclose(actual.base, entangled(background).mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(
        actual.values, by_definition(entangled, row, background, groups), rtol=0, atol=1e-12
    )


def test_a_sample_of_orders_adds_up_exactly_and_approaches_the_values_of_the_definition(rows):
    row, background = rows[0], rows[1:]
    expected = by_definition(entangled, row, background, SINGLES)
    few = attribute(entangled, row, background, SINGLES, FEW, np.random.default_rng(1))
    # So few rows are bought by this budget that not all sets are tried.
    many = attribute(entangled, row, background[:1], SINGLES, 15, np.random.default_rng(1))
    assert few.method == many.method == "sampled"
    for one in (few, many):
        np.testing.assert_allclose(
            one.base + one.values.sum(axis=0), entangled(row[None])[0], rtol=0, atol=1e-12
        )
    samples = [
        attribute(entangled, row, background, SINGLES, FEW, np.random.default_rng(seed))
        for seed in range(400)
    ]
    mean = np.mean([one.values for one in samples], axis=0)
    error = np.std([one.values for one in samples], axis=0)
    assert (np.abs(mean - expected) < 4 * error / 20 + 1e-12).all()


@pytest.mark.parametrize(("budget", "low", "high"), [(900, 0.8, 1.25), (50, 1.0, 20.0)])
def test_standard_errors_are_as_large_as_sampled_values_differ(rows, budget, low, high):
    """With one order for each background row they are larger."""
    wide = np.concatenate([rows, rows[::-1] ** 2], axis=1)
    groups = [slice(i, i + 1) for i in range(8)]

    def function(x):
        return entangled(x[:, :4]) * entangled(x[:, 4:])

    samples = [
        attribute(function, wide[0], wide[1:], groups, budget, np.random.default_rng(seed))
        for seed in range(200)
    ]
    assert samples[0].method == "sampled"
    spread = np.std([one.values for one in samples], axis=0)
    told = np.sqrt(np.mean([np.square(one.errors) for one in samples], axis=0))
    assert (low * spread < told).all()
    assert (told < high * spread).all()


def test_of_a_sum_each_group_has_its_own_part_whatever_is_sampled(rows):
    weights = np.array([[1.0], [-2.0], [0.5], [3.0]])
    row, background = rows[0], rows[1:]
    actual = attribute(lambda x: x @ weights, row, background, SINGLES, FEW, np.random.default_rng(0))
    expected = (row - background.mean(axis=0))[:, None] * weights
    np.testing.assert_allclose(actual.values, expected, rtol=1e-12)


def test_inputs_in_no_group_are_the_rows_own(rows):
    row, background = rows[0], rows[1:]
    actual = attribute(entangled, row, background, SINGLES[:2], ALL, np.random.default_rng(0))
    own = background.copy()
    own[:, 2:] = row[2:]
    np.testing.assert_allclose(actual.base, entangled(own).mean(axis=0), rtol=1e-12)
