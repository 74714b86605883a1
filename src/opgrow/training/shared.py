"""Candidates trained on the rows of all ranks by the engine in C.

Each epoch every row draws its batch by its number among all rows, so a batch does not depend on who holds its
rows. A step adds up over ranks: the statistics of each layer's features on the way forward, the two sums that
their gradients need on the way back, and the gradient by all parameters with the loss beside it. Then every
rank takes the same step of Adam.
"""

from __future__ import annotations

import numpy as np

from ..engine import training
from ..engine.native import native
from ..engine.shards import ShardBatch
from ..rows.interface import Rows
from ..rows.window import Window
from .batches import BACKWARD, FORWARD, GRADIENT, Batch, batches_of
from .candidates import Candidates
from .native import NativeTrainer
from .settings import TuningSettings

__all__ = ["SharedTrainer"]


class SharedTrainer(NativeTrainer):
    """Steps that the ranks of a team take together."""

    def __init__(self, candidates: Candidates, rows: Rows, settings: TuningSettings, criterion: str) -> None:
        super().__init__(candidates, rows, settings, criterion)
        self.batches = batches_of(settings.batch_size, self.team)

    def _train(self, window: Window, rates: np.ndarray, rng: np.random.Generator, losses: np.ndarray) -> int:
        assert window.place is not None
        numbers, n_batches = np.ascontiguousarray(window.place.numbers), 0
        seed, batches = self.batches(window, rng)
        for batch in batches:
            for k in self.active:
                losses[k] += self._step(int(k), window.rows, numbers, batch, seed, float(rates[k]))
            n_batches += 1
        return n_batches

    def _step(
        self, k: int, rows: training.Rows, numbers: np.ndarray, batch: Batch, seed: int, rate: float
    ) -> float:
        """One step of a candidate; its loss."""
        shape, settings, state = self.shapes[k], self.steps[k], self.states[k]
        with np.errstate(all="ignore"):  # a gradient that is not finite is skipped
            here: ShardBatch = native().shard_batch(
                shape, rows, settings, state.theta, (batch.rows, batch.bounds, numbers), batch.count, seed
            )
            layers = range(len(shape.widths))
            for layer in layers:
                sums = self.team.add_(here.forward(layer), FORWARD) / batch.count
                sums[1] = np.maximum(sums[1] - np.square(sums[0]), 0.0)
                here.normalise(layer, sums)
            loss = here.head()
            for layer in reversed(layers):
                here.backward(layer, self.team.add_(here.slopes(layer), BACKWARD))
            sent = self.team.add_(np.append(here.gradient(), loss), GRADIENT)
            gradient = sent[:-1].astype(np.float32)
        native().train_update(shape, settings, state, gradient, rate)
        return float(sent[-1])
