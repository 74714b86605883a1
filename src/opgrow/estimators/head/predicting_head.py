"""What a head that has learned says of rows: the backbone gives features, and the estimator answers."""

from __future__ import annotations

import warnings
from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ...common.errors import RangeWarning
from ..incremental import IncrementalEstimator
from ..outside import FarRows
from .backbones import is_module, opened
from .batches import batches_of
from .features import FeatureRows, all_rows, feature_rows

if TYPE_CHECKING:
    from .modules import HeadModule

__all__ = ["CHUNK_ROWS", "PredictingHead"]

#: Rows whose features are learned from, or predicted, at once.
CHUNK_ROWS = 4096


class _Answers(NamedTuple):
    """What an estimator says of some rows, and their targets if they have such."""

    said: np.ndarray
    y: np.ndarray | None


def _classifies(head: PredictingHead) -> bool:
    return is_classifier(head)


class PredictingHead(MetaEstimatorMixin, BaseEstimator):
    """A backbone and the estimator that has learned from its features."""

    batch_rows: int
    backbone_: Any
    estimator_: IncrementalEstimator[Any]

    @property
    def classes_(self) -> np.ndarray:
        check_is_fitted(self, "estimator_")
        classes: np.ndarray = self.estimator_.classes_
        return classes

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    def features(self, X: Any) -> np.ndarray:
        """The features that ``estimator_`` sees of rows, of shape (n_samples, n_features).

        Parameters
        ----------
        X : rows, or a loader of batches X or (X, y)
        """
        check_is_fitted(self, "estimator_")
        return self._features(X, None, None, targets=False).features

    def predict(self, X: Any) -> np.ndarray:
        """Predicted classes, or numbers.

        Parameters
        ----------
        X : rows, or a loader of batches X or (X, y)
            Predictions are in the order in which a loader gives rows.
        """
        return np.concatenate([part.said for part in self._answers("predict", X)])

    @available_if(_classifies)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of shape (n_samples, n_classes); X as in `predict`."""
        return np.concatenate([part.said for part in self._answers("predict_proba", X)])

    @available_if(_classifies)
    def decision_function(self, X: Any) -> np.ndarray:
        """How much speaks for each class, as the estimator's own method tells; X as in `predict`."""
        return np.concatenate([part.said for part in self._answers("decision_function", X)])

    def score(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy or, for regressors, R2.

        Parameters
        ----------
        X : rows with y, or a loader of batches (X, y)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
        """
        answers = self._answers("predict", X, y, targets=True)
        predicted = np.concatenate([part.said for part in answers])
        target = np.concatenate([part.y for part in answers if part.y is not None])
        measure = accuracy_score if is_classifier(self) else r2_score
        return float(measure(target, predicted, sample_weight=sample_weight))

    def to_torch(self, *, copy_backbone: bool = True) -> HeadModule:
        """A torch module of the backbone and the network, with the outputs of the network.

        For classifiers these are logits: their softmax is `predict_proba`.

        Parameters
        ----------
        copy_backbone : bool, default=True
            False: the module has the backbone itself, and whoever trains the module changes this head, too.

        Returns
        -------
        torch.nn.Module
            In evaluation mode, where the backbone is.
        """
        check_is_fitted(self, "estimator_")
        if not is_module(self.backbone_):
            raise ValueError(
                f"to_torch needs a backbone that is a torch module, and this one is a "
                f"{type(self.backbone_).__name__}: estimator_.network_.to_torch() is the head alone"
            )
        from .modules import HeadModule, place_of

        backbone = deepcopy(self.backbone_) if copy_backbone else self.backbone_
        network = self.estimator_.network_.to_torch().to(place_of(backbone)[0])
        return HeadModule(backbone, network).eval()

    def _features(self, x: Any, y: Any, weight: Any, targets: bool) -> FeatureRows:
        """All rows of a call, in memory."""
        batches = batches_of(x, y, weight, self.batch_rows, targets)
        with opened(self.backbone_) as features_of:
            return all_rows(feature_rows(features_of, batches, None, self.estimator_.n_features_in_))

    def _answers(self, method: str, x: Any, y: Any = None, targets: bool = False) -> list[_Answers]:
        """What a method of the estimator says of rows, a part of them at a time, and their targets."""
        check_is_fitted(self, "estimator_")
        answer, width = getattr(self.estimator_, method), self.estimator_.n_features_in_
        batches = batches_of(x, y, None, self.batch_rows, targets)
        answers, far = [], FarRows(self.estimator_)
        with opened(self.backbone_) as features_of:
            for part in feature_rows(features_of, batches, CHUNK_ROWS, width):
                far.look_at(part.features)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", RangeWarning)  # one for all parts follows
                    answers.append(_Answers(answer(part.features), part.y))
        if not answers:
            raise ValueError("there are no rows to predict")
        far.warn()
        return answers
