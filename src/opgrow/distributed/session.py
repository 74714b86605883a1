"""Tuning on the rows of all ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from ..engines import Moments, TuningSettings, is_plain
from ..network import Layer
from ..scores import Score
from ..tuning import HostSession
from .engine import ShardEngine
from .reference import ShardReference

__all__ = ["ShardSession"]


class ShardSession(HostSession):
    """The state of one tuning, the same on all ranks."""

    def __init__(
        self,
        layers: Sequence[Layer],
        head: nn.Linear,
        parts: Sequence[Any],
        settings: TuningSettings,
        criterion: str,
    ) -> None:
        self.part, self.group = parts[0], parts[0].group
        self.scored = parts[-1]
        data = [part.inner.tuning_data() for part in parts]
        super().__init__(layers, head, data[0], data[1] if len(data) > 1 else None, settings, criterion)

    def make_engine(self) -> ShardEngine | ShardReference:
        part, settings = self.part, self.settings
        shared = (settings, self.group, part.numbers, part.total_rows)
        if self.shape.compilable and is_plain(settings):
            return ShardEngine(self.shape, self.theta, self.train, *shared)
        return ShardReference(self.shape, torch.from_numpy(self.theta), self.train.tensors(), *shared)

    def epoch(self, rate: float, rng: np.random.Generator) -> tuple[float, int]:
        return self.engine.epoch(rate, int(rng.integers(1, 2**63)))

    def find_moments(self, raw: np.ndarray) -> Moments:
        values, weight = raw.astype(np.float64), self.train.weight
        sums = np.concatenate([weight @ values, weight @ np.square(values)])
        mean, square = self.group.sum(sums, "statistics of features").reshape(2, -1) / self.part.total_weight
        variance = np.maximum(square - np.square(mean), 0.0)
        return Moments(mean.astype(np.float32), variance.astype(np.float32))

    def score(self) -> Score:
        """The mean of the ranks' scores, by the weight of their rows."""
        here = super().score()
        weight = (self.validation or self.train).weight.sum(dtype=np.float64)
        sums = self.group.sum([here.value * weight, here.loss * weight], "scores of epochs")
        value, loss = (float(total) / self.scored.total_weight for total in sums)
        return Score(value, loss, here.higher_is_better)

    def restore(self) -> None:
        """Write what rank 0 remembers into the modules: ranks on unlike machines may round differently."""
        assert self._best is not None
        self.group.broadcast_(torch.from_numpy(self._best[0]), "parameters")
        super().restore()
