"""The training rows of a source, as growth needs them: standardised inputs, targets and weights, by chunk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...network.scaling import Ranges, Scaling
from ..preparation import one_hot
from .limits import Plan
from .moments import BLOCK
from .sources import Chunk, Source
from .storage import Kept, Storage
from .survey import Division

__all__ = ["Preparation", "PreparedRows", "TrainingRows"]


@dataclass(frozen=True)
class PreparedRows:
    """Inputs (n, D), targets (n, outputs) and weights (n,), all float32."""

    x: np.ndarray
    target: np.ndarray
    weight: np.ndarray


@dataclass(frozen=True)
class Preparation:
    """What is done with the rows of a chunk.

    Attributes
    ----------
    scaling : what is done to the inputs; ranges : what was seen of inputs and targets
    classes : labels, or None for regression; class_weight : a factor for each class
    shift, spread : mean and scale of each target, for regression
    weight : the mean weight of the training rows; weighted : whether their weights may differ
    """

    division: Division
    scaling: Scaling
    ranges: Ranges
    classes: np.ndarray | None
    class_weight: np.ndarray | None
    shift: np.ndarray
    spread: np.ndarray
    weight: float
    weighted: bool

    @property
    def n_outputs(self) -> int:
        return len(self.shift)

    def training(self, chunk: Chunk, start: int) -> PreparedRows:
        """The training rows of a chunk whose first row has the number ``start``."""
        assert chunk.y is not None
        keep = ~self.division.validating(start, len(chunk))
        if chunk.weight is not None:
            keep &= chunk.weight > 0
        rows = None if keep.all() else np.flatnonzero(keep)
        y = chunk.y if rows is None else chunk.y[rows]
        weight = None
        if chunk.weight is not None:
            weight = chunk.weight if rows is None else chunk.weight[rows]
        target, weights = self.targets(y, weight)
        return PreparedRows(self.inputs(chunk.x, rows), target, (weights / self.weight).astype(np.float32))

    def held(
        self,
        x: np.ndarray,
        y: np.ndarray,
        weight: np.ndarray,
        mean: Callable[[np.ndarray], float] | None = None,
    ) -> PreparedRows:
        """Rows that stay in memory; ``mean``: that of their weights, which get a mean of 1 of their own."""
        target, weights = self.targets(y, weight)
        weights /= self.weight if mean is None else mean(weights)
        return PreparedRows(self.inputs(x, None), target, weights.astype(np.float32))

    def inputs(self, x: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
        """Scaled inputs, in blocks that stay in the cache."""
        count = len(x) if rows is None else len(rows)
        out = np.empty((count, x.shape[1]), np.float32)
        size = max(1, BLOCK // max(1, x.shape[1]))
        for start in range(0, count, size):
            span = slice(start, start + size)
            out[span] = self.scaling(x[span] if rows is None else x[rows[span]])
        return out

    def targets(self, y: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Targets, and weights in float64 as they were given, times those of classes."""
        weights = np.ones(len(y)) if weight is None else weight.astype(np.float64)
        if self.classes is None:
            target = np.ascontiguousarray((y.reshape(len(y), -1) - self.shift) / self.spread, np.float32)
        else:
            codes = self.codes(y)
            target = one_hot(codes, len(self.classes))
            if self.class_weight is not None:
                weights = weights * self.class_weight[codes]
        return target, weights

    def codes(self, y: np.ndarray) -> np.ndarray:
        assert self.classes is not None
        y = y.reshape(len(y)) if y.ndim == 2 else y
        labels = y.astype(str) if y.dtype == object else y
        codes = np.minimum(np.searchsorted(self.classes, labels), len(self.classes) - 1)
        if (self.classes[codes] != labels).any():
            unknown = labels[self.classes[codes] != labels][0]
            raise ValueError(
                f"y holds the class {unknown!r}, which the first pass over the source has not seen: "
                "a chunk must be the same whenever it is read"
            )
        return codes


class TrainingRows:
    """The training rows of a source by chunk, and what is kept of them from the first time on."""

    def __init__(self, source: Source, preparation: Preparation, n_rows: int, plan: Plan) -> None:
        self.source, self.preparation, self.n_rows, self.plan = source, preparation, n_rows, plan
        self.n_chunks, self.n_outputs = source.n_chunks, preparation.n_outputs
        self.storage = storage = Storage(plan.kept_bytes)
        self._targets: Kept = storage.keep(n_rows, preparation.n_outputs + 1)
        self._inputs: Kept = storage.keep_inputs(n_rows, source.n_features, source.slow)

    def read(self, number: int) -> PreparedRows:
        """Everything of a chunk."""
        labels, x = self.targets(number), self._inputs.get(number)
        if labels is not None and x is not None:
            return PreparedRows(x, *labels)
        chunk = self.source.read(number)
        rows = self.preparation.training(chunk, int(self.source.starts[number]))
        self._targets.put(number, lambda: np.column_stack([rows.target, rows.weight]))
        self._inputs.put(number, lambda: rows.x)
        return rows

    @cached_property
    def total_weight(self) -> float:
        """The sum of all rows' weights; a pass over the rows where these differ."""
        if not self.preparation.weighted:
            return float(self.n_rows)
        weights = (
            self.targets(number) or (None, self.read(number).weight) for number in range(self.n_chunks)
        )
        return float(sum(weight.sum(dtype=np.float64) for _, weight in weights))

    def targets(self, number: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Targets and weights of a chunk without its inputs; None where they have to be read."""
        labels = self._targets.get(number)
        if labels is None:
            return None
        return np.ascontiguousarray(labels[:, :-1]), np.ascontiguousarray(labels[:, -1])
