"""One fit, from checked data to the network: the same path for arrays and sources, alone and on ranks.

A fit takes its data, opens the folder of its checkpoints if it has one, divides the rows among networks,
grows these side by side, averages them, lets a student learn from the average where the family asks for one,
and tells the network the constants of the data.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ...common.team import current
from ...common.threads import stream
from ...growth.checkpoints import Identity, NoFolder, journal_of, kept_seed, opened
from ...growth.checkpoints.fingerprints import texts
from ...growth.engine import Engine
from ...growth.events import Event, FitFinished, FitStarted, GrowthStep
from ...growth.loop import Growth
from ...growth.settings import GrowthSettings
from ...network import Linear, Network
from ...network.average import average
from ...rows.problem import Problem
from ...training.scores import Score, evaluate
from ..base import GrowingEstimator, NetworkSize
from ..intervals import intervals_of
from ..listeners.base import Callback, check_callbacks
from ..listeners.budget import budgets
from .calibration import HeldOut, calibrate, joined
from .data import FitData
from .side_by_side import Listeners, listening
from .sizes import size_that_pays
from .students import Student, indistinguishable, smallest
from .trials import Rehearsal, Trial

__all__ = ["Fit"]

#: Parameters that say where and how a network grows, and not which.
_NOT_OF_THE_NETWORK = (
    "buffer_rows",
    "callbacks",
    "checkpoint_dir",
    "checkpoint_seconds",
    "drift",
    "forgetting",
    "n_jobs",
    "random_state",
    "table",
    "verbose",
    "warm_start",
)


class Fit:
    """One fit of an estimator to its data, on this rank.

    Attributes
    ----------
    estimator : as the user has set it; family : as it grows from such data
    team : the ranks of the fit; engine : what computes on all of them
    seed : of all random numbers
    """

    engine: Engine
    folder: NoFolder
    listeners: Listeners
    n_networks: int
    #: The place of the size that was found among those that networks may have; the smallest to begin with.
    size_found: int = 0

    def __init__(self, estimator: GrowingEstimator[Any], data: FitData) -> None:
        self.estimator, self.data, self.team = estimator, data, current()
        self.family = data.family(estimator)
        budget = budgets(estimator.max_parameters, estimator.max_seconds)
        self.callbacks = [*check_callbacks(estimator.callbacks), *budget]
        bounds = [c.max_parameters for c in self.callbacks if c.max_parameters is not None]
        settings: GrowthSettings = self.family._settings(data.classification)
        self.settings = replace(settings, max_parameters=min(bounds, default=None))
        self.loss = _name(self.settings)
        self.team.begin(self.family, data.n_features, data.n_targets)
        self.seed = self._choose_seed()
        self.histories: dict[int, list[GrowthStep]] = {}

    def run(self) -> None:
        """Grow the network and hand it, with its history, to the estimator."""
        data, n_threads = self.data, self.settings.n_threads
        data.survey(self.seed, n_threads)
        self.engine = data.engine(n_threads)
        with self._open_folder() as self.folder:
            self.n_networks = data.divide(self.seed, self.engine)
            started = time.perf_counter() - self.folder.elapsed_before
            with listening(self._audience(), self.n_networks) as self.listeners:
                self.listeners.hear_all(self._started())
                networks: dict[int, Network | None] = {}
                for numbers, growing, n_at_once in self._rounds():
                    networks |= zip(numbers, stream(growing, n_at_once), strict=True)
                grown = [(n, network) for n, network in sorted(networks.items()) if network is not None]
                average, held = self._joined(grown)
                network = self._taught(average, held)
                data.finish(network)
                self._judge(network, grown if network is average else [], held)
                score = self._held_out_score(held, self.settings.criterion) if network is average else None
                self.listeners.hear_all(FitFinished(network, time.perf_counter() - started, score))
        estimator = self.estimator
        estimator.network_, estimator.loss_, estimator.sample_ = network, self.loss, data.sample
        estimator.history_ = [step for _, steps in sorted(self.histories.items()) for step in steps]

    def _choose_seed(self) -> int:
        """The seed of the estimator, or that of the fit which is resumed."""
        random_state, folder = self.estimator.random_state, self.estimator.checkpoint_dir
        seed = int(check_random_state(random_state).randint(2**31 - 1))
        if folder is not None and random_state is None:
            saved = kept_seed(folder)
            seed = seed if saved is None else saved
        return self.team.same_number(seed)

    def _open_folder(self) -> AbstractContextManager[NoFolder]:
        """The folder of checkpoints, which recognises this fit by everything that decides its network."""
        estimator = self.estimator
        if estimator.checkpoint_dir is None:
            return nullcontext(NoFolder())
        parameters = estimator.get_params(deep=False).items()
        identity = Identity(
            type(estimator).__name__,
            f"{self.engine.name}, {self.data.kind}{self.team.mark}",
            texts({name: value for name, value in parameters if name not in _NOT_OF_THE_NETWORK}),
            self.data.fingerprints(),
            self.seed,
            estimator.random_state is None,
        )
        return opened(estimator.checkpoint_dir, estimator.checkpoint_seconds, identity, self.team)

    def _started(self) -> FitStarted:
        name, parameters = type(self.family).__name__, self.family.get_params(deep=False)
        parameters.pop("callbacks")
        elapsed = self.folder.elapsed_before
        return FitStarted(name, parameters, self.n_networks, self._student_follows, elapsed)

    @property
    def _student_follows(self) -> bool:
        return self.family._student_follows(self.settings.max_parameters)

    def _audience(self) -> list[Callback]:
        if self.team.rank > 0:  # they hear from rank 0 when to stop
            return []
        if not self.estimator.verbose:
            return self.callbacks
        from ..listeners.progress import Progress

        return [*self.callbacks, Progress()]

    def _rounds(self) -> Iterator[tuple[list[int], list[Callable[[], Network | None]], int]]:
        """Networks that grow side by side: their numbers, what grows each of them, and how many at once.

        Those whose size another one has to find grow after it.
        """
        settings, n_rows = self.settings, self.data.rows_to_learn()
        if self._student_follows:
            settings = replace(settings, max_parameters=None)
        members = [self.family._member(settings, n, self.n_networks, n_rows) for n in range(self.n_networks)]
        finding = [number for number, sizes in enumerate(members) if len(sizes) > 1]
        first = [number for number in range(self.n_networks) if number not in finding[1:]]
        yield first, *self._side_by_side([(number, members[number]) for number in first])
        if finding[1:]:
            found = [(number, [members[number][self.size_found]]) for number in finding[1:]]
            yield finding[1:], *self._side_by_side(found)

    def _side_by_side(
        self, members: list[tuple[int, list[GrowthSettings]]]
    ) -> tuple[list[Callable[[], Network | None]], int]:
        """What grows each of these networks, whose settings are of all sizes to try, and how many at once."""
        engine, n_at_once = self.engine, 1
        if self.n_networks > 1:
            engine, n_at_once, n_threads = self.engine.beside(len(members), self.team)
            members = [(number, [one.with_threads(n_threads) for one in sizes]) for number, sizes in members]
        return [partial(self._grow_member, number, sizes, engine) for number, sizes in members], n_at_once

    def _grow_member(self, number: int, sizes: list[GrowthSettings], engine: Engine) -> Network | None:
        """Grow one of the networks of an average; None where a callback has stopped them all before."""
        with engine.member():  # others may wait for it, also if it never begins
            if number > 0 and self.listeners.stopped is not None:
                return None
            problem = self.data.problem(number)
            most = sizes[0].max_parameters
            if most is not None:
                most = _share(most, self.n_networks, problem.n_outputs)
                sizes = [replace(one, max_parameters=most) for one in sizes]
            if len(sizes) == 1 or problem.validation is None:
                growth = self._growth(number, problem, sizes[0], engine)
                trial = Trial(growth, growth.run())
            else:
                trial = self._of_found_size(number, problem, sizes, engine)
            self._note(number, trial.growth)
            return trial.network

    def _of_found_size(
        self, number: int, problem: Problem, sizes: list[GrowthSettings], engine: Engine
    ) -> Trial:
        """Grow a network of the size that held-out rows ask for, and note this size for others."""
        rehearsal = Rehearsal(partial(self.listeners.hear, number + 1))

        def grow(settings: GrowthSettings) -> Trial:
            events = list[Event]()
            hear = rehearsal.next(events)
            name = f"{_journal(number)}size{rehearsal.n_trials}"
            growth = self._growth(number, problem, settings, engine, hear, name)
            return Trial(growth, growth.run(), events)

        self.size_found, trial = size_that_pays(sizes, grow)
        rehearsal.end(trial)
        return trial

    def _joined(self, grown: list[tuple[int, Network]]) -> tuple[Network, HeldOut | None]:
        """The average of what has grown, as confident as rows say that were held out, and these rows."""
        networks, together = [network for _, network in grown], self.data.same_rows_validate
        parts = [] if together else [self.data.held_out(network, number) for number, network in grown]
        network = networks[0] if len(grown) == 1 else average(networks)
        if together:
            parts = [self.data.held_out(network, 0)]
        held = joined([part for part in parts if part is not None], self.team)
        logits = self.data.classification and self.loss != "mse"
        if held is not None and logits and isinstance(network.head, Linear):
            held = held._replace(outputs=held.outputs * calibrate(network, held))
        return network, held

    def _held_out_score(self, held: HeldOut | None, criterion: str) -> Score | None:
        """How well rows are predicted that were held out, in the units in which networks grow."""
        if held is None:
            return None
        constants, tuning = self.data.constants, self.settings.fine_tuning
        outputs, target = (
            (part - constants.shift) / constants.spread for part in (held.outputs, held.target)
        )
        return evaluate(criterion, tuning.loss, outputs, target, held.weight)

    def _judge(self, network: Network, grown: list[tuple[int, Network]], held: HeldOut | None) -> None:
        """Tell a regressor how far its predictions may be wrong, as rows say that were held out."""
        self.estimator.intervals_ = biases = None
        if self.data.classification or held is None:
            return
        if len(grown) > 1:
            biases = np.stack([one.head.bias for _, one in grown]).astype(np.float64)
        self.estimator.intervals_ = intervals_of(network, biases, held)

    def _taught(self, teacher: Network, held: HeldOut | None) -> Network:
        """The student that takes a network's place, where the family asks for one; else the network."""
        kinds, number = self.family._students(self.settings, NetworkSize.of(teacher)), self.n_networks
        if not kinds:
            return teacher
        self.listeners.begin_student()
        problem = self.data.distilled(teacher, self.loss)
        if len(kinds) == len(kinds[0]) == 1:
            growth = self._growth(number, problem, kinds[0][0], self.engine)
            student = Student(growth, growth.run())
        else:
            student = self._chosen(kinds, problem, held)
        self._note(number, student.growth)
        return student.network

    def _chosen(
        self, kinds: Sequence[Sequence[GrowthSettings]], problem: Problem, held: HeldOut | None
    ) -> Student:
        """The smallest student that is about as good as its teacher."""
        number, measure = self.n_networks, "brier" if self.data.classification else "loss"
        rehearsal = Rehearsal(partial(self.listeners.hear, number + 1))

        def grow(settings: GrowthSettings) -> Student:
            settings, events = replace(settings, criterion=measure), list[Event]()
            hear = rehearsal.next(events)
            name = f"student{rehearsal.n_trials:02d}"
            growth = self._growth(number, problem, settings, self.engine, hear, name)
            return Student(growth, growth.run(), events)

        student = smallest(
            kinds, indistinguishable(self._held_out_score(held, measure), problem.n_rows), grow
        )
        rehearsal.end(student)
        return student

    def _growth(
        self,
        number: int,
        problem: Problem,
        settings: GrowthSettings,
        engine: Engine,
        emit: Callable[[Event], None] | None = None,
        name: str | None = None,
    ) -> Growth:
        method = self.family._method
        return method.growth(
            problem,
            method,
            self.family._complete(settings, problem),
            self.seed if number == 0 else _seed_of_member(self.seed, number),
            partial(self.listeners.hear, number + 1) if emit is None else emit,
            engine,
            self.team,
            journal_of(self.folder, name or _journal(number)),
        )

    def _note(self, number: int, growth: Growth) -> None:
        """Keep the history of a growth that is over, and let go of its rows."""
        growth.engine.forget(growth.problem)
        self.histories[number] = [replace(step, member=number + 1) for step in growth.steps]


def _name(settings: GrowthSettings) -> str:
    """The name of the loss that a network is grown for."""
    loss = settings.fine_tuning.loss
    return "custom" if callable(loss) else loss


def _journal(number: int) -> str:
    """The name under which checkpoints keep the growth of a network."""
    return f"network{number + 1:02d}"


def _seed_of_member(seed: int, number: int) -> int:
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])


def _share(max_parameters: int, n_networks: int, n_outputs: int) -> int:
    """Parameters of each network so that their average has no more; it has the biases of the head once."""
    return (max_parameters - n_outputs) // n_networks + n_outputs
