"""Matrices in double precision: products, factors and linear systems, in a fixed order and without LAPACK."""

from __future__ import annotations

import ctypes

import numpy as np

from .arrays import check, pointer
from .functions import INTEGER, POINTER, Functions

__all__ = ["AlgebraFunctions"]


class _Matrices(ctypes.Structure):
    _fields_ = [("values", POINTER), *((name, INTEGER) for name in ("batch", "row", "column"))]


def _batch(name: str, array: np.ndarray) -> _Matrices:
    if not isinstance(array, np.ndarray) or array.ndim not in (2, 3) or array.dtype != np.float64:
        what = (
            f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
        )
        raise ValueError(f"{name} must be a matrix of doubles or a batch of such, got {what}")
    if any(stride % 8 for stride in array.strides):
        raise ValueError(f"{name} must have strides of whole elements, got {array.strides} bytes")
    strides = [stride // 8 for stride in array.strides]
    return _Matrices(pointer(array), *([0, *strides] if array.ndim == 2 else strides))


class AlgebraFunctions(Functions):
    """Small matrices in double precision."""

    def multiply(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The matrix product of (n, k) and (k, m), of any strides, each element added in the order of k.

        Either may be a batch (count, ., .); a single matrix is multiplied with each one of the other batch.
        """
        batches = _batch("left", left), _batch("right", right)
        counts = {len(array) for array in (left, right) if array.ndim == 3}
        (n, k), (inner, m) = left.shape[-2:], right.shape[-2:]
        if k != inner or len(counts) > 1:
            raise ValueError(f"matrices of shapes {left.shape} and {right.shape} cannot be multiplied")
        out = np.empty((*counts, n, m))
        scratch = np.empty(self._bind("multiply_room", (INTEGER, INTEGER), INTEGER)(n, k))
        call = self._bind("multiply", (POINTER, POINTER, *[INTEGER] * 4, POINTER, POINTER))
        sizes = counts.pop() if counts else 1, n, k, m
        call(*(ctypes.byref(batch) for batch in batches), *sizes, pointer(out), pointer(scratch))
        return out

    def whiten(self, matrices: np.ndarray, ridge: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """Inverses of the lower Cholesky factors of matrices (count, n, n) + ridge I, and which exist.

        Instead of one that does not, the identity is returned.
        """
        check("matrices", matrices, (None, matrices.shape[-1], matrices.shape[-1]), np.float64)
        out, (count, n) = matrices.copy(), matrices.shape[:2]
        exists = np.empty(count, np.uint8)
        scratch = np.empty(self._bind("cholesky_room", (INTEGER,), INTEGER)(n) + n * n)
        call = self._bind("whiten", (POINTER, INTEGER, INTEGER, ctypes.c_double, POINTER, POINTER))
        call(pointer(out), count, n, ridge, pointer(exists), pointer(scratch))
        return out, exists.astype(bool)

    def row_sums(self, values: np.ndarray, power: int = 1) -> np.ndarray:
        """Sums over all but the first axis, of values or, with power 2, of their squares: (count,)."""
        if power not in (1, 2):
            raise ValueError(f"power must be 1 or 2, got {power!r}")
        check("values", values, (None,) * values.ndim, np.float64)
        count = len(values)
        out = np.empty(count)
        size = values.size // max(count, 1)
        call = self._bind("row_sums", (POINTER, INTEGER, INTEGER, INTEGER, POINTER))
        call(pointer(values), count, size, power, pointer(out))
        return out

    def cholesky(self, matrix: np.ndarray) -> np.ndarray | None:
        """The lower Cholesky factor of a symmetric matrix (n, n), or None if it has none."""
        check("matrix", matrix, (None, len(matrix)), np.float64)
        factor, n = matrix.copy(), len(matrix)
        size = self._bind("cholesky_room", (INTEGER,), INTEGER)(n)
        scratch = np.empty(size)
        call = self._bind("cholesky", (POINTER, INTEGER, POINTER), INTEGER)
        return None if call(pointer(factor), n, pointer(scratch)) else factor

    def substitute(self, factor: np.ndarray, right: np.ndarray, transposed: bool = False) -> np.ndarray:
        """factor^-1 right, or factor^-T right, for a lower triangular factor (n, n) and right (n, m)."""
        check("factor", factor, (None, len(factor)), np.float64)
        check("right", right, (len(factor), None), np.float64)
        out = right.copy()
        call = self._bind("substitute", (POINTER, INTEGER, POINTER, INTEGER, INTEGER))
        call(pointer(factor), len(factor), pointer(out), right.shape[1], int(transposed))
        return out

    def eigen(self, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """Eigenvalues (n,), ascending, and eigenvectors (n, n), as columns, of a symmetric matrix.

        None if an element is not finite.
        """
        check("matrix", matrix, (None, len(matrix)), np.float64)
        rows, values, n = matrix.copy(), np.empty(len(matrix)), len(matrix)
        scratch = np.empty(n * n + 3 * n)
        call = self._bind("eigen", (POINTER, INTEGER, POINTER, POINTER), INTEGER)
        failed = call(pointer(rows), n, pointer(values), pointer(scratch))
        return None if failed else (values, rows.T)

    def orthonormal(self, columns: np.ndarray) -> np.ndarray:
        """Orthonormal columns (n, m) that span the same as those of a matrix with m <= n."""
        check("columns", columns, (None, None), np.float64)
        size, count = columns.shape
        if count > size:
            raise ValueError(f"{count} vectors of {size} elements cannot be orthonormal")
        vectors = columns.T.copy()
        self._bind("orthonormal", (POINTER, INTEGER, INTEGER))(pointer(vectors), count, size)
        return vectors.T
