"""The linear memory of POPmemO and POPmemH: what a layer's features become besides the new neurons.

Both projections come from one eigenproblem of the features' scatter matrices, summed over chunks of rows in
float64 where the rows are: a float32 memory map is read but never copied as a whole. The
columns of a projection have length 1 and a fixed sign (the largest component is positive), so that equal data
give equal networks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..common.errors import NotFiniteError
from ..engine.native import native
from .matrices import HOST, Matrices, Matrix

__all__ = ["discriminant_directions", "principal_directions", "projection"]


def projection(
    kind: str,
    x: Matrix,
    target: Matrix,
    weight: Matrix,
    energy: float = 0.98,
    ridge: float = 0.1,
    matrices: Matrices = HOST,
) -> np.ndarray:
    """The directions that ``kind``, "pca" or "lda", finds in the features: (D, m)."""
    if kind == "pca":
        return principal_directions(x, weight, energy, ridge, matrices)
    if kind == "lda":
        return discriminant_directions(x, target, weight, ridge, matrices)
    raise ValueError(f'the memory is made by "pca" or "lda", not by {kind!r}')


def principal_directions(
    x: Matrix, weight: Matrix, energy: float = 0.98, ridge: float = 0.1, matrices: Matrices = HOST
) -> np.ndarray:
    """Leading eigenvectors of X'WX + ridge I, the fewest whose eigenvalues make ``energy`` of the total.

    Parameters
    ----------
    x : (N, D) array
        Standardised features; they are centred once more, in float64.
    weight : (N,) array
    energy : float
        Above 0 and at most 1.
    ridge : float
    matrices : Matrices
        What works on the rows; they are its own.

    Returns
    -------
    (D, m) array
        Orthonormal columns, the largest eigenvalue first.

    Examples
    --------
    >>> x = np.array([[2.0, 0.1], [-2.0, 0.1], [2.0, -0.1], [-2.0, -0.1]])
    >>> principal_directions(x, np.ones(4))
    array([[1.],
           [0.]])
    """
    if not 0 < energy <= 1:
        raise ValueError(f"energy must be above 0 and at most 1, not {energy}")
    everyone = matrices.ones(x.shape[0])
    mean, _ = _class_means(x, everyone, weight, matrices)
    scatter = _within(x, everyone, weight, mean, matrices)
    values, vectors = _eigen(_with_ridge(scatter, ridge))
    cumulated = np.cumsum(np.maximum(values[::-1], 0.0))
    count = np.searchsorted(cumulated, energy * cumulated[-1]) + 1 if len(cumulated) else 0
    return _signed(vectors[:, ::-1][:, :count])


def discriminant_directions(
    x: Matrix, target: Matrix, weight: Matrix, ridge: float = 0.1, matrices: Matrices = HOST
) -> np.ndarray:
    """Leading solutions of Sb v = λ (Sw + ridge I) v, one less than there are classes.

    Parameters
    ----------
    x : (N, D) array
        Standardised features.
    target : (N, C) array
        One-hot classes; those without rows (or weight) do not count.
    weight : (N,) array
    ridge : float
    matrices : Matrices
        What works on the rows; they are its own.

    Returns
    -------
    (D, min(C - 1, D)) array
        Columns of length 1, the best separating one first.

    Examples
    --------
    >>> x = np.array([[1.0, 0.3], [1.0, -0.3], [-1.0, 0.3], [-1.0, -0.3]])
    >>> discriminant_directions(x, np.repeat(np.eye(2), 2, axis=0), np.ones(4))
    array([[1.],
           [0.]])
    """
    means, counts = _class_means(x, target, weight, matrices)
    within = _within(x, target, weight, means, matrices)
    apart = means - (counts[:, None] * means).sum(axis=0) / counts.sum()
    size = x.shape[1]
    count = min(np.count_nonzero(counts) - 1, size)
    if count == 0:
        return np.zeros((size, 0))
    [whiten], exists = native().whiten(within[None], ridge)
    if not exists.all():
        raise NotFiniteError(f"the scatter within classes is singular with ridge {ridge}; raise it")
    # Of features that are whitened within classes, the eigenvectors of the scatter between classes.
    whitened = native().multiply(apart, whiten.T)
    _, vectors = _eigen(native().multiply(whitened.T, counts[:, None] * whitened))
    vectors = native().multiply(whiten.T, vectors[:, ::-1][:, :count])
    return _signed(vectors / np.sqrt((vectors * vectors).sum(axis=0)))


def _class_means(
    x: Matrix, target: Matrix, weight: Matrix, matrices: Matrices
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean of each class, (C, D), and its weight, (C,)."""

    def task(x: Any, target: Any, weight: Any) -> tuple[Any, Any]:
        weighted = matrices.double(target).T * weight
        return matrices.product(weighted, matrices.double(x)), weighted.sum(axis=1)

    sums, counts = matrices.sums(task, x, target, weight, columns=2 * x.shape[1])
    if not (np.isfinite(sums).all() and np.isfinite(counts).all() and counts.sum() > 0):
        raise NotFiniteError("the features and weights to be projected must be finite, and not all weights 0")
    return sums / np.where(counts > 0, counts, 1.0)[:, None], counts


def _within(x: Matrix, target: Matrix, weight: Matrix, means: np.ndarray, matrices: Matrices) -> np.ndarray:
    """Scatter of the features around the means of their classes: (D, D)."""
    centres = matrices.constant(means)

    def task(x: Any, target: Any, weight: Any) -> tuple[Any]:
        centred = matrices.double(x) - matrices.product(matrices.double(target), centres)
        return (matrices.product(centred.T * weight, centred),)

    return matrices.sums(task, x, target, weight, columns=2 * x.shape[1])[0]


def _eigen(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    eigen = native().eigen(matrix)
    if eigen is None:
        raise NotFiniteError("the scatter of the features overflows; check the scale of the inputs")
    return eigen


def _with_ridge(scatter: np.ndarray, ridge: float) -> np.ndarray:
    return scatter + ridge * np.eye(len(scatter))


def _signed(directions: np.ndarray) -> np.ndarray:
    """The same directions with each column's largest component positive; a near tie goes to the first."""
    if not directions.size:
        return directions
    size = np.abs(directions)
    leading = np.argmax(size > (1 - 1e-8) * size.max(axis=0), axis=0)
    return directions * np.sign(directions[leading, np.arange(directions.shape[1])])
