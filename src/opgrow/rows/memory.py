"""Rows in the memory of the host, during the growth of one layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

import numpy as np

from ..common.reservations import reserve
from ..common.team import ALONE, Alone
from ..common.threads import stream
from ..engine import training
from ..engine.dispatch import Array
from ..engine.native import native
from ..engine.shards import pairwise_sum
from ..network import Block
from .draws import Draw, all_features, n_features, picked
from .problem import Place, Problem, RowArrays, sample_rows, shared_sample
from .rank_rows import RankRows
from .search_sums import (
    CACHE_BYTES,
    CellTotals,
    Gathered,
    Provisional,
    ScoreChunk,
    Shortlist,
    Sums,
    chunks,
    provisional,
    shared_constants,
    shared_sums,
    sums_of,
)
from .window import EpochWindows, Window

__all__ = ["MemoryRows"]

#: Rows that are summed at once, whatever the number of threads, where all rows are here.
_PIECE_ROWS = 4096


@dataclass
class MemoryRows(RowArrays, RankRows):
    """Rows in the memory of the host; on several ranks, those of this one.

    Attributes
    ----------
    x : (N, D) inputs of the layer; accepted : (N, F) standardised features of the blocks it has so far
    target : (N, outputs); weight : (N,); all float32
    place : where the rows are among those of all ranks, which compute them cell by cell
    """

    x: np.ndarray
    accepted: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    n_threads: int = 1
    team: Alone = ALONE
    place: Place | None = None
    _total_weight: float | None = field(default=None, repr=False, compare=False)
    _window: training.Rows | None = field(default=None, init=False, repr=False, compare=False)
    _pieces: list[training.Rows] | None = field(default=None, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, problem: Problem, n_threads: int, team: Alone = ALONE) -> MemoryRows:
        """A problem's rows as the first layer sees them."""
        nothing = np.zeros((len(problem.x), 0), np.float32)
        return cls(problem.x, nothing, problem.target, problem.weight, n_threads, team, problem.place)

    @property
    def n_rows(self) -> int:
        """Those here: it says how much there is to compute."""
        return len(self.x)

    def _weight_here(self) -> float:
        return self.weight.sum(dtype=np.float64)

    @property
    def n_accepted(self) -> int:
        return self.accepted.shape[1]

    @property
    def sample(self) -> MemoryRows:
        return self

    # --- the growing layer ---

    def accept(self, block: Block) -> None:
        self.team.agree(f"{block.n_neurons} x {block.operator_set}")
        outputs = np.concatenate([block.outputs(self.x[cell], self.n_threads) for cell in self._cells()])
        self._change(self.x, np.concatenate([self.accepted, outputs], axis=1))

    def _change(self, x: np.ndarray, accepted: np.ndarray) -> None:
        self.x, self.accepted, self._window, self._pieces = x, accepted, None, None

    def accept_computed(self, blocks: Sequence[Block], outputs: np.ndarray) -> None:
        self._change(self.x, outputs)

    def next_layer(self) -> MemoryRows:
        return replace(self, x=self.accepted, accepted=self.accepted[:, :0])

    def bare(self) -> MemoryRows:
        return replace(self, accepted=np.zeros((len(self.x), 0), np.float32))

    def remember(self, blocks: Sequence[Block], before: MemoryRows) -> None:
        seen = [block.outputs(before.x, self.n_threads) for block in blocks]
        self._change(np.concatenate([self.x, *seen], axis=1), self.accepted)

    def head_sample(
        self, block: Block, weight: np.ndarray, bias: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Outputs of a linear head on accepted and new features, targets and weights of the first rows."""
        size = min(sample_rows(self.n_outputs), len(self.x))
        if self.place is not None:
            size = min(size, max(sample_rows(self.n_outputs) - self.place.first, 0))
        matrix, outputs = weight.astype(np.float32, order="C"), np.zeros((0, self.n_outputs), np.float32)
        for cell in [slice(0, size)] if self.place is None else self._cells(size):
            features = [self.accepted[cell], block.outputs(self.x[cell], self.n_threads)]
            sums = native().product(np.concatenate(features, axis=1), matrix) + bias.astype(np.float32)
            outputs = np.concatenate([outputs, sums])
        here = outputs[:size], self.target[:size], self.weight[:size]
        return shared_sample(here, self.place, self.team)

    # --- training ---

    def training_rows(self, rows: slice = slice(None)) -> training.Rows:
        """Some rows as the engine trains on them."""
        arrays = (self.x, self.accepted, self.target, self.weight)
        return training.Rows(*(np.ascontiguousarray(array[rows]) for array in arrays))

    def windows(self) -> EpochWindows:
        """All rows, as one window: the same one until a block is accepted."""
        return self._whole

    def _whole(self, rng: np.random.Generator) -> Iterator[Window]:
        if self._window is None:
            self._window = self.training_rows()
        yield Window(self._window, self.place)

    def sum(
        self, function: Callable[[training.Rows], np.ndarray], n_candidates: int, width: int
    ) -> np.ndarray:
        if self._pieces is None:
            n = len(self.x)
            pieces = [slice(start, min(start + _PIECE_ROWS, n)) for start in range(0, n, _PIECE_ROWS)]
            spans = pieces if self.place is None else self._cells()
            self._pieces = [self.training_rows(span) for span in spans]
        tasks = [partial(function, piece) for piece in self._pieces]
        threads = self.n_threads if n_candidates == 1 and len(tasks) > 1 else 1
        sums = stream(tasks, threads)
        if self.place is None:
            return self.team.sum(sum(sums), "statistics and scores")
        return self.team.sum(pairwise_sum(np.stack(list(sums))), "statistics and scores")

    # --- the search ---

    def gather(self, draws: Sequence[Draw], n_threads: int) -> Gathered:
        """Chunks are spread over threads; their sums are added in order, and those of cells in pairs."""
        first = provisional(all_features(self.x[:64], draws, n_threads))
        constants = shared_constants(first, self.team)
        spans = self._spans(draws)
        size = 4 * n_features(draws) * self.n_rows
        reservation = reserve(size) if size <= CACHE_BYTES else None
        cache: list[Array] | None = None if reservation is None else []
        totals = CellTotals(self._n_cells)
        tasks = [partial(self._features_and_sums, draws, constants, span) for _, span in spans]
        for (cell, _), (features, sums) in zip(spans, stream(tasks, n_threads), strict=True):
            totals.add(cell, sums)
            if cache is not None:
                cache.append(features)
        return Gathered(shared_sums(totals.total(), self.team), constants, cache, reservation)

    def summing(self, draws: Sequence[Draw], constants: Provisional) -> Iterator[Callable[[], Sums]]:
        """Tasks that sum the rows span by span."""
        return (partial(self._sums, draws, constants, span) for _, span in self._spans(draws))

    def score(self, shortlist: Shortlist, function: ScoreChunk, n_threads: int) -> Array:
        """Without a cache, only the features of the chosen candidates are computed again."""
        chosen, cache = shortlist.chosen, shortlist.cache
        needed, spans = picked(shortlist.draws, chosen), self._spans(shortlist.draws)

        def task(number: int, span: slice) -> np.ndarray:
            h = all_features(self.x[span], needed) if cache is None else cache[number][chosen]
            arrays = (np.ascontiguousarray(a[span]) for a in (self.accepted, self.target, self.weight))
            return function(h, *arrays)

        totals = CellTotals(self._n_cells)
        tasks = [partial(task, number, span) for number, (_, span) in enumerate(spans)]
        for (cell, _), scores in zip(spans, stream(tasks, n_threads), strict=True):
            totals.add(cell, scores)
        total = totals.total() if spans else np.zeros(len(chosen))
        return self.team.add_(total, "scores of the search")

    def _features_and_sums(
        self, draws: Sequence[Draw], constants: Provisional, span: slice
    ) -> tuple[np.ndarray, Sums]:
        """Features (k, m, n) of one chunk of rows, and its sums."""
        features = all_features(self.x[span], draws)
        accepted, target, weight = (
            np.ascontiguousarray(a[span]) for a in (self.accepted, self.target, self.weight)
        )
        return features, sums_of(features, constants, accepted, target, weight)

    def _sums(self, draws: Sequence[Draw], constants: Provisional, span: slice) -> Sums:
        return self._features_and_sums(draws, constants, span)[1]

    # --- cells ---

    @property
    def _n_cells(self) -> int:
        return 1 if self.place is None else len(self.place.cuts) + 1

    def _cells(self, stop: int | None = None) -> list[slice]:
        """The rows of each cell that are here, which may be none; those of cells before ``stop``."""
        borders = [0, *(() if self.place is None else self.place.cuts), len(self.x)]
        cells = [slice(first, last) for first, last in pairwise(borders)]
        return cells if stop is None else [c for c in cells if c.start < min(stop, c.stop)]

    def _spans(self, draws: Sequence[Draw]) -> list[tuple[int, slice]]:
        """Rows to take at once for candidates, and the number of the cell that they are in."""
        return [
            (number, slice(cell.start + span.start, cell.start + span.stop))
            for number, cell in enumerate(self._cells())
            for span in chunks(cell.stop - cell.start, n_features(draws))
        ]
