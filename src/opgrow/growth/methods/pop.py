"""POP, its fast and remembering variants, and PMLP: layers of a given width, one after the other.

A new hidden layer is trained with a head of its own, once for every operator set in question, and the best
one stays (`opgrow.training.population`). Then the head is discarded, the layer is frozen, and the next one
grows on its outputs.

* POP: the head consists of GOP neurons, too. Which operators go with which is found greedily: a random set
  for the hidden layer, then the best for the head, then the best for the hidden layer, and both once more.
* POPfast: the head is linear, so one pass finds the operators.
* POPmemO and POPmemH: POPfast with a linear memory of what a layer has seen. In O the projection of a layer's
  inputs stands beside its neurons. In H it is put beside them only when a further layer is to see it.
* PMLP: perceptrons, so there is nothing to find.

References: Kiranyaz et al., "Progressive operational perceptrons", Neurocomputing 2017; Tran et al.,
"Progressive operational perceptron with memory", arXiv 1808.06377.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...closed_form.linear_memory import projection
from ...common.errors import NotFiniteError
from ...network import Block, Head, Layer
from ...operators import OperatorSet
from ...rows.interface import WholeRows
from ...training.population import Member, MemberOutcome, Start, Trained, draw_start, modules_of
from ...training.schedule import Outcome
from ...training.settings import TuningSettings
from ..events import EpochFinished, GrowthStep, PhaseStarted
from ..footprints.layers import LayerFootprint
from ..loop import GrownLayer, Growth, Method
from ..search import Candidate
from ..settings import GrowthSettings
from .population_pass import PopulationPass
from .registry import declared

__all__ = ["PMLP", "POP", "POPFAST", "POPMEMH", "POPMEMO", "POPGrowth", "POPMethod", "POPSettings"]

#: Passes of POP's search: twice the head, twice the hidden layer.
_PASSES = 4


@dataclass(frozen=True)
class POPMethod(Method):
    """What distinguishes the methods of this family.

    Attributes
    ----------
    neurons_in_head : the head has operators, too, and is not linear
    memory : where a projection of a layer's inputs goes: "output" or "hidden" (see above), or None
    """

    neurons_in_head: bool = False
    memory: str | None = None


@dataclass(frozen=True, kw_only=True)
class POPSettings(GrowthSettings):
    """Widths of the layers, what to search, and how candidates are trained.

    ``weight_range`` None is 1.5 / sqrt(inputs). ``memory`` is "pca" or "lda".
    """

    sets: tuple[OperatorSet, ...]
    tuning: TuningSettings
    widths: tuple[int, ...]
    weight_range: float | None = None
    memory: str = "pca"
    memory_energy: float = 0.98
    memory_ridge: float = 0.1


class POPGrowth(Growth):
    """Growth by whole layers."""

    footprint = LayerFootprint
    method: POPMethod
    settings: POPSettings

    def begin(self) -> None:
        # For the memory "hidden": the rows as the layer before has seen them, and that layer with its memory.
        self.before: list[WholeRows] = []
        self.remembering: Layer | None = None

    def grow_layer(self, number: int, parts: list[WholeRows]) -> GrownLayer | None:
        """Train a layer of the given width for every operator set in question, and keep the best."""
        blocks: list[Block] = []
        if self.method.memory == "output":
            blocks = self._memory(parts[0])
            for part, block in itertools.product(parts, blocks):
                part.accept(block)
        elif self.method.memory == "hidden" and number > 1:
            self._remember(parts)
        width = self._width(number, parts[0], blocks)
        if width is None:
            return None
        self.before = [part.bare() for part in parts]
        if len(self.settings.sets) == 1 and not self.method.neurons_in_head:
            trained, result = self._train_alone(number, width, parts, blocks)
        else:
            trained = self._search(number, width, parts, blocks)
            result = self._tune(
                trained.block, trained.head, parts, replace(self.settings.tuning, **_NO_EPOCHS)
            )
        for part in parts:
            part.accept(trained.block)
        return GrownLayer(Layer([*blocks, trained.block]), trained.head, result.best)

    def layers_with(self, grown: GrownLayer) -> list[Layer]:
        return [*self._layers_below(), grown.layer]

    def _width(self, number: int, train: WholeRows, blocks: Sequence[Block]) -> int | None:
        """Neurons of a layer, beside a memory; None where there is no room for them."""
        layers: list[Iterable[Block]] = [*self._layers_below(), blocks]
        remembered = sum(block.n_neurons for block in blocks)

        def n_parameters(size: int) -> int:
            return self.n_parameters_with(layers, size * (train.n_inputs + 3), remembered + size)

        wanted = self.settings.widths[number - 1]
        if number == 1:
            return self.first_size(wanted, n_parameters)
        return wanted if self.room_for(n_parameters(wanted)) else None

    def _layers_below(self) -> list[Layer]:
        return self.layers if self.remembering is None else [*self.layers[:-1], self.remembering]

    # --- training ---

    def _search(self, number: int, width: int, parts: list[WholeRows], blocks: Sequence[Block]) -> Trained:
        """The best candidate over all passes; a pass goes on with the operators that the one before found."""
        sets, in_head = self.settings.sets, self.method.neurons_in_head
        hidden = sets[np.random.default_rng([self.seed, number, 0]).integers(len(sets))]
        head: OperatorSet | None = None
        best: Trained | None = None
        for count in range(1, (_PASSES if in_head else 1) + 1):
            for_head = in_head and count % 2 == 1
            members = [Member(hidden, s) if for_head else Member(s, head) for s in sets]
            clock = self.journal.clock()
            rng = np.random.default_rng([self.seed, number, count])
            start, seed = self._start(width, parts[0], rng), int(rng.integers(1, 2**63))
            population = PopulationPass(
                self, (number, count), parts, members, start, self.settings.tuning, seed
            )
            trained, outcomes = population.run()
            kept = best is None or trained.outcome.score.better_than(best.outcome.score)
            reach, seconds = self._weight_range(parts), self.journal.clock() - clock
            step = self._describe_pass(number, count, trained, outcomes, reach, blocks)
            self._record(replace(step, accepted=kept, search_seconds=seconds))
            hidden, head = trained.outcome.member.hidden, trained.outcome.member.head
            best = trained if kept else best
            if self.stopped is not None:
                break
        assert best is not None
        return best

    def _train_alone(
        self, number: int, width: int, parts: list[WholeRows], blocks: Sequence[Block]
    ) -> tuple[Trained, Outcome]:
        """The only candidate there is; its epochs are reported like those of any tuning."""
        [operator_set] = self.settings.sets
        tuning = self.settings.tuning
        self.emit(PhaseStarted("tune", number, 1, sum(tuning.epochs), operator_set))
        clock = self.journal.clock()
        rng = np.random.default_rng([self.seed, number, 1])
        start = self._start(width, parts[0], rng)
        block, head, _ = modules_of(Member(operator_set), start)
        result = self._tune(block, head, parts, tuning, rng, number)
        outcome = MemberOutcome(Member(operator_set), result.best, result.best_epoch, len(result.curve), 0)
        size_with = self._network(self._layers_so_far(blocks, block), head).n_parameters()
        self._record(
            GrowthStep(
                "block",
                number,
                1,
                True,
                result.best,
                None,
                size_with,
                operator_set=operator_set,
                n_neurons=block.n_neurons,
                **result.facts(),
                dropout=tuning.dropout,
                tuning_seconds=self.journal.clock() - clock,
            )
        )
        return Trained(outcome, block, head), result

    def _tune(
        self,
        block: Block,
        head: Head,
        parts: list[WholeRows],
        tuning: TuningSettings,
        rng: np.random.Generator | None = None,
        number: int = 0,
    ) -> Outcome:
        """Tune block and head; without epochs, only take the statistics and the score of the network."""
        tuning = self.in_time(tuning)
        [outcome] = self.tune(
            [([Layer([block])], head)],
            parts,
            tuning,
            rng or np.random.default_rng(0),
            lambda epoch: self.report_epoch(EpochFinished("tune", number, 1, epoch)),
            f"tune {number}, {block.operator_set}, {tuning.title}",
        )
        return outcome

    def _start(self, width: int, part: WholeRows, rng: np.random.Generator) -> Start:
        sizes = part.n_inputs, width, part.n_accepted, part.n_outputs
        return draw_start(*sizes, self._weight_range([part]), rng)

    def _weight_range(self, parts: list[WholeRows]) -> float:
        given = self.settings.weight_range
        return 1.5 / float(np.sqrt(parts[0].n_inputs)) if given is None else given

    def _layers_so_far(self, blocks: Sequence[Block], block: Block) -> list[Layer]:
        return [*self._layers_below(), Layer([*blocks, block])]

    def _describe_pass(
        self,
        number: int,
        count: int,
        trained: Trained,
        outcomes: Sequence[MemberOutcome],
        reach: float,
        blocks: Sequence[Block],
    ) -> GrowthStep:
        outcome = trained.outcome
        finite = [o for o in outcomes if o.score.finite]
        sign = 1.0 if outcome.score.higher_is_better else -1.0
        finite.sort(key=lambda o: (-sign * o.score.value, o.score.loss))
        return GrowthStep(
            "search",
            number,
            count,
            True,
            outcome.score,
            None,
            self._network(self._layers_so_far(blocks, trained.block), trained.head).n_parameters(),
            operator_set=outcome.member.hidden,
            n_neurons=trained.block.n_neurons,
            candidates=[
                Candidate(o.member.hidden, reach, 0.0, sign * o.score.value, o.score.loss, o.member.head)
                for o in finite
            ],
            invalid_candidates=len(outcomes) - len(finite),
            best_epoch=outcome.best_epoch,
            skipped_batches=sum(o.skipped_batches for o in outcomes),
            dropout=self.settings.tuning.dropout,
            head_operators=outcome.member.head,
        )

    # --- memory ---

    def _memory(self, train: WholeRows) -> list[Block]:
        """A linear block that projects the inputs, standardised, with its statistics over the training rows.

        None at all where there is no direction to project on, as for LDA if only one class has rows.
        """
        settings, matrices = self.settings, self.engine.matrices
        x, (target, weight) = matrices.inputs(train), matrices.labels(train)
        mean, scale = matrices.moments(x, weight, "the features to be projected")
        directions = projection(
            settings.memory,
            matrices.standardized(x, mean, scale),
            target,
            weight,
            settings.memory_energy,
            settings.memory_ridge,
            matrices,
        )
        # Scaled here and centred by the batch norm, the block needs no standardised inputs.
        directions /= scale[:, None]
        if np.abs(directions).max(initial=0.0) > np.finfo(np.float32).max:
            raise NotFiniteError("the inputs are too small to be projected: let them be standardised")
        size = directions.shape[1]
        if size == 0:
            return []
        block = Block(train.n_inputs, size, OperatorSet("multiplication", "sum", "identity"))
        block.weight = directions.astype(np.float32)
        moments = matrices.product_moments(x, block.weight, weight)
        block.norm.mean, block.norm.variance = (values.astype(np.float32) for values in moments)
        return [block]

    def _remember(self, parts: list[WholeRows]) -> None:
        """Put a memory of the layer before's inputs beside its outputs."""
        memory = self._memory(self.before[0])
        self.remembering = Layer([*self.layers[-1], *memory])
        for part, before in zip(parts, self.before, strict=True):
            part.remember(memory, before)


_NO_EPOCHS: dict[str, Any] = {"learning_rates": (), "epochs": ()}


#: GOP neurons in hidden layers and head.
POP = declared(POPMethod("POP", POPGrowth, neurons_in_head=True))
#: A linear head.
POPFAST = declared(POPMethod("POPFast", POPGrowth))
#: A linear head that also sees a projection of the last layer's inputs.
POPMEMO = declared(POPMethod("POPMemO", POPGrowth, memory="output"))
#: Layers that also see a projection of the inputs of the layer before.
POPMEMH = declared(POPMethod("POPMemH", POPGrowth, memory="hidden"))
#: Perceptrons.
PMLP = declared(POPMethod("PMLP", POPGrowth))
