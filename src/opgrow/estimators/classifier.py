"""What the classifiers of all families share: how they are fitted, and how they predict classes."""

from __future__ import annotations

from functools import partial
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from ..common.team import current
from ..network import Network
from ..rows.chunks.sources import Source
from ..rows.preparation import in_units, one_hot
from ..training.scores import probabilities
from .base import Settings
from .fit.array_data import ArrayData
from .fit.data import FitData, check_classes
from .fit.inputs import EvalSet, check_eval_set
from .incremental import IncrementalEstimator, Labelled
from .learning import ScoredEstimator
from .outputs import network_outputs
from .parameter_groups import ClassParameters, MachineParameters, RowParameters, StreamParameters
from .parameters import class_weights
from .stream.learned import LearnedRows
from .stream.rows import Rows, check_named, joined_classes, named_classes
from .stream.state import Running

__all__ = ["GrowingClassifier"]


class GrowingClassifier(
    MachineParameters,
    StreamParameters,
    ClassParameters,
    RowParameters,
    ScoredEstimator,
    ClassifierMixin,
    IncrementalEstimator[Settings],
):
    """Fits and predicts classes."""

    classes_: np.ndarray

    def _rows(self, x: np.ndarray, y: np.ndarray, weight: np.ndarray, eval_set: EvalSet | None) -> ArrayData:
        """One target column for each class."""
        team = current()
        weight = in_units(weight, team)
        team.together(partial(check_classification_targets, y))
        classes, codes = team.classes(*np.unique(y, return_inverse=True))
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least 2 classes, got 1 class: {classes.tolist()[0]!r}"
            )
        if self.class_weight is not None:
            weight = weight * class_weights(self.class_weight, classes, codes, team)
        held = team.together(partial(check_eval_set, self, eval_set))
        validation = None
        if held is not None:
            team.together(partial(check_classes, held[1], classes))
            validation = held[0], one_hot(np.searchsorted(classes, held[1]), len(classes))
        return ArrayData(self, x, one_hot(codes, len(classes)), weight, (classes, codes), validation)

    def _keep_targets(self, data: FitData) -> None:
        assert data.classes is not None
        self.classes_ = data.classes

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from further rows: the first call grows a network, later ones update its head exactly.

        The head becomes the least-squares solution for all rows seen, in whatever chunks they came; layers
        and the scaling of inputs stay those of the first call. After `fit`, which keeps no sums, what the
        network says of its ``sample_`` takes the place of the rows that it has learned from.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Classes that were never seen before become new outputs. The first call needs two classes.
        classes : array-like of labels, optional
            Classes that are to be expected; those in y need not be named.
        sample_weight : array-like of shape (n_samples,), optional
            Multiplied by the weights in ``class_weight``, where that is a dictionary.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from opgrow import BLSClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> clf = BLSClassifier(random_state=0)
        >>> clf = clf.partial_fit(X[:100], y[:100])
        >>> clf.partial_fit(X[100:], y[100:]).classes_
        array([0, 1, 2])
        """
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"partial_fit cannot know the counts that class_weight={self.class_weight!r} needs: pass a "
                "dictionary, or sample_weight"
            )
        named = None if classes is None else named_classes(classes)
        if named is not None and not hasattr(self, "network_"):
            check_named(y, named)
        return self._learn(X, y, sample_weight, named)

    def _adopt(self, network: Network, state: Running) -> None:
        super()._adopt(network, state)
        self.loss_ = "cross_entropy"  # as the head is scaled

    def _labelled(self, rows: Rows, classes: np.ndarray | None) -> Labelled:
        x, y, weight = rows
        labels = joined_classes(self.classes_, y, "y")
        if classes is not None:
            labels = joined_classes(labels, classes, "classes")
        places = np.full(len(labels), -1)
        places[np.searchsorted(labels, self.classes_)] = np.arange(len(self.classes_))
        codes = np.searchsorted(labels, y)
        if self.class_weight is not None:
            weight = weight * class_weights(self.class_weight, labels, codes)
            keep = weight > 0
            x, codes, weight = x[keep], codes[keep], weight[keep]
        learned = LearnedRows(x, one_hot(codes, len(labels)), weight)
        return Labelled(learned, places, {"classes_": labels})

    def _target_constants(self, target: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(target.shape[1]), np.ones(target.shape[1])

    def _predictions(self, network: Network, x: np.ndarray, loss: str) -> np.ndarray:
        return probabilities(loss, network_outputs(network, x, self.device))

    def decision_function(self, X: ArrayLike | Source) -> np.ndarray:
        """How much speaks for each class: the outputs of the network, from which probabilities are made.

        They are logits, or, where the network was grown with squared error as its loss, estimates of the
        targets 0 and 1.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a source

        Returns
        -------
        array of shape (n_samples, n_classes)
            `predict` returns the class with the largest output. For two classes, an array of shape
            (n_samples,): the output of the second class minus that of the first, which is positive where
            `predict` returns the second.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from opgrow import HeMLRNClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> clf = HeMLRNClassifier(preset=None, n_min=4, max_layers=1, random_state=0).fit(X, y)
        >>> clf.decision_function(X[:2]).argmax(axis=1)
        array([0, 0])
        """
        outputs = self._outputs(X).astype(np.float64)
        return outputs[:, 1] - outputs[:, 0] if len(self.classes_) == 2 else outputs

    def predict_proba(self, X: ArrayLike | Source) -> np.ndarray:
        """Class probabilities of shape (n_samples, n_classes)."""
        outputs = self._outputs(X)
        return probabilities(self.loss_, outputs)

    def predict(self, X: ArrayLike | Source) -> np.ndarray:
        """The most probable class of each sample: the first of the largest in `predict_proba`."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def _score(self, x: ArrayLike | Source, y: ArrayLike | None, sample_weight: ArrayLike | None) -> float:
        return ClassifierMixin.score(self, x, y, sample_weight)
