"""The growth loop that all methods share: a layer, a decision, the next layer; at the end fine-tuning.

A method is a declaration (`Method`) that names the class which runs it; such a class says in `grow_layer` how
one layer comes about. The loop prints nothing: it emits events, and displays, checkpoints and reports listen.
Random numbers are derived from the seed and the position in the growth, so a step does not depend on how many
numbers earlier steps have used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from ..common.errors import NotFiniteError
from ..common.team import ALONE, Alone
from ..network import Block, Head, Layer, Network
from ..network.tensors import to_tensors
from ..rows.problem import Problem
from ..training.candidates import Candidates
from ..training.draft import Draft
from ..training.schedule import Epoch, Outcome
from ..training.scores import Score, nothing_left
from ..training.settings import TuningSettings, scored_apart
from ..training.train import Training
from .checkpoints import Journal
from .engine import Engine, NativeEngine
from .events import (
    EpochFinished,
    Event,
    GrowthFinished,
    GrowthStarted,
    GrowthStep,
    PhaseStarted,
    StepFinished,
    StopGrowth,
)
from .footprints import Footprint
from .settings import GrowthSettings
from .size_limit import SizeLimit

__all__ = [
    "GrownLayer",
    "Growth",
    "Method",
]


@dataclass(frozen=True)
class Method:
    """A method's name and the class that runs it; a family adds what its members differ in.

    Attributes
    ----------
    sources : whether it grows from rows that are read in chunks
    ranks : whether several processes can grow a network together
    """

    name: str
    growth: type[Growth]
    sources: bool = field(default=False, kw_only=True)
    ranks: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class GrownLayer:
    """A finished layer, the head on top of it, and the score of the network with both."""

    layer: Layer
    head: Head
    score: Score

    @property
    def n_neurons(self) -> int:
        return self.layer.n_neurons


class Growth(ABC):
    """One run of growth; `run` returns the network, ``steps`` tells how it came about.

    A method overrides `grow_layer` and, where it differs, `layers_with`, `next_part` and `fine_tuning`.
    Before it adds anything it looks at `stopped`, and asks `room_for` or `first_size` how much it may add.

    Attributes
    ----------
    journal : the work that earlier runs of this growth have done, and where this one's is kept
    limit : how many parameters the network may have, and whether it has room for more
    """

    #: Whether the head sees all layers, and not only the last.
    broad: ClassVar[bool] = False
    #: How much its networks and their growth take at most.
    footprint: ClassVar[type[Footprint[Any, Any]]]

    def __init__(
        self,
        problem: Problem,
        method: Method,
        settings: GrowthSettings,
        seed: int,
        emit: Callable[[Event], None] = lambda event: None,
        engine: Engine | None = None,
        team: Alone = ALONE,
        journal: Journal | None = None,
    ) -> None:
        self.problem, self.method, self.settings, self.seed = problem, method, settings, seed
        self._listener = emit
        self.journal = Journal() if journal is None else journal
        self.n_threads = settings.n_threads
        self.engine: Engine = NativeEngine(settings.n_threads) if engine is None else engine
        self.team = team
        self.steps: list[GrowthStep] = []
        # What is kept so far: layers, their head and its score.
        self.layers: list[Layer] = []
        self.head: Head | None = None
        self.score: Score | None = None
        self.limit = SizeLimit(settings.max_parameters)
        self.begin()

    @property
    def stopped(self) -> str | None:
        """Why a listener has ended the growth: nothing is added, tuned or tried any more; else None."""
        return self.journal.stopped

    def run(self) -> Network:
        """Grow, fine-tune and return the network."""
        started = self.journal.clock()
        with self.engine.running():
            self.emit(self._started())
            parts = self._parts(self.problem.sketch or self.problem)
            for number in range(1, self.settings.max_layers + 1):
                grown = self.grow_layer(number, parts)
                last = number == self.settings.max_layers
                if grown is None or not self._decide_layer(number, grown) or last or self.stopped is not None:
                    break
                parts = [self.next_part(part, grown) for part in parts]
            self._fine_tune()
        network = self._network(self.layers, self.head)
        assert self.score is not None
        self._check_finite(network, self.score)
        reason = self.stopped or self.limit.reached
        self.steps[-1] = replace(self.steps[-1], stopped=reason)
        self.emit(GrowthFinished(network, self.score, self.journal.clock() - started, stopped=reason))
        return network

    def _started(self) -> GrowthStarted:
        problem, validation = self.problem, self.problem.validation
        return GrowthStarted(
            self.method.name,
            problem.n_rows,
            0 if validation is None else validation.n_rows,
            problem.n_inputs,
            problem.n_outputs,
            self.settings.criterion,
        )

    def _parts(self, train: Problem) -> list[Any]:
        """Training rows and, where there are some, the validation rows as the first layer sees them."""
        problems = (train, self.problem.validation)
        return [self.engine.rows(p, self.team) for p in problems if p is not None]

    # --- what methods say ---

    def begin(self) -> None:  # noqa: B027 (most have nothing to keep)
        """Set what a method keeps for itself while it grows."""

    @abstractmethod
    def grow_layer(self, number: int, parts: list[Any]) -> GrownLayer | None:
        """Grow layer ``number``, from 1, on the training rows and, where there are some, validation rows.

        The first layer always is. None: there is no room for another one, or no time.
        """

    def layers_with(self, grown: GrownLayer) -> list[Layer]:
        """All layers of the network that ``grown`` makes."""
        return [*self.layers, grown.layer]

    def next_part(self, part: Any, grown: GrownLayer) -> Any:
        """The rows as the layer after ``grown`` sees them."""
        return part.next_layer()

    def fine_tuning(self) -> TuningSettings:
        """Settings of the final fine-tuning; no epochs turn it off."""
        return self.settings.fine_tuning

    def start_fine_tuning(self, network: Network, train: Any) -> bool:
        """Prepare a copy of what has grown for its final tuning on these rows; whether it is another now."""
        return False

    def enough(self, score: Score) -> bool:
        """Whether a score is so good that the growth ends."""
        target = self.settings.target
        return nothing_left(self.settings.criterion, score.value) or (
            target is not None and score.reaches(target)
        )

    # --- what methods ask ---

    def emit(self, event: Event) -> None:
        """Tell the listener, who may end the growth."""
        try:
            self._listener(event)
        except StopGrowth as stop:
            self.journal.stopped = self.stopped or str(stop) or "a callback has stopped it"

    def report_epoch(self, event: EpochFinished) -> bool:
        """Tell of an epoch; whether the tuning is to end with it."""
        self.emit(event)
        return self.stopped is not None

    def tune(
        self,
        networks: Sequence[tuple[Sequence[Layer], Head]],
        parts: list[Any],
        settings: TuningSettings,
        rng: np.random.Generator,
        on_epoch: Callable[[Epoch], bool | None],
        title: str,
        dropouts: Sequence[float] | None = None,
    ) -> list[Outcome]:
        """Tune layers with their heads, several of equal sizes side by side; each is left in its best state.

        ``dropouts`` has one for each of them, in place of that of the settings. Without epochs, only the
        statistics and scores are taken.
        """
        dropouts = [settings.dropout] * len(networks) if dropouts is None else dropouts
        candidates = Candidates.of_networks(networks, parts[0].n_accepted, dropouts)
        draft = self.journal.draft(title)
        trained = self.engine.train(self.training(candidates, parts, settings, rng, on_epoch, draft))
        for k, (layers, head) in enumerate(networks):
            candidates.shapes[k].restore(trained.theta[k], trained.moments[:, k], layers, head)
        return trained.outcomes

    def training(
        self,
        candidates: Candidates,
        parts: list[Any],
        settings: TuningSettings,
        rng: np.random.Generator,
        on_epoch: Callable[[Epoch], bool | None],
        draft: Draft,
        exact: bool = True,
    ) -> Training:
        """How candidates are trained on the first part; they are scored on the last."""
        criterion = self.settings.criterion
        settings = settings if len(parts) == 1 else scored_apart(settings)
        trainer = self.engine.trainer(candidates, parts[0], settings, criterion)
        return Training(
            trainer, candidates, parts[0], parts[-1], settings, criterion, rng, exact, on_epoch, draft
        )

    def in_time(self, settings: TuningSettings) -> TuningSettings:
        """Settings of a tuning, which has no epochs any more once the growth is stopped."""
        return settings if self.stopped is None else replace(settings, learning_rates=(), epochs=())

    def n_parameters_with(self, layers: Iterable[Iterable[Block]], new: int, width: int) -> int:
        """Parameters of these layers, of ``new`` ones, and of a head that sees ``width`` features."""
        hidden = sum(block.n_parameters() for layer in layers for block in layer)
        return hidden + new + (width + 1) * self.problem.n_outputs

    def room_for(self, n_parameters: int) -> bool:
        """Whether the network may have so many parameters; if not, that is why it grows no more."""
        return self.limit.allows(n_parameters)

    def first_size(self, wanted: int, n_parameters: Callable[[int], int]) -> int:
        """Neurons of a network's first part, as `SizeLimit.first_size` has it."""
        return self.limit.first_size(wanted, n_parameters, self.method.name, self.problem)

    # --- the loop's own steps ---

    def _decide_layer(self, number: int, grown: GrownLayer) -> bool:
        """Keep a finished layer or throw it away; the first one always stays. Whether to go on."""
        layers, head, score = self.layers_with(grown), grown.head, grown.score
        improvement = None if self.score is None else score.improvement_over(self.score)
        accepted = improvement is None or improvement >= self.settings.layer_threshold
        size, neurons = self._network(layers, head).n_parameters(), grown.n_neurons
        self._record(GrowthStep("layer", number, 0, accepted, score, improvement, size, n_neurons=neurons))
        if accepted:
            self.layers, self.head, self.score = layers, head, score
        return accepted and not self.enough(score)

    def _fine_tune(self) -> None:
        """Tune everything at once, on all rows; kept only if the score improves."""
        settings = self.fine_tuning()
        assert self.score is not None
        over = self.stopped is not None or nothing_left(self.settings.criterion, self.score.value)
        if over or not (sum(settings.epochs) or self.problem.sketch):
            return
        self.emit(PhaseStarted("fine-tune", len(self.layers), 0, sum(settings.epochs)))
        clock = self.journal.clock()
        network = self._network(self.layers, self.head)
        changed = self.start_fine_tuning(network, self._parts(self.problem)[0])
        [result] = self.tune(
            [(network.layers, network.head)],
            self._parts(self.problem),
            settings,
            np.random.default_rng([self.seed, 0, 0, 2]),
            lambda epoch: self.report_epoch(EpochFinished("fine-tune", len(self.layers), 0, epoch)),
            f"fine-tune, {settings.title}",
        )
        accepted = (changed or result.best_epoch > 0) and result.best.better_than(self.score)
        improvement = result.best.improvement_over(self.score)
        if accepted:
            self.layers, self.head, self.score = network.layers, network.head, result.best
        self._record(
            GrowthStep(
                "fine-tune",
                len(self.layers),
                0,
                accepted,
                result.best,
                improvement,
                network.n_parameters(),
                **result.facts(),
                dropout=settings.dropout,
                tuning_seconds=self.journal.clock() - clock,
            )
        )

    def _network(self, layers: Sequence[Layer], head: Head | None) -> Network:
        """A network of copies, so that nothing tried later reaches what is kept."""
        assert head is not None
        network = Network(
            self.problem.n_inputs,
            self.problem.n_outputs,
            [deepcopy(layer) for layer in layers],
            head_operators=head.operator_set if isinstance(head, Block) else None,
            broad=self.broad,
        )
        network.head = deepcopy(head)
        return network

    def _check_finite(self, network: Network, score: Score) -> None:
        """Refuse a network that cannot predict, which only values far from all others can bring about."""
        if score.finite and all(np.isfinite(array).all() for array in to_tensors(network).values()):
            return
        rows = "training" if self.problem.validation is None else "validation"
        raise NotFiniteError(
            f"the network that {self.method.name} has grown overflows on the {rows} rows; check them for "
            "values that are too large or far from the others, and let inputs be standardised"
        )

    def _record(self, step: GrowthStep) -> None:
        self.steps.append(step)
        self.emit(StepFinished(step))
