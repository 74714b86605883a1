"""Steps of back-propagation on batches that are divided among ranks.

Each epoch every row draws its batch by its number among all rows, so a batch does not depend on who holds its
rows. A step adds up over ranks: the statistics of each layer's features on the way forward, the two sums that
their gradients need on the way back, and the gradient by all parameters with the loss beside it. Then every
rank takes the same step of Adam.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from .. import engines
from ..engine.native import native
from ..engine.shards import ShardBatch
from ..engine.training import Rows, Settings, Shape, State
from ..engines import TuningData, TuningSettings, fill
from .group import Group
from .hashing import draw_batches

__all__ = ["BACKWARD", "FORWARD", "GRADIENT", "Batch", "ShardEngine", "draw_epoch"]

#: What the parts of a step send, as the traffic counts it.
FORWARD, BACKWARD, GRADIENT = "batch statistics", "their gradients", "gradients"


@dataclass(frozen=True)
class Batch:
    """What a rank holds of a batch.

    Attributes
    ----------
    rows : rows here, cell by cell; bounds : the borders of the cells; count : rows of the batch on all ranks
    """

    rows: np.ndarray
    bounds: np.ndarray
    count: float


def draw_epoch(
    numbers: np.ndarray, cuts: tuple[int, ...], total_rows: int, batch_size: int, seed: int, group: Group
) -> Iterator[Batch]:
    """Divide all rows into batches of about equal size."""
    n_batches, n_cells = -(-total_rows // batch_size), len(cuts) + 1
    batch = draw_batches(numbers, seed, n_batches)
    counts = group.sum(np.bincount(batch, minlength=n_batches), "sizes of batches")
    cell = np.searchsorted(cuts, np.arange(len(numbers)), side="right")
    key = batch * n_cells + cell
    order = np.argsort(key.astype(np.min_scalar_type(n_batches * n_cells)), kind="stable")
    borders = np.concatenate([[0], np.cumsum(np.bincount(key, minlength=n_batches * n_cells))])
    for number in range(n_batches):
        bounds = borders[number * n_cells : (number + 1) * n_cells + 1]
        if counts[number]:
            rows = order[bounds[0] : bounds[-1]]
            yield Batch(rows, bounds - bounds[0], float(counts[number]))


class ShardEngine:
    """The compiled steps, for built-in operators and losses, Adam, and a linear head."""

    def __init__(
        self,
        shape: engines.Shape,
        theta: np.ndarray,
        train: TuningData,
        settings: TuningSettings,
        group: Group,
        numbers: np.ndarray,
        total_rows: int,
        cuts: tuple[int, ...],
    ) -> None:
        assert isinstance(settings.loss, str)
        head = int(shape.head_codes[0]), int(shape.head_codes[1]), int(shape.head_codes[2])
        self.shape = Shape(shape.plan, shape.widths, head, shape.n_frozen, shape.n_outputs)
        self.given = Settings(
            settings.loss,
            shape.decay(settings.weight_decay),
            settings.dropout,
            settings.input_dropout,
            settings.max_norm or 0.0,
        )
        self.now = State(theta)
        self.group, self.batch_size = group, settings.batch_size
        self._use(train, numbers, total_rows, cuts)

    def _use(self, train: TuningData, numbers: np.ndarray, total_rows: int, cuts: tuple[int, ...]) -> None:
        self.rows = Rows(*(np.ascontiguousarray(array) for array in vars(train).values()))
        self.numbers, self.total_rows, self.cuts = np.ascontiguousarray(numbers), total_rows, cuts

    def use(self, train: TuningData, numbers: np.ndarray, total_rows: int) -> None:
        """Go on with other rows."""
        self._use(train, numbers, total_rows, ())

    def state(self) -> dict[str, np.ndarray]:
        """What an epoch goes on from, beside the parameters: the same on all ranks."""
        return {"first": self.now.first, "second": self.now.second, "step": np.array([self.now.step])}

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        """Go on from what `state` has said."""
        step = np.zeros(1, np.int64)
        for target, name in ((self.now.first, "first"), (self.now.second, "second"), (step, "step")):
            fill(target, arrays, name)
        self.now.step = int(step[0])

    def epoch(self, rate: float, seed: int) -> tuple[float, int]:
        """Train for one epoch; the mean loss of its batches and the number of those skipped."""
        total, n_batches, self.now.skipped = 0.0, 0, 0
        for batch in draw_epoch(self.numbers, self.cuts, self.total_rows, self.batch_size, seed, self.group):
            with np.errstate(all="ignore"):  # a gradient that is not finite is skipped
                sent = self._step(batch, seed)
                gradient = sent[:-1].astype(np.float32)
            native().train_update(self.shape, self.given, self.now, gradient, rate)
            total += float(sent[-1])
            n_batches += 1
        return total / n_batches, self.now.skipped

    def _step(self, batch: Batch, seed: int) -> np.ndarray:
        """The gradient of one batch, and its loss behind it, from the rows of all ranks."""
        here: ShardBatch = native().shard_batch(
            self.shape,
            self.rows,
            self.given,
            self.now.theta,
            (batch.rows, batch.bounds, self.numbers),
            batch.count,
            seed,
        )
        layers = range(len(self.shape.widths))
        for layer in layers:
            sums = self._shared(here.forward(layer), FORWARD) / batch.count
            sums[1] = np.maximum(sums[1] - np.square(sums[0]), 0.0)
            here.normalise(layer, sums)
        loss = here.head()
        for layer in reversed(layers):
            here.backward(layer, self._shared(here.slopes(layer), BACKWARD))
        return self._shared(np.append(here.gradient(), loss), GRADIENT)

    def _shared(self, sums: np.ndarray, purpose: str) -> np.ndarray:
        return self.group.sum_(torch.from_numpy(sums), purpose).numpy()
