"""Closed-form heads and the block update against solving from scratch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from opgrow.closed_form.ridge import factor_base, update

C, N = 3, 60


def problem(p, m, k, seed=0):
    """Standardised accepted features, candidates, centred targets and row weights, in float64."""
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0.2, 2, N)

    def standard(a):
        a = a - np.average(a, axis=0, weights=weight)
        return a / np.sqrt(np.average(a**2, axis=0, weights=weight))

    accepted = standard(rng.normal(size=(N, p)) @ rng.normal(size=(p, p)) if p else np.zeros((N, 0)))
    new = [standard(rng.normal(size=(N, m))) for _ in range(k)]
    target = rng.normal(size=(N, C))
    return accepted, new, target - np.average(target, axis=0, weights=weight), weight


def statistics(accepted, new, target, weight, kind=np.asarray):
    w = weight[:, None]
    base = accepted.T @ (w * accepted), accepted.T @ (w * target)
    cross = np.stack([accepted.T @ (w * h) for h in new], axis=1)
    gram = np.stack([h.T @ (w * h) for h in new])
    to_target = np.stack([h.T @ (w * target) for h in new])
    total = float((w * target**2).sum())
    return *(kind(a) for a in (*base, cross, gram, to_target)), total


def from_scratch(features, target, weight, c):
    """Head, squared error, objective and effective parameters (intercept included)."""
    w = weight[:, None]
    matrix = features.T @ (w * features)
    inverse = np.linalg.inv(matrix + c * np.eye(len(matrix)))
    head = inverse @ features.T @ (w * target)
    error = float((w * (target - features @ head) ** 2).sum())
    return head, error, error + c * float((head**2).sum()), 1 + np.trace(inverse @ matrix)


@pytest.mark.parametrize("c", [0.1, 1.0, 10.0])
@pytest.mark.parametrize(("p", "m"), [(0, 4), (5, 4), (12, 1), (3, 7), (20, 40)])
@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
def test_update_equals_solving_from_scratch(p, m, c, kind):
    accepted, new, target, weight = problem(p, m, k=3)
    gram, base_target, cross, new_gram, new_target, total = statistics(accepted, new, target, weight, kind)
    base = factor_base(gram, base_target, total, float(weight.sum()), c)
    actual = update(base, cross, new_gram, new_target)
    assert actual.valid.all()
    for i, h in enumerate(new):
        both = np.concatenate([accepted, h], axis=1)
        head, error, objective, freedom = from_scratch(both, target, weight, c)
        joined = np.concatenate([actual.old_head[i], actual.new_head[i]])
        np.testing.assert_allclose(joined, head, rtol=1e-8, atol=1e-10)
        assert float(actual.squared_error[i]) == pytest.approx(error, rel=1e-8)
        assert float(actual.objective[i]) == pytest.approx(objective, rel=1e-8)
        assert float(actual.freedom[i]) == pytest.approx(freedom, rel=1e-8)
    if p:
        head, error, objective, _ = from_scratch(accepted, target, weight, c)
        np.testing.assert_allclose(base.head, head, rtol=1e-8)
        assert base.squared_error == pytest.approx(error, rel=1e-8)
        assert base.objective == pytest.approx(objective, rel=1e-8)
        np.testing.assert_allclose(factor_base(gram, base_target, 0.0, 1.0, c).head, head, rtol=1e-8)


def test_without_accepted_features_nothing_is_explained():
    *_, total = stats = statistics(*problem(0, 2, k=1))
    base = factor_base(stats[0], stats[1], total, float(N), 1.0)
    assert base.squared_error == base.objective == total


@pytest.mark.parametrize("seed", range(5))
def test_adding_a_block_never_raises_the_objective(seed):
    """The paper's Eq. 10 and 11, for features of any kind: random, repeated, useless."""
    accepted, new, target, weight = problem(6, 6, k=4, seed=seed)
    new[1] = accepted.copy()
    new[2] = np.zeros_like(new[2])
    gram, base_target, cross, new_gram, new_target, total = statistics(accepted, new, target, weight)
    for c in (1e-6, 0.1, 10.0):
        base = factor_base(gram, base_target, total, float(weight.sum()), c)
        actual = update(base, cross, new_gram, new_target)
        assert actual.valid.all()
        assert (actual.objective <= base.objective * (1 + 1e-12)).all()
        assert float(actual.objective[2]) == pytest.approx(base.objective, rel=1e-9)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", [0, 1, 2])
@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
def test_a_candidate_that_is_not_finite_is_flagged_and_disturbs_no_other(bad, where, kind):
    gram, base_target, *candidates, total = statistics(*problem(4, 3, k=3), kind)
    base = factor_base(gram, base_target, total, float(N), 1.0)
    clean = update(base, *candidates)
    candidates[where][(0, 1, 0) if where == 0 else (1, 0, 0)] = bad
    actual = update(base, *candidates)
    assert actual.valid.tolist() == [True, False, True]
    for name in ("new_head", "old_head", "squared_error", "objective", "freedom"):
        np.testing.assert_array_equal(getattr(actual, name)[::2], getattr(clean, name)[::2])
    assert actual.generalized_cross_validation(float(N))[1] == np.inf


def test_a_candidate_that_is_not_positive_definite_is_flagged():
    gram, base_target, cross, new_gram, new_target, total = statistics(*problem(4, 3, k=2))
    new_gram[0] = -np.eye(3) * 1e3
    actual = update(factor_base(gram, base_target, total, float(N), 1.0), cross, new_gram, new_target)
    assert actual.valid.tolist() == [False, True]


def test_generalized_cross_validation_is_golubs_formula():
    accepted, new, target, weight = problem(3, 4, k=2)
    weight = np.ones(N)
    accepted, target = accepted - accepted.mean(axis=0), target - target.mean(axis=0)
    new = [h - h.mean(axis=0) for h in new]
    gram, base_target, cross, new_gram, new_target, total = statistics(accepted, new, target, weight)
    actual = update(factor_base(gram, base_target, total, float(N), 2.0), cross, new_gram, new_target)
    scores = actual.generalized_cross_validation(float(N))
    for i, h in enumerate(new):
        x = np.concatenate([np.ones((N, 1)), accepted, h], axis=1)
        penalty = 2.0 * np.eye(x.shape[1])
        penalty[0, 0] = 0  # the intercept is free
        smoother = x @ np.linalg.solve(x.T @ x + penalty, x.T)
        residual = target - smoother @ target
        expected = (residual**2).sum() / N / (1 - np.trace(smoother) / N) ** 2
        assert float(scores[i]) == pytest.approx(expected, rel=1e-8)


def test_a_singular_gram_matrix_is_solved_all_the_same():
    accepted, new, target, weight = problem(3, 2, k=1)
    accepted = np.concatenate([accepted, accepted], axis=1)
    gram, base_target, cross, new_gram, new_target, total = statistics(accepted, new, target, weight)
    base = factor_base(gram, base_target, total, float(weight.sum()), 1e-12)
    actual = update(base, cross, new_gram, new_target)
    assert np.isfinite(base.head).all()
    assert actual.valid.all()
    _, error, *_ = from_scratch(np.concatenate([accepted[:, :3], new[0]], axis=1), target, weight, 1e-9)
    assert float(actual.squared_error[0]) == pytest.approx(error, rel=1e-3)


def test_an_impossible_gram_matrix_says_so():
    with pytest.raises(ArithmeticError, match="Cholesky"):
        factor_base(-np.eye(2), np.zeros((2, 1)), 1.0, 1.0, 0.1)
