"""The backend of one rank: another backend's work on its shard, with sums over all ranks.

Every number that decides something is a sum over all ranks, and then the same code runs everywhere. Ranks
therefore take the same decisions without asking each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from ..engine.dispatch import Array
from ..growth.backends import HostBackend
from ..growth.chunk_backend import StreamBackend
from ..network import Block
from ..network.scaling import Scaling
from ..rows.chunks.part import StreamPart
from ..rows.memory import HostPart
from ..rows.preparation import moments
from ..rows.problem import Problem, sample_rows
from ..rows.search_sums import Draw, Gathered, Provisional, ScoreChunk, SearchRows, Sums
from ..training.candidates import Candidates
from ..training.settings import TuningSettings, is_plain
from ..training.train import TrainedCandidates, Trainer, Training, train
from .cells import CellPart, cell_cuts
from .group import Group
from .training import RanksTrainer, RanksWindows, ranks_batches

if TYPE_CHECKING:
    from .ranks import SharedRanks

__all__ = ["DistributedBackend", "ShardPart", "ShardProblem", "ShardRows"]


@dataclass(frozen=True, kw_only=True)
class ShardProblem(Problem):
    """A rank's share of a problem.

    Attributes
    ----------
    numbers : (rows here,) int64, the number of each row among those of all ranks
    first : training (or validation) rows on the ranks before this one; total_rows : on all of them
    cuts : rows here at which another cell begins
    """

    numbers: np.ndarray
    first: int
    total_rows: int
    cuts: tuple[int, ...] = ()

    @property
    def n_rows(self) -> int:
        return self.total_rows


@dataclass(frozen=True)
class ShardRows:
    """Rows of all ranks as the search sees them."""

    inner: SearchRows
    group: Group
    total_weight: float

    @property
    def n_inputs(self) -> int:
        return self.inner.n_inputs

    @property
    def n_rows(self) -> int:
        """Those here: it says how much there is to compute."""
        return self.inner.n_rows

    def gather(self, draws: Sequence[Draw], n_threads: int) -> Gathered:
        found = self.inner.gather(draws, n_threads, self._constants)
        return replace(found, sums=_added(found.sums, self.group))

    def _constants(self, constants: Provisional) -> Provisional:
        """Those of rank 0, for sums can only be added after the same shift and scale."""
        both = torch.stack([torch.as_tensor(part) for part in (constants.shift, constants.scale)])
        shift, scale = self.group.broadcast_(both, "constants of the search")
        return Provisional(_like(shift, constants.shift), _like(scale, constants.scale))

    def score(
        self,
        draws: Sequence[Draw],
        chosen: np.ndarray,
        cache: list[Array] | None,
        function: ScoreChunk,
        n_threads: int,
    ) -> Array:
        total = self.inner.score(draws, chosen, cache, function, n_threads)
        return _like(self.group.sum_(torch.as_tensor(total), "scores of the search"), total)


def _like(tensor: Tensor, array: Array) -> Array:
    """A tensor, as an array where the others are such."""
    return tensor.numpy() if isinstance(array, np.ndarray) else tensor


def _added(sums: Sums, group: Group) -> Sums:
    """Sums over all ranks, sent as one vector."""
    parts = [getattr(sums, entry.name) for entry in fields(sums)]
    tensors = [torch.as_tensor(part) for part in parts]
    flat = group.sum_(torch.cat([tensor.reshape(-1) for tensor in tensors]), "sums of the search")
    pieces = flat.split([tensor.numel() for tensor in tensors])
    return Sums(*(_like(piece.reshape(part.shape), part) for piece, part in zip(pieces, parts, strict=True)))


@dataclass
class ShardPart:
    """Training or validation rows of all ranks; ``inner`` are those here."""

    inner: Any
    group: Group
    numbers: np.ndarray
    first: int
    total_rows: int
    total_weight: float

    @property
    def cuts(self) -> tuple[int, ...]:
        """Rows here at which another cell begins."""
        return getattr(self.inner, "cuts", ())

    @property
    def sample_part(self) -> ShardPart:
        """The ranks' samples, where these are not all their rows."""
        inner = self.inner.sample_part
        if inner is self.inner:
            return self
        return replace(self, inner=inner, total_weight=self._sample_weight)

    @cached_property
    def _sample_weight(self) -> float:
        return float(self.group.sum(self.inner.sample_part.total_weight, "moments"))

    def sum(self, function: Callable[[Any], np.ndarray], n_candidates: int, width: int) -> np.ndarray:
        """The sum over the rows of all ranks."""
        return self.group.sum(self.inner.sum(function, n_candidates, width), "statistics and scores")

    @property
    def n_inputs(self) -> int:
        return self.inner.n_inputs

    @property
    def n_accepted(self) -> int:
        return self.inner.n_accepted

    @property
    def n_outputs(self) -> int:
        return self.inner.n_outputs

    def accept(self, block: Block) -> None:
        chosen = f"{block.n_neurons} x {block.operator_set}"
        said = self.group.texts(chosen, "decisions")
        if set(said) != {chosen}:
            raise RuntimeError(
                f"the ranks have grown apart: they chose {', '.join(said)}; all must run on machines of "
                "one kind, with the same versions"
            )
        self.inner.accept(block)

    def accept_computed(self, blocks: Sequence[Block], outputs: Any) -> None:
        self.inner.accept_computed(blocks, outputs)

    def next_layer(self) -> ShardPart:
        return replace(self, inner=self.inner.next_layer())

    def bare(self) -> ShardPart:
        return replace(self, inner=self.inner.bare())

    def remember(self, blocks: Sequence[Block], before: ShardPart) -> None:
        self.inner.remember(blocks, before.inner)

    def rows(self) -> ShardRows:
        return ShardRows(self.inner.rows(), self.group, self.sample_part.total_weight)

    def sample(
        self, block: Block, weight: np.ndarray, bias: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Outputs, targets and weights of the first rows of all ranks, wherever they are."""
        size, n_outputs = min(sample_rows(self.n_outputs), self.total_rows), self.n_outputs
        here = min(max(size - self.first, 0), len(self.numbers))
        beside = np.zeros((size, 2 * n_outputs + 1), np.float32)
        if here:
            outputs, target, share = self.inner.sample(block, weight, bias)
            found = np.concatenate([outputs[:here], target[:here], share[:here, None]], axis=1)
            beside[self.first : self.first + here] = found
        self.group.sum_(torch.from_numpy(beside), "sample of rows")
        return beside[:, :n_outputs], beside[:, n_outputs:-1], beside[:, -1]


class DistributedBackend:
    """Rows of all ranks, of which each holds some."""

    spreads_over_workers: ClassVar[bool] = False

    def __init__(self, inner: Any, ranks: SharedRanks) -> None:
        self.inner, self.ranks, self.group = inner, ranks, ranks.group

    @property
    def matrices(self) -> Any:
        raise NotImplementedError("closed-form fits of PLN and BLS do not run on several ranks")

    def running(self) -> AbstractContextManager[None]:
        return self.inner.running()

    def beside(self, n_networks: int) -> tuple[DistributedBackend, int, int]:
        return self, 1, getattr(self.inner, "n_threads", 1)

    def member(self) -> AbstractContextManager[None]:
        return nullcontext()

    def moments(
        self, x: np.ndarray, rows: np.ndarray | None, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        return moments(x, weight, rows=rows, ranks=self.ranks)

    def problem(
        self,
        x: np.ndarray,
        rows: np.ndarray | None,
        target: np.ndarray,
        weight: np.ndarray,
        scaling: Scaling,
        validation: Problem | None,
    ) -> ShardProblem:
        sizes, held = self.group.numbers(len(x), "sizes"), self.group.numbers(len(target), "sizes")
        empty = next((rank for rank, n in enumerate(held) if n == 0), None)
        if empty is not None:
            raise ValueError(
                f"rank {empty} has none of the {sum(held)} training or validation rows: give every rank more "
                "rows, or use fewer ranks"
            )
        before = sum(sizes[: self.group.rank])
        numbers = np.arange(len(x)) if rows is None else np.asarray(rows, np.int64)
        inner = self.ranks.together(lambda: self.inner.problem(x, rows, target, weight, scaling, validation))
        return ShardProblem(
            **{entry.name: getattr(inner, entry.name) for entry in fields(inner)},
            numbers=numbers + before,
            cuts=cell_cuts(numbers + before, sum(sizes)),
            first=sum(held[: self.group.rank]),
            total_rows=sum(held),
        )

    def part(self, problem: ShardProblem) -> ShardPart:
        inner = self.inner.part(problem)
        weight = float(self.group.sum(inner.total_weight, "moments"))
        if isinstance(inner, StreamPart):
            inner = replace(inner, sample_rows=CellPart(**vars(inner.sample_rows)))
        elif isinstance(inner, HostPart):
            inner = CellPart(**vars(inner), cuts=problem.cuts)
        return ShardPart(inner, self.group, problem.numbers, problem.first, problem.total_rows, weight)

    def forget(self, problem: Problem) -> None:
        self.inner.forget(problem)

    def trainer(
        self, candidates: Candidates, train: ShardPart, settings: TuningSettings, criterion: str
    ) -> Trainer:
        inner, device = train.inner, "cpu"
        windows = RanksWindows(train)
        if isinstance(self.inner, StreamBackend):
            nothing = inner.sample_rows.training_rows(slice(0, 0))
            windows = RanksWindows(train, self.inner.windows(inner), nothing)
        on_host = isinstance(self.inner, HostBackend)
        if on_host and candidates.compilable and is_plain(settings):
            return RanksTrainer(candidates, windows, self.group, settings, criterion)
        from ..training.reference import ReferenceTrainer

        return ReferenceTrainer(
            candidates,
            windows,
            settings,
            criterion,
            device if on_host else inner.device,
            ranks_batches(settings.batch_size, self.group),
            self.group.sum_,
            fused=not on_host,
        )

    def train(self, training: Training) -> TrainedCandidates:
        return train(training)

    def group_size(self, candidates: Candidates, train: ShardPart, settings: TuningSettings) -> int:
        raise NotImplementedError("populations of POP do not train on several ranks")
