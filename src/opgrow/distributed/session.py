"""Tuning on the rows of all ranks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch

from ..engine.native import native
from ..engines import Moments, Shape, TuningSettings, is_plain
from ..kernels import compiled_features
from ..network import NORM_EPSILON, Layer, Linear
from ..scores import CRITERIA, Score, evaluate
from ..tuning import FlatParameters
from .backend import ShardPart
from .cells import CellPart
from .engine import ShardEngine
from .reference import ShardReference

__all__ = ["ShardSession"]


class ShardSession(FlatParameters):
    """The state of one tuning of ``layers`` and ``head``, the same on all ranks; scored on the last part."""

    def __init__(
        self,
        layers: Sequence[Layer],
        head: Linear,
        parts: Sequence[ShardPart],
        settings: TuningSettings,
        criterion: str,
    ) -> None:
        self.layers, self.head, self.settings, self.criterion = layers, head, settings, criterion
        self.parts, self.group = parts, parts[0].group
        self.shape = Shape(layers, head, parts[0].n_accepted)
        self.theta = self.shape.flatten(layers, head)
        self.engine = self._make_engine(parts[0])
        self._moments, self._best = [], None

    def _make_engine(self, train: ShardPart) -> ShardEngine | ShardReference:
        data = train.inner.tuning_data()
        shared = (self.settings, self.group, train.numbers, train.total_rows, train.inner.cuts)
        if self.shape.compilable and is_plain(self.settings):
            return ShardEngine(self.shape, self.theta, data, *shared)
        return ShardReference(self.shape, torch.from_numpy(self.theta), data.tensors(), *shared)

    def epoch(self, rate: float, rng: np.random.Generator) -> tuple[float, int]:
        """Train for one epoch; the mean loss of its batches and the number of those skipped."""
        return self.engine.epoch(rate, int(rng.integers(1, 2**63)))

    def score(self) -> Score:
        """The score with statistics of all training rows."""
        part = self.parts[-1]
        weight, bias = self.shape.head(self.theta)

        def of_cell(cell: slice) -> np.ndarray:
            target, share = part.inner.target[cell], part.inner.weight[cell]
            seen = np.concatenate([part.inner.accepted[cell], features[cell]], axis=1)
            outputs = native().product(seen, weight) + bias
            found = evaluate(self.criterion, self.settings.loss, outputs, target, share)
            return np.array([found.value, found.loss]) * share.sum(dtype=np.float64)

        with np.errstate(all="ignore"):
            features = self._features()
            total = part.inner.sum_cells(of_cell, (2,))
        value, loss = self.group.sum(total, "scores of epochs") / part.total_weight
        return Score(float(value), float(loss), CRITERIA[self.criterion])

    def _features(self) -> np.ndarray:
        """The last layer's features of the rows that are scored; notes the statistics on the way."""
        self._moments = []
        inputs = [part.inner.x for part in self.parts]
        for layer in self.shape.blocks(self.theta):
            columns: list[list[np.ndarray]] = [[] for _ in inputs]
            for block in layer:
                compute = partial(
                    compiled_features,
                    weight=block.weight,
                    bias=block.bias,
                    operator_set=block.operator_set,
                    n_threads=self.settings.n_threads,
                )
                raws = [p.inner.by_cells(compute, x) for p, x in zip(self.parts, inputs, strict=True)]
                found = self._find_moments(raws[0], self.parts[0].inner)
                self._moments.append(found)
                factor = block.scale / np.sqrt(found.variance + np.float32(NORM_EPSILON))
                offset = block.shift - found.mean * factor
                for seen, raw in zip(columns, raws, strict=True):
                    seen.append(raw * factor + offset)
            inputs = [np.concatenate(seen, axis=1) for seen in columns]
        return inputs[-1]

    def _find_moments(self, raw: np.ndarray, train: CellPart) -> Moments:
        def of_cell(cell: slice) -> np.ndarray:
            values, weight = raw[cell], train.weight[cell]
            return np.stack([native().column_sums(values, weight, power=power) for power in (1, 2)])

        sums = train.sum_cells(of_cell, (2, raw.shape[1]))
        mean, square = self.group.sum(sums, "statistics of features") / self.parts[0].total_weight
        variance = np.maximum(square - np.square(mean), 0.0).astype(np.float32)
        variance[np.isinf(variance)] = np.nan  # as `engines.single`
        return Moments(mean.astype(np.float32), variance)

    def restore(self) -> None:
        """Write what rank 0 remembers into the modules: ranks on unlike machines may round differently."""
        assert self._best is not None
        self.group.broadcast_(torch.from_numpy(self._best[0]), "parameters")
        super().restore()
