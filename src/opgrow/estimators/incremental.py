"""How every estimator goes on learning: `partial_fit` grows a network once, and then updates its head."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from ..common.checks import is_number
from ..common.team import current
from .base import Settings
from .learning import LearningEstimator
from .stream.rows import Rows, check_more_rows
from .stream.state import LearnedRows, Running

__all__ = ["IncrementalEstimator", "Labelled"]


class Labelled(NamedTuple):
    """Further rows with their targets as columns.

    Attributes
    ----------
    rows : LearnedRows
    places : for each column, which one it has been, or -1 for a new one
    labels : what the estimator has to remember of the targets, by the names of its attributes
    """

    rows: LearnedRows
    places: np.ndarray
    labels: dict[str, Any]


class IncrementalEstimator(LearningEstimator[Settings]):
    """An estimator that learns from further rows; classifiers and regressors say what targets are."""

    forgetting: float

    def _learn(
        self,
        x: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        classes: np.ndarray | None = None,
    ) -> Self:
        """Grow a network from the rows of the first call; then its head is that of all rows seen."""
        first = not hasattr(self, "network_")
        self._check_stream(first)
        if first:
            self.fit(x, y, sample_weight)
        labelled = self._labelled(check_more_rows(self, x, y, sample_weight), classes)
        if first:
            state = Running.of(self.network_, labelled.rows, self.forgetting)
        else:
            before = self._taught() if self.running_ is None else self.running_
            before = before.with_targets(labelled.places)
            state = before.learned(self.network_, labelled.rows, self.forgetting)
        self.network_, self.running_ = state.network(self.network_), state
        for name, value in labelled.labels.items():
            setattr(self, name, value)
        return self

    def _check_stream(self, first: bool) -> None:
        """Refuse what cannot go on learning, before any work."""
        name = type(self).__name__
        if not is_number(self.forgetting) or not 0 < self.forgetting <= 1:
            raise ValueError(f"forgetting must be a number above 0 and at most 1, got {self.forgetting!r}")
        if not current().alone:
            raise ValueError("partial_fit learns in one process, and this is one of several ranks")
        if not first and self.running_ is None and self.sample_ is None:
            raise ValueError(
                f"this {name} holds neither sums nor a sample of the rows that it was fitted to, so that "
                f"partial_fit would forget them: call partial_fit on a new {name}, first with such rows"
            )

    def _taught(self) -> Running:
        """The state of a network that `fit` has grown: it has learned what it says of its sample."""
        assert self.sample_ is not None
        answers = self._predictions(self.network_, self.sample_, self.loss_)
        rows = LearnedRows(self.sample_, answers, np.ones(len(answers)))
        return Running.of(self.network_, rows, 1.0)

    @abstractmethod
    def _labelled(self, rows: Rows, classes: np.ndarray | None) -> Labelled:
        """Rows that have been checked, with the targets as columns, of classes that a user has named, too."""
