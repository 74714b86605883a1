"""Candidates trained by the engine in C, on rows in memory or on windows of rows that pass through it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from ..common.threads import run_all
from ..engine import training
from ..engine.evaluation import Evaluation
from ..engine.native import native
from ..rows.interface import Rows
from ..rows.window import Window
from .candidates import Candidates, Shape, fill
from .settings import TuningSettings, batch_bounds

__all__ = ["NativeTrainer", "engine_settings"]


def engine_settings(shape: Shape, settings: TuningSettings, dropout: float) -> training.Settings:
    """What the engine does in a step; for settings that `is_plain` accepts."""
    assert isinstance(settings.loss, str)
    decay, max_norm = shape.decay(settings.weight_decay), settings.max_norm or 0.0
    during = settings.epoch_score == "during"
    return training.Settings(settings.loss, decay, dropout, settings.input_dropout, max_norm, during)


class NativeTrainer:
    """Epochs of each candidate as calls of the engine, several of them side by side on threads."""

    joins: ClassVar[bool] = False

    def __init__(self, candidates: Candidates, rows: Rows, settings: TuningSettings, criterion: str) -> None:
        self.candidates, self.settings, self.criterion = candidates, settings, criterion
        self.team, self.windows = rows.team, rows.windows()
        self._window: training.Rows | None = None
        self._epochs: list[training.Epochs] = []
        self.theta = candidates.theta.copy()
        self.shapes = [shape.compiled() for shape in candidates.shapes]
        pairs = zip(candidates.shapes, candidates.dropouts, strict=True)
        self.steps = [engine_settings(shape, settings, dropout) for shape, dropout in pairs]
        width = candidates.shapes[0].n_neurons
        self.states = [
            training.State(theta, moments=np.zeros((2, width), np.float32)) for theta in self.theta
        ]
        #: Candidates that statistics and scores are taken of: all of them until some have come to rest.
        self.active = np.arange(len(self.theta))
        self._best = self.theta.copy()
        self._right = np.zeros(len(self.theta))
        self._prepared: WeakKeyDictionary[training.Rows, list[Evaluation]] = WeakKeyDictionary()

    def epoch(self, rates: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        self.active = np.flatnonzero(rates)
        losses, n_batches = np.zeros(len(rates)), 0
        self._right[:] = 0.0
        for state in self.states:
            state.skipped = 0
        for window in self.windows(rng):
            n_batches += self._train(window, rates, rng, losses)
        self._right /= n_batches
        return losses / n_batches, np.array([state.skipped for state in self.states])

    def _train(self, window: Window, rates: np.ndarray, rng: np.random.Generator, losses: np.ndarray) -> int:
        """Train on the batches of a window and add up their losses; the number of batches."""
        rows: training.Rows = window.rows
        epochs, active = self._prepare(rows), self.active
        order, seed = rng.permutation(len(rows.x)), int(rng.integers(1, 2**63))
        count = len(epochs[0].bounds) - 1
        train = native().train_epoch
        list(self._spread([partial(train, epochs[k], order, float(rates[k]), seed) for k in active]))
        losses[active] += [count * self.states[k].loss for k in active]
        self._right[active] += [count * self.states[k].right for k in active]
        return count

    def _prepare(self, rows: training.Rows) -> list[training.Epochs]:
        """The epochs of all candidates on a window, which mostly is the one of the epoch before."""
        if self._window is not rows:
            bounds = batch_bounds(len(rows.x), self.settings.batch_size)
            everything = zip(self.shapes, self.steps, self.states, strict=True)
            self._window = rows
            self._epochs = [
                native().epochs(shape, rows, step, state, bounds) for shape, step, state in everything
            ]
        return self._epochs

    def _evaluations(self, rows: training.Rows) -> list[Evaluation]:
        prepared = self._prepared.get(rows)
        if prepared is None:
            everything = zip(self.shapes, self.steps, self.theta, strict=True)
            prepared = [native().evaluation(shape, rows, step, theta) for shape, step, theta in everything]
            self._prepared[rows] = prepared
        return prepared

    def feature_sums(self, rows: training.Rows, moments: np.ndarray, layer: int) -> np.ndarray:
        return self._by_candidate(rows, moments, partial(native().feature_sums, layer=layer))

    def score_sums(self, rows: training.Rows, moments: np.ndarray) -> np.ndarray:
        return self._by_candidate(rows, moments, partial(native().score_sums, criterion=self.criterion))

    def _by_candidate(
        self, rows: training.Rows, moments: np.ndarray, function: Callable[..., np.ndarray]
    ) -> np.ndarray:
        """A function of each candidate and its statistics, side by side on threads; NaN for those at rest."""
        evaluations, each = self._evaluations(rows), moments.transpose(1, 0, 2).copy()
        results = list(self._spread([partial(function, evaluations[k], each[k]) for k in self.active]))
        out = np.full((len(results[0]), len(self.theta), *results[0].shape[1:]), np.nan)
        out[:, self.active] = np.stack(results, axis=1)
        return out

    def _spread(self, tasks: Sequence[Callable[[], Any]]) -> Iterable[Any]:
        """The results of a task for each active candidate; every thread takes some of them."""
        n_workers = max(1, min(self.settings.n_threads, len(tasks)))
        if n_workers == 1:
            return map(operator.call, tasks)
        results: list[Any] = [None] * len(tasks)

        def some(first: int) -> None:
            for place in range(first, len(results), n_workers):
                results[place] = tasks[place]()

        run_all([partial(some, first) for first in range(n_workers)], n_workers)
        return results

    def batch_accuracy(self) -> np.ndarray:
        accuracy = np.full(len(self.states), np.nan)
        accuracy[self.active] = self._right[self.active]
        return accuracy

    def batch_moments(self) -> np.ndarray:
        return np.stack([state.moments for state in self.states], axis=1)

    def keep(self, which: np.ndarray) -> None:
        self._best[which] = self.theta[which]

    def best(self) -> np.ndarray:
        return self._best

    def use_best(self) -> None:
        self.theta[:], self.active = self._best, np.arange(len(self.theta))

    def state(self) -> dict[str, np.ndarray]:
        steps = np.array([state.step for state in self.states])
        first, second = (np.stack([getattr(state, n) for state in self.states]) for n in ("first", "second"))
        return {"theta": self.theta, "first": first, "second": second, "steps": steps}

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        fill(self._best, arrays, "best")
        if "theta" not in arrays:
            return
        fill(self.theta, arrays, "theta")
        first, second = np.empty_like(self.theta), np.empty_like(self.theta)
        steps = np.zeros(len(self.states), np.int64)
        for target, name in ((first, "first"), (second, "second"), (steps, "steps")):
            fill(target, arrays, name)
        for k, state in enumerate(self.states):
            state.first[:], state.second[:], state.step = first[k], second[k], int(steps[k])
