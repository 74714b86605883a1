"""The few matrix operations that the search consists of, on whichever device the matrices are.

Arithmetic is the same for numpy arrays and torch tensors; what is not, or would depend on the processor, is
an `Algebra`. On the host it is the engine's, whose results are the same on every processor. That of a device
is in `opgrow.engine.cuda.algebra`. Matrices are in double precision, and batches have one more axis in front.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from .native import native
from .search import SolvedCandidates

__all__ = ["Algebra", "Array", "HostAlgebra", "algebra_of"]

#: A numpy array or a torch tensor.
Array = Any


class Algebra(Protocol):
    """What is done with arrays of one kind."""

    def product(self, left: Array, right: Array) -> Array:
        """The product of matrices, or of batches of them, of any strides."""
        ...

    def whiten(self, matrices: Array, ridge: float) -> tuple[Array, Array]:
        """Inverses of the lower Cholesky factors of matrices + ridge I, a batch, and which of them exist.

        Instead of those that do not, the identity is returned.
        """
        ...

    def sums(self, values: Array) -> Array:
        """Sums over all but the first axis."""
        ...

    def squares(self, values: Array) -> Array:
        """Sums of squares over all but the first axis."""
        ...

    def finite(self, values: Array) -> Array:
        """Which values are finite."""
        ...

    def where(self, condition: Array, values: Array, otherwise: float) -> Array:
        """The values where the condition holds, and a number elsewhere."""
        ...

    def single(self, values: Array) -> Array:
        """Values in single precision, contiguous."""
        ...

    def double(self, values: Array) -> Array:
        """Values in double precision."""
        ...

    def host(self, values: Array) -> np.ndarray:
        """Values as a numpy array."""
        ...

    def joined(self, arrays: Sequence[Array]) -> Array:
        """Arrays one after the other along their first axis, as a new one."""
        ...

    def scores(
        self, solved: SolvedCandidates, loo: bool, h: Array, accepted: Array, target: Array, weight: Array
    ) -> Array:
        """Scores (k,) of candidates with raw features h (k, m, n), summed over rows.

        They are negative weighted squared leave-one-out errors or the weights of rows with right answers.
        """
        ...


class HostAlgebra:
    """Numpy arrays and the engine."""

    def product(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return native().multiply(left, right)

    def whiten(self, matrices: np.ndarray, ridge: float) -> tuple[np.ndarray, np.ndarray]:
        return native().whiten(np.ascontiguousarray(matrices), ridge)

    def sums(self, values: np.ndarray) -> np.ndarray:
        return native().row_sums(np.ascontiguousarray(values))

    def squares(self, values: np.ndarray) -> np.ndarray:
        return native().row_sums(np.ascontiguousarray(values), power=2)

    def finite(self, values: np.ndarray) -> np.ndarray:
        return np.isfinite(values)

    def where(self, condition: np.ndarray, values: np.ndarray, otherwise: float) -> np.ndarray:
        return np.where(condition, values, otherwise)

    def single(self, values: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(values, np.float32)

    def double(self, values: np.ndarray) -> np.ndarray:
        return values.astype(np.float64)

    def host(self, values: np.ndarray) -> np.ndarray:
        return values

    def joined(self, arrays: Sequence[np.ndarray]) -> np.ndarray:
        return np.concatenate(arrays)

    def scores(
        self,
        solved: SolvedCandidates,
        loo: bool,
        h: np.ndarray,
        accepted: np.ndarray,
        target: np.ndarray,
        weight: np.ndarray,
    ) -> np.ndarray:
        return native().search_scores(solved, h, accepted, target, weight, loo)


_HOST = HostAlgebra()


def algebra_of(values: Array) -> Algebra:
    """What works on arrays of this kind."""
    return _HOST if isinstance(values, np.ndarray) else _device_algebra()


@lru_cache(maxsize=1)
def _device_algebra() -> Algebra:
    from .cuda.algebra import DeviceAlgebra

    return DeviceAlgebra()
