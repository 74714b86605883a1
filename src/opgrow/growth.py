"""The growth loop: search, tune, decide; block by block, layer by layer.

A method of this family is two switches (`Method`); everything else is settings. The loop prints nothing:
it emits events, and displays, checkpoints and reports listen. Random numbers are derived from the seed and
the position in the growth, so a step does not depend on how many numbers earlier steps have used.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn

from .engines import TuningData, TuningSettings, assign_block, assign_head, assign_moments
from .events import (
    EpochFinished,
    Event,
    GrowthFinished,
    GrowthStarted,
    GrowthStep,
    PhaseStarted,
    StepFinished,
)
from .kernels import compiled_features
from .kernels.threads import single_threaded_libraries
from .network import NORM_EPSILON, Block, Layer, Network
from .operators import OperatorSet
from .scores import Score, temperature
from .search import SearchResult, SearchSettings, Winner, search
from .statistics import Rows
from .tuning import TuningResult, tune

__all__ = ["Growth", "GrowthSettings", "Method", "Problem"]


@dataclass(frozen=True)
class Method:
    """What distinguishes the methods of the HeMLGOP family.

    Attributes
    ----------
    search_every_block : search the operator set of every block, or only of a layer's first one
    tune_blocks : tune each block by back-propagation before the next one is added
    """

    name: str
    search_every_block: bool
    tune_blocks: bool


@dataclass(frozen=True)
class Problem:
    """Data to grow from, standardised: inputs (N, D), targets (N, outputs), weights (N,); all float32."""

    x: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    validation: Problem | None = None

    @property
    def n_inputs(self) -> int:
        return self.x.shape[1]

    @property
    def n_outputs(self) -> int:
        return self.target.shape[1]


@dataclass(frozen=True)
class GrowthSettings:
    """Sizes, thresholds and the settings of search, tuning and final fine-tuning.

    ``dropouts`` holds one value, or several of which the best on the first block is used throughout.
    ``logits`` says that outputs are logits of classes, so a closed-form head needs a temperature.
    """

    sets: tuple[OperatorSet, ...]
    search: SearchSettings
    tuning: TuningSettings
    fine_tuning: TuningSettings
    criterion: str = "loss"
    n_min: int = 40
    n_step: int = 20
    max_neurons: int = 200
    max_layers: int = 2
    block_threshold: float = 1e-4
    layer_threshold: float = 1e-4
    dropouts: tuple[float, ...] = (0.0,)
    logits: bool = False


@dataclass
class _Part:
    """Training or validation rows during the growth of one layer."""

    x: np.ndarray
    accepted: np.ndarray
    target: np.ndarray
    weight: np.ndarray

    def rows(self) -> Rows:
        return Rows(self.x, self.accepted, self.target, self.weight)

    def tuning_data(self) -> TuningData:
        return TuningData(self.x, self.accepted, self.target, self.weight)

    def accept(self, block: Block, n_threads: int) -> None:
        self.accepted = np.concatenate([self.accepted, _standard_features(block, self.x, n_threads)], axis=1)

    def next_layer(self) -> _Part:
        return _Part(self.accepted, self.accepted[:, :0], self.target, self.weight)


@dataclass(frozen=True)
class _Grown:
    """A trial block with the head that goes with it."""

    block: Block
    head: nn.Linear
    result: TuningResult


class Growth:
    """One run of growth; `run` returns the network, ``steps`` tells how it came about."""

    def __init__(
        self,
        problem: Problem,
        method: Method,
        settings: GrowthSettings,
        seed: int,
        emit: Callable[[Event], None] = lambda event: None,
    ) -> None:
        self.problem, self.method, self.settings, self.seed, self.emit = problem, method, settings, seed, emit
        self.n_threads = settings.search.n_threads
        self.steps: list[GrowthStep] = []
        self.tuning = settings.tuning
        # What is kept so far: layers, their head and its score.
        self.layers: list[Layer] = []
        self.head: nn.Linear | None = None
        self.score: Score | None = None

    def run(self) -> Network:
        """Grow, fine-tune and return the network."""
        with single_threaded_libraries():
            return self._run()

    def _run(self) -> Network:
        started = time.perf_counter()
        problem, settings = self.problem, self.settings
        validation = problem.validation
        self.emit(
            GrowthStarted(
                self.method.name,
                len(problem.x),
                0 if validation is None else len(validation.x),
                problem.n_inputs,
                problem.n_outputs,
                settings.criterion,
            )
        )
        parts = [_first_part(p) for p in (problem, validation) if p is not None]
        for number in range(1, settings.max_layers + 1):
            layer, head, score = self._grow_layer(number, parts)
            if not self._decide_layer(number, layer, head, score):
                break
            parts = [part.next_layer() for part in parts]
        self._fine_tune()
        network = self._network(self.layers, self.head)
        assert self.score is not None
        self.emit(GrowthFinished(network, self.score, time.perf_counter() - started))
        return network

    # --- layers ---

    def _grow_layer(self, number: int, parts: list[_Part]) -> tuple[Layer, nn.Linear, Score]:
        settings = self.settings
        blocks: list[Block] = []
        head: nn.Linear | None = None
        score: Score | None = None
        sets: Sequence[OperatorSet] = settings.sets
        while True:
            width = sum(block.n_neurons for block in blocks)
            size = min(settings.n_step if blocks else settings.n_min, settings.max_neurons - width)
            if size <= 0 or (score is not None and score.perfect):
                break
            grown, step = self._grow_block(number, len(blocks) + 1, size, sets, parts, blocks, score)
            self._record(step)
            if not step.accepted:
                break
            blocks.append(grown.block)
            head, score = grown.head, grown.result.best
            for part in parts:
                part.accept(grown.block, self.n_threads)
            if not self.method.search_every_block:
                sets = (grown.block.operator_set,)
        assert head is not None
        assert score is not None
        return Layer(blocks), head, score

    def _decide_layer(self, number: int, layer: Layer, head: nn.Linear, score: Score) -> bool:
        """Keep a finished layer or throw it away; the first one always stays."""
        improvement = None if self.score is None else score.improvement_over(self.score)
        accepted = improvement is None or improvement >= self.settings.layer_threshold
        size = self._network([*self.layers, layer], head).n_parameters()
        self._record(
            GrowthStep("layer", number, 0, accepted, score, improvement, size, n_neurons=layer.n_neurons)
        )
        if accepted:
            self.layers.append(layer)
            self.head, self.score = head, score
        return accepted and not score.perfect

    # --- blocks ---

    def _grow_block(
        self,
        layer: int,
        number: int,
        size: int,
        sets: Sequence[OperatorSet],
        parts: list[_Part],
        blocks: Sequence[Block],
        before: Score | None,
    ) -> tuple[_Grown, GrowthStep]:
        settings = self.settings
        train, validation = parts[0], parts[1] if len(parts) > 1 else None
        self.emit(PhaseStarted("search", layer, number, len(sets)))
        clock = time.perf_counter()
        found = search(
            train.rows(),
            sets,
            size,
            settings.search,
            np.random.default_rng([self.seed, layer, number, 0]),
            validation.rows() if validation else None,
        )
        searched = time.perf_counter() - clock
        tuning = (
            self.tuning if self.method.tune_blocks else replace(self.tuning, learning_rates=(), epochs=())
        )
        clock = time.perf_counter()
        grown, dropout = self._tune_block(layer, number, found, train, validation, tuning)
        improvement = None if before is None else grown.result.best.improvement_over(before)
        accepted = improvement is None or improvement >= settings.block_threshold
        size_with = self._network([*self.layers, Layer([*blocks, grown.block])], grown.head).n_parameters()
        step = GrowthStep(
            "block",
            layer,
            number,
            accepted,
            grown.result.best,
            improvement,
            size_with,
            operator_set=grown.block.operator_set,
            n_neurons=size,
            candidates=found.candidates,
            invalid_candidates=found.n_invalid,
            curve=grown.result.curve,
            best_epoch=grown.result.best_epoch,
            skipped_batches=grown.result.skipped_batches,
            dropout=dropout,
            search_seconds=searched,
            tuning_seconds=time.perf_counter() - clock,
        )
        return grown, step

    def _tune_block(
        self,
        layer: int,
        number: int,
        found: SearchResult,
        train: _Part,
        validation: _Part | None,
        tuning: TuningSettings,
    ) -> tuple[_Grown, float]:
        """Tune the winner (the very first one with each dropout on offer) and the rival; keep the best."""
        tunable = sum(tuning.epochs) > 0
        first = layer == number == 1 and tunable
        dropouts = self.settings.dropouts if first else (tuning.dropout,)
        dropout = dropouts[0]
        best = self._tune_candidate(layer, number, found.winner, train, validation, tuning, dropout)
        for value in dropouts[1:]:
            grown = self._tune_candidate(layer, number, found.winner, train, validation, tuning, value)
            if grown.result.best.better_than(best.result.best):
                best, dropout = grown, value
        if found.rival is not None and tunable:
            grown = self._tune_candidate(layer, number, found.rival, train, validation, tuning, dropout)
            best = grown if grown.result.best.better_than(best.result.best) else best
        if first:
            self.tuning = replace(self.tuning, dropout=dropout)
        _fold_norm(best.block, best.head)
        return best, dropout

    def _tune_candidate(
        self,
        layer: int,
        number: int,
        winner: Winner,
        train: _Part,
        validation: _Part | None,
        tuning: TuningSettings,
        dropout: float,
    ) -> _Grown:
        self.emit(PhaseStarted("tune", layer, number, sum(tuning.epochs), winner.candidate.operator_set))
        block, head = self._start(winner, train)
        result = tune(
            [Layer([block])],
            head,
            train.tuning_data(),
            replace(tuning, dropout=dropout),
            self.settings.criterion,
            np.random.default_rng([self.seed, layer, number, 1]),
            validation.tuning_data() if validation else None,
            lambda epoch: self.emit(EpochFinished("tune", layer, number, epoch)),
        )
        return _Grown(block, head, result)

    def _start(self, winner: Winner, train: _Part) -> tuple[Block, nn.Linear]:
        """A block with the search's weights and statistics, and the closed-form head."""
        n_inputs, size = winner.weight.shape
        block = Block(n_inputs, size, winner.candidate.operator_set)
        assign_block(block, winner.weight, np.zeros(size), np.ones(size), np.zeros(size))
        assign_moments(block, winner.mean, winner.variance)
        weight, bias = winner.head, winner.intercept
        if self.settings.logits:
            features = np.concatenate(
                [train.accepted, _standard_features(block, train.x, self.n_threads)], axis=1
            )
            outputs = features @ weight.astype(np.float32) + bias.astype(np.float32)
            factor = temperature(outputs, train.target, train.weight)
            weight, bias = weight * factor, bias * factor
        head = nn.Linear(*weight.shape)
        assign_head(head, weight, bias)
        return block, head

    # --- the end ---

    def _fine_tune(self) -> None:
        """Tune everything at once; kept only if the score improves."""
        settings = replace(self.settings.fine_tuning, dropout=self.tuning.dropout)
        if not sum(settings.epochs):
            return
        assert self.score is not None
        problem, validation = self.problem, self.problem.validation
        self.emit(PhaseStarted("fine-tune", len(self.layers), 0, sum(settings.epochs)))
        clock = time.perf_counter()
        network = self._network(self.layers, self.head)
        result = tune(
            network.hidden,
            network.head,
            _whole(problem),
            settings,
            self.settings.criterion,
            np.random.default_rng([self.seed, 0, 0, 2]),
            None if validation is None else _whole(validation),
            lambda epoch: self.emit(EpochFinished("fine-tune", len(self.layers), 0, epoch)),
        )
        accepted = result.best_epoch > 0 and result.best.better_than(self.score)
        improvement = result.best.improvement_over(self.score)
        if accepted:
            self.layers, self.head, self.score = network.hidden, network.head, result.best
        self._record(
            GrowthStep(
                "fine-tune",
                len(self.layers),
                0,
                accepted,
                result.best,
                improvement,
                network.n_parameters(),
                curve=result.curve,
                best_epoch=result.best_epoch,
                skipped_batches=result.skipped_batches,
                dropout=settings.dropout,
                tuning_seconds=time.perf_counter() - clock,
            )
        )

    def _network(self, layers: Sequence[Layer], head: nn.Linear | None) -> Network:
        """A network of copies, so that nothing tried later reaches what is kept."""
        network = Network(
            self.problem.n_inputs, self.problem.n_outputs, [_copy_layer(layer) for layer in layers]
        )
        assert head is not None
        network.head.load_state_dict(head.state_dict())
        return network.eval()

    def _record(self, step: GrowthStep) -> None:
        self.steps.append(step)
        self.emit(StepFinished(step))


