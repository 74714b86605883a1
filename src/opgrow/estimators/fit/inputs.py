"""What users pass to `fit` and `predict`, as scikit-learn checks it, with advice on tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.utils.validation import _check_sample_weight, validate_data

from ...rows.preparation import as_array, check_labels, checking
from ...rows.tables.advice import advice
from ..base import GrowingEstimator

__all__ = ["EvalSet", "check_eval_set", "check_inputs", "check_rows"]

#: Inputs and targets, or a list with that one pair.
EvalSet = tuple[ArrayLike, ArrayLike] | list[tuple[ArrayLike, ArrayLike]]
#: How scikit-learn is to check the targets of regressors.
_NUMBERS = {"multi_output": True, "y_numeric": True}


def check_inputs(estimator: GrowingEstimator[Any], *data: Any, **options: Any) -> Any:
    """X, or X and y, as scikit-learn checks them; of tables it knows less than we do."""
    arrays = [as_array(part) for part in data]
    try:
        with checking():
            return validate_data(estimator, *arrays, dtype=[np.float64, np.float32], **options)
    except (ValueError, TypeError) as error:
        sentence = advice(arrays[0], type(estimator).__name__)
        if sentence is None:
            raise
        raise ValueError(sentence) from error


def check_rows(
    estimator: GrowingEstimator[Any], x: Any, y: Any, sample_weight: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, targets and weights of the rows to fit."""
    check_labels(y, is_classifier(estimator))
    x, y = check_inputs(estimator, x, y, ensure_min_samples=2, **_target_options(estimator))
    with checking():
        weight = _check_sample_weight(as_array(sample_weight), x, dtype=np.float64, ensure_non_negative=True)
    if not weight.any():
        raise ValueError("sample_weight is zero for every row; at least one row must count")
    return x, y, weight


def check_eval_set(estimator: GrowingEstimator[Any], eval_set: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Validation data of the user: (X, y) or a list with that one pair; None: there is none."""
    if eval_set is None:
        return None
    if isinstance(eval_set, list) and len(eval_set) == 1:
        eval_set = eval_set[0]
    listed = isinstance(eval_set, tuple | list)
    if not listed or len(eval_set) != 2 or all(isinstance(part, tuple) for part in eval_set):
        size = f" of {len(eval_set)}" if listed else ""
        raise ValueError(f"eval_set must be a pair (X, y), got {type(eval_set).__name__}{size}")
    try:
        check_labels(eval_set[1], is_classifier(estimator))
        return check_inputs(estimator, *eval_set, reset=False, **_target_options(estimator))
    except (ValueError, TypeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"eval_set: {error}") from error


def _target_options(estimator: GrowingEstimator[Any]) -> dict[str, bool]:
    return {} if is_classifier(estimator) else _NUMBERS
