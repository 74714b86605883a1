"""Where the training of candidates stands: schedule, patience, best scores. It knows nothing of arithmetic.

Each candidate goes through the learning rates by itself: it moves on when a rate has had its epochs, or its
patience, and rests after the last one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .scores import CRITERIA, Score
from .settings import TuningSettings

__all__ = ["Epoch", "Outcome", "Schedule"]

#: Columns of the curves: learning rate, mean loss of the batches, criterion and loss of the score.
RATE, TRAIN_LOSS, VALUE, LOSS = range(4)


@dataclass(frozen=True)
class Epoch:
    """One point of a tuning curve."""

    number: int
    learning_rate: float
    train_loss: float
    score: Score


@dataclass(frozen=True)
class Outcome:
    """What came of one candidate; ``best_epoch`` 0 is its untouched start."""

    start: Score
    best: Score
    best_epoch: int
    curve: list[Epoch]
    skipped_batches: int

    @property
    def invalid_epochs(self) -> int:
        """Epochs whose score was not finite."""
        return sum(not epoch.score.finite for epoch in self.curve)

    def facts(self) -> dict[str, Any]:
        """What the history of a growth tells of a training, by the names of its columns."""
        names = ("curve", "best_epoch", "skipped_batches", "invalid_epochs")
        return {name: getattr(self, name) for name in names}


@dataclass
class Schedule:
    """Position of K candidates in their training.

    Attributes
    ----------
    criterion : of the scores
    start, best : (2, K) criterion and loss before the first epoch, and the best so far
    best_epoch, skipped : (K,) epoch of the best score, and batches without a step
    stage, used, waited : (K,) number of the learning rate, epochs of it, and those without a better score
    curves : (epochs, 4, K) learning rate, mean loss of the batches, criterion and loss; NaN at rest
    stopped : whether the training was ended from outside
    """

    criterion: str
    start: np.ndarray
    best: np.ndarray
    best_epoch: np.ndarray
    skipped: np.ndarray
    stage: np.ndarray
    used: np.ndarray
    waited: np.ndarray
    curves: np.ndarray
    stopped: bool = False

    @classmethod
    def begin(cls, criterion: str, scores: np.ndarray, settings: TuningSettings) -> Schedule:
        """Before the first epoch, with the scores (2, K) of the start."""
        n = scores.shape[1]
        best_epoch, skipped, stage, used, waited = np.zeros((5, n), np.int64)
        curves = np.empty((0, 4, n))
        best = scores.copy(), best_epoch, skipped
        schedule = cls(criterion, scores.copy(), *best, stage, used, waited, curves)
        schedule._move_on(settings)
        return schedule

    @property
    def epochs(self) -> int:
        return len(self.curves)

    def active(self, settings: TuningSettings) -> np.ndarray:
        """Which candidates still train: (K,) of bool."""
        return (self.stage < len(settings.epochs)) & (not self.stopped)

    def rates(self, settings: TuningSettings) -> np.ndarray:
        """Learning rates (K,) of the next epoch; 0 for candidates at rest."""
        rates = np.array([*settings.learning_rates, 0.0])[self.stage]
        return np.where(self.active(settings), rates, 0.0)

    def advance(
        self, losses: np.ndarray, skipped: np.ndarray, scores: np.ndarray, settings: TuningSettings
    ) -> np.ndarray:
        """Note an epoch; which candidates (K,) have never been better."""
        active = self.active(settings)
        row = np.array([self.rates(settings), losses, *scores])
        row[:, ~active] = np.nan
        self.curves = np.concatenate([self.curves, row[None]])
        self.skipped = self.skipped + np.where(active, skipped, 0)
        self.used = self.used + active
        self.waited = self.waited + active
        better = active & self._better(scores, settings)
        if better.any():
            self.best = np.where(better, scores, self.best)
            self.best_epoch = np.where(better, self.epochs, self.best_epoch)
            self.waited = np.where(better, 0, self.waited)
        self._move_on(settings)
        return better

    def _better(self, scores: np.ndarray, settings: TuningSettings) -> np.ndarray:
        """Where scores (2, K) are better than the best ones, or replace them.

        The start was not scored during an epoch, so nothing that was is compared with it.
        """
        replaced = np.full(len(self.best_epoch), settings.keep_state == "last")
        if settings.epoch_score == "during":
            replaced |= self.best_epoch == 0
        pairs = [(self._score(new), self._score(old)) for new, old in zip(scores.T, self.best.T, strict=True)]
        better = np.array([new.better_than(old) for new, old in pairs], bool)
        return better | (replaced & np.array([new.finite for new, _ in pairs], bool))

    def _move_on(self, settings: TuningSettings) -> None:
        """Take candidates whose rate has had its epochs or its patience to the next one.

        Epochs at a rate of 0, which would change nothing, are left out.
        """
        pairs = zip(settings.epochs, settings.learning_rates, strict=True)
        epochs = np.array([*(n if rate else 0 for n, rate in pairs), np.iinfo(np.int64).max])
        while True:
            over = self.used >= epochs[self.stage]
            if settings.patience is not None:
                over |= (self.waited >= settings.patience) & (self.stage < len(settings.epochs))
            if not over.any():
                return
            self.stage = self.stage + over
            self.used, self.waited = np.where(over, 0, self.used), np.where(over, 0, self.waited)

    def check(self, criterion: str, n_candidates: int, settings: TuningSettings) -> None:
        """Complain about a schedule, read from a file, that does not belong to these candidates."""
        if self.criterion != criterion:
            raise ValueError(f"the criterion is {self.criterion!r}, expected {criterion!r}")
        shapes: dict[str, tuple[int, ...]]
        shapes = dict.fromkeys(("best_epoch", "skipped", "stage", "used", "waited"), (n_candidates,))
        shapes |= {"start": (2, n_candidates), "best": (2, n_candidates)}
        shapes["curves"] = (*self.curves.shape[:1], 4, n_candidates)
        for name, shape in shapes.items():
            values = getattr(self, name)
            kind = "f" if name in ("start", "best", "curves") else "i"
            if values.shape != shape or values.dtype.kind != kind:
                raise ValueError(
                    f"{name!r} has shape {values.shape} and type {values.dtype}, expected {shape}"
                )
        if ((self.stage < 0) | (self.stage > len(settings.epochs))).any():
            raise ValueError(f"the stages {self.stage.tolist()} are not those of the schedule")
        trained = (~np.isnan(self.curves[:, RATE])).sum(axis=0)
        most = np.cumsum([0, *settings.epochs])[self.stage] + self.used
        if (trained > most).any():
            raise ValueError(f"the curves have {trained.tolist()} epochs, expected at most {most.tolist()}")
        if ((self.best_epoch < 0) | (self.best_epoch > self.epochs)).any():
            raise ValueError(
                f"the best epochs {self.best_epoch.tolist()} are not among the {self.epochs} epochs"
            )

    def last_epoch(self, candidate: int) -> Epoch:
        """The last point of a candidate's curve."""
        return self._epoch(candidate, self.epochs)

    def outcome(self, candidate: int) -> Outcome:
        """What came of a candidate so far."""
        numbers = np.flatnonzero(~np.isnan(self.curves[:, RATE, candidate])) + 1
        curve = [self._epoch(candidate, int(number)) for number in numbers]
        start, best = (self._score(scores[:, candidate]) for scores in (self.start, self.best))
        return Outcome(start, best, int(self.best_epoch[candidate]), curve, int(self.skipped[candidate]))

    def _epoch(self, candidate: int, number: int) -> Epoch:
        rate, loss, *score = self.curves[number - 1, :, candidate].tolist()
        return Epoch(number, rate, loss, self._score(score))

    def _score(self, values: np.ndarray | list[float]) -> Score:
        return Score(float(values[0]), float(values[1]), CRITERIA[self.criterion])


@dataclass
class TrainingState:
    """All that a training needs to go on, in this process or in another one.

    Attributes
    ----------
    exact : whether the statistics of the best states are those of all training rows
    rng : state of the random numbers, as JSON; arrays : parameters, statistics, what the optimiser remembers
    """

    schedule: Schedule
    exact: bool
    rng: str
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