def _first_part(problem: Problem) -> _Part:
    nothing = np.zeros((len(problem.x), 0), np.float32)
    return _Part(problem.x, nothing, problem.target, problem.weight)


def _whole(problem: Problem) -> TuningData:
    return _first_part(problem).tuning_data()


def _standard_features(block: Block, x: np.ndarray, n_threads: int) -> np.ndarray:
    """Features of a block whose scale is 1 and shift is 0, as the accepted ones are."""
    raw = compiled_features(
        x, block.weight.detach().numpy(), block.bias.detach().numpy(), block.operator_set, n_threads
    )
    assert block.norm.running_mean is not None
    assert block.norm.running_var is not None
    raw -= block.norm.running_mean.numpy()
    raw /= np.sqrt(block.norm.running_var.numpy() + np.float32(NORM_EPSILON))
    return raw


def _fold_norm(block: Block, head: nn.Linear) -> None:
    """Move a tuned block's scale and shift into the head, which computes the same from standard features."""
    with torch.no_grad():
        columns = head.weight[:, -block.n_neurons :]
        head.bias.add_(columns @ block.norm.bias)
        columns.mul_(block.norm.weight)
        block.norm.weight.fill_(1.0)
        block.norm.bias.zero_()


def _copy_layer(layer: Layer) -> Layer:
    copies = []
    for block in layer:
        copy = Block(block.n_inputs, block.n_neurons, block.operator_set)
        copy.load_state_dict(block.state_dict())
        copies.append(copy)
    return Layer(copies)
