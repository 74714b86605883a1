"""Moments of chunks add up to those of all rows, also where squares would cancel."""

from __future__ import annotations

import numpy as np
import pytest

from opgrow.rows.chunks.moments import ColumnMoments, column_moments


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sizes", [[1000], [1, 999], [300, 300, 400], [10] * 100])
def test_chunks_add_up(sizes, weighted):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1000, 3)) * [1.0, 1e-3, 1e3] + [0.0, 1e4, -1e6]
    weight = rng.uniform(0, 2, 1000) if weighted else None
    total, start = ColumnMoments.nothing(3), 0
    for size in sizes:
        span = slice(start, start + size)
        total.add(column_moments(x[span], None if weight is None else weight[span]))
        start += size
    expected = np.average(x, axis=0, weights=weight)
    exact = np.average(np.square(x - expected), axis=0, weights=weight)
    np.testing.assert_allclose(total.mean, expected, rtol=1e-12, atol=1e-12)
    # float64 knows the second column, 1e4 with a deviation of 1e-3, to 1e-12 of its value.
    np.testing.assert_allclose(total.variance, exact, rtol=1e-7)


def test_a_factor_multiplies_all_weights():
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(50, 2)), rng.normal(3.0, size=(20, 2))
    total = ColumnMoments.nothing(2)
    total.add(column_moments(a))
    total.add(column_moments(b), 4.0)
    both, weight = np.concatenate([a, b]), np.repeat([1.0, 4.0], [50, 20])
    np.testing.assert_allclose(total.mean, np.average(both, axis=0, weights=weight))
    expected = np.average(np.square(both - total.mean), axis=0, weights=weight)
    np.testing.assert_allclose(total.variance, expected)


def test_nothing_adds_nothing():
    total = ColumnMoments.nothing(1)
    total.add(column_moments(np.zeros((0, 1))))
    assert total.weight == 0
    total.add(column_moments(np.array([[3.0]])))
    assert total.mean.tolist() == [3.0]
    assert total.variance.tolist() == [0.0]
