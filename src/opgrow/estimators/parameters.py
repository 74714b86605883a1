"""Parameters that all families share: their checks, and what they mean.

Parameters are checked in `fit`, as scikit-learn does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..common.checks import check_flag, check_integer, check_number, is_integer, is_number
from ..common.team import ALONE, Alone
from ..common.threads import default_threads
from ..growth.devices import check_device
from ..operators import OperatorSet
from .base import GrowingEstimator

__all__ = [
    "ClassWeight",
    "Folder",
    "Operators",
    "RandomState",
    "check_common",
    "class_weights",
    "n_threads",
]

ClassWeight = Mapping[Any, float] | str | None
Folder = str | os.PathLike[str] | None
Operators = str | Sequence[OperatorSet | Sequence[str]]
RandomState = int | np.random.RandomState | None


def check_common(p: GrowingEstimator[Any]) -> None:
    """Check what all estimators have; the thread count is checked by `n_threads`."""
    check_number("validation_fraction", p.validation_fraction, 0.0, 0.9)
    check_flag("standardize", p.standardize)
    if not isinstance(p.verbose, bool):
        check_integer("verbose", p.verbose, 0)
    check_device(p.device)
    if p.checkpoint_dir is not None and not isinstance(p.checkpoint_dir, str | os.PathLike):
        raise ValueError(f"checkpoint_dir must be a path or None, got {p.checkpoint_dir!r}")
    check_number("checkpoint_seconds", p.checkpoint_seconds, 0.0, np.inf)


def class_weights(
    class_weight: ClassWeight,
    classes: np.ndarray,
    codes: np.ndarray,
    team: Alone = ALONE,
) -> np.ndarray:
    """A weight for every row, from a dictionary or "balanced" (inversely proportional to class counts).

    The counts are those of all ranks of a team.
    """
    if isinstance(class_weight, str) and class_weight == "balanced":
        counts = np.bincount(codes, minlength=len(classes)).astype(np.float64)
        counts = team.sum(counts, "moments")
        return (counts.sum() / (len(classes) * counts))[codes]
    if not isinstance(class_weight, dict):
        raise ValueError(f"class_weight must be a dictionary, 'balanced' or None, got {class_weight!r}")
    labels = classes.tolist()
    unknown = [label for label in class_weight if label not in labels]
    if unknown:
        raise ValueError(f"class_weight names the class {unknown[0]!r}, but y has only {labels}")
    weights = [class_weight.get(label, 1.0) for label in labels]
    if not (all(is_number(w) and 0 <= w < np.inf for w in weights) and any(weights)):
        raise ValueError(f"class weights must be finite, at least 0 and not all 0, got {class_weight!r}")
    return np.array(weights, np.float64)[codes]


def n_threads(n_jobs: int | None) -> int:
    """The number of threads that ``n_jobs`` asks for."""
    if n_jobs is None:
        return default_threads()
    if not is_integer(n_jobs) or (n_jobs < 1 and n_jobs != -1):
        raise ValueError(f"n_jobs must be None, -1 or an integer of at least 1, got {n_jobs!r}")
    if n_jobs == -1:
        import joblib

        return int(joblib.cpu_count())
    return int(n_jobs)
