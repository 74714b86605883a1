"""The norm-bounded and the sparse fit against exact solutions and other people's solvers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize
from sklearn.linear_model import Lasso

from opgrow.closed_form.admm import bounded_least_squares, sparse_code


def problem(kind="relu", n=20, n_samples=100, n_classes=3, seed=0):
    """Features of a kind and one-hot targets."""
    rng = np.random.default_rng(seed)
    y = {
        "gauss": lambda: rng.normal(size=(n_samples, n)),
        "relu": lambda: np.maximum(rng.normal(size=(n_samples, 5)) @ rng.normal(size=(5, n)), 0),
        "decaying": lambda: rng.normal(size=(n_samples, n)) * np.logspace(0, -3, n),
        "rank-deficient": lambda: rng.normal(size=(n_samples, n // 2)) @ rng.normal(size=(n // 2, n)),
    }[kind]()
    return y, np.eye(n_classes)[rng.integers(0, n_classes, n_samples)]


def exact(y, t, radius):
    """Lagrange's condition (Y'Y + m I) O = Y'T, with the m >= 0 that the secular equation gives."""
    u, s, vt = np.linalg.svd(y, full_matrices=False)
    keep = s > s[0] * 1e-7
    s, b, v = s[keep, None], u.T[keep] @ t, vt[keep].T

    def excess(m):
        return np.linalg.norm(s * b / (s**2 + m)) / radius - 1

    m = brentq(excess, 0, np.linalg.norm(s * b) / radius, xtol=1e-300, rtol=1e-14) if excess(0) > 0 else 0.0
    return v @ (s * b / (s**2 + m))


def error(y, t, o):
    return float(((t - y @ o) ** 2).sum())


def solve(y, t, radius, **options):
    return bounded_least_squares(y.T @ y, y.T @ t, radius, **options)


@pytest.mark.parametrize("kind", ["gauss", "relu", "decaying", "rank-deficient"])
@pytest.mark.parametrize("part", [0.001, 0.1, 0.5, 0.9, 0.999])
def test_an_active_bound_gives_the_exact_answer_whatever_mu_and_the_scale(kind, part):
    y, t = problem(kind)
    radius = part * np.linalg.norm(exact(y, t, np.inf))
    expected = exact(y, t, radius)
    best = error(y, t, expected)
    for scale in (1e-6, 1.0, 1e6):
        for mu in (1e-3, 1.0, 1e3):
            actual = bounded_least_squares(scale * y.T @ y, scale * y.T @ t, radius, mu)
            assert np.linalg.norm(actual) <= radius * (1 + 1e-14)
            assert error(y, t, actual) == pytest.approx(best, rel=1e-9)
            np.testing.assert_allclose(actual, expected, atol=1e-4 * radius)


@pytest.mark.parametrize("kind", ["gauss", "relu", "decaying", "rank-deficient"])
@pytest.mark.parametrize("radius", [1e3, np.inf])
def test_a_bound_that_is_not_met_gives_least_squares_of_smallest_norm(kind, radius):
    y, t = problem(kind)
    expected = np.linalg.lstsq(y, t, rcond=1e-7)[0]
    assert np.linalg.norm(expected) < radius
    np.testing.assert_allclose(solve(y, t, radius), expected, atol=1e-8)


def test_a_general_purpose_optimiser_finds_nothing_better():
    y, t = problem("gauss", n=4, n_samples=30, n_classes=2)
    radius = 0.5 * np.linalg.norm(exact(y, t, np.inf))
    rival = minimize(
        lambda o: error(y, t, o.reshape(4, 2)),
        np.zeros(8),
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda o: radius**2 - o @ o},
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert rival.success
    actual = solve(y, t, radius)
    assert error(y, t, actual) == pytest.approx(rival.fun, rel=1e-7)
    np.testing.assert_allclose(actual, rival.x.reshape(4, 2), atol=1e-4)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 8),
    st.integers(1, 12),
    st.integers(1, 3),
    st.floats(-3, 3),
    st.floats(-3, 3),
    st.floats(0.01, 2),
)
@settings(max_examples=100, deadline=None)
def test_small_random_problems(seed, n, n_samples, n_classes, log_mu, log_scale, part):
    rng = np.random.default_rng(seed)
    y = 10**log_scale * rng.normal(size=(n_samples, n))
    t = rng.normal(size=(n_samples, n_classes))
    radius = part * np.linalg.norm(exact(y, t, np.inf))
    actual = solve(y, t, radius, mu=10**log_mu)
    assert np.linalg.norm(actual) <= radius * (1 + 1e-14)
    best = error(y, t, exact(y, t, radius))
    assert error(y, t, actual) <= best + 1e-6 * error(y, t, np.zeros_like(actual))


@pytest.mark.parametrize("iterations", [1, 2, 5])
def test_the_bound_holds_before_convergence(iterations):
    y, t = problem()
    radius = 0.1 * np.linalg.norm(exact(y, t, np.inf))
    actual = solve(y, t, radius, iterations=iterations)
    assert 0 < np.linalg.norm(actual) <= radius * (1 + 1e-14)


