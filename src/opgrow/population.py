"""Many candidates of equal shape trained at once: the search of the POP family.

Candidates start from the same random weights and see the same mini-batches, so that their operators alone
make the difference. On the CPU each is trained by one call of the compiled engine, and the calls are spread
over threads, or over the workers of a joblib backend.
Operators, losses and optimisers of users go as batched tensor programs through torch, which also run where
tensors live on another device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Event

import numpy as np

from .checkpoints import Draft, Interrupted
from .cluster import n_workers, spread
from .engine.candidates import Candidate, Schedule
from .engine.native import native
from .engines import (
    Shape,
    TuningData,
    TuningSettings,
    assign_block,
    assign_head,
    batch_bounds,
    compiled_settings,
    fill,
    is_plain,
)
from .errors import NotFiniteError
from .kernels.threads import stream
from .network import Block, Head, Layer, Linear
from .operators import OperatorSet
from .population_torch import train_batched
from .scores import CRITERIA, Score

__all__ = [
    "Member",
    "Outcome",
    "Start",
    "Tally",
    "Trained",
    "collect",
    "draw_start",
    "flat_start",
    "is_compilable",
    "modules_of",
    "recall_tally",
    "train_population",
]


@dataclass(frozen=True)
class Member:
    """A candidate: the operators of the hidden layer and, unless the head is linear, of the head."""

    hidden: OperatorSet
    head: OperatorSet | None = None


@dataclass(frozen=True)
class Start:
    """Random weights that all candidates start from: hidden (D, d) and head (features, outputs)."""

    hidden: np.ndarray
    head: np.ndarray


@dataclass(frozen=True)
class Outcome:
    """What came of one candidate; ``best_epoch`` 0 is its untouched start."""

    member: Member
    score: Score
    best_epoch: int
    epochs: int
    skipped_batches: int


@dataclass(frozen=True)
class Trained:
    """A candidate's best state, as modules."""

    outcome: Outcome
    block: Block
    head: Head


@dataclass
class Tally:
    """What has come of the candidates so far.

    Attributes
    ----------
    numbers : which candidates are done, and outcomes : what came of each, in the order in which they were
    best : the first of the best ones, None while there is none with a finite score; theta : its parameters
    arrays : what candidates that are trained together go on from
    """

    numbers: list[int] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    best: int | None = None
    theta: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))
    arrays: dict[str, np.ndarray] = field(default_factory=dict)

    def add(self, number: int, outcome: Outcome, theta: np.ndarray) -> None:
        self.numbers.append(number)
        self.outcomes.append(outcome)
        champion = None if self.best is None else self.outcomes[self.numbers.index(self.best)].score
        equal = champion is not None and (outcome.score.value, outcome.score.loss) == (
            champion.value,
            champion.loss,
        )
        if outcome.score.better_than(champion) or (equal and self.best is not None and number < self.best):
            self.best, self.theta = number, theta.copy()

    def in_order(self) -> list[Outcome]:
        """What came of each candidate, in the order of the candidates."""
        return [
            outcome
            for _, outcome in sorted(zip(self.numbers, self.outcomes, strict=True), key=lambda p: p[0])
        ]

    def winner(self, start: Start) -> Trained:
        """The best candidate, as modules."""
        if self.best is None:
            raise NotFiniteError(
                f"none of the {len(self.outcomes)} candidates had a finite score; check the scale of the "
                "inputs, narrow weight_range or lower learning_rates"
            )
        return _restored(self.outcomes[self.numbers.index(self.best)], self.theta, start)

    def check(self, members: Sequence[Member], start: Start) -> None:
        """Complain about a tally, read from a file, that is not one of these candidates."""
        right = (
            len(self.numbers) == len(set(self.numbers)) == len(self.outcomes)
            and all(0 <= i < len(members) for i in self.numbers)
            and all(o.member == members[i] for i, o in zip(self.numbers, self.outcomes, strict=True))
            and (self.best is None or self.best in self.numbers)
        )
        if not right:
            raise ValueError("what came of the candidates does not belong to these candidates")
        if self.best is not None:
            fill(
                np.empty(modules_of(members[self.best], start)[2].size, np.float32),
                {"theta": self.theta},
                "theta",
            )


def draw_start(
    n_inputs: int,
    n_neurons: int,
    n_frozen: int,
    n_outputs: int,
    weight_range: float,
    rng: np.random.Generator,
) -> Start:
    """Hidden weights uniform in [-weight_range, weight_range]; those of the head by its number of inputs."""
    hidden = rng.uniform(-weight_range, weight_range, (n_inputs, n_neurons))
    bound = 1.5 / np.sqrt(n_neurons + n_frozen)
    head = rng.uniform(-bound, bound, (n_frozen + n_neurons, n_outputs))
    return Start(hidden.astype(np.float32), head.astype(np.float32))


