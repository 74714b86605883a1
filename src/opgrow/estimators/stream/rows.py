"""Further rows for a fitted estimator: inputs, targets and weights are checked against those of its fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import _check_sample_weight

from ...rows.preparation import as_array, check_labels, checking
from ..base import GrowingEstimator
from ..fit.inputs import check_inputs, target_options
from ..fit.tables import checked_targets

__all__ = ["Rows", "check_more_rows", "check_named", "joined_classes", "named_classes"]

#: Inputs as the network takes them, targets as the user has them, and weights: of rows with a weight above 0.
Rows = tuple[np.ndarray, np.ndarray, np.ndarray]


def check_more_rows(estimator: GrowingEstimator[Any], x: Any, y: Any, sample_weight: Any) -> Rows:
    """Rows to learn from beside those that a fitted estimator has seen."""
    check_labels(y, is_classifier(estimator))
    inputs = check_inputs(estimator, x)
    with checking():
        target = checked_targets(estimator, as_array(y), **target_options(estimator))
        weight = _check_sample_weight(
            as_array(sample_weight), inputs, dtype=np.float64, ensure_non_negative=True
        )
    if len(inputs) != len(target):
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: [{len(inputs)}, {len(target)}]"
        )
    keep = weight > 0
    return inputs[keep], target[keep], weight[keep]


def named_classes(classes: Any) -> np.ndarray:
    """The classes that a user names, sorted."""
    check_labels(classes, True, "classes")
    array = np.asarray(as_array(classes))
    if array.ndim != 1 or not len(array):
        raise ValueError(f"classes must be a list of class labels, got {classes!r}")
    return np.unique(array)


def check_named(y: Any, classes: np.ndarray) -> None:
    """Refuse labels of the first rows that are not among the classes which the user names for them."""
    check_labels(y, True)
    labels = np.unique(np.asarray(as_array(y)))
    unknown = np.setdiff1d(labels, classes) if _kind(labels) == _kind(classes) else labels
    if len(unknown):
        raise ValueError(
            f"y has the class {unknown.tolist()[0]!r}, which is not among classes={classes.tolist()}"
        )


def joined_classes(known: np.ndarray, new: np.ndarray, what: str) -> np.ndarray:
    """The known classes and the new ones, sorted; labels of both have to be of one kind."""
    kinds = [_kind(known), _kind(new)]
    if kinds[0] != kinds[1]:
        raise ValueError(f"{what} has labels that are {kinds[1]}, and the classes so far are {kinds[0]}")
    return np.union1d(known, new)


def _kind(labels: np.ndarray) -> str:
    text = labels.dtype.kind in "SU" or (
        labels.dtype.kind == "O" and any(isinstance(label, str) for label in labels.tolist())
    )
    return "text" if text else "numbers"
