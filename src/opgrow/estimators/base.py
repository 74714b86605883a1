"""What all estimators share: the parameters of every family, and the questions that a fit asks them.

A family of methods is a subclass of `GrowingEstimator` that declares its parameters; `_settings` and
`_complete` say what they mean. Its classifiers and regressors also inherit from
`GrowingClassifier` or `GrowingRegressor`, which fit and predict.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from ..growth.loop import Method
from ..growth.model import GrownModel
from ..growth.settings import GrowthSettings
from ..network import Network
from ..rows.problem import Problem
from ..rows.tables import TableEncoder
from .intervals import Intervals
from .listeners.base import Callback
from .stream.state import Running

__all__ = ["GrowingEstimator", "NetworkSize", "Settings"]

Settings = TypeVar("Settings", bound=GrowthSettings)


@dataclass(frozen=True)
class NetworkSize:
    """How large a network is, whether it exists or is only planned."""

    n_inputs: int
    n_outputs: int
    n_parameters: int

    @classmethod
    def of(cls, network: Network) -> Self:
        """The size of a network that exists."""
        return cls(network.n_inputs, network.n_outputs, network.n_parameters())


class GrowingEstimator(GrownModel, BaseEstimator, ABC, Generic[Settings]):
    """What classifiers and regressors of all families share."""

    _method: ClassVar[Method]
    # The parameters of every family.
    validation_fraction: float
    standardize: bool
    device: str
    n_jobs: int | None
    max_parameters: int | None
    max_seconds: float | None
    checkpoint_dir: str | os.PathLike[str] | None
    checkpoint_seconds: float
    callbacks: Sequence[Callback] | None
    verbose: int
    random_state: int | np.random.RandomState | None
    table: TableEncoder | None
    #: What is known of the errors of a regressor.
    intervals_: Intervals | None = None
    #: What `partial_fit` holds of the rows that it has seen.
    running_: Running | None = None
    #: Whether the head of what is grown goes on learning, for which it needs features to spare.
    _learns_on: bool = False

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``table__max_categories=20`` gives the table an encoder if it has none.

        Parameters
        ----------
        **params
            Parameters of the estimator, and with ``table__`` in front those of its encoder.
        """
        wished = any(name.startswith("table__") for name in params)
        if wished and getattr(self, "table", None) is None and params.get("table") is None:
            params = {**params, "table": TableEncoder()}
        super().set_params(**params)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = True
        tags.input_tags.categorical = tags.input_tags.sparse = True
        return tags

    # --- answered by each family ---

    @abstractmethod
    def _settings(self, classification: bool) -> Settings:
        """Check all parameters and translate them, before any work."""

    def _complete(self, settings: Settings, problem: Problem) -> Settings:
        """Fill in what `_settings` returned where it depends on the size of the data."""
        return settings

    def _n_networks(self, n_rows: int) -> int:
        """How many networks are grown from so many rows and averaged."""
        return 1

    def _sketch_rows(self) -> int | None:
        """From how many of the training rows blocks are grown; None: from all."""
        return None

    def _member(self, settings: Settings, number: int, n_networks: int, n_rows: int) -> list[Settings]:
        """Settings of one of the networks that are averaged, from 0, which learns from so many rows.

        Of several settings, each is of a larger network than the one before; held-out rows decide.
        """
        return [settings]

    def _student_follows(self, max_parameters: int | None) -> bool:
        """Whether `_student` may have settings."""
        return False

    def _students(self, settings: Settings, teacher: NetworkSize) -> list[list[Settings]]:
        """Settings of networks that learn from the grown one, or from the average; one takes its place.

        Each list has one kind of network, the smallest first; a later list is of another kind, which takes
        more time to compute. Without any, the grown network stays.
        """
        return []

    # --- answered by classifiers and regressors ---

    @abstractmethod
    def _target_constants(self, target: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What is subtracted from each target, and what it is divided by then."""

    @abstractmethod
    def _predictions(self, network: Network, x: np.ndarray, loss: str) -> np.ndarray:
        """What a network that was grown for a loss predicts for rows, as targets have it: (n, outputs)."""
