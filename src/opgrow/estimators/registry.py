"""The estimators of this package by name: what a model file may name, and nothing else."""

from __future__ import annotations

from typing import Any, TypeVar

from .base import GrowingEstimator

__all__ = ["ESTIMATORS", "listed"]

Estimator = TypeVar("Estimator", bound=type[GrowingEstimator[Any]])
ESTIMATORS: dict[str, type[GrowingEstimator[Any]]] = {}


def listed(estimator: Estimator) -> Estimator:
    """Let model files name an estimator; classes that users derive from it stay unknown to them."""
    ESTIMATORS[estimator.__name__] = estimator
    return estimator
