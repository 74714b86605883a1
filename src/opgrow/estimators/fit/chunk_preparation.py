"""From the survey of a source to what is done with the rows of each chunk."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ...network.scaling import BOUND, Scaling, robust
from ...rows.chunks.moments import ColumnMoments
from ...rows.chunks.rows import Preparation
from ...rows.chunks.survey import Division, Survey
from ...rows.preparation import scale_of
from ..base import GrowingEstimator
from ..parameters import class_weights

__all__ = ["preparation_of"]


def preparation_of(
    surveyed: Survey,
    division: Division,
    estimator: GrowingEstimator[Any],
    sample: tuple[np.ndarray, np.ndarray],
) -> Preparation:
    """What is done with rows, from the survey of all ranks and the inputs and weights of a sample."""
    n_features, n_train = sample[0].shape[1], sum(surveyed.n_train)
    classes, factors = _classes(surveyed, estimator)
    moments = _input_moments(surveyed, n_features, classes, factors)
    if not moments.weight > 0:
        raise ValueError("the weights are zero for every row; at least one row must count")
    assert surveyed.ranges is not None
    scaling = Scaling.nothing(n_features)
    if estimator.standardize:
        scale = scale_of(moments.mean, moments.variance, n_train)
        scaling = robust(Scaling(moments.mean, scale, BOUND), surveyed.ranges, *sample)
    if classes is not None:
        shift, spread = np.zeros(len(classes)), np.ones(len(classes))
    else:
        target = surveyed.target_moments
        assert target is not None
        shift, spread = target.mean, scale_of(target.mean, target.variance, n_train, "y")
    return Preparation(
        division,
        scaling,
        surveyed.ranges,
        classes,
        factors,
        shift,
        spread,
        weight=moments.weight / max(1, n_train),
        weighted=surveyed.weighted or factors is not None,
    )


def _classes(
    surveyed: Survey, estimator: GrowingEstimator[Any]
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The labels of all classes and the weight of each, if classes have weights; None for regression."""
    if not is_classifier(estimator):
        return None, None
    classes = np.array(sorted(surveyed.counts))
    if len(classes) < 2:
        name = type(estimator).__name__
        raise ValueError(f"{name} needs at least 2 classes, got 1 class: {classes[0]!r}")
    class_weight = estimator.class_weight
    if class_weight is None:
        return classes, None
    sizes = np.array([surveyed.counts[label] for label in classes.tolist()])
    if isinstance(class_weight, str) and class_weight == "balanced":
        return classes, sizes.sum() / (len(classes) * sizes)
    return classes, class_weights(class_weight, classes, np.arange(len(classes)))


def _input_moments(
    surveyed: Survey, n_features: int, classes: np.ndarray | None, factors: np.ndarray | None
) -> ColumnMoments:
    """The moments of X, those of each class with its weight where classes have weights."""
    total = ColumnMoments.nothing(n_features)
    if classes is None or factors is None:
        for moments in surveyed.moments.values():
            total.add(moments, 1.0)
        return total
    for label in sorted(surveyed.moments):
        total.add(surveyed.moments[label], float(factors[np.searchsorted(classes, label)]))
    return total
