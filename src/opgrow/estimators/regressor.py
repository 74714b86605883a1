"""What the regressors of all families share: how they are fitted, and how they predict numbers."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from ..common.checks import check_number
from ..common.team import current
from ..network import Network
from ..rows.chunks.sources import Source
from ..rows.preparation import as_array, as_numbers, in_units, moments
from .base import Settings
from .fit.array_data import ArrayData
from .fit.data import FitData
from .fit.fitting import Fit
from .fit.inputs import EvalSet, check_eval_set, check_rows
from .fit.source_data import SourceData
from .fit.sources import as_source, targets_of
from .outputs import network_outputs
from .parameter_groups import MachineParameters, RowParameters
from .parameters import check_common
from .publishing import PublishingEstimator

__all__ = ["GrowingRegressor"]


class GrowingRegressor(MachineParameters, RowParameters, RegressorMixin, PublishingEstimator[Settings]):
    """Fits and predicts one or several numeric targets."""

    n_targets_: int
    single_target_: bool

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(
        self,
        X: ArrayLike | Source,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        eval_set: EvalSet | None = None,
    ) -> Self:
        """Grow a network for one or several numeric targets.

        Parameters
        ----------
        X : array-like, data frame, torch tensor or memory map of shape (n_samples, n_features)
            Or, for HeMLGOP, HoMLGOP, HeMLRN and HoMLRN, a source (see `opgrow.stream`), which has y in it.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
        eval_set : pair (X, y), optional
            Validation data; replaces the split of ``validation_fraction``.
        """
        current().together(partial(check_common, self))
        source = as_source(self, X, y, sample_weight)
        data: FitData
        if source is not None:
            data = SourceData(self, source, eval_set, classification=False)
        else:
            data = self._rows(X, y, sample_weight, eval_set)
        Fit(self, data).run()
        assert data.n_targets is not None
        self.n_targets_, self.single_target_ = data.n_targets, data.single_target
        return self

    def _rows(
        self,
        X: ArrayLike | Source,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        eval_set: EvalSet | None,
    ) -> ArrayData:
        """Check arrays; their targets become columns of numbers."""
        team = current()
        x, numbers, weight = team.together(partial(check_rows, self, X, y, sample_weight))
        held = team.together(partial(check_eval_set, self, eval_set))
        weight = in_units(weight, team)
        target = team.together(partial(as_numbers, numbers))
        validation = None
        if held is not None:
            validation = held[0], team.together(partial(_as_many, held[1], target.shape[1]))
        data = ArrayData(self, x, target, weight, None, validation)
        data.single_target = numbers.ndim == 1
        return data

    def _target_constants(self, target: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return moments(target, weight, "y", team=current())

    def _predictions(self, network: Network, x: np.ndarray, loss: str) -> np.ndarray:
        return network_outputs(network, x, self.device)

    def predict(self, X: ArrayLike | Source) -> np.ndarray:
        """Predicted targets, of the shape that y had in `fit`."""
        outputs = self._outputs(X).astype(np.float64)
        return outputs[:, 0] if self.single_target_ else outputs

    def predict_interval(self, X: ArrayLike | Source, coverage: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds between which the targets of a share of all rows should lie.

        They are wider where the networks of an average disagree. How wide they have to be is known from the
        validation rows, which each network predicts without having learned from them; so they hold for
        rows that resemble the training rows, on average over all of them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a source
        coverage : float, default=0.9
            The share of rows, above 0 and below 1.

        Returns
        -------
        low, high : arrays of the shape that y had in `fit`

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from opgrow import HeMLRNRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = HeMLRNRegressor(random_state=0).fit(X[:300], y[:300])
        >>> low, high = model.predict_interval(X[300:], coverage=0.8)
        >>> bool(0.7 < ((low <= y[300:]) & (y[300:] <= high)).mean() < 0.9)
        True
        """
        check_number("coverage", coverage, 1e-6, 1 - 1e-6)
        outputs = self._outputs(X).astype(np.float64)
        intervals = self.intervals_
        if intervals is None:
            raise ValueError(
                f"this {type(self).__name__} knows nothing of its errors, as no rows validated it: fit it "
                "again with a validation_fraction above 0 or an eval_set"
            )
        chunks = self._chunks(X)
        half = np.concatenate([intervals.half_widths(self.network_, x, coverage) for x in chunks])
        low, high = outputs - half, outputs + half
        return (low[:, 0], high[:, 0]) if self.single_target_ else (low, high)

    def score(
        self,
        X: ArrayLike | Source,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """R2 on rows and their targets, or on a source, which has both."""
        if isinstance(X, Source) and y is None:
            y, sample_weight = targets_of(X)
        predicted, y = self.predict(X), as_array(y)
        largest = np.abs(predicted).max(initial=0.0)
        if largest > 1e100 or 0 < largest < 1e-100:  # whose squares overflow or vanish; R2 has no unit
            unit = np.ldexp(1.0, np.frexp(largest)[1] - 1)
            predicted, y = predicted / unit, np.asarray(y, np.float64) / unit
        return float(r2_score(y, predicted, sample_weight=sample_weight))


def _as_many(y: np.ndarray, n_targets: int) -> np.ndarray:
    """The targets of an eval_set, which are as many as those of the training rows."""
    target = as_numbers(y, "eval_set")
    if target.shape[1] != n_targets:
        raise ValueError(f"eval_set has {target.shape[1]} targets, but y has {n_targets}")
    return target
