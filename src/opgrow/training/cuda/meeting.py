"""Networks that grow side by side meet here, so that a device trains their candidates as one batch.

Each network grows in a thread of its own. A step of training on a device costs launches more than arithmetic,
and a batch of several candidates needs no more launches than one. So a growth that has something to train
waits until all others do, or have ended; then one of them takes all trainings of equal sizes through their
epochs together. What comes of a candidate does not depend on who is there first.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..train import TrainedCandidates, Training, run, train
from .training import JointSteps

__all__ = ["Meeting"]


@dataclass
class _Waiting:
    """A training that was handed in, and what came of it."""

    training: Training
    result: TrainedCandidates | None = None
    error: BaseException | None = None
    done: bool = field(default=False)


class Meeting:
    """Where ``n_networks`` growths hand in their trainings."""

    def __init__(self, n_networks: int) -> None:
        self._present = n_networks
        self._waiting: list[_Waiting] = []
        self._changed = threading.Condition()

    @contextmanager
    def member(self) -> Iterator[None]:
        """The life of one growth: the others stop waiting for it when it ends."""
        try:
            yield
        finally:
            with self._changed:
                self._present -= 1
                batch = self._complete()
            self._run(batch)

    def train(self, training: Training) -> TrainedCandidates:
        """Train together with what the others hand in."""
        mine = _Waiting(training)
        with self._changed:
            self._waiting.append(mine)
            batch = self._complete()
        self._run(batch)
        with self._changed:
            while not mine.done:
                self._changed.wait(0.05)  # no exception reaches a thread that only waits
        if mine.error is not None:
            raise mine.error
        assert mine.result is not None
        return mine.result

    def _complete(self) -> list[_Waiting]:
        """All trainings, as soon as nobody else is to come."""
        if not self._waiting or len(self._waiting) < self._present:
            return []
        batch, self._waiting = self._waiting, []
        return batch

    def _run(self, batch: Sequence[_Waiting]) -> None:
        """Train what was handed in, by groups of equal sizes."""
        groups: dict[Any, list[_Waiting]] = {}
        # A batch shares the random numbers of its first training, which must not depend on threads.
        for item in sorted(batch, key=_random_state):
            groups.setdefault(_likeness(item.training), []).append(item)
        for group in groups.values():
            try:
                results = train_together([item.training for item in group])
                for item, result in zip(group, results, strict=True):
                    item.result = result
            except BaseException as error:  # whoever waits has to hear of it
                for item in group:
                    item.error = error
        with self._changed:
            for item in batch:
                item.done = True
            self._changed.notify_all()


def _random_state(item: _Waiting) -> str:
    return json.dumps(item.training.rng.bit_generator.state)


def _likeness(training: Training) -> Any:
    """What trainings have in common that one batch can take."""
    if not training.trainer.joins or not training.exact or training.draft.saves:
        return id(training)
    settings = replace(training.settings, dropout=0.0)
    return training.candidates.shapes[0].sizes, settings, training.criterion


def train_together(trainings: Sequence[Training]) -> list[TrainedCandidates]:
    """Train several trainings of equal sizes as one batch."""
    if len(trainings) == 1:
        return [train(trainings[0])]
    for training in trainings:
        training.begin()
    run(trainings, _joint_epoch(trainings))
    return [training.finish() for training in trainings]


def _joint_epoch(
    trainings: Sequence[Training],
) -> Callable[[Sequence[np.ndarray]], Sequence[tuple[np.ndarray, np.ndarray]]]:
    """Epochs of all trainings that still go on; once half of them are done, the batch becomes smaller."""
    steps: JointSteps | None = None
    members: list[int] = []

    def epoch(rates: Sequence[np.ndarray]) -> Sequence[tuple[np.ndarray, np.ndarray]]:
        nonlocal steps, members
        active = [number for number, rate in enumerate(rates) if rate.any()]
        seeds = [int(training.rng.integers(1, 2**63)) for training in trainings]
        if steps is None:
            trainers: list[Any] = [trainings[number].trainer for number in active]
            steps, members = JointSteps(trainers, seeds[0]), active
        elif 2 * len(active) <= len(members):
            steps, members = steps.only([members.index(number) for number in active]), active
        results = steps.epoch([rates[number] for number in members], seeds[0])
        nothing = [(np.zeros_like(rate), np.zeros(len(rate), int)) for rate in rates]
        for number, result in zip(members, results, strict=True):
            nothing[number] = result
        return nothing

    return epoch
