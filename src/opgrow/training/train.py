"""Back-propagation of candidates: blocks, whole networks, or hundreds of candidates of a population.

Tuning a block is a population of one. A trainer computes, on the rows that it was made for, wherever these
are; what is decided is decided here. After every epoch each candidate is scored with batch-norm statistics of
its training rows, as the finished network will predict, and its best state over all epochs, the untouched
start included, is kept: training never makes a candidate worse, unless its settings ask for the last state.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np

from ..rows.interface import Rows
from .candidates import Candidates, fill
from .draft import Draft
from .schedule import Epoch, Outcome, Schedule, TrainingState
from .settings import TuningSettings

__all__ = ["TrainedCandidates", "Trainer", "Training", "run", "score", "statistics", "train"]


class Trainer(Protocol):
    """The parameters of K candidates, and what is computed with them on some rows."""

    @property
    def joins(self) -> bool:
        """Whether its steps can be taken as one batch with those of other trainers of its kind."""
        ...

    def epoch(self, rates: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Train with each candidate's learning rate, 0 at rest; mean losses and skipped batches, (K,)."""
        ...

    def batch_accuracy(self) -> np.ndarray:
        """Accuracies (K,) over the last epoch's batches, as training sees them; NaN at rest."""
        ...

    def batch_moments(self) -> np.ndarray:
        """Means and variances (2, K, neurons) of the features over the last epoch's batches."""
        ...

    def feature_sums(self, rows: Any, moments: np.ndarray, layer: int) -> np.ndarray:
        """Weighted sums (2, K, width) over some rows of a layer's features, and of their squares.

        What is said of candidates that were at rest in the last epoch, here and below, has no meaning.
        """
        ...

    def score_sums(self, rows: Any, moments: np.ndarray) -> np.ndarray:
        """Sums (4, K) over some rows, as `opgrow.engine.evaluation` has them."""
        ...

    def keep(self, which: np.ndarray) -> None:
        """Remember the parameters of some candidates, (K,) of bool, as their best."""
        ...

    def best(self) -> np.ndarray:
        """The parameters (K, size) that are remembered."""
        ...

    def use_best(self) -> None:
        """Go back to the parameters that are remembered."""
        ...

    def state(self) -> dict[str, np.ndarray] | None:
        """What an epoch goes on from, as arrays; None where an optimiser has more than those."""
        ...

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        """Go on from what `state` has said, and remember the array ``best``."""
        ...


def statistics(trainer: Trainer, candidates: Candidates, rows: Rows) -> np.ndarray:
    """Means and variances (2, K, neurons) of all layers' features over rows: a pass for each layer."""
    moments = np.zeros((2, len(candidates), candidates.shapes[0].n_neurons), np.float32)
    first = 0
    for layer, width in enumerate(candidates.shapes[0].widths.tolist()):
        function = partial(trainer.feature_sums, moments=moments, layer=layer)
        sums = rows.sum(function, len(candidates), width)
        with np.errstate(all="ignore"):  # the score tells
            mean, square = sums / rows.total_weight
            variance = np.maximum(square - np.square(mean), 0.0)
            moments[:, :, first : first + width] = mean, variance
        _refuse_infinite(moments[1])
        first += width
    return moments


def _refuse_infinite(variance: np.ndarray) -> None:
    """Make variances that single precision does not hold NaN, in place.

    Divided by an infinite deviation, a feature would vanish, and the score would not show it.
    """
    variance[np.isinf(variance)] = np.nan


def score(trainer: Trainer, moments: np.ndarray, rows: Rows) -> np.ndarray:
    """Criterion and mean loss (2, K) on rows; the criterion is NaN where an output is not finite."""
    _, n_candidates, width = moments.shape
    function = partial(trainer.score_sums, moments=moments)
    value, loss, weight, invalid = rows.sum(function, n_candidates, width)
    with np.errstate(all="ignore"):
        return np.stack([np.where(invalid > 0, np.nan, value / weight), loss / weight])


@dataclass(frozen=True)
class TrainedCandidates:
    """Best states: parameters (K, size), statistics (2, K, neurons), and what came of each candidate."""

    theta: np.ndarray
    moments: np.ndarray
    outcomes: list[Outcome]


