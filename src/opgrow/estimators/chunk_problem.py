"""From a source and its survey to the problem that a network is grown from."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..common.fingerprints import fingerprint
from ..growth.engine import NativeEngine
from ..network.scaling import BOUND, SAMPLE_ROWS, Scaling, robust, spread_rows
from ..rows.chunks.limits import Plan
from ..rows.chunks.moments import ColumnMoments
from ..rows.chunks.rows import Preparation, TrainingRows
from ..rows.chunks.shared_survey import shared_survey
from ..rows.chunks.sources import Source
from ..rows.chunks.survey import Division, Survey, survey
from ..rows.preparation import scale_of
from ..rows.problem import Problem
from .parameters import class_weights

__all__ = ["Opened", "open_problem"]

#: Below this many rows a validation split decides by luck.
_MIN_VALIDATION_ROWS = 8


@dataclass(frozen=True)
class Opened:
    """A problem, what grows a network from it, and what the network has to know of the data."""

    problem: Problem
    engine: NativeEngine
    preparation: Preparation
    sample: np.ndarray
    y_ndim: int

    def known(self, ranks: Any) -> dict[str, str]:
        """What tells this data from other data without another pass: statistics, and rows that are held."""
        ready, problem, training = self.preparation, self.problem, self.problem.chunks
        assert training is not None
        everywhere = {
            "sizes of chunks": ranks.joined(np.asarray(training.source.sizes)),
            "means of X": ready.scaling.center,
            "scales of X": ready.scaling.scale,
            "memory_limit": np.array([training.plan.limit]),
        }
        here = {"sample of X": problem.x, "sample of y": problem.target}
        if problem.validation is not None:
            here |= {"validation X": problem.validation.x, "validation y": problem.validation.target}
        prints = {name: fingerprint(array) for name, array in everywhere.items()}
        return prints | {name: ranks.fingerprint(array) for name, array in here.items()}


def open_problem(
    source: Source,
    *,
    classification: bool,
    class_weight: Any,
    limit: int,
    validation_fraction: float,
    eval_set: tuple[np.ndarray, np.ndarray] | None,
    standardize: bool,
    seed: int,
    n_threads: int,
    owner: str,
    ranks: Any,
) -> Opened:
    """Go through a source once and get it ready for growth; of several ranks, each has one of its own."""
    plan = Plan(limit, source.n_features, 1)
    ranks.together(partial(_check_size, source, plan, owner))
    source = source.numbered_from(ranks.before(source.n_rows))
    total = ranks.total(source.n_rows)
    division = _division(total, plan, 0.0 if eval_set is not None else validation_fraction, seed)
    by_class = class_weight is not None
    own = ranks.together(lambda: survey(source, division, classification, by_class, n_threads))
    found = shared_survey(own, ranks)
    here = found.sample.arrays(source.n_features)
    sample = _sample(here, ranks)
    preparation = _preparation(found, division, class_weight, standardize, sample, owner)
    training = TrainingRows(source, preparation, sum(own.n_train), plan)
    held = None

    def mean_weight(weight: np.ndarray) -> float:
        return ranks.mean_weight(weight, len(weight))

    if eval_set is not None:
        ranks.together(lambda: _check_classes(eval_set[1], preparation.classes))
        held = preparation.held(eval_set[0], eval_set[1], np.ones(len(eval_set[0])), mean_weight)
    elif ranks.total(len(found.validation)):
        ranks.together(partial(_check_held, found.validation.x, "validate"))
        x, y, weight = found.validation.arrays(source.n_features)
        held = preparation.held(x, y, weight, mean_weight)
    ranks.together(partial(_check_held, here[0], "are trained on"))
    first = preparation.held(*here)
    validation = None if held is None else Problem(held.x, held.target, held.weight)
    problem = Problem(first.x, first.target, first.weight, validation).read_in_chunks(training, ranks)
    return Opened(problem, NativeEngine(n_threads), preparation, sample[0], found.y_ndim)


def _sample(here: tuple[np.ndarray, np.ndarray, np.ndarray], ranks: Any) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and weights of some of the rows that all ranks hold."""
    x, _, weight = here
    chosen = spread_rows(len(x), ranks.before(len(x)), ranks.total(len(x)), SAMPLE_ROWS)
    return ranks.joined(x[chosen].astype(np.float64)), ranks.joined(weight[chosen])


def _check_size(source: Source, plan: Plan, owner: str) -> None:
    if source.n_rows < 2:
        raise ValueError(f"{owner} needs at least 2 rows, and the source has {source.n_rows}")
    plan.check_chunks(int(source.sizes.max()))


def _check_classes(y: np.ndarray, classes: np.ndarray | None) -> None:
    if classes is not None:
        unknown = np.setdiff1d(y, classes)
        if unknown.size:
            raise ValueError(f"eval_set has classes that y does not have: {unknown.tolist()}")


def _division(n_rows: int, plan: Plan, fraction: float, seed: int) -> Division:
    """Shares of rows that validate and that are sampled, so that neither are more than can be held."""
    validates = min(fraction * n_rows, float(plan.held_rows)) / n_rows
    if validates * n_rows < _MIN_VALIDATION_ROWS:
        validates = 0.0
    rest = n_rows * (1 - validates)
    return Division(seed, validates, 1.0 if rest <= plan.held_rows else plan.held_rows / rest)


def _check_held(rows: Sized, purpose: str) -> None:
    if not len(rows):
        raise ValueError(f"none of the rows of the source that have any weight {purpose}: give more rows")


def _preparation(
    found: Survey,
    division: Division,
    class_weight: Any,
    standardize: bool,
    sample: tuple[np.ndarray, np.ndarray],
    owner: str,
) -> Preparation:
    n_features, classes, factors = sample[0].shape[1], None, None
    if found.classification:
        classes = np.array(sorted(found.counts))
        if len(classes) < 2:
            raise ValueError(f"{owner} needs at least 2 classes, got 1 class: {classes[0]!r}")
        if class_weight is not None:
            factors = _factors(class_weight, classes, found.counts)
    moments = ColumnMoments.nothing(n_features)
    for label in sorted(found.moments) if classes is not None and factors is not None else found.moments:
        factor = 1.0 if factors is None else float(factors[np.searchsorted(classes, label)])  # type: ignore[arg-type]
        moments.add(found.moments[label], factor)
    if not moments.weight > 0:
        raise ValueError("the weights are zero for every row; at least one row must count")
    assert found.ranges is not None
    scaling = Scaling.nothing(n_features)
    if standardize:
        scale = scale_of(moments.mean, moments.variance, sum(found.n_train))
        scaling = robust(Scaling(moments.mean, scale, BOUND), found.ranges, *sample)
    if classes is not None:
        shift, spread = np.zeros(len(classes)), np.ones(len(classes))
    else:
        target = found.target_moments
        assert target is not None
        shift, spread = target.mean, scale_of(target.mean, target.variance, sum(found.n_train), "y")
    mean_weight = moments.weight / max(1, sum(found.n_train))
    weighted = found.weighted or factors is not None
    return Preparation(
        division, scaling, found.ranges, classes, factors, shift, spread, mean_weight, weighted
    )


def _factors(class_weight: Any, classes: np.ndarray, counts: dict[Any, int]) -> np.ndarray:
    """The weight of each class."""
    sizes = np.array([counts[label] for label in classes.tolist()])
    if isinstance(class_weight, str) and class_weight == "balanced":
        return sizes.sum() / (len(classes) * sizes)
    return class_weights(class_weight, classes, np.arange(len(classes)))
