"""Work on matrices with a row for every sample: what the closed-form fits need done, wherever the rows are.

PLN, BLS and the memory of POP decide with small matrices, which are sums over rows. What goes into a sum they
say in a function of a chunk of rows, made of operators that numpy arrays and torch tensors share (``.T``,
arithmetic, ``.sum(axis=...)``; single with double precision gives double in both) and of the `Matrices`' own
products. A `Matrices` runs such functions where the rows are. The host's is below, a GPU's in
`opgrow.closed_form.device_matrices`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from ..common.threads import map_rows, stream
from ..engine.features import compiled_features
from ..engine.native import native
from ..operators import OperatorSet
from ..rows.memory import MemoryRows
from ..rows.preparation import moments, standardized
from ..rows.search_sums import chunks
from ..training.scores import Score, evaluate

__all__ = ["HOST", "HostMatrices", "Matrices", "Matrix", "weighted_mean"]

#: (N, columns), mostly float32, or (N,): an array on the host, elsewhere what the `Matrices` there work with.
Matrix = Any
#: Products below which threads cost more than they bring.
_SMALL = 1 << 24
_CHUNK_ROWS = 4096


class Matrices(Protocol):
    """What can be done with the rows of parts, and with matrices made from them."""

    def inputs(self, part: Any) -> Matrix:
        """A part's inputs (N, D), to be handed to the functions below."""
        ...

    def labels(self, part: Any) -> tuple[Matrix, Matrix]:
        """A part's targets (N, C) and weights (N,)."""
        ...

    def ones(self, n_rows: int) -> Matrix:
        """A column of ones."""
        ...

    def with_ones(self, x: Matrix) -> Matrix:
        """Inputs and a column of ones beside them."""
        ...

    def standardized(self, x: Matrix, mean: np.ndarray, scale: np.ndarray) -> Matrix:
        """(x - mean) / scale of inputs, in single precision."""
        ...

    def perceptrons(self, x: Matrix, weight: np.ndarray, bias: np.ndarray, activation: str) -> Matrix:
        """Activations of x @ weight + bias: (N, D) to (N, d)."""
        ...

    def unit_beside(self, carried: Matrix, pooled: Matrix) -> Matrix:
        """``carried``, and beside it ``pooled`` with rows of unit norm, after relu."""
        ...

    def beside(self, parts: Sequence[Matrix]) -> Matrix:
        """Matrices side by side; inputs cannot be among them."""
        ...

    def columns(self, matrix: Matrix, chosen: np.ndarray) -> Matrix:
        """The columns that a mask chooses."""
        ...

    def moments(self, x: Matrix, weight: Matrix, what: str = "X") -> tuple[np.ndarray, np.ndarray]:
        """Weighted mean and scale of each column, as `opgrow.rows.preparation.moments` has them."""
        ...

    def product_moments(
        self, x: Matrix, directions: np.ndarray, weight: Matrix
    ) -> tuple[np.ndarray, np.ndarray]:
        """Weighted mean and variance of each column of inputs @ directions, a product in single precision."""
        ...

    def sums(self, function: Callable[..., Sequence[Any]], *rows: Matrix, columns: int) -> list[np.ndarray]:
        """Sum what a function makes of chunks of rows of some matrices, in double precision.

        ``columns`` of single precision are what the function takes for a row; more make the chunks smaller.
        """
        ...

    def row_products(self, x: Matrix, weight: Matrix) -> np.ndarray:
        """Products of the rows of inputs, times the roots of their weights, with each other: (N, N)."""
        ...

    def score(
        self, part: Any, features: Matrix, weight: np.ndarray, bias: np.ndarray, criterion: str
    ) -> Score:
        """How good outputs features (N, p) @ weight + bias are, in double precision; the loss is "mse"."""
        ...

    # --- inside of functions of chunks ---

    def constant(self, array: np.ndarray) -> Any:
        """An array that is the same for all rows, where the rows are."""
        ...

    def double(self, rows: Any) -> Any:
        """A chunk in double precision."""
        ...

    def product(self, left: Any, right: Any) -> Any:
        """The product of matrices (n, k) and (k, m), or of (k,) and (k, m), in double precision."""
        ...

    def substituted(self, factor: Any, right: Any) -> Any:
        """factor^-1 right, for a lower triangular factor."""
        ...


