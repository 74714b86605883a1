"""Rows on a device during the growth of one layer: whole where they fit, otherwise in chunks.

All tensors are float32 with rows as the fastest dimension, (features, N), as the kernels want them. What
frozen layers and accepted blocks make of inputs is kept if there is room, and otherwise computed again for
every chunk: the kernels are quicker than the bus.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from ...common.team import ALONE, Alone
from ...network import Block
from ..draws import Draw, picked
from ..problem import Place, sample_rows, shared_sample
from ..rank_rows import RankRows
from ..search_sums import (
    Gathered,
    ScoreChunk,
    Shortlist,
    Sums,
    constants_of,
    shared_constants,
    shared_sums,
)
from ..window import EpochWindows, Window
from .blocks import DeviceBlock, block_outputs, candidate_features
from .budget import SUMMED_ROWS, Budget, shrinking, stays
from .source import STREAM_ROWS, Source, spans_of

__all__ = ["Chunk", "DeviceRows"]


@dataclass(frozen=True)
class Chunk:
    """Some rows as a layer sees them.

    Inputs are (D, n), features of accepted blocks (p, n), targets (C, n) and weights (n,).
    """

    span: slice
    x: Tensor
    accepted: Tensor
    target: Tensor
    weight: Tensor
    #: Rows are the last axis, unlike on the host.
    rows_last: ClassVar[bool] = True

    @property
    def n_rows(self) -> int:
        return self.x.shape[1]

    @property
    def frozen(self) -> Tensor:
        """The accepted features, which training does not change."""
        return self.accepted


@dataclass
class DeviceRows(RankRows):
    """Training or validation rows on a device during the growth of one layer.

    Attributes
    ----------
    layers : frozen layers between the source's inputs and this layer's
    inputs : (D, N) what they make of the rows, or None where that is computed chunk by chunk
    blocks : accepted blocks of this layer; stored : (d, N) the outputs of each, or None
    """

    source: Source
    layers: list[list[DeviceBlock]] = field(default_factory=list)
    inputs: Tensor | None = None
    blocks: list[DeviceBlock] = field(default_factory=list)
    stored: list[Tensor | None] = field(default_factory=list)
    team: Alone = ALONE
    place: Place | None = None
    _total_weight: float | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.layers:
            self.inputs = self.source.resident
        self.device, self.n_rows, self.n_outputs = (
            self.source.device,
            self.source.n_rows,
            self.source.n_outputs,
        )
        self.budget = Budget(self.device)

    @property
    def n_inputs(self) -> int:
        return sum(block.n_neurons for block in self.layers[-1]) if self.layers else self.source.n_inputs

    @property
    def n_accepted(self) -> int:
        return sum(block.n_neurons for block in self.blocks)

    def _weight_here(self) -> float:
        return self.source.total_weight

    # --- what a growing layer does with its rows ---

    def accept(self, block: Block) -> None:
        """Add a block to the layer."""
        self.team.agree(f"{block.n_neurons} x {block.operator_set}")
        copy = DeviceBlock.of(block, self.device)
        self.blocks.append(copy)
        size = 4 * self.n_rows * copy.n_neurons
        room = stays(size, self.device)
        self.stored.append(self._outputs_of(copy) if room else None)

    def _outputs_of(self, block: DeviceBlock) -> Tensor:
        out = torch.empty(block.n_neurons, self.n_rows, device=self.device)

        def work() -> Tensor:
            for chunk in self.chunks(self.chunk_rows(16 * block.n_neurons), accepted=False):
                out[:, chunk.span] = block_outputs(block, chunk.x)
            return out

        return shrinking(self.budget, work, "computing the features of a block")

    def accept_computed(self, blocks: Sequence[Block], outputs: Tensor) -> None:
        """Add blocks to a layer without any; ``outputs`` (N, d) of all of them are known."""
        self.blocks = [DeviceBlock.of(block, self.device) for block in blocks]
        self.stored = list(outputs.T.split([block.n_neurons for block in blocks]))

    def next_layer(self) -> DeviceRows:
        """The rows as the layer on top of the accepted blocks sees them."""
        layers = [*self.layers, self.blocks]
        stored = [k for k in self.stored if k is not None]
        room = stays(4 * self.n_rows * self.n_accepted, self.device)
        whole = torch.cat(stored) if room and len(stored) == len(self.stored) else None
        return replace(self, layers=layers, inputs=whole, blocks=[], stored=[])

    def bare(self) -> DeviceRows:
        """The rows without the accepted blocks."""
        return replace(self, blocks=[], stored=[])

    def remember(self, blocks: Sequence[Block], before: DeviceRows) -> None:
        """Put what blocks make of ``before``, the rows as the layer before sees them, beside the inputs."""
        added = [DeviceBlock.of(block, self.device) for block in blocks]
        self.layers = [*self.layers[:-1], [*self.layers[-1], *added]]
        if self.inputs is not None:
            size = 4 * self.n_rows * self.n_inputs
            room = stays(size, self.device)
            seen = [before._outputs_of(block) for block in added] if room else []
            self.inputs = torch.cat([self.inputs, *seen]) if room else None

    # --- passes over the rows ---

    def chunk_rows(self, bytes_per_row: int) -> int:
        """Rows to take at once if each needs so many bytes besides inputs and accepted features."""
        own = 4 * (2 * self.source.n_inputs + self.n_inputs + self.n_accepted + 2 * self.n_outputs)
        most = (1 << 24) if self.inputs is not None else STREAM_ROWS
        return self.budget.rows(self.n_rows, own + bytes_per_row, most)

    def chunks(self, size: int, accepted: bool = True, order: np.ndarray | None = None) -> Iterator[Chunk]:
        """The rows in pieces of ``size``, in the given order of pieces."""
        for span, x in self._inputs(size, order):
            target, weight = self.source.labels(span)
            seen = self._accepted(x, span) if accepted else x[:0]
            yield Chunk(span, x, seen, target, weight)

    def _inputs(self, size: int, order: np.ndarray | None) -> Iterator[tuple[slice, Tensor]]:
        if self.inputs is not None:
            for span in spans_of(self.n_rows, size, order):
                yield span, self.inputs[:, span]
            return
        for span, x in self.source.chunks(size, order):
            for layer in self.layers:
                x = torch.cat([block_outputs(block, x[: block.n_inputs]) for block in layer])
            yield span, x

    def _accepted(self, x: Tensor, span: slice) -> Tensor:
        parts = [
            block_outputs(block, x) if stored is None else stored[:, span]
            for block, stored in zip(self.blocks, self.stored, strict=True)
        ]
        return torch.cat(parts) if len(parts) > 1 else parts[0] if parts else x[:0]

    def first(self, n_rows: int) -> Chunk:
        """The first rows."""
        return next(self.chunks(min(n_rows, self.n_rows)))

    @property
    def sample(self) -> DeviceRows:
        return self

    def sum(self, function: Callable[[Chunk], np.ndarray], n_candidates: int, width: int) -> np.ndarray:
        """The sum over all rows of a function of some of them."""

        def work() -> np.ndarray:
            size = self.chunk_rows(32 * n_candidates * (width + self.n_accepted + self.n_outputs))
            return sum(function(chunk) for chunk in self.chunks(size))  # type: ignore[return-value]

        sums = shrinking(self.budget, work, "taking statistics and scores")
        return self.team.sum(sums, "statistics and scores")

    def windows(self) -> EpochWindows:
        """All rows, as one window."""
        return self._whole

    def _whole(self, rng: np.random.Generator) -> Iterator[Window]:
        yield Window(self.whole(), None if self.place is None else replace(self.place, cuts=()))

    def whole(self) -> Chunk:
        """All rows at once."""
        if self.inputs is None or self.source.resident is None:
            raise MemoryError(
                f"this needs all {self.n_rows} x {self.n_inputs} inputs on the GPU at once, and they do not "
                "fit: use device='cpu' or fewer rows"
            )
        return self.first(self.n_rows)

    def head_sample(
        self, block: Block, weight: np.ndarray, bias: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Outputs of a linear head on accepted and new features, targets and weights of the first rows."""
        chunk = self.first(sample_rows(self.n_outputs))
        features = torch.cat([chunk.accepted, block_outputs(DeviceBlock.of(block, self.device), chunk.x)])
        matrix, shift = (torch.from_numpy(a).float().to(self.device) for a in (weight, bias))
        outputs = features.T @ matrix + shift
        arrays = [t.cpu().numpy() for t in (outputs, chunk.target.T, chunk.weight)]
        if self.place is not None:
            here = max(sample_rows(self.n_outputs) - self.place.first, 0)
            arrays = [array[:here] for array in arrays]
        return shared_sample((arrays[0], arrays[1], arrays[2]), self.place, self.team)

    # --- the search ---

    def gather(self, draws: Sequence[Draw], n_threads: int = 1) -> Gathered:
        """One pass over the rows that sums what the candidates' fits need."""
        k, m = sum(len(draw.sets) for draw in draws), draws[0].weight.shape[1]
        weights = [torch.from_numpy(draw.weight).to(self.device) for draw in draws]
        first = candidate_features(self.first(64).x, draws, weights).double()
        own = constants_of(first.mean(dim=2), first.var(dim=2, correction=0))
        constants = shared_constants(own, self.team)

        def work() -> Gathered:
            # Features, their shifted copy, and a nodal operator's pools; the features alone are kept.
            size = self.chunk_rows(4 * m * (2 * k + 8))
            cache: list[Tensor] | None = [] if size >= self.n_rows else None
            total: Sums | None = None
            for chunk in self.chunks(size):
                h = candidate_features(chunk.x, draws, weights)
                if cache is not None:
                    cache.append(h)
                shifted = (h - constants.shift[:, :, None]).mul_(constants.scale[:, :, None])
                total = _add_chunk(total, shifted, chunk)
            assert total is not None
            return Gathered(total, constants, cache)

        gathered = shrinking(self.budget, work, "a search")
        return replace(gathered, sums=shared_sums(gathered.sums, self.team))

    def score(self, shortlist: Shortlist, function: ScoreChunk, n_threads: int = 1) -> Tensor:
        """The sum of a function of the chosen candidates' features over chunks of rows."""
        draws, chosen, cache = shortlist.draws, shortlist.chosen, shortlist.cache
        needed = picked(draws, chosen)
        weights = [torch.from_numpy(draw.weight).to(self.device) for draw in needed]
        index = torch.from_numpy(chosen).to(self.device)

        def work() -> Tensor:
            total = torch.zeros(len(chosen), dtype=torch.float64, device=self.device)
            size = self.chunk_rows(4 * len(chosen) * draws[0].weight.shape[1] * 5)
            for chunk in self.chunks(size):
                if cache is not None:
                    h = cache[0][:, :, chunk.span][index]
                else:
                    h = candidate_features(chunk.x, needed, weights)
                total += function(h, chunk.accepted.T, chunk.target.T, chunk.weight)
            return total

        total = shrinking(self.budget, work, "scoring the candidates of a search")
        return self.team.add_(total, "scores of the search")


