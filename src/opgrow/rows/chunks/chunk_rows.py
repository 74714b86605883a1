"""Training rows that are read in chunks, during the growth of one layer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from ...common.team import ALONE, Alone
from ...common.threads import stream
from ...engine.dispatch import Array
from ...network import Block
from ..draws import Draw, all_features
from ..memory import MemoryRows
from ..rank_rows import RankRows
from ..search_sums import (
    CellTotals,
    Gathered,
    ScoreChunk,
    Shortlist,
    Sums,
    provisional,
    shared_constants,
    shared_sums,
)
from ..window import EpochWindows
from .ahead import ahead
from .rows import TrainingRows
from .storage import Kept
from .windows import Windows, shared_windows

__all__ = ["ChunkRows"]

#: Chunks that are read in advance.
AHEAD = 2


@dataclass(frozen=True)
class _Features:
    """A block and what is kept of its outputs."""

    block: Block
    stored: Kept


@dataclass
class ChunkRows(RankRows):
    """The rows of a source as the layers of a growing network see them; on several ranks, those of this one.

    Attributes
    ----------
    training : the rows below the first layer
    sample_rows : some of them, or all if these are few, in memory
    layers : blocks of the finished layers; blocks : those of the layer that grows
    """

    training: TrainingRows
    sample_rows: MemoryRows
    layers: tuple[tuple[_Features, ...], ...] = ()
    blocks: list[_Features] = field(default_factory=list)
    team: Alone = ALONE
    _total_weight: float | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.n_rows, self.n_outputs = self.training.n_rows, self.training.n_outputs

    @property
    def n_inputs(self) -> int:
        return self.sample_rows.n_inputs

    @property
    def n_accepted(self) -> int:
        return self.sample_rows.n_accepted

    def _weight_here(self) -> float:
        return self.training.total_weight

    @property
    def _complete(self) -> bool:
        """Whether the sample is all there is."""
        return self.sample_rows.n_rows == self.n_rows

    @property
    def sample(self) -> ChunkRows | MemoryRows:
        """While parameters change, statistics and scores are those of the sample."""
        return self if self._complete else self.sample_rows

    # --- the growing layer ---

    def accept(self, block: Block) -> None:
        self.sample_rows.accept(block)
        self.blocks.append(_Features(block, self.training.storage.keep(self.n_rows, block.n_neurons)))

    def next_layer(self) -> ChunkRows:
        layers = (*self.layers, tuple(self.blocks))
        return replace(self, sample_rows=self.sample_rows.next_layer(), layers=layers, blocks=[])

    def bare(self) -> ChunkRows:
        return replace(self, sample_rows=self.sample_rows.bare(), blocks=[])

    def head_sample(
        self, block: Block, weight: np.ndarray, bias: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.sample_rows.head_sample(block, weight, bias)

    # --- training ---

    def windows(self) -> EpochWindows:
        """Windows as large as the memory for them allows; each rank has its own."""
        columns = self.n_inputs + self.n_accepted + self.n_outputs + 1
        size = self.training.plan.window_rows(columns)
        own = Windows(self.chunks, self.training.n_chunks, self.n_rows, size)
        if self.team.alone:
            return own.epoch
        return partial(shared_windows, own, self.sample_rows.training_rows(slice(0, 0)), self.team)

    def sum(self, function: Callable[[Any], np.ndarray], n_candidates: int, width: int) -> np.ndarray:
        """The sum over all rows of a function of some of them."""
        if self._complete:
            return self.sample_rows.sum(function, n_candidates, width)
        sums = sum(chunk.sum(function, n_candidates, width) for chunk in self.chunks())
        return self.team.sum(sums, "statistics and scores")

    # --- the search: sums over all rows, scores over the sample ---

    def gather(self, draws: Sequence[Draw], n_threads: int) -> Gathered:
        """One pass; the spans of a chunk are spread over threads, and all sums added in order."""
        first = provisional(all_features(self.sample_rows.x[:64], draws, n_threads))
        constants = shared_constants(first, self.team)

        def tasks() -> Iterator[Callable[[], Sums]]:
            for chunk in self.chunks():
                yield from chunk.summing(draws, constants)

        totals = CellTotals(1)
        for sums in stream(tasks(), n_threads):
            totals.add(0, sums)
        return Gathered(shared_sums(totals.total(), self.team), constants, None)

    def score(self, shortlist: Shortlist, function: ScoreChunk, n_threads: int) -> Array:
        return self.sample_rows.score(replace(shortlist, cache=None), function, n_threads)

    # --- chunks ---

    def load(self, number: int) -> MemoryRows:
        """The training rows of one chunk, with everything that the growing layer needs."""
        return _Loading(self, number).rows()

    def chunks(self, order: Iterable[int] | None = None, depth: int = AHEAD) -> Iterator[MemoryRows]:
        """The chunks in an order, or in theirs; a thread reads them in advance."""
        return ahead(self.load, range(self.training.n_chunks) if order is None else order, depth)


class _Loading:
    """One chunk while it is put together: nothing is read that is not needed."""

    def __init__(self, part: ChunkRows, number: int) -> None:
        self.part, self.number = part, number
        self._read: Any = None

    def rows(self) -> MemoryRows:
        part = self.part
        x = self.inputs(len(part.layers))
        accepted = self.outputs(part.blocks, lambda: x)
        stored = None if self._read is not None else part.training.targets(self.number)
        target, weight = (self.read().target, self.read().weight) if stored is None else stored
        if accepted is None:
            accepted = np.zeros((len(target), 0), np.float32)
        return MemoryRows(x, accepted, target, weight)

    def read(self) -> Any:
        if self._read is None:
            self._read = self.part.training.read(self.number)
        return self._read

    def inputs(self, level: int) -> np.ndarray:
        """Inputs of the layer above ``level`` others."""
        if level == 0:
            return self.read().x
        outputs = self.outputs(self.part.layers[level - 1], lambda: self.inputs(level - 1))
        assert outputs is not None
        return outputs

    def outputs(self, features: Sequence[_Features], inputs: Callable[[], np.ndarray]) -> np.ndarray | None:
        """Outputs of blocks side by side, kept or computed from their inputs."""
        outputs: list[np.ndarray] = []
        x: np.ndarray | None = None
        for item in features:
            values = item.stored.get(self.number)
            if values is None:
                x = inputs() if x is None else x
                values = item.block.outputs(x, 1)
                item.stored.put(self.number, partial(_same, values))
            outputs.append(values)
        if not outputs:
            return None
        return outputs[0] if len(outputs) == 1 else np.concatenate(outputs, axis=1)


def _same(values: np.ndarray) -> np.ndarray:
    return values
