"""The rows of a fit as a source, from which one network is grown, chunk by chunk."""

from __future__ import annotations

from collections.abc import Sized
from contextlib import suppress
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from ...common.checks import is_auto
from ...common.fingerprints import fingerprint
from ...common.team import current
from ...growth.engine import Engine, NativeEngine
from ...network import Network
from ...network.limits import head_limits
from ...network.scaling import SAMPLE_ROWS, kept_sample, spread_rows
from ...rows.chunks.limits import Plan
from ...rows.chunks.rows import Preparation, PreparedRows, TrainingRows
from ...rows.chunks.shared_survey import shared_survey
from ...rows.chunks.sources import Source
from ...rows.chunks.survey import Division, HeldRows, survey
from ...rows.problem import Problem
from ..base import GrowingEstimator
from .calibration import HeldOut
from .chunk_preparation import preparation_of
from .data import MIN_VALIDATION_ROWS, Constants, FitData, check_classes
from .inputs import check_eval_set
from .sources import memory_limit_of

__all__ = ["SourceData"]


class SourceData(FitData):
    """A source, of which each rank has its own; the first pass over it finds out what the fit has to know."""

    _preparation: Preparation
    _problem: Problem
    kind, same_rows_validate = "chunks", True

    def __init__(
        self, estimator: GrowingEstimator[Any], source: Source, eval_set: Any, classification: bool
    ) -> None:
        self.estimator, self.source, self.team = estimator, source, current()
        self.classification, self.name = classification, type(estimator).__name__
        self.team.together(partial(_check_parameters, estimator))
        _remember_columns(estimator, source)
        self.eval_rows = self.team.together(partial(check_eval_set, estimator, eval_set))
        self.plan = Plan(memory_limit_of(estimator), source.n_features, 1)
        self.n_features, self.n_targets, self.classes = source.n_features, None, None

    def family(self, estimator: GrowingEstimator[Any]) -> GrowingEstimator[Any]:
        """One network without a student; with so many rows no single one matters to the search."""
        single = copy(estimator)
        single.n_estimators, single.distill = 1, None
        if single.search_score == "loo":
            single.search_score = "gcv"  # which takes one pass over the rows
        return single

    def survey(self, seed: int, n_threads: int) -> None:
        team = self.team
        team.together(self._check_size)
        source = self.source.numbered_from(team.before(self.source.n_rows))
        division = self._division(team.total(source.n_rows), seed)
        by_class = self.classification and self.estimator.class_weight is not None
        own = team.together(lambda: survey(source, division, self.classification, by_class, n_threads))
        everywhere = shared_survey(own, team)
        here = everywhere.sample.arrays(source.n_features)
        sample = self._sample(here[0], here[2])
        ready = preparation_of(everywhere, division, self.estimator, sample)
        training = TrainingRows(source, ready, sum(own.n_train), self.plan)
        held = self._validation(ready, everywhere.validation)
        team.together(partial(_check_held, here[0], "are trained on"))
        first = ready.held(*here)
        validation = None if held is None else Problem(held.x, held.target, held.weight)
        held_rows = Problem(first.x, first.target, first.weight, validation)
        self._problem = held_rows.read_in_chunks(training, team)
        self.constants = Constants(ready.scaling, ready.ranges, ready.shift, ready.spread)
        self.seen_rows, self.sample = sample[0], kept_sample(sample[0])
        self.classes, self.n_targets = ready.classes, ready.n_outputs
        self.single_target = everywhere.y_ndim == 1

    def _check_size(self) -> None:
        if self.source.n_rows < 2:
            raise ValueError(f"{self.name} needs at least 2 rows, and the source has {self.source.n_rows}")
        self.plan.check_chunks(int(self.source.sizes.max()))

    def _division(self, n_rows: int, seed: int) -> Division:
        """Shares of rows that validate and that are sampled, so that neither are more than can be held."""
        fraction = 0.0 if self.eval_rows is not None else self.estimator.validation_fraction
        most = self.plan.held_rows
        validates = min(fraction * n_rows, float(most)) / n_rows
        if validates * n_rows < MIN_VALIDATION_ROWS:
            validates = 0.0
        rest = n_rows * (1 - validates)
        return Division(seed, validates, 1.0 if rest <= most else most / rest)

    def _sample(self, x: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and weights of some of the rows that all ranks hold."""
        team = self.team
        chosen = spread_rows(len(x), team.before(len(x)), team.total(len(x)), SAMPLE_ROWS)
        return team.joined(x[chosen].astype(np.float64)), team.joined(weight[chosen])

    def _validation(self, ready: Preparation, held: HeldRows) -> PreparedRows | None:
        """The rows of the eval_set, or those that the survey has put aside."""
        if self.eval_rows is not None:
            x, y = self.eval_rows
            if ready.classes is not None:
                self.team.together(partial(check_classes, y, ready.classes))
            return ready.held(x, y, np.ones(len(x)), self._mean_weight)
        if not self.team.total(len(held)):
            return None
        self.team.together(partial(_check_held, held.x, "validate"))
        return ready.held(*held.arrays(self.n_features), self._mean_weight)

    def _mean_weight(self, weight: np.ndarray) -> float:
        return self.team.mean_weight(weight, len(weight))

    def engine(self, n_threads: int) -> Engine:
        return NativeEngine(n_threads)

    def fingerprints(self) -> dict[str, str]:
        """Statistics, and rows that are held: another pass over the source would take too long."""
        scaling, problem = self.constants.scaling, self._problem
        everywhere = {
            "sizes of chunks": self.team.joined(np.asarray(self.source.sizes)),
            "means of X": scaling.center,
            "scales of X": scaling.scale,
            "memory_limit": np.array([self.plan.limit]),
        }
        here = {"sample of X": problem.x, "sample of y": problem.target}
        if problem.validation is not None:
            here |= {"validation X": problem.validation.x, "validation y": problem.validation.target}
        prints = {name: fingerprint(array) for name, array in everywhere.items()}
        return prints | {name: self.team.fingerprint(array) for name, array in here.items()}

    def divide(self, seed: int, engine: Engine) -> int:
        """The survey has found the constants, and one network is grown from all rows."""
        return 1

    def rows_to_learn(self) -> int:
        return self._problem.n_rows

    def problem(self, number: int) -> Problem:
        return self._problem

    def held_out(self, network: Network, number: int) -> HeldOut | None:
        rows = self._problem.validation
        if rows is None:
            return None
        shift, spread = self.constants.shift, self.constants.spread
        limits = head_limits(network, self.constants.scaling(self.seen_rows))
        network.head_low, network.head_high = limits or (None, None)
        outputs, target = (values * spread + shift for values in (network.outputs(rows.x), rows.target))
        return HeldOut(rows.x, outputs, target, rows.weight)

    def distilled(self, teacher: Network, loss: str) -> Problem:
        raise ValueError("a network that is grown from a source has no student")


def _check_parameters(estimator: GrowingEstimator[Any]) -> None:
    """Refuse what a source cannot do, before it is read."""
    n_estimators, distill, device = estimator.n_estimators, estimator.distill, estimator.device
    if not is_auto(n_estimators) and n_estimators != 1:
        raise ValueError(
            f"one network is grown from a source: n_estimators must be 1 or 'auto', got {n_estimators!r}"
        )
    if distill is not None and not is_auto(distill):
        raise ValueError(
            f"a network that is grown from a source has no student: distill must be None or 'auto', "
            f"got {distill!r}"
        )
    if device not in ("auto", "cpu"):
        raise ValueError(f"a source is read on the CPU: device must be 'auto' or 'cpu', got {device!r}")


def _remember_columns(estimator: GrowingEstimator[Any], source: Source) -> None:
    """What scikit-learn's validation does for arrays."""
    estimator.n_features_in_, estimator.table_ = source.n_features, None
    with suppress(AttributeError):
        del estimator.feature_names_in_
    if source.feature_names is not None:
        estimator.feature_names_in_ = np.array(source.feature_names, dtype=object)


def _check_held(rows: Sized, purpose: str) -> None:
    if not len(rows):
        raise ValueError(f"none of the rows of the source that have any weight {purpose}: give more rows")