def train_population(
    members: Sequence[Member],
    start: Start,
    train: TuningData,
    settings: TuningSettings,
    criterion: str,
    seed: int,
    validation: TuningData | None = None,
    on_outcome: Callable[[Outcome], bool | None] = lambda outcome: None,
    on_epoch: Callable[[], bool | None] = lambda: None,
    draft: Draft | None = None,
) -> tuple[Trained, list[Outcome]]:
    """Train every candidate and return the best one, and what came of each, in the order of ``members``.

    Scores are taken on ``validation`` if it is given, else on ``train``. ``on_outcome`` is called as each
    candidate is done, ``on_epoch`` after each epoch of candidates that are trained together. If one of them
    answers True, the training ends, with the candidates that are done, as soon as one of these has a finite
    score. A candidate without a finite score never wins; if no candidate has one, that is an error.
    A ``draft`` knows the candidates that were done when the training was cut off.
    """
    draft = Draft() if draft is None else draft
    tally, ended = recall_tally(draft, members, start), Event()
    waiting = [i for i in range(len(members)) if i not in tally.numbers]
    rest = [members[i] for i in waiting]

    def one(i: int) -> Result | None:
        if ended.is_set():
            return None
        part = draft.part(i)
        return _train_one(members[i], start, train, settings, criterion, seed, validation, part)

    found: Iterator[Result | None]
    if is_plain(settings) and all(is_compilable(member, start) for member in members):
        if n_workers():
            rows = start, train, settings, criterion, seed, validation, Draft()
            found = spread(_train_one, [(member, *rows) for member in rest], ended.is_set)
        else:
            found = stream([partial(one, i) for i in waiting], min(settings.n_threads, len(members)))
    else:
        data, held = train.tensors(), None if validation is None else validation.tensors()
        found = train_batched(rest, start, data, settings, criterion, seed, held, on_epoch, ended)
    collect(members, waiting, found, on_outcome, ended, tally, draft)
    return tally.winner(start), tally.in_order()


def recall_tally(draft: Draft, members: Sequence[Member], start: Start) -> Tally:
    """The tally of a draft, or an empty one."""
    tally = draft.recall(Tally)
    if tally is None:
        return Tally()
    tally.check(members, start)
    return tally


def collect(
    members: Sequence[Member],
    waiting: Sequence[int],
    found: Iterator[Result | None],
    on_outcome: Callable[[Outcome], bool | None],
    ended: Event,
    tally: Tally,
    draft: Draft,
) -> None:
    """Add what comes of the candidates that wait to a tally; None in ``found`` is one that was not trained.

    When ``on_outcome`` answers True and some candidate is valid, ``ended`` is set: no other is begun.
    """
    try:
        for i, result in zip(waiting, found, strict=False):
            if result is None:
                continue
            score, best_epoch, epochs, skipped, theta = result
            tally.add(i, Outcome(members[i], score, best_epoch, epochs, skipped), theta)
            if on_outcome(tally.outcomes[-1]) and tally.best is not None:
                ended.set()
            draft.offer(lambda: tally)
    except Interrupted:  # a candidate was, and those before it are done
        draft.offer(lambda: tally)
        raise
    draft.finish(lambda: tally)


def is_compilable(member: Member, start: Start) -> bool:
    """Whether all operators of a candidate are built in."""
    return modules_of(member, start)[2].compilable


def flat_start(shape: Shape, start: Start) -> np.ndarray:
    """The parameters that a candidate starts from, as one vector."""
    theta = np.zeros(shape.size, np.float32)
    [[view]] = shape.blocks(theta)
    view.weight[:], view.scale[:] = start.hidden, 1.0
    shape.head(theta)[0][:] = start.head
    return theta


#: Score, best epoch, epochs, skipped batches and the flat parameters of the best state.
Result = tuple[Score, int, int, int, np.ndarray]


def modules_of(member: Member, start: Start) -> tuple[Block, Head, Shape]:
    """An untrained candidate, and where its parameters lie in a flat vector."""
    (n_inputs, n_neurons), (n_features, n_outputs) = start.hidden.shape, start.head.shape
    block = Block(n_inputs, n_neurons, member.hidden)
    head: Head = Linear(n_features, n_outputs)
    if member.head is not None:
        head = Block(n_features, n_outputs, member.head, norm=None)
    return block, head, Shape([Layer([block])], head, n_features - n_neurons)


def _train_one(
    member: Member,
    start: Start,
    train: TuningData,
    settings: TuningSettings,
    criterion: str,
    seed: int,
    validation: TuningData | None,
    draft: Draft,
) -> Result:
    shape = modules_of(member, start)[2]
    state = Candidate.begin(flat_start(shape, start), start.hidden.shape[1], seed)
    kept = draft.recall(Candidate)
    if kept is not None:
        for name, values in vars(state).items():
            fill(values, vars(kept), name)
    bounds, patience = batch_bounds(len(train.x), settings.batch_size), settings.patience or 0
    schedule = Schedule(settings.learning_rates, settings.epochs, patience, criterion, bounds)
    given = shape.compiled(), train, validation, compiled_settings(shape, settings), schedule
    # Where nothing is saved in between, a candidate is one call.
    most = 1 if draft.saves else sum(settings.epochs) + 1
    while not native().train_candidate(*given, state, most):
        draft.offer(lambda: state)
    value, loss = state.scores.tolist()
    if not np.isfinite(state.moments).all():  # a feature that vanishes, as `engines.single` has it
        value = loss = np.nan
    epochs, best_epoch, skipped = (int(n) for n in state.counts[[3, 4, 6]])
    return Score(value, loss, CRITERIA[criterion]), best_epoch, epochs, skipped, state.theta


def _restored(outcome: Outcome, theta: np.ndarray, start: Start) -> Trained:
    """The best state as modules. The block's statistics are still to be taken from the training rows."""
    block, head, shape = modules_of(outcome.member, start)
    [[view]] = shape.blocks(theta)
    assign_block(block, view.weight, view.bias, view.scale, view.shift)
    assign_head(head, *shape.head(theta))
    return Trained(outcome, block, head)
