"""Many candidates of equal shape trained at once: the search of the POP family.

Candidates start from the same random weights and see the same mini-batches, so that their operators alone
make the difference. On the CPU each is trained by one compiled call, and the calls are spread over threads.
Operators, losses and optimisers of users go as batched tensor programs through torch, which also run where
tensors live on another device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Event

import numpy as np
from torch import nn

from .engines import (
    LOSS_CODES,
    Shape,
    TuningData,
    TuningSettings,
    assign_block,
    assign_head,
    batch_bounds,
    is_plain,
)
from .errors import NotFiniteError
from .kernels.threads import stream
from .network import Block, Layer
from .operators import OperatorSet
from .population_torch import train_batched
from .scores import CRITERIA, Score

__all__ = [
    "Member",
    "Outcome",
    "Start",
    "Trained",
    "best_of",
    "collect",
    "draw_start",
    "flat_start",
    "is_compilable",
    "modules_of",
    "train_population",
]

_CRITERION_CODES = {"accuracy": 0, "brier": 1, "loss": 2}


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
    head: nn.Linear | Block


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
) -> tuple[Trained, list[Outcome]]:
    """Train every candidate and return the best one, and what came of each, in the order of ``members``.

    Scores are taken on ``validation`` if it is given, else on ``train``. ``on_outcome`` is called as each
    candidate is done, ``on_epoch`` after each epoch of candidates that are trained together. If one of them
    answers True, the training ends, with the candidates that are done, as soon as one of these has a finite
    score. A candidate without a finite score never wins; if no candidate has one, that is an error.
    """
    ended = Event()

    def one(member: Member) -> Result | None:
        if ended.is_set():
            return None
        return _train_one(member, start, train, settings, criterion, seed, validation)

    found: Iterator[Result | None]
    if is_plain(settings) and all(is_compilable(member, start) for member in members):
        found = stream([partial(one, member) for member in members], min(settings.n_threads, len(members)))
    else:
        data, held = train.tensors(), None if validation is None else validation.tensors()
        found = train_batched(members, start, data, settings, criterion, seed, held, on_epoch, ended)
    results = collect(members, found, on_outcome, ended)
    return best_of(results, start), [outcome for outcome, _ in results]


def collect(
    members: Sequence[Member],
    found: Iterator[Result | None],
    on_outcome: Callable[[Outcome], bool | None],
    ended: Event,
) -> list[tuple[Outcome, np.ndarray]]:
    """What came of each candidate, with its parameters; None in ``found`` is one that was not trained.

    When ``on_outcome`` answers True and some candidate is valid, ``ended`` is set: no other is begun.
    """
    results: list[tuple[Outcome, np.ndarray]] = []
    for member, result in zip(members, found, strict=False):
        if result is None:
            continue
        score, best_epoch, epochs, skipped, theta = result
        results.append((Outcome(member, score, best_epoch, epochs, skipped), theta))
        if on_outcome(results[-1][0]) and any(outcome.score.better_than(None) for outcome, _ in results):
            ended.set()
    return results


def best_of(results: Sequence[tuple[Outcome, np.ndarray]], start: Start) -> Trained:
    """The first of the best candidates, from the outcome and the flat parameters of each."""
    best: tuple[Outcome, np.ndarray] | None = None
    for outcome, theta in results:
        if outcome.score.better_than(None if best is None else best[0].score):
            best = outcome, theta
    if best is None:
        raise NotFiniteError(
            f"none of the {len(results)} candidates had a finite score; check the scale of the inputs, "
            "narrow weight_range or lower learning_rates"
        )
    return _restored(*best, start)


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


def modules_of(member: Member, start: Start) -> tuple[Block, nn.Linear | Block, Shape]:
    """An untrained candidate, and where its parameters lie in a flat vector."""
    (n_inputs, n_neurons), (n_features, n_outputs) = start.hidden.shape, start.head.shape
    block = Block(n_inputs, n_neurons, member.hidden)
    head: nn.Linear | Block = nn.Linear(n_features, n_outputs)
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
) -> Result:
    from .kernels import cpu_population

    shape = modules_of(member, start)[2]
    theta = flat_start(shape, start)
    held = validation or TuningData(*(a[:0] for a in (train.x, train.frozen, train.target, train.weight)))
    moments = np.zeros((2, start.hidden.shape[1]), np.float32)
    value, loss, best_epoch, epochs, skipped = cpu_population.train_candidate(
        train.x,
        train.frozen,
        train.target,
        train.weight,
        held.x,
        held.frozen,
        held.target,
        held.weight,
        batch_bounds(len(train.x), settings.batch_size),
        shape.plan,
        shape.widths,
        shape.head_codes,
        theta,
        moments,
        shape.decay(settings.weight_decay),
        np.array(settings.learning_rates, np.float64),
        np.array(settings.epochs, np.int64),
        settings.patience or 0,
        LOSS_CODES[settings.loss],  # type: ignore[index]
        _CRITERION_CODES[criterion],
        np.float32(settings.dropout),
        np.float32(settings.input_dropout),
        np.float32(settings.max_norm or 0.0),
        np.uint64(seed),
    )
    if not np.isfinite(moments).all():  # a feature that vanishes, as `engines.single` has it
        value = loss = np.nan
    return Score(value, loss, CRITERIA[criterion]), best_epoch, epochs, skipped, theta


def _restored(outcome: Outcome, theta: np.ndarray, start: Start) -> Trained:
    """The best state as modules. The block's statistics are still to be taken from the training rows."""
    block, head, shape = modules_of(outcome.member, start)
    [[view]] = shape.blocks(theta)
    assign_block(block, view.weight, view.bias, view.scale, view.shift)
    assign_head(head, *shape.head(theta))
    return Trained(outcome, block, head)
