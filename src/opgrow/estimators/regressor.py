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
from .fit.inputs import EvalSet, check_eval_set
from .incremental import IncrementalEstimator, Labelled
from .learning import ScoredEstimator
from .outputs import network_outputs
from .parameter_groups import MachineParameters, RowParameters, StreamParameters
from .stream.learned import LearnedRows
from .stream.rows import Rows
from .stream.state import Running

__all__ = ["GrowingRegressor"]


class GrowingRegressor(
    MachineParameters,
    StreamParameters,
    RowParameters,
    ScoredEstimator,
    RegressorMixin,
    IncrementalEstimator[Settings],
):
    """Fits and predicts one or several numeric targets."""

    n_targets_: int
    single_target_: bool

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _rows(self, x: np.ndarray, y: np.ndarray, weight: np.ndarray, eval_set: EvalSet | None) -> ArrayData:
        """The targets as columns of numbers."""
        team = current()
        held = team.together(partial(check_eval_set, self, eval_set))
        weight = in_units(weight, team)
        target = team.together(partial(as_numbers, y))
        validation = None
        if held is not None:
            validation = held[0], team.together(partial(_as_many, held[1], target.shape[1]))
        data = ArrayData(self, x, target, weight, None, validation)
        data.single_target = y.ndim == 1
        return data

    def _keep_targets(self, data: FitData) -> None:
        assert data.n_targets is not None
        self.n_targets_, self.single_target_ = data.n_targets, data.single_target

    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from further rows: the first call grows a network, later ones update its head exactly.

        The head becomes the least-squares solution for all rows seen, in whatever chunks they came; layers
        and the scaling of inputs and targets stay those of the first call. After `fit`, which keeps
        no sums, what the network says of its ``sample_`` takes the place of the rows that it has seen.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from opgrow import BLSRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = BLSRegressor(random_state=0).partial_fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
        >>> bool(model.score(X, y) > 0.4)
        True
        """
        return self._learn(X, y, sample_weight)

    def _adopt(self, network: Network, state: Running) -> None:
        super()._adopt(network, state)
        self.intervals_ = None  # rows that were held out told of the errors of another head

    def _labelled(self, rows: Rows, classes: np.ndarray | None) -> Labelled:
        x, y, weight = rows
        target = as_numbers(y)
        if target.shape[1] != self.n_targets_:
            raise ValueError(
                f"y has {target.shape[1]} targets, and {type(self).__name__} has {self.n_targets_}"
            )
        return Labelled(LearnedRows(x, target, weight), np.arange(self.n_targets_), {})

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
        chunks = list(self._chunks(X))
        outputs = self._outputs_of(chunks).astype(np.float64)
        intervals = self.intervals_
        if intervals is None:
            raise ValueError(
                f"this {type(self).__name__} knows nothing of its errors, as no rows validated it: fit it "
                "again, and not by partial_fit, with a validation_fraction above 0 or an eval_set"
            )
        half = np.concatenate([intervals.half_widths(self.network_, x, coverage) for x in chunks])
        low, high = outputs - half, outputs + half
        return (low[:, 0], high[:, 0]) if self.single_target_ else (low, high)

    def _score(self, x: ArrayLike | Source, y: ArrayLike | None, sample_weight: ArrayLike | None) -> float:
        predicted, y = self.predict(x), as_array(y)
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
