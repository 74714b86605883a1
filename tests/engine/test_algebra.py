"""Matrices in double precision against numpy and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import linalg


def normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


def positive(seed, *shape):
    a = normal(seed, *shape, shape[-1] + 3)
    return a @ a.swapaxes(-1, -2)


@pytest.mark.parametrize(
    ("n", "k", "m"), [(1, 1, 1), (0, 3, 2), (3, 0, 4), (7, 300, 37), (40, 20, 16), (5, 6, 0)]
)
def test_products_agree_with_numpy(engine, n, k, m):
    left, right = normal(0, n, k), normal(1, k, m)
    np.testing.assert_allclose(engine.multiply(left, right), left @ right, atol=1e-12)
    turned = np.ascontiguousarray(left.T).T, np.asfortranarray(right)
    assert np.array_equal(engine.multiply(*turned), engine.multiply(left, right))


def test_batches_are_multiplied_one_by_one(engine):
    left, right = normal(0, 4, 5, 6), normal(1, 6, 4, 7).swapaxes(0, 1)
    actual = engine.multiply(left, right)
    np.testing.assert_allclose(actual, left @ right, atol=1e-12)
    assert np.array_equal(actual[2], engine.multiply(left[2], right[2]))
    np.testing.assert_allclose(engine.multiply(left, right[0]), left @ right[0], atol=1e-12)
    np.testing.assert_allclose(engine.multiply(left[0], right), left[0] @ right, atol=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_stays_in_its_row_of_a_product(engine, bad):
    left = normal(0, 5, 4)
    left[2, 1] = bad
    actual = engine.multiply(left, normal(1, 4, 3))
    assert not np.isfinite(actual[2]).any()
    assert np.isfinite(actual[[0, 1, 3, 4]]).all()


@pytest.mark.parametrize("n", [0, 1, 2, 15, 16, 17, 33, 80])
def test_whitening_makes_the_identity(engine, n):
    matrices = positive(n, 3, n)
    inverse, exists = engine.whiten(matrices, 0.5)
    assert exists.all()
    np.testing.assert_array_equal(inverse, np.tril(inverse))
    whitened = inverse @ (matrices + 0.5 * np.eye(n)) @ inverse.swapaxes(1, 2)
    np.testing.assert_allclose(whitened, np.broadcast_to(np.eye(n), (3, n, n)), atol=1e-9)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1e3])
def test_a_matrix_that_cannot_be_whitened_becomes_the_identity_and_disturbs_no_other(engine, bad):
    matrices = positive(0, 3, 20)
    expected = engine.whiten(matrices)[0]
    matrices[1, 19, 19] = bad
    actual, exists = engine.whiten(matrices)
    assert exists.tolist() == [True, False, True]
    np.testing.assert_array_equal(actual[[0, 2]], expected[[0, 2]])
    np.testing.assert_array_equal(actual[1], np.eye(20))
    assert not engine.whiten(np.zeros((1, 3, 3)))[1].any()
    assert not engine.whiten(np.full((1, 3, 3), bad))[1].any()


def test_an_inverse_that_overflows_does_not_exist(engine):
    # 1 / root(1e-320) is finite, its product with 1e200 is not.
    assert not engine.whiten(np.array([[[1e-320, 0.0], [1e200, 1.0]]]))[1].any()
    assert engine.whiten(np.array([[[1e-300, 0.0], [0.0, 1.0]]]))[1].all()


def test_a_nearly_singular_matrix_is_whitened_with_a_ridge(engine):
    a = normal(0, 30, 10)
    a = np.concatenate([a, a], axis=1)
    inverse, exists = engine.whiten((a.T @ a)[None], 1e-6)
    assert exists.all()
    solution = inverse[0].T @ (inverse[0] @ (a.T @ a[:, 0]))
    np.testing.assert_allclose(a @ solution, a[:, 0], atol=1e-6)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (4, 5, 7), (2, 100)])
def test_sums_of_rows_are_numpys(engine, shape):
    values = normal(0, *shape)
    axes = tuple(range(1, len(shape)))
    np.testing.assert_allclose(engine.row_sums(values), values.sum(axis=axes), atol=1e-12)
    np.testing.assert_allclose(engine.row_sums(values, 2), (values**2).sum(axis=axes), atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 100, 150])
def test_cholesky_factors_and_triangular_systems(engine, n):
    a = normal(n, n, n)
    matrix = a @ a.T + n * np.eye(n)
    factor = engine.cholesky(matrix)
    np.testing.assert_allclose(factor, linalg.cholesky(matrix, lower=True), rtol=1e-9, atol=1e-11)
    for m in (1, 16, 21):
        right = normal(m, n, m)
        np.testing.assert_allclose(
            engine.substitute(factor, right), linalg.solve_triangular(factor, right, lower=True), atol=1e-11
        )
        solution = engine.substitute(factor, engine.substitute(factor, right), transposed=True)
        np.testing.assert_allclose(solution, np.linalg.solve(matrix, right), atol=1e-11)


def test_a_matrix_without_a_factor_has_none(engine):
    assert engine.cholesky(np.array([[1.0, 2.0], [2.0, 1.0]])) is None
    assert engine.cholesky(np.array([[np.nan]])) is None
    assert engine.cholesky(np.array([[np.inf]])) is None
    assert engine.cholesky(np.zeros((40, 40))) is None
    assert engine.cholesky(np.empty((0, 0))).shape == (0, 0)


SYMMETRIC = {
    "random": lambda n: normal(n, n, n) + normal(n, n, n).T,
    "gram": lambda n: positive(n, n),
    "of rank one": lambda n: np.outer(np.arange(n), np.arange(n)).astype(float),
    "diagonal": lambda n: np.diag(np.arange(n, 0, -1.0)),
    "zero": lambda n: np.zeros((n, n)),
    "identity": np.eye,
    "with neighbours": lambda n: np.eye(n) + np.eye(n, k=1) + np.eye(n, k=-1),
    "graded": lambda n: positive(n, n) * np.outer(10.0 ** -np.arange(n), 10.0 ** -np.arange(n)),
    "with near ties": lambda n: np.eye(n) + 1e-14 * (normal(n, n, n) + normal(n, n, n).T),
}


@pytest.mark.parametrize("kind", SYMMETRIC)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 17, 60])
@pytest.mark.parametrize("scale", [1.0, 1e200, 1e-200])
def test_eigenvectors_are_orthonormal_and_give_the_matrix(engine, kind, n, scale):
    matrix = SYMMETRIC[kind](n)
    values, vectors = engine.eigen(matrix * scale)
    values = values / scale
    size = np.abs(matrix).max(initial=1e-300) * max(n, 1)
    assert (np.diff(values) >= 0).all()
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(n), atol=1e-13)
    np.testing.assert_allclose(vectors * values @ vectors.T, matrix, atol=1e-14 * size)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix), atol=1e-14 * size)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_has_no_eigenvectors(engine, bad):
    for place in range(9):
        matrix = np.eye(3)
        matrix.flat[place] = bad
        assert engine.eigen(matrix) is None
    assert engine.eigen(np.full((2, 2), 1e308)) is not None
    assert engine.eigen(np.full((2, 2), 5e-324)) is not None


@pytest.mark.parametrize(("n", "m"), [(0, 0), (3, 0), (1, 1), (5, 5), (40, 17), (100, 99)])
def test_orthonormal_columns_span_the_same(engine, n, m):
    columns = np.random.default_rng(n).uniform(-1, 1, (n, m))
    actual = engine.orthonormal(columns)
    np.testing.assert_allclose(actual.T @ actual, np.eye(m), atol=1e-13)
    np.testing.assert_allclose(actual @ (actual.T @ columns), columns, atol=1e-12)


@pytest.mark.parametrize(
    "columns", [np.zeros((4, 3)), np.ones((5, 5)), np.full((3, 3), np.nan), np.full((4, 4), np.inf)]
)
def test_columns_without_a_direction_are_replaced(engine, columns):
    actual = engine.orthonormal(columns)
    np.testing.assert_allclose(actual.T @ actual, np.eye(columns.shape[1]), atol=1e-13)


def test_rows_get_length_1_whatever_their_size(engine):
    x = normal(0, 6, 5).astype(np.float32)
    x[1], x[2], x[3] = 0, x[2] * 1e30, x[3] * 1e-30
    actual = engine.unit_rows(x)
    norms = np.linalg.norm(x.astype(np.float64), axis=1, keepdims=True)
    np.testing.assert_allclose(actual, x / np.where(norms > 0, norms, 1), rtol=1e-6)
    assert engine.unit_rows(x[:0]).shape == (0, 5)
    assert np.isfinite(engine.unit_rows(x)).all()


def test_every_instruction_set_gives_the_same_bits(engines):
    matrices, right = positive(0, 3, 37), normal(1, 37, 21)
    results = set()
    for engine in engines.values():
        inverse, _ = engine.whiten(matrices, 0.1)
        factor = engine.cholesky(matrices[0])
        arrays = [inverse, engine.multiply(inverse, right), engine.row_sums(matrices, 2), factor]
        arrays += [engine.substitute(factor, right, transposed=True), *engine.eigen(matrices[1])]
        arrays += [engine.orthonormal(right), engine.unit_rows(right.astype(np.float32))]
        results.add(b"".join(a.tobytes() for a in arrays))
    assert len(results) == 1


def test_wrong_arrays_are_refused(engine):
    with pytest.raises(ValueError, match=r"matrix must be a contiguous array of shape \('any', 2\)"):
        engine.cholesky(np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"shapes \(2, 3\) and \(2, 3\) cannot be multiplied"):
        engine.multiply(np.zeros((2, 3)), np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"shapes \(4, 2, 3\) and \(2, 3, 3\) cannot be multiplied"):
        engine.multiply(np.zeros((4, 2, 3)), np.zeros((2, 3, 3)))
    with pytest.raises(ValueError, match="3 vectors of 2 elements cannot be orthonormal"):
        engine.orthonormal(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="left must be a matrix of doubles or a batch of such, got float32"):
        engine.multiply(np.zeros((2, 3), np.float32), np.zeros((3, 2)))
