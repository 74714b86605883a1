"""Candidates trained on the rows of all ranks.

Each epoch every row draws its batch by its number among all rows, so a batch does not depend on who holds its
rows. A step adds up over ranks: the statistics of each layer's features on the way forward, the two sums that
their gradients need on the way back, and the gradient by all parameters with the loss beside it. Then every
rank takes the same step of Adam.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..engine import training
from ..engine.native import native
from ..engine.shards import ShardBatch
from ..training.candidates import Candidates
from ..training.native import HostTrainer
from ..training.reference import BACKWARD, FORWARD, GRADIENT, Batch
from ..training.settings import TuningSettings
from .group import Group
from .hashing import draw_batches

__all__ = ["RanksTrainer", "RanksWindow", "RanksWindows", "ranks_batches"]


@dataclass(frozen=True)
class RanksWindow:
    """Rows of a window that are here.

    Attributes
    ----------
    rows : on the host or on a device
    numbers : (n,) of each row among those of all ranks, of which there are ``total``
    cuts : rows here at which another cell begins
    """

    rows: Any
    numbers: np.ndarray
    total: int
    cuts: tuple[int, ...]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rows, name)


class RanksWindows:
    """Windows of all ranks, one after the other: each rank has its own rows in them, which may be none.

    Parameters
    ----------
    part : the part of this rank, with ``numbers``, ``total_rows``, ``cuts`` and ``group``
    own : windows of its rows where these are read in chunks; None where all of them are at hand
    nothing : a window without rows, for a rank that has no window left
    """

    def __init__(self, part: Any, own: Any = None, nothing: Any = None) -> None:
        self.part, self.own, self.nothing = part, own, nothing

    def windows(self, rng: np.random.Generator) -> Iterator[RanksWindow]:
        part = self.part
        if self.own is None:
            for rows in part.inner.windows(rng):
                yield RanksWindow(rows, part.numbers, part.total_rows, part.cuts)
            return
        group: Group = part.group
        mine = self.own.windows(np.random.default_rng([int(rng.integers(1, 2**63)), group.rank]))
        while True:
            rows = next(mine, self.nothing)
            sizes = group.numbers(rows.n_rows, "sizes of windows")
            if not any(sizes):
                return
            numbers = sum(sizes[: group.rank]) + np.arange(rows.n_rows)
            yield RanksWindow(rows, numbers, sum(sizes), ())


@dataclass(frozen=True)
class _CellBatch(Batch):
    """A batch whose rows here are in the order of cells, with the borders of these."""

    bounds: np.ndarray


def _draw(window: RanksWindow, batch_size: int, seed: int, group: Group) -> Iterator[_CellBatch]:
    """Divide the rows of all ranks into batches of about equal size."""
    n_batches, n_cells = -(-window.total // batch_size), len(window.cuts) + 1
    batch = draw_batches(window.numbers, seed, n_batches)
    counts = group.sum(np.bincount(batch, minlength=n_batches), "sizes of batches")
    cell = np.searchsorted(window.cuts, np.arange(len(window.numbers)), side="right")
    key = batch * n_cells + cell
    order = np.argsort(key.astype(np.min_scalar_type(n_batches * n_cells)), kind="stable")
    borders = np.concatenate([[0], np.cumsum(np.bincount(key, minlength=n_batches * n_cells))])
    for number in range(n_batches):
        bounds = borders[number * n_cells : (number + 1) * n_cells + 1]
        if counts[number]:
            rows = order[bounds[0] : bounds[-1]]
            yield _CellBatch(rows, window.numbers[rows], float(counts[number]), bounds - bounds[0])


def ranks_batches(
    batch_size: int, group: Group
) -> Callable[[RanksWindow, np.random.Generator], tuple[int, Iterator[Batch]]]:
    """How the reference divides a window into batches."""

    def draw(window: RanksWindow, rng: np.random.Generator) -> tuple[int, Iterator[Batch]]:
        seed = int(rng.integers(1, 2**63))
        return seed, _draw(window, batch_size, seed, group)

    return draw


class RanksTrainer(HostTrainer):
    """The compiled steps, for built-in operators and losses, Adam, and linear heads."""

    def __init__(
        self,
        candidates: Candidates,
        windows: RanksWindows,
        group: Group,
        settings: TuningSettings,
        criterion: str,
    ) -> None:
        super().__init__(candidates, settings, criterion)
        self.windows, self.group = windows, group

    def epoch(self, rates: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        self.active = active = np.flatnonzero(rates)
        losses, n_batches = np.zeros(len(rates)), 0
        for state in self.states:
            state.skipped = 0
        for window in self.windows.windows(rng):
            rows, numbers = window.rows, np.ascontiguousarray(window.numbers)
            seed = int(rng.integers(1, 2**63))
            for batch in _draw(window, self.settings.batch_size, seed, self.group):
                for k in active:
                    losses[k] += self._step(int(k), rows, numbers, batch, seed, float(rates[k]))
                n_batches += 1
        return losses / n_batches, np.array([state.skipped for state in self.states])

    def _step(
        self, k: int, rows: training.Rows, numbers: np.ndarray, batch: _CellBatch, seed: int, rate: float
    ) -> float:
        """One step of a candidate; its loss."""
        shape, given, state = self.shapes[k], self.steps[k], self.states[k]
        with np.errstate(all="ignore"):  # a gradient that is not finite is skipped
            here: ShardBatch = native().shard_batch(
                shape, rows, given, state.theta, (batch.rows, batch.bounds, numbers), batch.count, seed
            )
            layers = range(len(shape.widths))
            for layer in layers:
                sums = self._added(here.forward(layer), FORWARD) / batch.count
                sums[1] = np.maximum(sums[1] - np.square(sums[0]), 0.0)
                here.normalise(layer, sums)
            loss = here.head()
            for layer in reversed(layers):
                here.backward(layer, self._added(here.slopes(layer), BACKWARD))
            sent = self._added(np.append(here.gradient(), loss), GRADIENT)
            gradient = sent[:-1].astype(np.float32)
        native().train_update(shape, given, state, gradient, rate)
        return float(sent[-1])

    def _added(self, sums: np.ndarray, purpose: str) -> np.ndarray:
        return self.group.sum_(torch.from_numpy(sums), purpose).numpy()