def _add_chunk(total: Sums | None, h: Tensor, chunk: Chunk) -> Sums:
    """Add the sums of a chunk; products are in single precision over a few thousand rows, then in double."""
    k, m, n = h.shape
    for start in range(0, n, SUMMED_ROWS):
        span = slice(start, min(start + SUMMED_ROWS, n))
        values, accepted, target, weight = (
            t[..., span] for t in (h, chunk.accepted, chunk.target, chunk.weight)
        )
        weighted = values * weight
        weighted_accepted = accepted * weight
        beside = torch.cat([accepted, target])
        products = (weighted.reshape(k * m, -1) @ beside.T).double()
        p = len(accepted)
        part = Sums(
            total=weighted.sum(dim=2, dtype=torch.float64),
            gram=torch.matmul(weighted, values.mT).double(),
            cross=products[:, :p].T.reshape(p, k, m).contiguous(),
            target=products[:, p:].reshape(k, m, -1).contiguous(),
            accepted_total=weighted_accepted.sum(dim=1, dtype=torch.float64),
            accepted_gram=(weighted_accepted @ accepted.T).double(),
            accepted_target=(weighted_accepted @ target.T).double(),
            target_total=(target * weight).sum(dim=1, dtype=torch.float64),
            target_square=(target.square() * weight).sum(dtype=torch.float64),
            weight=weight.sum(dtype=torch.float64),
        )
        if total is None:
            total = part
        else:
            total += part
    assert total is not None
    return total
