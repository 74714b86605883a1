"""What growth asks of rows, wherever they are: in memory, on a device, or in chunks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self

import numpy as np

from ..common.team import Alone
from ..engine.dispatch import Array
from ..network import Block
from .draws import Draw
from .search_sums import Gathered, ScoreChunk, Shortlist
from .window import EpochWindows

__all__ = ["Rows", "WholeRows"]


class Rows(Protocol):
    """Training or validation rows during the growth of one layer; on several ranks, those of this one."""

    team: Alone

    @property
    def n_rows(self) -> int:
        """Those here: it says how much there is to compute."""
        ...

    @property
    def n_inputs(self) -> int:
        """Inputs of the layer."""
        ...

    @property
    def n_accepted(self) -> int:
        """Features of the blocks that the layer has so far."""
        ...

    @property
    def n_outputs(self) -> int: ...

    @property
    def total_weight(self) -> float:
        """Of all rows, wherever they are."""
        ...

    @property
    def sample(self) -> Rows:
        """Rows by which statistics and scores are taken while parameters change: some of them, or all."""
        ...

    def accept(self, block: Block) -> None:
        """Add a block to the layer."""
        ...

    def next_layer(self) -> Self:
        """The rows as the layer on top of the accepted blocks sees them."""
        ...

    def bare(self) -> Self:
        """The rows without the accepted blocks."""
        ...

    def head_sample(
        self, block: Block, weight: np.ndarray, bias: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Outputs of a linear head on accepted and new features, targets and weights of the first rows."""
        ...

    def windows(self) -> EpochWindows:
        """The windows in which epochs of one training take the rows."""
        ...

    def sum(self, function: Callable[[Any], np.ndarray], n_candidates: int, width: int) -> np.ndarray:
        """The sum over all rows of a function of some of them.

        The function computes ``width`` values of a row for each of ``n_candidates``; of several candidates,
        it spreads these over threads by itself.
        """
        ...

    def gather(self, draws: Sequence[Draw], n_threads: int) -> Gathered:
        """One pass over the rows that sums what the fits of a search's candidates need."""
        ...

    def score(self, shortlist: Shortlist, function: ScoreChunk, n_threads: int) -> Array:
        """The sum of a function of the chosen candidates' features over chunks of rows."""
        ...


class WholeRows(Rows, Protocol):
    """Rows that are all at hand, as closed-form layers and those that remember the one before need them."""

    def accept_computed(self, blocks: Sequence[Block], outputs: Any) -> None:
        """Add blocks to a layer without any; their outputs (N, d) are one of the engine's matrices."""
        ...

    def remember(self, blocks: Sequence[Block], before: Self) -> None:
        """Put what blocks make of ``before``, the rows as the layer before sees them, beside the inputs."""
        ...
