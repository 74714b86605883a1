"""The estimators of a task by the names of their methods: what the command line and the experiments offer."""

from __future__ import annotations

from typing import Any

from sklearn.base import ClassifierMixin

from ..growth.methods import METHODS
from .base import GrowingEstimator
from .registry import ESTIMATORS

__all__ = ["estimators_of"]


def estimators_of(task: str) -> dict[str, type[GrowingEstimator[Any]]]:
    """Estimators for "classification" or "regression", in the order of the methods."""
    classifies = task == "classification"
    of_task = {
        cls._method.name: cls for cls in ESTIMATORS.values() if issubclass(cls, ClassifierMixin) == classifies
    }
    return {name: of_task[name] for name in METHODS if name in of_task}