def test_the_first_iteration_is_the_papers():
    """O = T Y' (Y Y' + I/μ)^-1 from zero, then the projection on the ball (columns are samples there)."""
    y, t = problem("gauss")
    o = t.T @ y @ np.linalg.inv(y.T @ y + np.eye(20) / 0.05)
    radius = 0.9 * np.linalg.norm(o)
    actual = solve(y, t, radius, mu=0.05, iterations=1)
    np.testing.assert_allclose(actual, 0.9 * o.T, rtol=1e-10)


def test_nothing_to_fit():
    y, t = problem("gauss", n=4)
    assert bounded_least_squares(np.zeros((0, 0)), np.zeros((0, 3)), 1.0).shape == (0, 3)
    np.testing.assert_array_equal(solve(y, 0 * t, 1.0), np.zeros((4, 3)))
    np.testing.assert_array_equal(solve(y, t, 0.0), np.zeros((4, 3)))
    np.testing.assert_array_equal(solve(0 * y, t, 1.0), np.zeros((4, 3)))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["gram", "cross"])
def test_values_that_are_not_finite_are_refused(bad, where):
    given_ = {"gram": np.eye(3), "cross": np.ones((3, 2))}
    given_[where][1, 1] = bad
    with pytest.raises(FloatingPointError, match="not finite"):
        bounded_least_squares(**given_, radius=1.0)
    with pytest.raises(FloatingPointError, match="not finite"):
        sparse_code(given_["gram"], given_["cross"], 0.1)


@pytest.mark.parametrize(("radius", "mu"), [(-1.0, 1.0), (1.0, 0.0), (1.0, -1.0)])
def test_impossible_settings_are_refused(radius, mu):
    with pytest.raises(ValueError, match="must"):
        bounded_least_squares(np.eye(2), np.ones((2, 1)), radius, mu)
    with pytest.raises(FloatingPointError):
        bounded_least_squares(np.eye(2), np.ones((2, 1)), np.nan)
    with pytest.raises(ValueError, match="negative"):
        sparse_code(np.eye(2), np.ones((2, 1)), -1.0)


def window(n_samples=200, n_inputs=12, n_nodes=6, seed=0):
    """Inputs and a random feature window with bias, as BLS makes them."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_samples, n_inputs)) @ rng.normal(size=(n_inputs, n_inputs))
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    return x @ rng.uniform(-1, 1, (n_inputs, n_nodes)) + rng.uniform(-1, 1, n_nodes), x


def lasso(a, x, penalty):
    model = Lasso(alpha=penalty / len(a), fit_intercept=False, tol=1e-14, max_iter=100_000)
    return model.fit(a, x).coef_.T


@pytest.mark.parametrize("n_samples", [30, 200, 20_000])
@pytest.mark.parametrize("relative", [1e-6, 1e-3, 0.03, 0.3, 0.9])
def test_sparse_code_is_the_lasso(n_samples, relative):
    a, x = window(n_samples)
    penalty = relative * np.abs(a.T @ x).max()
    actual, expected = sparse_code(a, x, penalty), lasso(a, x, penalty)
    np.testing.assert_allclose(actual, expected, atol=1e-6)
    np.testing.assert_array_equal(actual == 0, expected == 0)
    if relative >= 0.03:
        assert 0 < np.count_nonzero(actual) < actual.size


def test_float32_rows_in_several_chunks_give_the_same_code():
    a, x = window(20_000)
    single = sparse_code(a.astype(np.float32), x.astype(np.float32), 500.0)
    np.testing.assert_allclose(single, sparse_code(a, x, 500.0), atol=1e-6)


def test_a_large_penalty_leaves_nothing():
    a, x = window()
    largest = np.abs(a.T @ x).max()
    assert not sparse_code(a, x, largest).any()
    assert np.count_nonzero(sparse_code(a, x, 0.999 * largest)) == 1


def test_no_penalty_is_least_squares():
    a, x = window()
    np.testing.assert_allclose(sparse_code(a, x, 0.0), np.linalg.lstsq(a, x)[0], atol=1e-7)


def test_a_window_that_reproduces_its_input_does_so_sparsely():
    """More nodes than inputs: A'A is singular, and the smallest ||W||_1 among perfect fits is wanted."""
    a, x = window(n_inputs=4, n_nodes=12)
    actual = sparse_code(a, x, 1e-3)
    assert error(a, x, actual) < 1e-4 * error(a, x, 0 * actual)
    assert np.abs(actual).sum() < np.abs(np.linalg.lstsq(a, x)[0]).sum()


def test_weights_are_repeated_rows():
    a, x = window()
    weight = np.random.default_rng(1).integers(0, 4, len(a))
    repeated = sparse_code(np.repeat(a, weight, axis=0), np.repeat(x, weight, axis=0), 20.0)
    np.testing.assert_allclose(sparse_code(a, x, 20.0, weight=weight), repeated, atol=1e-8)
    assert not np.allclose(sparse_code(a, x, 20.0), repeated, atol=1e-3)
