"""How every estimator learns from rows or from a source, and how it is scored on them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier

from ..common.team import current
from ..rows.chunks.sources import Source
from .base import Settings
from .fit.array_data import ArrayData
from .fit.data import FitData
from .fit.fitting import Fit
from .fit.inputs import EvalSet, check_rows
from .fit.source_data import SourceData
from .fit.sources import as_source, targets_of
from .parameters import check_common
from .publishing import PublishingEstimator

__all__ = ["LearningEstimator", "ScoredEstimator"]


class LearningEstimator(PublishingEstimator[Settings]):
    """An estimator that is fitted; classifiers and regressors say what targets are."""

    def fit(
        self,
        X: ArrayLike | Source,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        eval_set: EvalSet | None = None,
    ) -> Self:
        """Grow a network that predicts classes, or one or several numeric targets.

        Parameters
        ----------
        X : array-like, data frame, sparse matrix, torch tensor or memory map of shape (n_samples, n_features)
            Columns may hold text, dates and gaps: ``table_`` says what became of them. Or, for HeMLGOP,
            HoMLGOP, HeMLRN and HoMLRN, a source (see `opgrow.stream`), which has y in it.
        y : array-like of shape (n_samples,), or for regressors (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
        eval_set : pair (X, y), optional
            Validation data; replaces the split of ``validation_fraction``.
        """
        team = current()
        team.together(partial(check_common, self))
        source = as_source(self, X, y, sample_weight)
        data: FitData
        if source is not None:
            data = SourceData(self, source, eval_set, classification=is_classifier(self))
        else:
            data = self._rows(*team.together(partial(check_rows, self, X, y, sample_weight)), eval_set)
        Fit(self, data).run()
        self._keep_targets(data)
        self.running_ = None
        return self

    @abstractmethod
    def _rows(self, x: np.ndarray, y: np.ndarray, weight: np.ndarray, eval_set: EvalSet | None) -> ArrayData:
        """Rows that have been checked, with their targets as columns of numbers."""

    @abstractmethod
    def _keep_targets(self, data: FitData) -> None:
        """Keep what predictions need to know of the targets."""


class ScoredEstimator(ABC):
    """An estimator that is scored; it stands before scikit-learn's mixins, which know no sources."""

    def score(
        self,
        X: ArrayLike | Source,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Accuracy or, for regressors, R2: on rows and their targets, or on a source, which has both."""
        if isinstance(X, Source) and y is None:
            y, sample_weight = targets_of(X)
        return self._score(X, y, sample_weight)

    @abstractmethod
    def _score(self, x: ArrayLike | Source, y: ArrayLike | None, sample_weight: ArrayLike | None) -> float:
        """The score of what is predicted."""
