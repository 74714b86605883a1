"""What users pass to `fit` and `predict`: a matrix, as scikit-learn checks it, or a table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.utils.validation import _check_sample_weight, validate_data

from ...rows.preparation import as_array, check_labels, checking
from ...rows.tables import TableEncoder
from ..base import GrowingEstimator
from .tables import Given, as_given, checked_targets, encoded, learn_table

__all__ = ["EvalSet", "check_eval_set", "check_inputs", "check_rows", "target_options"]

#: Inputs and targets, or a list with that one pair.
EvalSet = tuple[ArrayLike, ArrayLike] | list[tuple[ArrayLike, ArrayLike]]
#: How scikit-learn is to check the targets of regressors.
_NUMBERS = {"multi_output": True, "y_numeric": True}


def check_inputs(estimator: GrowingEstimator[Any], x: Any) -> np.ndarray:
    """The rows that a network takes, of X that a fitted estimator is given."""
    given = as_given(_tensor(x), estimator.table)
    if isinstance(given, Given) or estimator.table_ is not None:
        return encoded(estimator, given if isinstance(given, Given) else Given(_matrix(given)))
    return _checked(estimator, given, reset=False)


def _tensor(x: Any) -> Any:
    """A tensor of torch as an array; frames and masked arrays stay what they are."""
    return as_array(x) if type(x).__module__.split(".")[0] == "torch" else x


def _matrix(x: Any) -> Any:
    """Rows of numbers as a table has them, of a sequence of rows."""
    return x if hasattr(x, "dtype") or hasattr(x, "columns") else np.asarray(x)


def _checked(estimator: GrowingEstimator[Any], *data: Any, **options: Any) -> Any:
    """X, or X and y, as scikit-learn checks them."""
    with checking():
        arrays = [as_array(part) for part in data]
        return validate_data(estimator, *arrays, dtype=[np.float64, np.float32], **options)


def check_rows(
    estimator: GrowingEstimator[Any], x: Any, y: Any, sample_weight: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, targets and weights of the rows to fit; the estimator gets its encoder if X is a table."""
    check_labels(y, is_classifier(estimator))
    _check_wishes(estimator)
    options = target_options(estimator)
    given = as_given(_tensor(x), estimator.table)
    if isinstance(given, Given):
        with checking():
            x, y = learn_table(estimator, given, as_array(y), **options)
    else:
        estimator.table_ = None
        x, y = _checked(estimator, given, y, ensure_min_samples=2, **options)
    with checking():
        weight = _check_sample_weight(as_array(sample_weight), x, dtype=np.float64, ensure_non_negative=True)
    if not weight.any():
        raise ValueError("sample_weight is zero for every row; at least one row must count")
    return x, y, weight


def _check_wishes(estimator: GrowingEstimator[Any]) -> None:
    if estimator.table is not None and not isinstance(estimator.table, TableEncoder):
        raise ValueError(f"table must be a TableEncoder or None, got {estimator.table!r}")


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
        x, y = (as_array(part) if i else part for i, part in enumerate(eval_set))
        options = target_options(estimator)
        given = as_given(_tensor(x), estimator.table)
        if estimator.table_ is None:
            if isinstance(given, Given):
                raise ValueError(
                    "its X is a table with text, dates or gaps, and the X to fit has numbers alone"
                )
            return _checked(estimator, given, y, reset=False, **options)
        x, y = check_inputs(estimator, x), checked_targets(estimator, y, **options)
        if len(x) != len(y):
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: [{len(x)}, {len(y)}]"
            )
        return x, y
    except (ValueError, TypeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"eval_set: {error}") from error


def target_options(estimator: GrowingEstimator[Any]) -> dict[str, bool]:
    return {} if is_classifier(estimator) else _NUMBERS
