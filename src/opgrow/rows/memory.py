"""Rows in the memory of the host, during the growth of one layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from ..common.threads import stream
from ..engine import training
from ..engine.native import native
from ..network import Block
from .problem import sample_rows
from .search_sums import Rows

__all__ = ["HostPart", "block_outputs"]

#: Rows that are summed at once, whatever the number of threads.
_PIECE_ROWS = 4096


@dataclass
class HostPart:
    """Rows in the memory of the host.

    Attributes
    ----------
    x : (N, D) inputs of the layer; accepted : (N, F) standardised features of the blocks it has so far
    target : (N, outputs); weight : (N,); all float32
    """

    x: np.ndarray
    accepted: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    n_threads: int = 1
    _window: training.Rows | None = field(default=None, init=False, repr=False, compare=False)
    _pieces: list[training.Rows] | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def n_inputs(self) -> int:
        return self.x.shape[1]

    @property
    def n_accepted(self) -> int:
        return self.accepted.shape[1]

    @property
    def n_outputs(self) -> int:
        return self.target.shape[1]

    def rows(self) -> Rows:
        return Rows(self.x, self.accepted, self.target, self.weight)

    @property
    def total_weight(self) -> float:
        return float(self.weight.sum(dtype=np.float64))

    @property
    def sample_part(self) -> HostPart:
        return self

    def training_rows(self, rows: slice = slice(None)) -> training.Rows:
        """Some rows as the engine trains on them."""
        arrays = (self.x, self.accepted, self.target, self.weight)
        return training.Rows(*(np.ascontiguousarray(array[rows]) for array in arrays))

    def windows(self, rng: np.random.Generator) -> Iterator[training.Rows]:
        """All rows, as one window: the same one until a block is accepted."""
        if self._window is None:
            self._window = self.training_rows()
        yield self._window

    def spans(self) -> list[slice]:
        """The rows in pieces that are summed by themselves."""
        n = len(self.x)
        return [slice(start, min(start + _PIECE_ROWS, n)) for start in range(0, n, _PIECE_ROWS)]

    def sum(
        self, function: Callable[[training.Rows], np.ndarray], n_candidates: int, width: int
    ) -> np.ndarray:
        return sum(self._sums(function, n_candidates))  # type: ignore[return-value]

    def _sums(
        self, function: Callable[[training.Rows], np.ndarray], n_candidates: int
    ) -> Iterator[np.ndarray]:
        """A function of each piece, in their order."""
        if self._pieces is None:
            self._pieces = [self.training_rows(span) for span in self.spans()]
        tasks = [partial(function, piece) for piece in self._pieces]
        return stream(tasks, self.n_threads if n_candidates == 1 and len(tasks) > 1 else 1)

    def accept(self, block: Block) -> None:
        self._add(block_outputs(block, self.x, self.n_threads))

    def _add(self, outputs: np.ndarray) -> None:
        self._change(self.x, np.concatenate([self.accepted, outputs], axis=1))

    def _change(self, x: np.ndarray, accepted: np.ndarray) -> None:
        self.x, self.accepted, self._window, self._pieces = x, accepted, None, None

    def accept_computed(self, blocks: Sequence[Block], outputs: np.ndarray) -> None:
        self._change(self.x, outputs)

    def next_layer(self) -> HostPart:
        return HostPart(self.accepted, self.accepted[:, :0], self.target, self.weight, self.n_threads)

    def bare(self) -> HostPart:
        nothing = np.zeros((len(self.x), 0), np.float32)
        return HostPart(self.x, nothing, self.target, self.weight, self.n_threads)

    def remember(self, blocks: Sequence[Block], before: HostPart) -> None:
        seen = [block_outputs(block, before.x, self.n_threads) for block in blocks]
        self._change(np.concatenate([self.x, *seen], axis=1), self.accepted)

    def sample(
        self, block: Block, weight: np.ndarray, bias: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        x, accepted, target, share = (
            a[: sample_rows(self.n_outputs)] for a in (self.x, self.accepted, self.target, self.weight)
        )
        features = np.concatenate([accepted, block_outputs(block, x, self.n_threads)], axis=1)
        outputs = native().product(features, weight.astype(np.float32, order="C")) + bias.astype(np.float32)
        return outputs, target, share


def block_outputs(block: Block, x: np.ndarray, n_threads: int) -> np.ndarray:
    """What a block hands on for rows of its inputs: (N, D) to (N, d)."""
    return block.outputs(x, n_threads)
