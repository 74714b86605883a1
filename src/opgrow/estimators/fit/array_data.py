"""The rows of a fit as arrays in memory."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...common.team import Division, current
from ...growth.devices import choose_engine
from ...growth.engine import Engine
from ...network import Network
from ...network.average import fold_rows, rows_between
from ...network.scaling import BOUND, SAMPLE_ROWS, Scaling, kept_sample, robust, spread_rows
from ...rows.preparation import merged, ranges, split_rows, standardized
from ...rows.problem import Problem, place_of
from ..base import GrowingEstimator
from ..outputs import network_outputs
from .calibration import HeldOut
from .data import MIN_VALIDATION_ROWS, Constants, FitData

__all__ = ["ArrayData", "divide_rows"]

#: Rows by which a student is validated, at most.
_STUDENT_ROWS = 1 << 13


class _Chosen(NamedTuple):
    """Inputs, which of their rows are meant (None: all), and the targets and weights of these."""

    x: np.ndarray
    rows: np.ndarray | None
    target: np.ndarray
    weight: np.ndarray


class ArrayData(FitData):
    """Arrays of inputs (n, features), targets (n, targets) and weights (n,).

    Parameters
    ----------
    labels : the classes, sorted, and the code (n,) of each row's class; None for regression
    validation : inputs and targets of an eval_set, or None: some of the rows validate
    """

    kind = "arrays"

    def __init__(
        self,
        estimator: GrowingEstimator[Any],
        x: np.ndarray,
        target: np.ndarray,
        weight: np.ndarray,
        labels: tuple[np.ndarray, np.ndarray] | None,
        validation: tuple[np.ndarray, np.ndarray] | None,
    ) -> None:
        self.estimator, self.team = estimator, current()
        self.x, self.target, self.weight, self.validation = x, target, weight, validation
        self.n_features, self.n_targets, self.single_target = x.shape[1], target.shape[1], True
        self.classification, self.same_rows_validate = labels is not None, validation is not None
        self.classes: np.ndarray | None = None
        self.codes: np.ndarray | None = None
        if labels is not None:
            self.classes, self.codes = labels
        self.divisions: list[Division] = []

    def family(self, estimator: GrowingEstimator[Any]) -> GrowingEstimator[Any]:
        return estimator

    def survey(self, seed: int, n_threads: int) -> None:
        """All rows are in memory."""

    def engine(self, n_threads: int) -> Engine:
        return choose_engine(self.estimator.device, self.team.total(self.x.size), n_threads)

    def fingerprints(self) -> dict[str, str]:
        arrays = {"X": self.x, "y": self.target, "sample_weight": self.weight}
        if self.validation is not None:
            arrays |= {"eval_set X": self.validation[0], "eval_set y": self.validation[1]}
        return {name: self.team.fingerprint(array) for name, array in arrays.items()}

    def divide(self, seed: int, engine: Engine) -> int:
        self.seed, self._engine = seed, engine
        self._leave_out_rows_without_weight()
        self._merge_identical_rows()
        self.target = np.ascontiguousarray(self.target)  # the order in memory decides how sums are rounded
        self.divisions = self._divisions()
        with engine.running():  # sums of many rows are rounded in another way by more threads
            self._find_constants()
        return len(self.divisions)

    def _leave_out_rows_without_weight(self) -> None:
        keep = self.weight > 0
        self.team.together(partial(_check_any, keep))
        if not keep.all():
            self.x, self.target, self.weight = self.x[keep], self.target[keep], self.weight[keep]
            self.codes = None if self.codes is None else self.codes[keep]

    def _merge_identical_rows(self) -> None:
        x = self.x
        if self.team.alone and (x[:64] == x[0]).all() and (x == x[0]).all():
            self.target, self.weight = merged(self.target, self.weight)
            self.x = x[: len(self.target)]
            self.codes = None if self.codes is None else self.target.argmax(axis=1)

    def _divisions(self) -> list[Division]:
        n_networks = self.estimator._n_networks(self.team.total(len(self.x)))
        if self.validation is not None:
            return [(None, None)] * n_networks
        fraction, rng = self.estimator.validation_fraction, np.random.default_rng([self.seed, 0])
        divide = partial(divide_rows, n_networks=n_networks, fraction=fraction, rng=rng)
        return self.team.divisions(len(self.x), self.codes, divide)

    def _find_constants(self) -> None:
        # One network learns nothing of its validation rows; of several, most have seen each row.
        seen = self.divisions[0][0] if len(self.divisions) == 1 else None
        weight = _taken(self.weight, seen)
        shift, spread = self.estimator._target_constants(_taken(self.target, seen), weight)
        scaling, limits = Scaling.nothing(self.n_features), ranges(self.x, self.target, self.team)
        sample = self._sample(seen)
        if self.estimator.standardize:
            center, scale = self._engine.moments(self.x, seen, weight, self.team)
            scaling = robust(Scaling(center, scale, BOUND), limits, *sample)
        self.constants = Constants(scaling, limits, shift, spread)
        self.seen_rows, self.sample = sample[0], kept_sample(sample[0]).astype(self.x.dtype)

    def _sample(self, seen: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Some of the training rows and their weights, the same whatever the number of ranks."""
        numbers = np.arange(len(self.x)) if seen is None else seen
        before, total = self.team.before(len(numbers)), self.team.total(len(numbers))
        chosen = numbers[spread_rows(len(numbers), before, total, SAMPLE_ROWS)]
        return self.team.joined(self.x[chosen].astype(np.float64)), self.team.joined(self.weight[chosen])

    def rows_to_learn(self) -> int:
        learned = (self.x if most is None else most for most, _ in self.divisions)
        return min(self.team.total(len(rows)) for rows in learned)

    def problem(self, number: int) -> Problem:
        most, rest = self.divisions[number]
        validation = None
        if self.validation is not None:
            x, target = self.validation
            validation = self._prepared(_Chosen(x, None, target, np.ones(len(x))))
        elif rest is not None:
            validation = self._prepared(_Chosen(self.x, rest, self.target[rest], self.weight[rest]))
        train = _Chosen(self.x, most, _taken(self.target, most), _taken(self.weight, most))
        problem, most_rows = self._prepared(train, validation), self.estimator._sketch_rows()
        if validation is None or most_rows is None:
            return problem
        return problem.sketched(most_rows, [self.seed, number, 1], self.team)

    def held_out(self, network: Network, number: int) -> HeldOut | None:
        most, rest = self.divisions[number]
        if self.validation is not None:
            x, target = self.validation
            weight = np.ones(len(x))
        elif rest is not None:
            x, target, weight = self.x[rest], self.target[rest], self.weight[rest]
        else:
            return None
        self.finish(network, self._sample(most)[0])
        return HeldOut(x, network_outputs(network, x, self.estimator.device), target, weight)

    def distilled(self, teacher: Network, loss: str) -> Problem:
        """All rows, with what the teacher predicts for them as targets; validated between the rows."""
        self.finish(teacher)
        between, near = rows_between(self.x, _STUDENT_ROWS, np.random.default_rng([self.seed, 1]))
        predict = self.estimator._predictions
        answers, answers_between = predict(teacher, self.x, loss), predict(teacher, between, loss)
        validation = self._prepared(_Chosen(between, None, answers_between, self.weight[near]))
        return self._prepared(_Chosen(self.x, None, answers, self.weight), validation)

    def _prepared(self, chosen: _Chosen, validation: Problem | None = None) -> Problem:
        """The problem that rows make: scaled targets, and weights of mean 1."""
        x, rows, target, weight = chosen
        weights = (weight / self.team.mean_weight(weight, len(x), rows)).astype(np.float32)
        shift, spread = self.constants.shift, self.constants.spread
        scaled = self.team.together(lambda: standardized(target, shift, spread, "y or eval_set"))
        place = place_of(len(x), rows, self.team)
        total = None if place is None else place.total
        arrays, scaling = (x, scaled, weights), self.constants.scaling
        problem = Problem(*arrays, validation, rows, scaling, place=place, total_rows=total)
        return self._engine.prepared(problem, self.team)


def divide_rows(
    n_rows: int, codes: np.ndarray | None, n_networks: int, fraction: float, rng: np.random.Generator
) -> list[Division]:
    """Rows for training and for validation of each network; (None, None) where all of them train."""
    if fraction == 0:
        return [(None, None)] * n_networks
    if n_networks == 1:
        pairs = [split_rows(n_rows, fraction, codes, rng)]
    else:
        pairs = fold_rows(n_rows, n_networks, fraction, codes, rng)
    return [pair if len(pair[1]) >= MIN_VALIDATION_ROWS else (None, None) for pair in pairs]


def _taken(values: np.ndarray, rows: np.ndarray | None) -> np.ndarray:
    return values if rows is None else values[rows]


def _check_any(keep: np.ndarray) -> None:
    if not keep.any():
        raise ValueError("sample_weight and class_weight together leave no row with a weight")
