"""HeMLGOP and its three variants: one way to grow a layer, two switches (the paper's Section 3.2).

A layer grows block by block: search the operators of a new block, tune it, decide whether it stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self

import numpy as np

from ...network import Block, Layer, Linear, Network
from ...operators import OperatorSet
from ...rows.interface import Rows
from ...training.schedule import Outcome
from ...training.scores import Score, temperature
from ...training.settings import TuningSettings
from ..events import EpochFinished, GrowthStep, PhaseStarted
from ..footprints.blocks import BlockFootprint
from ..loop import GrownLayer, Growth, Method
from ..search import SearchResult, SearchSettings, Winner, check_result, search, solved_again
from ..settings import GrowthSettings
from .registry import declared

__all__ = ["HEMLGOP", "HEMLRN", "HOMLGOP", "HOMLRN", "BlockGrowth", "BlockMethod", "BlockSettings"]


@dataclass(frozen=True)
class BlockMethod(Method):
    """What distinguishes the methods of this family.

    Attributes
    ----------
    search_every_block : search the operator set of every block, or only of a layer's first one
    tune_blocks : tune each block by back-propagation before the next one is added
    """

    search_every_block: bool
    tune_blocks: bool
    sources: bool = field(default=True, kw_only=True)
    ranks: bool = field(default=True, kw_only=True)


@dataclass(frozen=True, kw_only=True)
class BlockSettings(GrowthSettings):
    """Sizes and thresholds of blocks, and the settings of their search and tuning.

    Attributes
    ----------
    n_min, n_step : neurons of a layer's first block, and at least of every further one
    step_share : the part of its layer so far that a further block has, where that is more
    rivals_above : a layer of more inputs than this tunes the search's best rival beside the winner
    dropouts : one value, or several of which the best on the first block is used throughout
    last_dropout : that of the final tuning; None: the same
    head_ridge : with which the head is solved anew before the final tuning, as a part of the rows; None: it
        is tuned as it is
    longer : by how much blocks are tuned for longer, at most, where there are few rows
    """

    sets: tuple[OperatorSet, ...]
    search: SearchSettings
    tuning: TuningSettings
    n_min: int = 40
    n_step: int = 20
    step_share: float = 0.0
    max_neurons: int = 200
    block_threshold: float = 1e-4
    rivals_above: int = 0
    dropouts: tuple[float, ...] = (0.0,)
    last_dropout: float | None = None
    head_ridge: float | None = None
    longer: int = 1

    def next_block(self, width: int) -> int:
        """Neurons of the next block of a layer that has so many."""
        return max(self.n_step, int(width * self.step_share)) if width else self.n_min

    def with_threads(self, n_threads: int) -> Self:
        search = replace(self.search, n_threads=n_threads)
        tuning = replace(self.tuning, n_threads=n_threads)
        return replace(super().with_threads(n_threads), search=search, tuning=tuning)


@dataclass(frozen=True)
class _Grown:
    """A trial block, the head that goes with it, and the batches that it and its rivals skipped."""

    block: Block
    head: Linear
    result: Outcome
    dropout: float = 0.0
    skipped_batches: int = 0


#: By which part a winner has to be better than a tuned rival: rivals are perceptrons, which take a fraction
#: of the time that other blocks take.
_WORTH = 0.01
#: The number of a layer, and that of a block in it, both from 1.
_Place = tuple[int, int]


class BlockGrowth(Growth):
    """Growth of layers block by block."""

    footprint = BlockFootprint
    method: BlockMethod
    settings: BlockSettings

    def begin(self) -> None:
        self.tuning = self.settings.tuning

    def grow_layer(self, number: int, parts: list[Rows]) -> GrownLayer | None:
        settings = self.settings
        blocks: list[Block] = []
        head: Linear | None = None
        score: Score | None = None
        sets: Sequence[OperatorSet] = settings.sets
        while True:
            width = sum(block.n_neurons for block in blocks)
            size = min(settings.next_block(width), settings.max_neurons - width)
            if size <= 0 or (score is not None and self.enough(score)):
                break
            n_parameters = partial(self._n_parameters, blocks, parts[0].n_inputs)
            if number == 1 and not blocks:
                size = self.first_size(size, n_parameters)
            elif self.stopped is not None or not self.room_for(n_parameters(size)):
                break
            place = number, len(blocks) + 1
            clock = self.journal.clock()
            result = self._search_block(place, size, sets, parts)
            searched = self.journal.clock()
            grown = self._tune_block(place, result, parts)
            seconds = searched - clock, self.journal.clock() - searched
            step = self._describe(place, result, grown, blocks, score, seconds)
            self._record(step)
            if not step.accepted:
                break
            blocks.append(grown.block)
            head, score = grown.head, grown.result.best
            for part in parts:
                part.accept(grown.block)
            if not self.method.search_every_block:
                sets = (grown.block.operator_set,)
        if head is None or score is None:
            return None
        return GrownLayer(Layer(blocks), head, score)

    def _n_parameters(self, blocks: Sequence[Block], n_inputs: int, size: int) -> int:
        """Parameters of the network with a new block of so many neurons beside the others of its layer."""
        width = size + sum(block.n_neurons for block in blocks)
        return self.n_parameters_with([*self.layers, blocks], size * (n_inputs + 3), width)

    def fine_tuning(self) -> TuningSettings:
        """As set, with the dropout that the first block has chosen, unless another one is set."""
        last = self.settings.last_dropout
        return replace(self.settings.fine_tuning, dropout=self.tuning.dropout if last is None else last)

    def start_fine_tuning(self, network: Network, train: Rows) -> bool:
        """Solve the head anew, with a ridge that leaves no large weights which cancel each other out.

        Heads of wide layers have such weights, and the first steps of a tuning with large rates destroy them.
        """
        ridge = self.settings.head_ridge
        if ridge is None:
            return False
        *below, last = network.layers
        for layer in below:
            for block in layer:
                train.accept(block)
            train = train.next_layer()
        *others, block = last
        for other in others:
            train.accept(other)
        solved = solved_again(train, block, ridge * train.total_weight, self.n_threads)
        if solved is not None:
            block, network.head = self._start(solved, train)
            network.layers[-1] = Layer([*others, block])
        return solved is not None

    def _search_block(
        self, place: _Place, size: int, sets: Sequence[OperatorSet], parts: list[Rows]
    ) -> SearchResult:
        """Search the operators of a new block of so many neurons."""
        train, validation = parts[0], parts[1] if len(parts) > 1 else None
        layer, number = place
        self.emit(PhaseStarted("search", layer, number, len(sets)))
        draft = self.journal.draft(f"search {layer}.{number}, {len(sets)} sets, {size} neurons")
        sizes = train.n_inputs, train.n_accepted, size, train.n_outputs
        result = draft.recall(SearchResult, lambda result: check_result(result, *sizes))
        if result is None:
            rng = np.random.default_rng([self.seed, layer, number, 0])
            settings = self.settings.search
            if train.n_inputs <= self.settings.rivals_above:
                settings = replace(settings, rivals=frozenset())
            result = search(train, sets, size, settings, rng, validation)
            draft.finish(lambda: result)
        return result

    def _tune_block(self, place: _Place, result: SearchResult, parts: list[Rows]) -> _Grown:
        """Tune the winner (the very first one with each dropout on offer) and the rival; keep one of them."""
        tuning = self.tuning
        if not self.method.tune_blocks:
            tuning = replace(tuning, learning_rates=(), epochs=())
        tunable = sum(tuning.epochs) > 0
        first = place == (1, 1) and tunable
        dropouts = list(self.settings.dropouts if first else (tuning.dropout,))
        winners = [result.winner] * len(dropouts)
        rivals = [result.rival] if result.rival is not None and tunable else []
        together = len(dropouts) == 1  # otherwise the rival follows, with the dropout that is best
        starts, drops = winners, dropouts
        if together:
            starts, drops = winners + rivals, dropouts * (1 + len(rivals))
        tried = self._tune_candidates(place, starts, parts, tuning, drops)
        best = tried[_place_of_best(tried[: len(winners)])]
        dropout = dropouts[tried.index(best)]
        if rivals and not together and self.stopped is None:
            tried += self._tune_candidates(place, rivals, parts, tuning, [dropout])
        if first:
            self.tuning = replace(self.tuning, dropout=dropout)
        if len(tried) > len(winners) and not _is_worth_more(best, tried[-1]):
            best = tried[-1]
        _fold_norm(best.block, best.head)
        skipped = sum(grown.result.skipped_batches for grown in tried)
        return replace(best, dropout=dropout, skipped_batches=skipped)

    def _tune_candidates(
        self,
        place: _Place,
        winners: Sequence[Winner],
        parts: list[Rows],
        tuning: TuningSettings,
        dropouts: Sequence[float],
    ) -> list[_Grown]:
        """Tune several starts side by side, each with its dropout."""
        layer, number = place
        names = ", ".join(f"{w.candidate.operator_set} {d}" for w, d in zip(winners, dropouts, strict=True))
        operators = winners[0].candidate.operator_set
        self.emit(PhaseStarted("tune", layer, number, sum(tuning.epochs), operators))
        starts = [self._start(winner, parts[0]) for winner in winners]
        settings = self.in_time(tuning)
        outcomes = self.tune(
            [([Layer([block])], head) for block, head in starts],
            parts,
            settings,
            np.random.default_rng([self.seed, layer, number, 1]),
            lambda epoch: self.report_epoch(EpochFinished("tune", layer, number, epoch)),
            f"tune {layer}.{number}, {names}, {settings.title}",
            dropouts,
        )
        return [_Grown(*start, outcome) for start, outcome in zip(starts, outcomes, strict=True)]

    def _describe(
        self,
        place: _Place,
        result: SearchResult,
        grown: _Grown,
        blocks: Sequence[Block],
        before: Score | None,
        seconds: tuple[float, float],
    ) -> GrowthStep:
        """What came of a new block beside the others of its layer, and whether it stays."""
        best = grown.result.best
        improvement = None if before is None else best.improvement_over(before)
        accepted = improvement is None or improvement >= self.settings.block_threshold
        network = self._network([*self.layers, Layer([*blocks, grown.block])], grown.head)
        return GrowthStep(
            "block",
            *place,
            accepted,
            best,
            improvement,
            network.n_parameters(),
            operator_set=grown.block.operator_set,
            n_neurons=grown.block.n_neurons,
            candidates=result.candidates,
            invalid_candidates=result.n_invalid,
            **(grown.result.facts() | {"skipped_batches": grown.skipped_batches}),
            dropout=grown.dropout,
            search_seconds=seconds[0],
            tuning_seconds=seconds[1],
        )

    def _start(self, winner: Winner, train: Rows) -> tuple[Block, Linear]:
        """A block with the search's weights and statistics, and the closed-form head."""
        n_inputs, size = winner.weight.shape
        block = Block(n_inputs, size, winner.candidate.operator_set)
        block.weight = winner.weight.astype(np.float32)
        block.norm.mean, block.norm.variance = (a.astype(np.float32) for a in (winner.mean, winner.variance))
        weight, bias = winner.head, winner.intercept
        if self.settings.logits:
            factor = temperature(*train.head_sample(block, weight, bias))
            weight, bias = weight * factor, bias * factor
        head = Linear(*weight.shape)
        head.weight, head.bias = weight.astype(np.float32), bias.astype(np.float32)
        return block, head


