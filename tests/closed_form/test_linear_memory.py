"""The memory's projections against scikit-learn's decompositions of the same data."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.preprocessing import StandardScaler

from opgrow.closed_form.linear_memory import discriminant_directions, principal_directions, projection

DATA = {"iris": load_iris, "wine": load_wine, "digits": load_digits}


def data(name):
    """Standardised float32 features, one-hot classes, class codes, weights of 1."""
    x, codes = DATA[name](return_X_y=True)
    x = x[:, x.std(axis=0) > 0]
    x = StandardScaler().fit_transform(x).astype(np.float32)
    return x, np.eye(codes.max() + 1, dtype=np.float32)[codes], codes, np.ones(len(x), np.float32)


def energies(x, directions):
    """Part of the total variance along each of some orthonormal directions."""
    x = x.astype(np.float64) - x.mean(axis=0, dtype=np.float64)
    return ((x @ directions) ** 2).sum(axis=0) / (x**2).sum()


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("energy", [0.5, 0.9, 0.98])
def test_pca_is_scikit_learns(name, energy):
    x, _, _, weight = data(name)
    actual = principal_directions(x, weight, energy, ridge=1e-9)
    expected = PCA(energy, svd_solver="full").fit(x.astype(np.float64)).components_.T
    assert actual.shape == expected.shape
    np.testing.assert_allclose(np.abs((actual * expected).sum(axis=0)), 1, atol=1e-8)
    assert subspace_angles(actual, expected).max() < 1e-6


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("energy", [0.3, 0.9, 0.98])
def test_pca_keeps_the_fewest_directions(name, energy):
    x, _, _, weight = data(name)
    actual = principal_directions(x, weight, energy, ridge=0.0)
    np.testing.assert_allclose(actual.T @ actual, np.eye(actual.shape[1]), atol=1e-12)
    parts = energies(x, actual)
    assert (np.diff(parts) <= 1e-12).all()
    assert parts.sum() >= energy - 1e-12
    assert parts[:-1].sum() < energy


def test_all_the_energy_needs_all_directions():
    x, _, _, weight = data("iris")
    assert principal_directions(x, weight, 1.0).shape == (4, 4)


def test_a_large_ridge_spreads_the_energy_over_more_directions():
    x, _, _, weight = data("wine")
    counts = [principal_directions(x, weight, 0.9, ridge).shape[1] for ridge in (0.1, 1e2, 1e6)]
    assert counts[0] < counts[1] <= counts[2] == 12


@pytest.mark.parametrize("name", DATA)
def test_lda_is_scikit_learns(name):
    x, target, codes, weight = data(name)
    actual = discriminant_directions(x, target, weight, ridge=1e-9)
    expected = LinearDiscriminantAnalysis(solver="eigen").fit(x.astype(np.float64), codes).scalings_
    expected = expected[:, : target.shape[1] - 1]
    assert actual.shape == expected.shape
    np.testing.assert_allclose(np.linalg.norm(actual, axis=0), 1)
    cosines = (actual * expected).sum(axis=0) / np.linalg.norm(expected, axis=0)
    np.testing.assert_allclose(np.abs(cosines), 1, atol=1e-8)
    assert subspace_angles(actual, expected).max() < 1e-6


def test_the_ridge_of_lda_is_added_to_the_scatter_within_classes():
    """Two classes have a closed form: (Sw + c I)^-1 (m1 - m0)."""
    x, target, codes, weight = data("iris")
    x, target, codes, weight = (a[codes > 0] for a in (x, target, codes, weight))
    groups = [x[codes == c].astype(np.float64) for c in (1, 2)]
    scatter = sum((g - g.mean(axis=0)).T @ (g - g.mean(axis=0)) for g in groups)
    expected = np.linalg.solve(scatter + 10.0 * np.eye(4), groups[1].mean(axis=0) - groups[0].mean(axis=0))
    actual = discriminant_directions(x, target, weight, ridge=10.0)
    assert actual.shape == (4, 1)
    assert subspace_angles(actual, expected[:, None]).max() < 1e-7
    assert subspace_angles(actual, discriminant_directions(x, target, weight, 0.1)).max() > 1e-2


def test_classes_without_rows_do_not_count():
    x, target, _, weight = data("iris")
    with_empty = np.insert(target, 1, 0.0, axis=1)
    np.testing.assert_array_equal(
        discriminant_directions(x, with_empty, weight), discriminant_directions(x, target, weight)
    )
    only = np.repeat([[1.0, 0.0]], len(x), axis=0)
    assert discriminant_directions(x, only, weight).shape == (4, 0)


def test_lda_has_no_more_directions_than_features():
    x, target, _, weight = data("digits")
    assert discriminant_directions(x[:, :5], target, weight).shape == (5, 5)


@pytest.mark.parametrize("kind", ["pca", "lda"])
def test_weights_are_repeated_rows(kind):
    x, target, _, weight = data("wine")
    times = np.random.default_rng(0).integers(0, 4, len(x))
    actual = projection(kind, x, target, times.astype(np.float32), 0.9, 0.1)
    repeated = [np.repeat(a, times, axis=0) for a in (x, target, weight)]
    np.testing.assert_allclose(actual, projection(kind, *repeated, 0.9, 0.1), atol=1e-9)
    plain = projection(kind, x, target, weight, 0.9, 0.1)
    assert actual.shape != plain.shape or not np.allclose(actual, plain, atol=1e-3)


@pytest.mark.parametrize("kind", ["pca", "lda"])
@pytest.mark.parametrize("name", DATA)
def test_signs_do_not_depend_on_the_data_s(kind, name):
    x, target, _, weight = data(name)
    actual = projection(kind, x, target, weight, 0.98, 0.1)
    largest = np.abs(actual).argmax(axis=0)
    assert (actual[largest, np.arange(actual.shape[1])] > 0).all()
    np.testing.assert_allclose(projection(kind, -x, target, weight, 0.98, 0.1), actual, atol=1e-9)


@pytest.mark.parametrize("kind", ["pca", "lda"])
def test_the_features_are_centred_again(kind):
    x, target, _, weight = data("wine")
    moved = x.astype(np.float64) + 100.0
    np.testing.assert_allclose(
        projection(kind, moved, target, weight, 0.9, 0.1),
        projection(kind, x, target, weight, 0.9, 0.1),
        atol=1e-9,
    )


@pytest.mark.parametrize("kind", ["pca", "lda"])
def test_chunks_and_memory_maps_change_nothing(kind, tmp_path):
    x, target, _, weight = data("iris")
    x, target, weight = (np.tile(a, (60,) + (1,) * (a.ndim - 1)) for a in (x, target, weight))
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    whole = x.astype(np.float64)
    mean = whole.mean(axis=0)
    actual = projection(kind, mapped, target, weight, 1.0, 0.1)
    if kind == "pca":
        expected = np.linalg.eigh((whole - mean).T @ (whole - mean))[1][:, ::-1]
        np.testing.assert_allclose(np.abs(actual), np.abs(expected), atol=1e-9)
    else:
        few = discriminant_directions(x[:150], target[:150], weight[:150], 0.1 / 60)
        np.testing.assert_allclose(actual, few, atol=1e-9)


@pytest.mark.parametrize("kind", ["pca", "lda"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(kind, bad):
    x, target, _, weight = data("iris")
    x[3, 1] = bad
    with pytest.raises(FloatingPointError, match="finite"):
        projection(kind, x, target, weight, 0.9, 0.1)
    with pytest.raises(FloatingPointError, match="finite"):
        projection(kind, np.ones_like(x), target, 0 * weight, 0.9, 0.1)


def test_impossible_settings_are_refused():
    x, target, _, weight = data("iris")
    with pytest.raises(ValueError, match="'ica'"):
        projection("ica", x, target, weight, 0.9, 0.1)
    for energy in (0.0, 1.1):
        with pytest.raises(ValueError, match="energy"):
            principal_directions(x, weight, energy)
    twice = np.concatenate([x, 0 * x], axis=1)
    with pytest.raises(ArithmeticError, match="singular"):
        discriminant_directions(twice, target, weight, ridge=0.0)


def test_without_features_there_is_nothing_to_remember():
    x, target, _, weight = data("iris")
    for kind in ("pca", "lda"):
        assert projection(kind, x[:, :0], target, weight).shape == (0, 0)
