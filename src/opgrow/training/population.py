"""Many candidates of equal sizes with one hidden block and a head: the search of the POP family.

Candidates start from the same random weights and see the same mini-batches, so that their operators alone
make the difference. As many as memory allows are trained together; on the CPU, groups may also be spread over
the workers of a joblib backend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..common.errors import NotFiniteError
from ..network import Block, Layer, Linear
from ..operators import OperatorSet
from .candidates import Candidates, Shape, fill
from .draft import Draft
from .schedule import Outcome
from .scores import Score

__all__ = [
    "Member",
    "MemberOutcome",
    "Start",
    "Tally",
    "Trained",
    "candidates_of",
    "draw_start",
    "modules_of",
    "train_members",
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
class MemberOutcome:
    """What came of one candidate; ``best_epoch`` 0 is its untouched start."""

    member: Member
    score: Score
    best_epoch: int
    epochs: int
    skipped_batches: int


@dataclass(frozen=True)
class Trained:
    """A candidate's best state."""

    outcome: MemberOutcome
    block: Block
    head: Linear | Block


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


def modules_of(member: Member, start: Start) -> tuple[Block, Linear | Block, Shape]:
    """A candidate at its start, and where its parameters lie in a flat vector."""
    (n_inputs, n_neurons), (n_features, n_outputs) = start.hidden.shape, start.head.shape
    block = Block(n_inputs, n_neurons, member.hidden)
    block.weight = start.hidden.copy()
    head: Linear | Block = Linear(n_features, n_outputs)
    if member.head is not None:
        head = Block(n_features, n_outputs, member.head, norm=None)
    head.weight = start.head.copy()
    return block, head, Shape([Layer([block])], head, n_features - n_neurons)


def candidates_of(members: Sequence[Member], start: Start, dropout: float) -> Candidates:
    """Members as candidates for training."""
    modules = [modules_of(member, start) for member in members]
    theta = np.stack([shape.flatten([Layer([block])], head) for block, head, shape in modules])
    return Candidates([shape for *_, shape in modules], theta, [dropout] * len(members))


@dataclass
class Tally:
    """What has come of the candidates so far.

    Attributes
    ----------
    numbers : which candidates are done, and outcomes : what came of each, in the order in which they were
    best : the first of the best ones, None while there is none with a finite score; theta : its parameters
    """

    numbers: list[int] = field(default_factory=list)
    outcomes: list[MemberOutcome] = field(default_factory=list)
    best: int | None = None
    theta: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))

    def add(self, number: int, outcome: MemberOutcome, theta: np.ndarray) -> None:
        self.numbers.append(number)
        self.outcomes.append(outcome)
        champion = None if self.best is None else self.outcomes[self.numbers.index(self.best)].score
        equal = champion is not None and (outcome.score.value, outcome.score.loss) == (
            champion.value,
            champion.loss,
        )
        if outcome.score.better_than(champion) or (equal and self.best is not None and number < self.best):
            self.best, self.theta = number, theta.copy()

    def in_order(self) -> list[MemberOutcome]:
        """What came of each candidate, in the order of the candidates."""
        pairs = sorted(zip(self.numbers, self.outcomes, strict=True), key=lambda pair: pair[0])
        return [outcome for _, outcome in pairs]

    def winner(self, start: Start) -> Trained:
        """The best candidate. Its block's statistics are still to be taken from the training rows."""
        if self.best is None:
            raise NotFiniteError(
                f"none of the {len(self.outcomes)} candidates had a finite score; check the scale of the "
                "inputs, narrow weight_range or lower learning_rates"
            )
        outcome = self.outcomes[self.numbers.index(self.best)]
        block, head, shape = modules_of(outcome.member, start)
        shape.restore(self.theta, shape.moments([Layer([block])]), [Layer([block])], head)
        return Trained(outcome, block, head)

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
            size = modules_of(members[self.best], start)[2].size
            fill(np.empty(size, np.float32), {"theta": self.theta}, "theta")


#: Trains groups of members, each with a draft of that work, until the function says that there is an end:
#: for each group what came of each member and the best parameters (K, size), or None if it was left out.
TrainGroups = Callable[
    [Sequence[Sequence[Member]], Sequence[Draft], Callable[[], bool]],
    Iterable[tuple[list[Outcome], np.ndarray] | None],
]


def train_members(
    members: Sequence[Member],
    start: Start,
    group_size: int,
    train_groups: TrainGroups,
    on_outcome: Callable[[MemberOutcome], bool | None],
    draft: Draft,
) -> tuple[Trained, list[MemberOutcome]]:
    """Train all candidates in groups; the best one, and what came of each, in the order of ``members``.

    Where ``on_outcome``, which hears of each candidate that is done, answers True, no other group is begun
    as soon as some candidate is valid. A candidate without a finite score never wins; if no candidate has
    one, that is an error. The draft knows the groups that were done when the training was cut off.
    """
    tally = draft.recall(Tally) or Tally()
    tally.check(members, start)
    waiting = [i for i in range(len(members)) if i not in tally.numbers]
    groups = [waiting[first : first + group_size] for first in range(0, len(waiting), group_size)]
    # Another division into groups has other drafts.
    drafts = [draft.part(1000 * numbers[0] + len(numbers)) for numbers in groups]
    ended = False
    results = train_groups(
        [[members[i] for i in numbers] for numbers in groups],
        drafts,
        lambda: ended and tally.best is not None,
    )
    for numbers, result in zip(groups, results, strict=True):
        if result is None:
            continue
        for number, outcome, theta in zip(numbers, *result, strict=True):
            counts = outcome.best_epoch, len(outcome.curve), outcome.skipped_batches
            tally.add(number, MemberOutcome(members[number], outcome.best, *counts), theta)
            ended = bool(on_outcome(tally.outcomes[-1])) or ended
        draft.offer(lambda: tally)
    draft.finish(lambda: tally)
    return tally.winner(start), tally.in_order()
