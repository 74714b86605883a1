"""Matrices with a row for every sample on a device, and what the closed-form fits do with them.

A matrix is a tensor (N, columns) with rows as its fastest dimension. Features that a fit has made are kept:
every further step needs them; inputs need not be there as a whole: they come chunk by chunk from their part.
Rows are in single precision, and products that are summed over rows in double precision: a small ridge, or
the rank of features that repeat each other, would drown in the rounding errors of single ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from ..operators import OperatorSet
from ..operators.unit_norm import tensor_unit_rows
from ..rows.device.budget import Budget, shrinking
from ..rows.device.rows import Chunk, DeviceRows
from ..rows.device.scoring import score_sums
from ..rows.device.source import spans_of
from ..rows.preparation import scale_of
from ..training.scores import CRITERIA, Score

__all__ = ["DeviceMatrices", "Inputs"]

Result = TypeVar("Result")


@dataclass(frozen=True)
class Inputs:
    """The inputs of a part: ``function`` of (n, D) for each chunk, with so many columns."""

    part: DeviceRows
    n_columns: int
    function: Callable[[Tensor], Tensor] = lambda x: x

    @property
    def shape(self) -> tuple[int, int]:
        return self.part.n_rows, self.n_columns

    def of(self, chunk: Chunk) -> Tensor:
        return self.function(chunk.x.T)


class DeviceMatrices:
    """Tensors on a device, in chunks that fit; see `opgrow.closed_form.matrices.Matrices`."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.budget = device, Budget(device)

    def inputs(self, part: DeviceRows) -> Inputs:
        return Inputs(part, part.n_inputs)

    def labels(self, part: DeviceRows) -> tuple[Tensor, Tensor]:
        target, weight = part.source.labels(slice(0, part.n_rows))
        return target.T, weight

    def ones(self, n_rows: int) -> Tensor:
        return torch.ones(n_rows, 1, device=self.device)

    def with_ones(self, x: Inputs) -> Inputs:
        def function(rows: Tensor) -> Tensor:
            return torch.cat([x.function(rows).T, torch.ones(1, len(rows), device=rows.device)]).T

        return replace(x, n_columns=x.n_columns + 1, function=function)

    def standardized(self, x: Inputs, mean: np.ndarray, scale: np.ndarray) -> Inputs:
        shift, divisor = self.constant(mean), self.constant(scale)
        return replace(x, function=lambda rows: ((x.function(rows) - shift) / divisor).float())

    def perceptrons(
        self, x: Inputs | Tensor, weight: np.ndarray, bias: np.ndarray, activation: str
    ) -> Tensor:
        factors, shift = self.constant(weight).double(), self.constant(bias)
        function = OperatorSet("multiplication", "sum", activation).activation_operator.function

        def compute(rows: Tensor) -> Tensor:
            return function((rows.double() @ factors).float() + shift)

        return self._map(compute, weight.shape[1], x)

    def unit_beside(self, carried: Tensor, pooled: Tensor) -> Tensor:
        def compute(carried: Tensor, pooled: Tensor) -> Tensor:
            return torch.cat([carried.T, torch.relu(tensor_unit_rows(pooled)).T]).T

        return self._map(compute, carried.shape[1] + pooled.shape[1], carried, pooled)

    def beside(self, parts: Sequence[Tensor]) -> Tensor:
        def work() -> Tensor:
            return torch.cat([part.T for part in parts]).T

        return shrinking(self.budget, work, "putting features side by side")

    def columns(self, matrix: Tensor, chosen: np.ndarray) -> Tensor:
        index = torch.from_numpy(np.flatnonzero(chosen)).to(self.device)
        return shrinking(self.budget, lambda: matrix.T[index].T, "taking some of the features")

    def moments(self, x: Inputs | Tensor, weight: Tensor, what: str = "X") -> tuple[np.ndarray, np.ndarray]:
        mean, variance = self._moments(x, lambda rows: rows, weight, x.shape[1])
        return mean, scale_of(mean, variance, x.shape[0], what)

    def product_moments(
        self, x: Inputs | Tensor, directions: np.ndarray, weight: Tensor
    ) -> tuple[np.ndarray, np.ndarray]:
        factors = self.constant(directions)
        return self._moments(x, lambda rows: rows @ factors, weight, directions.shape[1])

    def _moments(
        self, x: Inputs | Tensor, function: Callable[[Tensor], Tensor], weight: Tensor, columns: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Weighted mean and variance of the columns that a function makes of rows."""

        def first(rows: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
            weight = weight.double()
            return weight @ function(rows).double(), weight.sum()

        def second(rows: Tensor, weight: Tensor) -> tuple[Tensor]:
            return (weight.double() @ (function(rows) - centre).square_(),)

        slope, total = self.sums(first, x, weight, columns=2 * columns)
        mean = slope / total
        centre = self.constant(mean)
        [square] = self.sums(second, x, weight, columns=2 * columns)
        return mean, square / total

    def sums(
        self, function: Callable[..., Sequence[Any]], *rows: Inputs | Tensor, columns: int
    ) -> list[np.ndarray]:
        def work() -> list[Tensor]:
            total: list[Tensor] = []
            # What the function makes of the rows, and as much again for what it needs on the way.
            for _, chunk in self._pieces(rows, 16 * columns):
                part = [summand.double() for summand in function(*chunk)]
                total = [a.add_(b) for a, b in zip(total, part, strict=True)] if total else part
            return total

        sums = shrinking(self._budget(rows), work, "summing products of features")
        return [tensor.cpu().numpy() for tensor in sums]

    def row_products(self, x: Inputs, weight: Tensor) -> np.ndarray:
        inputs, root = x.part.whole().x.T, weight.double().sqrt()
        n_rows, n_inputs = inputs.shape

        def work() -> Tensor:
            total = torch.zeros(n_rows, n_rows, dtype=torch.float64, device=self.device)
            for span in spans_of(n_inputs, self.budget.rows(n_inputs, 16 * n_rows)):
                weighted = inputs.T[span] * root
                total.addmm_(weighted.T, weighted)
            return total

        return shrinking(self.budget, work, "multiplying rows").cpu().numpy()

    def score(
        self, part: DeviceRows, features: Tensor, weight: np.ndarray, bias: np.ndarray, criterion: str
    ) -> Score:
        head, shift = self.constant(weight.T).double(), self.constant(bias).double()[:, None]

        def outputs(chunk: Chunk) -> Tensor:
            return torch.addmm(shift, head, features[chunk.span].T.double()).float()[None]

        def sums(chunk: Chunk) -> np.ndarray:
            return score_sums(criterion, "mse", outputs(chunk), chunk)[:, 0].cpu().numpy()

        # Numbers of Python, as on the host: what is decided by a score is kept as JSON.
        value, loss, total, invalid = part.sum(sums, 1, features.shape[1]).tolist()
        return Score(np.nan if invalid else value / total, loss / total, CRITERIA[criterion])

    def constant(self, array: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    def double(self, rows: Tensor) -> Tensor:
        return rows.double()

    def product(self, left: Tensor, right: Tensor) -> Tensor:
        return left @ right

    def substituted(self, factor: Tensor, right: Tensor) -> Tensor:
        return torch.linalg.solve_triangular(factor, right, upper=False)

    # --- chunks ---

    def _map(self, function: Callable[..., Tensor], n_columns: int, *rows: Inputs | Tensor) -> Tensor:
        """The matrix that a function makes of chunks of rows."""
        size = n_columns + sum(matrix.shape[1] for matrix in rows)

        def work() -> Tensor:
            out = torch.empty(n_columns, rows[0].shape[0], device=self.device).T
            for span, chunk in self._pieces(rows, 16 * size):
                out[span] = function(*chunk)
            return out

        return shrinking(self._budget(rows), work, "computing features")

    def _pieces(
        self, rows: Sequence[Inputs | Tensor], bytes_per_row: int
    ) -> Iterator[tuple[slice, list[Tensor]]]:
        part = next((matrix.part for matrix in rows if isinstance(matrix, Inputs)), None)
        if part is None:
            n_rows = rows[0].shape[0]
            for span in spans_of(n_rows, self.budget.rows(n_rows, bytes_per_row)):
                yield span, [matrix[span] for matrix in rows if isinstance(matrix, Tensor)]
            return
        for chunk in part.chunks(part.chunk_rows(bytes_per_row), accepted=False):
            yield (
                chunk.span,
                [m.of(chunk) if isinstance(m, Inputs) else m[chunk.span] for m in rows],
            )

    def _budget(self, rows: Sequence[Inputs | Tensor]) -> Budget:
        """The budget by which `_pieces` sizes its chunks."""
        return next((matrix.part.budget for matrix in rows if isinstance(matrix, Inputs)), self.budget)
