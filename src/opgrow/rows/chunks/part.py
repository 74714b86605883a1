"""Training rows that pass through in chunks, during the growth of one layer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ...common.threads import stream
from ...engine.dispatch import Array
from ...network import Block
from ..memory import HostPart, block_outputs
from ..search_sums import Draw, Gathered, ScoreChunk, Share, Sums, all_features, as_they_are, provisional
from .ahead import ahead
from .rows import TrainingRows
from .storage import Kept

__all__ = ["StreamPart", "StreamRows"]

#: Chunks that are read in advance.
AHEAD = 2


@dataclass(frozen=True)
class _Features:
    """A block and what is kept of its outputs."""

    block: Block
    kept: Kept


@dataclass
class StreamPart:
    """The rows of a source as the layers of a growing network see them.

    Attributes
    ----------
    training : the rows below the first layer
    sample : some of them, or all if these are few, in memory
    layers : blocks of the finished layers; blocks : those of the layer that grows
    """

    training: TrainingRows
    sample_rows: HostPart
    layers: tuple[tuple[_Features, ...], ...] = ()
    blocks: list[_Features] = field(default_factory=list)

    @property
    def n_rows(self) -> int:
        return self.training.n_rows

    @property
    def n_inputs(self) -> int:
        return self.sample_rows.n_inputs

    @property
    def n_accepted(self) -> int:
        return self.sample_rows.n_accepted

    @property
    def n_outputs(self) -> int:
        return self.training.n_outputs

    @property
    def complete(self) -> bool:
        """Whether the sample is all there is."""
        return len(self.sample_rows.x) == self.n_rows

    def accept(self, block: Block) -> None:
        self.sample_rows.accept(block)
        self.blocks.append(_Features(block, self.training.storage.keep(self.n_rows, block.n_neurons)))

    def accept_computed(self, blocks: Sequence[Block], outputs: Any) -> None:
        raise NotImplementedError("rows of a source have no matrix of outputs")

    def remember(self, blocks: Sequence[Block], before: Any) -> None:
        raise NotImplementedError("rows of a source do not remember the layer before")

    def next_layer(self) -> StreamPart:
        layers = (*self.layers, tuple(self.blocks))
        return StreamPart(self.training, self.sample_rows.next_layer(), layers)

    def bare(self) -> StreamPart:
        return StreamPart(self.training, self.sample_rows.bare(), self.layers)

    def rows(self) -> StreamRows:
        return StreamRows(self)

    def sample(
        self, block: Block, weight: np.ndarray, bias: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.sample_rows.sample(block, weight, bias)

    @property
    def total_weight(self) -> float:
        return self.training.total_weight

    @property
    def sample_part(self) -> Any:
        """While parameters change, statistics and scores are those of the sample."""
        return self if self.complete else self.sample_rows

    def sum(self, function: Callable[[Any], np.ndarray], n_candidates: int, width: int) -> np.ndarray:
        """The sum over all rows of a function of some of them."""
        if self.complete:
            return self.sample_rows.sum(function, n_candidates, width)
        chunks = (chunk.sum(function, n_candidates, width) for chunk in self.chunks())
        return sum(chunks)  # type: ignore[return-value]

    # --- chunks ---

    def load(self, number: int) -> HostPart:
        """The training rows of one chunk, with everything that the growing layer needs."""
        return _Loading(self, number).rows()

    def chunks(self, order: Iterable[int] | None = None, depth: int = AHEAD) -> Iterator[HostPart]:
        """The chunks in an order, or in theirs; a thread reads them in advance."""
        return ahead(self.load, range(self.training.n_chunks) if order is None else order, depth)


class _Loading:
    """One chunk while it is put together: nothing is read that is not needed."""

    def __init__(self, part: StreamPart, number: int) -> None:
        self.part, self.number = part, number
        self._read: Any = None

    def rows(self) -> HostPart:
        part = self.part
        x = self.inputs(len(part.layers))
        accepted = self.outputs(part.blocks, lambda: x)
        known = None if self._read is not None else part.training.targets(self.number)
        target, weight = (self.read().target, self.read().weight) if known is None else known
        if accepted is None:
            accepted = np.zeros((len(target), 0), np.float32)
        return HostPart(x, accepted, target, weight)

    def read(self) -> Any:
        if self._read is None:
            self._read = self.part.training.read(self.number)
        return self._read

    def inputs(self, level: int) -> np.ndarray:
        """Inputs of the layer above ``level`` others."""
        if level == 0:
            return self.read().x
        found = self.outputs(self.part.layers[level - 1], lambda: self.inputs(level - 1))
        assert found is not None
        return found

    def outputs(self, features: Sequence[_Features], inputs: Callable[[], np.ndarray]) -> np.ndarray | None:
        """Outputs of blocks side by side, kept or computed from their inputs."""
        found: list[np.ndarray] = []
        x: np.ndarray | None = None
        for item in features:
            values = item.kept.get(self.number)
            if values is None:
                x = inputs() if x is None else x
                values = block_outputs(item.block, x, 1)
                item.kept.put(self.number, partial(_same, values))
            found.append(values)
        if not found:
            return None
        return found[0] if len(found) == 1 else np.concatenate(found, axis=1)


def _same(values: np.ndarray) -> np.ndarray:
    return values


@dataclass(frozen=True)
class StreamRows:
    """Rows of a source as the search sees them: sums over all of them, scores over the sample."""

    part: StreamPart

    @property
    def n_rows(self) -> int:
        return self.part.n_rows

    @property
    def n_inputs(self) -> int:
        return self.part.n_inputs

    @property
    def total_weight(self) -> float:
        return self.part.sample_rows.rows().total_weight

    def gather(self, draws: Sequence[Draw], n_threads: int, share: Share = as_they_are) -> Gathered:
        """One pass; the spans of a chunk are spread over threads, and all sums added in order."""
        sample = self.part.sample_rows.x[:64]
        constants = share(provisional(all_features(sample, draws, n_threads)))

        def tasks() -> Iterator[Callable[[], Sums]]:
            for chunk in self.part.chunks():
                yield from chunk.rows().summing(draws, constants)

        return Gathered(_added(stream(tasks(), n_threads)), constants, None)

    def score(
        self,
        draws: Sequence[Draw],
        chosen: np.ndarray,
        cache: list[Array] | None,
        function: ScoreChunk,
        n_threads: int,
    ) -> Array:
        return self.part.sample_rows.rows().score(draws, chosen, None, function, n_threads)


def _added(parts: Iterable[Sums]) -> Sums:
    total: Sums | None = None
    for part in parts:
        if total is None:
            total = part
        else:
            total += part
    assert total is not None
    return total
