"""How the rows of a window are divided into batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..common.hashing import draw_batches
from ..common.team import Alone
from ..rows.window import Window
from .settings import batch_bounds

__all__ = ["BACKWARD", "FORWARD", "GRADIENT", "Batch", "Batches", "batches_of"]

#: What the parts of a step send, as the traffic of ranks counts it.
FORWARD, BACKWARD, GRADIENT = "batch statistics", "their gradients", "gradients"


@dataclass(frozen=True)
class Batch:
    """Rows of a batch.

    Attributes
    ----------
    rows : those that are here, in the order of cells; numbers : of these, among all rows
    count : rows of the batch on all ranks
    bounds : where in ``rows`` each cell begins, and the last one ends
    """

    rows: np.ndarray
    numbers: np.ndarray
    count: float
    bounds: np.ndarray


#: From a window and random numbers to its batches, and a seed for what is drawn within them.
Batches = Callable[[Window, np.random.Generator], tuple[int, Iterator[Batch]]]


def batches_of(batch_size: int, team: Alone) -> Batches:
    """How windows are divided: batches of nearly equal size, or on several ranks by the rows' numbers."""

    def all_here(window: Window, rng: np.random.Generator) -> tuple[int, Iterator[Batch]]:
        order = rng.permutation(window.rows.n_rows)
        spans = pairwise(batch_bounds(len(order), batch_size))
        rows = (order[start:stop] for start, stop in spans)
        seed = int(rng.integers(1, 2**63))
        return seed, (Batch(part, part, float(len(part)), np.array([0, len(part)])) for part in rows)

    def of_all_ranks(window: Window, rng: np.random.Generator) -> tuple[int, Iterator[Batch]]:
        seed = int(rng.integers(1, 2**63))
        return seed, _drawn(window, batch_size, seed, team)

    return all_here if team.alone else of_all_ranks


def _drawn(window: Window, batch_size: int, seed: int, team: Alone) -> Iterator[Batch]:
    """Batches of about equal size: each row draws its own by its number, whoever holds it."""
    place = window.place
    assert place is not None
    n_batches, n_cells = -(-place.total // batch_size), len(place.cuts) + 1
    batch = draw_batches(place.numbers, seed, n_batches)
    counts = team.sum(np.bincount(batch, minlength=n_batches), "sizes of batches")
    cell = np.searchsorted(place.cuts, np.arange(len(place.numbers)), side="right")
    key = batch * n_cells + cell
    order = np.argsort(key.astype(np.min_scalar_type(n_batches * n_cells)), kind="stable")
    borders = np.concatenate([[0], np.cumsum(np.bincount(key, minlength=n_batches * n_cells))])
    for number in range(n_batches):
        bounds = borders[number * n_cells : (number + 1) * n_cells + 1]
        if counts[number]:
            rows = order[bounds[0] : bounds[-1]]
            yield Batch(rows, place.numbers[rows], float(counts[number]), bounds - bounds[0])