@dataclass
class Training:
    """One training: candidates, the rows that they learn from and are scored on, and who hears of it.

    Attributes
    ----------
    trainer : what computes
    train, scored : rows
    exact : statistics of all training rows for every score; otherwise those of an epoch's batches
    on_epoch : hears of each epoch of the first candidate that trains; if it answers True, all end there
    draft : knows where the training was when it was cut off, and is offered every epoch
    """

    trainer: Trainer
    candidates: Candidates
    train: Rows
    scored: Rows
    settings: TuningSettings
    criterion: str
    rng: np.random.Generator
    exact: bool
    on_epoch: Callable[[Epoch], bool | None]
    draft: Draft
    schedule: Schedule = field(init=False)
    best_moments: np.ndarray = field(init=False)
    #: Whether these are statistics of all training rows, and not of a sample or of an epoch's batches.
    is_exact: bool = field(init=False, default=True)

    def begin(self) -> None:
        """Score the start, or recall where the training was."""
        state = self.draft.recall(TrainingState)
        if state is None:
            self.best_moments = self._starting_moments()
            self.trainer.keep(np.ones(len(self.candidates), bool))
            scores = score(self.trainer, self.best_moments, self.scored.sample)
            self.schedule = Schedule.begin(self.criterion, scores, self.settings)
            return
        state.schedule.check(self.criterion, len(self.candidates), self.settings)
        self.schedule, self.is_exact = state.schedule, state.exact
        self.best_moments = np.empty(
            (2, len(self.candidates), self.candidates.shapes[0].n_neurons), np.float32
        )
        fill(self.best_moments, state.arrays, "moments")
        self.trainer.load(state.arrays)
        try:
            self.rng.bit_generator.state = json.loads(state.rng)
        except (TypeError, KeyError, ValueError, OverflowError) as error:
            raise ValueError(f"the state of the random numbers is not valid ({error})") from error

    def _starting_moments(self) -> np.ndarray:
        """Statistics of all training rows, which are known where only some of these are at hand."""
        if self.train.sample is not self.train and self.candidates.moments is not None:
            return self.candidates.moments
        return statistics(self.trainer, self.candidates, self.train)

    @property
    def rates(self) -> np.ndarray:
        return self.schedule.rates(self.settings)

    def end_epoch(self, losses: np.ndarray, skipped: np.ndarray) -> None:
        """Score what an epoch has made of the candidates, and keep what is better."""
        sample = self.train.sample
        if self.exact:
            moments = statistics(self.trainer, self.candidates, sample)
        else:
            moments = self.trainer.batch_moments()
            _refuse_infinite(moments[1])
        if self.settings.epoch_score == "during":
            accuracy = self.criterion == "accuracy"
            scores = np.stack([self.trainer.batch_accuracy() if accuracy else losses, losses])
        else:
            scores = score(self.trainer, moments, self.scored.sample)
        leader = int(self.schedule.active(self.settings).argmax())
        better = self.schedule.advance(losses, skipped, scores, self.settings)
        if better.any():
            self.trainer.keep(better)
            self.best_moments = np.where(better[:, None], moments, self.best_moments)
            self.is_exact = self.exact and sample is self.train
        if self.on_epoch(self.schedule.last_epoch(leader)):
            self.schedule.stopped = True
        self.draft.offer(self._state)

    def _state(self) -> TrainingState | None:
        arrays = self.trainer.state()
        return None if arrays is None else self._saved(arrays)

    def _saved(self, arrays: dict[str, np.ndarray]) -> TrainingState:
        rng = json.dumps(self.rng.bit_generator.state)
        arrays = arrays | {"best": self.trainer.best(), "moments": self.best_moments}
        return TrainingState(self.schedule, self.is_exact, rng, arrays)

    def finish(self) -> TrainedCandidates:
        """The best states, with statistics of all training rows where `exact` promises them."""
        if self.exact and not self.is_exact:
            self.trainer.use_best()
            self.best_moments = statistics(self.trainer, self.candidates, self.train)
            self.is_exact = True
        theta = self.trainer.best()
        self.draft.finish(lambda: self._saved({}))
        outcomes = [self.schedule.outcome(k) for k in range(len(self.candidates))]
        return TrainedCandidates(theta, self.best_moments, outcomes)


def run(
    trainings: Sequence[Training],
    epoch: Callable[[Sequence[np.ndarray]], Sequence[tuple[np.ndarray, np.ndarray]]],
) -> None:
    """Take trainings through their epochs side by side.

    ``epoch`` trains all of them with their learning rates: losses and skipped batches of each.
    """
    while True:
        rates = [training.rates for training in trainings]
        if not any(rate.any() for rate in rates):
            return
        for training, rate, results in zip(trainings, rates, epoch(rates), strict=True):
            if rate.any():
                training.end_epoch(*results)


def train(training: Training) -> TrainedCandidates:
    """Train candidates as their schedule says, and return their best states."""
    training.begin()
    while (rates := training.rates).any():
        training.end_epoch(*training.trainer.epoch(rates, training.rng))
    return training.finish()