def _fold_norm(block: Block, head: Linear) -> None:
    """Move a tuned block's scale and shift into the head, which computes the same from standard features.

    The block's features are the last inputs of the head.
    """
    norm, rows = block.norm, head.weight[-block.n_neurons :]
    head.bias += (norm.shift[:, None] * rows).sum(axis=0)
    rows *= norm.scale[:, None]
    norm.scale[:], norm.shift[:] = 1.0, 0.0


def _is_worth_more(winner: _Grown, rival: _Grown) -> bool:
    """Whether a winner is so much better than a tuned rival that it is worth its time."""
    ours, other = winner.result.best, rival.result.best
    if not other.finite:  # nothing improves on what has no value
        return True
    return ours.better_than(other) and not ours.improvement_over(other) < _WORTH


def _place_of_best(tried: Sequence[_Grown]) -> int:
    """The first of those with the best score."""
    place = 0
    for number, grown in enumerate(tried):
        if grown.result.best.better_than(tried[place].result.best):
            place = number
    return place


#: Heterogeneous multilayer GOP: a new operator set and tuning for every block.
HEMLGOP = declared(BlockMethod("HeMLGOP", BlockGrowth, search_every_block=True, tune_blocks=True))
#: Homogeneous layers: the operator set of a layer's first block serves the whole layer.
HOMLGOP = declared(BlockMethod("HoMLGOP", BlockGrowth, search_every_block=False, tune_blocks=True))
#: Heterogeneous randomised network: blocks keep their random weights until the final fine-tuning.
HEMLRN = declared(BlockMethod("HeMLRN", BlockGrowth, search_every_block=True, tune_blocks=False))
#: Homogeneous randomised network.
HOMLRN = declared(BlockMethod("HoMLRN", BlockGrowth, search_every_block=False, tune_blocks=False))
