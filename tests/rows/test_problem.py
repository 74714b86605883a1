"""Sketches: some of the rows of a problem, from which blocks are grown."""

from __future__ import annotations

import numpy as np
import pytest

from opgrow.common.team import ALONE
from opgrow.rows.problem import Problem

N = 100
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3)).astype(np.float32)
TARGET = np.arange(N, dtype=np.float32)[:, None]
WEIGHT = RNG.uniform(0.5, 2.0, N).astype(np.float32)


def test_a_sketch_has_rows_with_their_targets_and_weights_of_mean_one():
    sketch = Problem(X, TARGET, WEIGHT).sketched(40, [1], ALONE).sketch
    numbers = sketch.target[:, 0].astype(int)
    assert len(set(numbers)) == 40
    np.testing.assert_array_equal(sketch.x, X[numbers])
    assert sketch.weight.mean() == pytest.approx(1.0)
    np.testing.assert_allclose(
        sketch.weight / WEIGHT[numbers], sketch.weight[0] / WEIGHT[numbers[0]], rtol=1e-6
    )


def test_chosen_rows_stay_chosen():
    rows = np.arange(1, N, 2)
    sketch = Problem(X, TARGET[rows], WEIGHT[rows], rows=rows).sketched(20, [1], ALONE).sketch
    assert sketch.x is X
    np.testing.assert_array_equal(sketch.rows, sketch.target[:, 0])


def test_a_seed_draws_a_sketch():
    problem = Problem(X, TARGET, WEIGHT)
    one, same, other = (problem.sketched(40, [seed], ALONE).sketch.target for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("most", [N, N + 1])
def test_few_rows_need_no_sketch(most):
    problem = Problem(X, TARGET, WEIGHT)
    assert problem.sketched(most, [1], ALONE) is problem