def weighted_mean(x: Matrix, weight: Matrix, matrices: Matrices) -> tuple[np.ndarray, float]:
    """Weighted mean of each column, and the sum of the weights."""

    def sums(x: Any, weight: Any) -> tuple[Any, Any]:
        weight = matrices.double(weight)
        return matrices.product(weight, matrices.double(x)), weight.sum()

    slope, total = matrices.sums(sums, x, weight, columns=2 * x.shape[1])
    with np.errstate(all="ignore"):  # whoever needs a finite mean tells
        return slope / total, float(total)


@dataclass(frozen=True)
class HostMatrices:
    """Arrays, the engine, and chunks of rows that are spread over threads and added in their order."""

    n_threads: int = 1

    def inputs(self, part: MemoryRows) -> np.ndarray:
        return part.x

    def labels(self, part: MemoryRows) -> tuple[np.ndarray, np.ndarray]:
        return part.target, part.weight

    def ones(self, n_rows: int) -> np.ndarray:
        return np.ones((n_rows, 1), np.float32)

    def with_ones(self, x: np.ndarray) -> np.ndarray:
        return np.concatenate([x, np.ones((len(x), 1), x.dtype)], axis=1)

    def standardized(self, x: np.ndarray, mean: np.ndarray, scale: np.ndarray) -> np.ndarray:
        return standardized(x, mean, scale)

    def perceptrons(self, x: np.ndarray, weight: np.ndarray, bias: np.ndarray, activation: str) -> np.ndarray:
        operators = OperatorSet("multiplication", "sum", activation)
        return compiled_features(x, weight, bias, operators, self.n_threads)

    def unit_beside(self, carried: np.ndarray, pooled: np.ndarray) -> np.ndarray:
        split, columns = carried.shape[1], pooled.shape[1]
        features = np.empty((len(carried), split + columns), np.float32)
        features[:, :split] = carried
        for rows in chunks(len(pooled), columns):
            unit = native().unit_rows(np.ascontiguousarray(pooled[rows]))
            features[rows, split:] = np.where(unit < 0, np.float32(0), unit)
        return features

    def beside(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        return np.concatenate(parts, axis=1)

    def columns(self, matrix: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        return matrix[:, chosen]

    def moments(self, x: np.ndarray, weight: np.ndarray, what: str = "X") -> tuple[np.ndarray, np.ndarray]:
        return moments(x, weight, what)

    def product_moments(
        self, x: np.ndarray, directions: np.ndarray, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        nothing = np.zeros(directions.shape[1], np.float32)
        return native().moments(self.perceptrons(x, directions, nothing, "identity"), weight)

    def sums(
        self, function: Callable[..., Sequence[Any]], *rows: np.ndarray, columns: int
    ) -> list[np.ndarray]:
        n_rows = len(rows[0])

        def task(span: slice) -> Sequence[Any]:
            with np.errstate(all="ignore"):  # reported in words, where what is not finite is noticed
                return function(*(matrix[span] for matrix in rows))

        threads = self.n_threads if n_rows * columns**2 > 4 * _SMALL else 1
        total: list[np.ndarray] = []
        for part in stream([partial(task, span) for span in chunks(n_rows, columns)], threads):
            if not total:
                total = [np.array(summand, np.float64) for summand in part]
            else:
                with np.errstate(all="ignore"):
                    for array, summand in zip(total, part, strict=True):
                        array += summand
        return total

    def row_products(self, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
        weighted = x * np.sqrt(weight.astype(np.float64))[:, None]
        with np.errstate(all="ignore"):  # whoever factors them tells
            return native().multiply(weighted, weighted.T)

    def score(
        self, part: MemoryRows, features: np.ndarray, weight: np.ndarray, bias: np.ndarray, criterion: str
    ) -> Score:
        weight, bias = weight.astype(np.float64), bias.astype(np.float64)

        def compute(start: int, stop: int) -> np.ndarray:
            with np.errstate(all="ignore"):  # the score tells
                rows = features[start:stop].astype(np.float64)
                return (native().multiply(rows, weight) + bias).astype(np.float32)

        outputs = np.concatenate(map_rows(compute, len(features), _CHUNK_ROWS, self.n_threads))
        return evaluate(criterion, "mse", outputs, part.target, part.weight)

    def constant(self, array: np.ndarray) -> np.ndarray:
        return array

    def double(self, rows: np.ndarray) -> np.ndarray:
        return rows.astype(np.float64, copy=False)

    def product(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return native().multiply(np.atleast_2d(left), right).reshape(*left.shape[:-1], right.shape[1])

    def substituted(self, factor: np.ndarray, right: np.ndarray) -> np.ndarray:
        return native().substitute(np.ascontiguousarray(factor), np.ascontiguousarray(right))


#: For arrays that do not belong to a growth.
HOST = HostMatrices()
