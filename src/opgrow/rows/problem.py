"""The data that a network is grown from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..common.cells import cell_cuts
from ..common.team import Alone
from ..network.scaling import Scaling

if TYPE_CHECKING:
    from .chunks.rows import TrainingRows

__all__ = ["Place", "Problem", "RowArrays", "place_of", "sample_rows", "shared_sample"]


def sample_rows(n_outputs: int) -> int:
    """Rows that decide how confident a closed-form head should be."""
    return max(500, min(20_000, 200_000 // n_outputs))


@dataclass(frozen=True)
class Place:
    """Where the rows here are among those of all ranks.

    Attributes
    ----------
    numbers : (rows here,) int64, the number of each row among those of all ranks
    first : rows on the ranks before this one; total : on all of them
    cuts : rows here at which another cell begins
    """

    numbers: np.ndarray
    first: int
    total: int
    cuts: tuple[int, ...] = ()


def place_of(n_rows: int, chosen: np.ndarray | None, team: Alone) -> Place | None:
    """Where the chosen rows (None: all) among so many here are; None where all rows are here."""
    if team.alone:
        return None
    sizes = team.numbers(n_rows, "sizes")
    counts = team.numbers(n_rows if chosen is None else len(chosen), "sizes")
    empty = next((rank for rank, n in enumerate(counts) if n == 0), None)
    if empty is not None:
        raise ValueError(
            f"rank {empty} has none of the {sum(counts)} training or validation rows: give every rank more "
            "rows, or use fewer ranks"
        )
    numbers = np.arange(n_rows) if chosen is None else np.asarray(chosen, np.int64)
    numbers = numbers + sum(sizes[: team.rank])
    return Place(numbers, sum(counts[: team.rank]), sum(counts), cell_cuts(numbers, sum(sizes)))


class RowArrays:
    """What has inputs (N, D) and targets (N, outputs) of rows."""

    x: np.ndarray
    target: np.ndarray

    @property
    def n_inputs(self) -> int:
        return self.x.shape[1]

    @property
    def n_outputs(self) -> int:
        return self.target.shape[1]


@dataclass(frozen=True)
class Problem(RowArrays):
    """Data to grow from: inputs (N, D), targets (N, outputs), weights (N,) with mean 1; all float32.

    Inputs are scaled, unless ``scaling`` is given: then they are as the user passed them, of any float type,
    and ``rows`` says which of them are meant (None: all).

    Attributes
    ----------
    chunks : training rows that are read in chunks; the arrays are a sample of them, or all if these are few
    place : where the arrays' rows are among those of all ranks; None where there are no others
    total_rows : of all chunks and ranks; None: those of the arrays
    sketch : some of the training rows, from which blocks are grown; None: all are
    """

    x: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    validation: Problem | None = None
    rows: np.ndarray | None = None
    scaling: Scaling | None = None
    chunks: TrainingRows | None = None
    place: Place | None = None
    total_rows: int | None = None
    sketch: Problem | None = None

    @property
    def n_rows(self) -> int:
        """Rows in all, of which some may be elsewhere."""
        return len(self.target) if self.total_rows is None else self.total_rows

    def read_in_chunks(self, chunks: TrainingRows, team: Alone) -> Problem:
        """The same with training rows in chunks: each rank has its own, and a share of the sample."""
        validation = None if self.validation is None else self.validation._placed(team)
        return replace(
            self._placed(team),
            validation=validation,
            chunks=chunks,
            total_rows=sum(team.numbers(chunks.n_rows, "sizes")),
        )

    def sketched(self, most: int, seed: Sequence[int], team: Alone) -> Problem:
        """The same with a sketch of so many rows, drawn from all, where there are more."""
        n_rows = len(self.target)
        before, total = team.before(n_rows), team.total(n_rows)
        if total <= most:
            return self
        numbers = np.sort(np.random.default_rng(seed).permutation(total)[:most])
        chosen = numbers[(before <= numbers) & (numbers < before + n_rows)] - before
        if min(team.numbers(len(chosen), "sizes")) == 0:
            return self
        x, rows = (self.x[chosen], None) if self.rows is None else (self.x, self.rows[chosen])
        weight = self.weight[chosen]
        weight /= np.float32(team.mean_weight(weight, len(chosen)))
        place = place_of(len(chosen), None, team)
        total_rows = None if place is None else place.total
        arrays, scaling = (x, self.target[chosen], weight), self.scaling
        sketch = Problem(*arrays, None, rows, scaling, place=place, total_rows=total_rows)
        return replace(self, sketch=sketch)

    def _placed(self, team: Alone) -> Problem:
        """The arrays as the share of this rank."""
        if team.alone:
            return self
        sizes = team.numbers(len(self.x), "sizes")
        first, total = sum(sizes[: team.rank]), sum(sizes)
        return replace(self, place=Place(first + np.arange(len(self.x)), first, total), total_rows=total)


def shared_sample(
    here: tuple[np.ndarray, np.ndarray, np.ndarray], place: Place | None, team: Alone
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Outputs (n, C), targets (n, C) and weights (n,) of the first rows of all ranks, wherever they are."""
    if place is None:
        return here
    outputs, target, weight = here
    n_outputs = target.shape[1]
    size = min(sample_rows(n_outputs), place.total)
    beside = np.zeros((size, 2 * n_outputs + 1), np.float32)
    columns = np.concatenate([outputs, target, weight[:, None]], axis=1)
    beside[place.first : place.first + len(columns)] = columns
    team.add_(beside, "sample of rows")
    return beside[:, :n_outputs], beside[:, n_outputs:-1], beside[:, -1]
