"""Cells: the rows that are always computed together, however many ranks there are.

Kernels compute tiles of rows, and the sums of a tile or a chunk depend in their last bits on the rows in it.
All rows, in the order of the ranks, are therefore cut into a fixed number of cells of equal size; no tile and
no chunk crosses their borders. Sums over cells are in double precision, and are added in pairs, pairs of
pairs and so on, within a rank and between ranks that share memory. Where shards end at borders of cells, as
those of 1, 2, 4 and 8 ranks with equal shares do, no bit of these sums shows the number of ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from ..engine.native import native
from ..engine.shards import pairwise_sum
from ..network import Block
from ..rows.memory import HostPart, block_outputs
from ..rows.problem import sample_rows
from ..rows.search_sums import Rows

__all__ = ["CELLS", "CellPart", "cell_cuts"]

CELLS = 8


def cell_cuts(numbers: np.ndarray, total_rows: int) -> tuple[int, ...]:
    """Where in ``numbers``, sorted numbers among ``total_rows`` rows, each cell begins, but for the first."""
    borders = [total_rows * cell // CELLS for cell in range(1, CELLS)]
    return tuple(np.searchsorted(numbers, borders).tolist())


@dataclass
class CellPart(HostPart):
    """Rows in the memory of the host, computed cell by cell."""

    cuts: tuple[int, ...] = ()

    def cells(self) -> Iterator[slice]:
        """The rows of each cell that are here, which may be none."""
        return (slice(start, stop) for start, stop in pairwise([0, *self.cuts, len(self.x)]))

    def rows(self) -> Rows:
        return Rows(self.x, self.accepted, self.target, self.weight, self.cuts)

    def spans(self) -> list[slice]:
        return list(self.cells())

    def sum(self, function: Callable[[Any], np.ndarray], n_candidates: int, width: int) -> np.ndarray:
        return pairwise_sum(np.stack(list(self._sums(function, n_candidates))))

    def accept(self, block: Block) -> None:
        parts = [
            block_outputs(block, self.x[cell], self.n_threads)
            for cell in self.cells()
            if cell.start < cell.stop or not len(self.x)
        ]
        self._add(np.concatenate(parts))

    def next_layer(self) -> CellPart:
        return replace(self, x=self.accepted, accepted=self.accepted[:, :0])

    def bare(self) -> CellPart:
        return replace(self, accepted=np.zeros((len(self.x), 0), np.float32))

    def sample(
        self, block: Block, weight: np.ndarray, bias: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        size, found = sample_rows(self.n_outputs), []
        for cell in self.cells():
            if cell.start >= min(size, cell.stop):
                continue
            features = [self.accepted[cell], block_outputs(block, self.x[cell], self.n_threads)]
            sums = native().product(np.concatenate(features, axis=1), weight.astype(np.float32, order="C"))
            found.append(sums + bias.astype(np.float32))
        return np.concatenate(found)[:size], self.target[:size], self.weight[:size]
