"""Prediction: rows are checked, the network computes its outputs, and rows far from the data are reported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ..rows.chunks.sources import Source
from .base import GrowingEstimator, Settings
from .fit.inputs import check_inputs
from .fit.sources import chunks_for
from .outputs import network_outputs
from .outside import FarRows, values_outside

__all__ = ["PredictingEstimator"]


class PredictingEstimator(GrowingEstimator[Settings]):
    """An estimator that has the outputs of its network, which classifiers and regressors read differently."""

    def _outputs(self, x: ArrayLike | Source) -> np.ndarray:
        """Outputs (n, outputs) of the network, in the units of the targets: for classes, logits or shares."""
        return self._outputs_of(self._chunks(x))

    def _outputs_of(self, chunks: Iterable[np.ndarray]) -> np.ndarray:
        """Outputs for rows as the network takes them, in chunks."""
        parts, far = [], FarRows(self)
        for chunk in chunks:
            parts.append(network_outputs(self.network_, chunk, self.device))
            far.look_at(chunk)
        far.warn()
        outputs = parts[0] if len(parts) == 1 else np.concatenate(parts)
        if not np.isfinite(outputs).all():
            finite = np.isfinite(outputs).all(axis=1)
            row, count = int(finite.argmin()), int((~finite).sum())
            raise ValueError(
                f"X is too far from the data that the network was fitted on: it overflows on {count} of "
                f"{len(finite)} rows, the first of them row {row}"
            )
        return outputs

    def _chunks(self, x: ArrayLike | Source) -> Iterator[np.ndarray]:
        """Rows that are to be predicted, checked: those of a source one chunk at a time."""
        check_is_fitted(self, "network_")
        if isinstance(x, Source):
            yield from (chunk.x for chunk in chunks_for(self, x))
        else:
            yield x if self._needs_no_check(x) else check_inputs(self, x)

    def network_rows(self, x: Any) -> np.ndarray:
        """Rows of shape ``(n, network_.n_inputs)`` as the network takes them, of X as users have it."""
        return np.concatenate(list(self._chunks(x)))

    def _needs_no_check(self, x: Any) -> TypeGuard[np.ndarray]:
        """Whether scikit-learn's checks, which take longer than a prediction, would return X itself."""
        if self.table_ is not None:
            return False
        plain = type(x) is np.ndarray and x.dtype in (np.float32, np.float64) and x.ndim == 2 and len(x) > 0
        if not plain or x.shape[1] != self.n_features_in_ or hasattr(self, "feature_names_in_"):
            return False
        with np.errstate(all="ignore"):
            return bool(np.isfinite(x.sum()))

    def outside(self, X: ArrayLike | Source) -> np.ndarray:
        """Whether rows lie far outside what was seen in training, so that their predictions are guesses.

        A row does if one of its inputs is further from the range of the training rows than that range is
        wide. Of models whose files do not tell these ranges (formats 1 and 2), no row does.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a source

        Returns
        -------
        array of bool of shape (n_samples,)

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from opgrow import HeMLRNClassifier
        >>> model = HeMLRNClassifier(preset=None, n_min=4, max_layers=1, random_state=0)
        >>> model = model.fit(*load_iris(return_X_y=True))
        >>> model.outside([[5.0, 3.5, 1.5, 0.2], [50.0, 35.0, 15.0, 2.0]])
        array([False,  True])
        """
        return np.concatenate([values_outside(self.network_, chunk).any(axis=1) for chunk in self._chunks(X)])
