"""A network on top of a frozen backbone: it grows on the features that the backbone gives of rows.

The backbone is a module of torch or a transformer of scikit-learn, and is not trained. The head is one of our
estimators and learns by its `partial_fit`, so that rows may come in batches and memory is bounded. torch is
imported only where the backbone is one of its modules.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from ...common.checks import check_integer
from ..families.hemlgop import HeMLGOPClassifier
from ..incremental import IncrementalEstimator
from .backbones import check_backbone, needs_fit, opened
from .batches import Batch, batches_of, first_batches, first_inputs
from .features import all_rows, feature_rows
from .predicting_head import CHUNK_ROWS, PredictingHead

__all__ = ["GrowingHead"]


class GrowingHead(PredictingHead):
    """A network that grows on the features of a frozen backbone, behind scikit-learn's interface.

    Wherever rows are taken, X is either rows, as the backbone takes them, with their targets as y, or a
    ``torch.utils.data.DataLoader`` or iterator of batches (X, y). Features of any shape are flattened.

    Parameters
    ----------
    backbone : torch.nn.Module or transformer of scikit-learn
        A module is in evaluation mode during a call and computes without gradients, where its weights are. A
        transformer that has been fitted is used as it is, and so by clones of the head; of another one, a
        clone is fitted to the rows from which the network grows.
    estimator : classifier or regressor of opgrow, optional
        What grows on the features; default: ``HeMLGOPClassifier()``. It is cloned, not fitted.
    first_rows : int, optional
        From how many of the first rows the network grows: from whole batches, until they have so many. All
        others update its head, and their features need not be in memory together. None: it grows from all
        rows of the first call.
    batch_rows : int, default=256
        Rows that the backbone is given at once; a loader decides for itself.

    Attributes
    ----------
    backbone_ : the backbone, or the clone of it that was fitted
    estimator_ : the estimator that has learned from the features
    classes_ : the classes, for classifiers

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.decomposition import PCA
    >>> from opgrow import BLSClassifier, GrowingHead
    >>> X, y = load_digits(return_X_y=True)
    >>> head = GrowingHead(PCA(20), BLSClassifier(random_state=0)).fit(X[:900], y[:900])
    >>> bool(head.partial_fit(X[900:1200], y[900:1200]).score(X[1200:], y[1200:]) > 0.85)
    True
    """

    def __init__(
        self,
        backbone: Any,
        estimator: IncrementalEstimator[Any] | None = None,
        *,
        first_rows: int | None = None,
        batch_rows: int = 256,
    ) -> None:
        self.backbone = backbone
        self.estimator = estimator
        self.first_rows = first_rows
        self.batch_rows = batch_rows

    @classmethod
    def from_fitted(
        cls, backbone: Any, estimator: IncrementalEstimator[Any], *, batch_rows: int = 256
    ) -> Self:
        """Put an estimator that has learned, such as one from a file, behind its backbone again.

        Parameters
        ----------
        backbone : torch.nn.Module, or transformer of scikit-learn that has been fitted
        estimator : what ``estimator_`` was
        batch_rows : int, default=256

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.preprocessing import FunctionTransformer
        >>> from opgrow import BLSClassifier, GrowingHead, load
        >>> X, y = load_iris(return_X_y=True)
        >>> backbone = FunctionTransformer()
        >>> head = GrowingHead(backbone, BLSClassifier(random_state=0)).fit(X, y)
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "head.safetensors"
        >>> head.estimator_.save(path, sums=True)
        >>> again = GrowingHead.from_fitted(backbone, load(path))
        >>> bool((again.predict(X) == head.predict(X)).all())
        True
        """
        check_backbone(backbone)
        if needs_fit(backbone):
            raise ValueError(f"{type(backbone).__name__} has not been fitted, and so gives no features")
        check_is_fitted(estimator, "network_")
        head = cls(backbone, clone(estimator), batch_rows=batch_rows)
        head.backbone_, head.estimator_ = backbone, estimator
        return head

    def fit(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Forget what was learned, and learn as the first call of `partial_fit` does.

        Parameters
        ----------
        X : rows with y, or a loader of batches (X, y)
        y : array-like of shape (n_samples,) or, for regressors, (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
        """
        return self._learn(X, y, sample_weight, None, first=True)

    def partial_fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from further rows: the first call grows a network, later ones update its head exactly.

        Features of at most 4,096 rows and a batch are in memory, and in the first call those of the rows
        from which the network grows. A call that fails changes nothing.

        Parameters
        ----------
        X : rows with y, or a loader of batches (X, y)
        y : array-like of shape (n_samples,) or, for regressors, (n_samples, n_targets)
            Classes that were never seen before become new outputs. The first rows need two classes.
        classes : array-like of labels, optional
            Of classifiers: classes that are to be expected.
        sample_weight : array-like of shape (n_samples,), optional
        """
        return self._learn(X, y, sample_weight, classes, first=not hasattr(self, "estimator_"))

    def grow(
        self,
        X: Any = None,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        **changes: Any,
    ) -> Self:
        """Learn from further rows, and grow a further network beside the present one, by the same method.

        The features of all rows of the call are in memory.

        Parameters
        ----------
        X, y, sample_weight : as in `partial_fit`; without X, the network grows from the estimator's buffer
        **changes
            Parameters of the estimator that are different in this growth, such as ``max_parameters``.
        """
        check_is_fitted(self, "estimator_")
        estimator = copy(self.estimator_)
        if X is None:
            estimator.grow(**changes)
        else:
            estimator.grow(*self._features(X, y, sample_weight, targets=True), **changes)
        self.estimator_ = estimator
        return self

    def __sklearn_clone__(self) -> Self:
        """A head with equal parameters that has learned nothing; a frozen backbone is shared."""
        parameters = self.get_params(deep=False)
        frozen = [] if needs_fit(self.backbone) else ["backbone"]
        return type(self)(
            **{name: v if name in frozen else clone(v, safe=False) for name, v in parameters.items()}
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if isinstance(self._template(), IncrementalEstimator):
            own = get_tags(self._template())
            tags.estimator_type, tags.target_tags = own.estimator_type, own.target_tags
            tags.classifier_tags, tags.regressor_tags = own.classifier_tags, own.regressor_tags
        return tags

    def _template(self) -> IncrementalEstimator[Any]:
        return HeMLGOPClassifier() if self.estimator is None else self.estimator

    def _check(self) -> None:
        """Refuse parameters that make no sense, before any work."""
        check_backbone(self.backbone)
        estimator = self._template()
        if not isinstance(estimator, IncrementalEstimator):
            raise ValueError(f"estimator must be a classifier or regressor of opgrow, got {estimator!r}")
        if estimator.table is not None:
            raise ValueError("the estimator has a table, and a backbone gives numbers: leave it out")
        check_integer("batch_rows", self.batch_rows, 1)
        if self.first_rows is not None:
            check_integer("first_rows", self.first_rows, 2, "None")

    def _learn(self, x: Any, y: Any, weight: Any, classes: ArrayLike | None, first: bool) -> Self:
        self._check()
        named = {} if classes is None else {"classes": classes}
        if named and not is_classifier(self):
            raise ValueError("classes are for classifiers, and the estimator is a regressor")
        batches = batches_of(x, y, weight, self.batch_rows, targets=True)
        if first:
            estimator = clone(self._template())
            backbone = self._grown(estimator, x, batches, named)
        else:
            backbone, estimator = self.backbone_, copy(self.estimator_)
        with opened(backbone) as features_of:
            for part in feature_rows(features_of, batches, CHUNK_ROWS, estimator.n_features_in_):
                estimator.partial_fit(part.features, part.y, sample_weight=part.weight, **named)
        self.backbone_, self.estimator_ = backbone, estimator
        return self

    def _grown(self, estimator: Any, x: Any, batches: Iterator[Batch], named: dict[str, Any]) -> Any:
        """Let an estimator grow from the first batches; returns the backbone, fitted to them if need be."""
        backbone, first = self.backbone, first_batches(batches, self.first_rows)
        if needs_fit(backbone):
            held = list(first)
            backbone = clone(backbone).fit(*first_inputs(x, held))
            first = iter(held)
        with opened(backbone) as features_of:
            rows = all_rows(feature_rows(features_of, first, None, None))
        estimator.partial_fit(rows.features, rows.y, sample_weight=rows.weight, **named)
        return backbone
