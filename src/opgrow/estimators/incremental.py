"""How every estimator goes on learning: `partial_fit` updates the head of its network, `grow` adds to it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from ..common.checks import check_flag, check_integer, is_number
from ..common.team import current
from ..growth.stream_record import StreamRecord
from ..network import Network
from ..rows.chunks.sources import Chunk, Source
from .base import Settings
from .fit.inputs import EvalSet
from .learning import LearningEstimator
from .stream.following import detector_of, follow
from .stream.growing import FEWEST_ROWS, grow_beside
from .stream.learned import LearnedRows
from .stream.page_hinkley import Detector
from .stream.rows import Rows, check_more_rows
from .stream.state import Running

__all__ = ["IncrementalEstimator", "Labelled"]

#: Steps of growths after a drift or a stall that the history has at most.
_MOST_STEPS = 500


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
    buffer_rows: int
    drift: str | Detector | None
    warm_start: bool

    def fit(
        self,
        X: ArrayLike | Source,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        eval_set: EvalSet | None = None,
    ) -> Self:
        check_flag("warm_start", self.warm_start)
        if not self.warm_start:
            return super().fit(X, y, sample_weight, eval_set)
        if isinstance(X, Source) or eval_set is not None:
            raise ValueError("warm_start=True takes arrays and tables, and no source or eval_set")
        if hasattr(self, "network_"):
            return self.grow(X, y, sample_weight)
        return self._learn(X, y, sample_weight)

    fit.__doc__ = LearningEstimator.fit.__doc__

    def grow(
        self,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        **changes: Any,
    ) -> Self:
        """Learn from further rows as `partial_fit` does, and grow a further network beside the present one.

        It grows by the same method from these rows and those of the buffer. The head sees both networks, and
        the new one stays if that improves the score of held-out rows by ``layer_threshold``, which the last
        step of ``history_`` tells.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), optional
            None: from the rows of the buffer alone.
        y, sample_weight : as in `partial_fit`
        **changes
            Parameters that are different in this growth, such as ``operators`` or ``max_parameters``, which
            bounds all that has grown.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from opgrow import BLSClassifier
        >>> X, y = load_digits(return_X_y=True)
        >>> clf = BLSClassifier(max_neurons=20, random_state=0).partial_fit(X[:500], y[:500])
        >>> small = clf.network_.n_parameters()
        >>> clf.grow(X[500:1000], y[500:1000], max_neurons=60).network_.n_parameters() > small
        True
        """
        check_is_fitted(self, "network_")
        self._check_stream(first=False)
        other = copy(self).set_params(**changes)
        self._hold_sums()
        assert self.running_ is not None
        buffer = self.running_.buffer
        rows = buffer.rows
        if X is not None:
            labelled = self._add(X, y, sample_weight)
            rows = buffer.with_targets(labelled.places).rows.beside(labelled.rows)
        if len(rows.x) < FEWEST_ROWS:
            raise ValueError(
                f"there are {len(rows.x)} rows to grow from, and at least {FEWEST_ROWS} are needed: pass "
                f"rows, or set buffer_rows, which is {self.buffer_rows}, before rows are learned"
            )
        other.network_ = self.network_
        shares = self.running_.sums.target_mean.clip(0) if is_classifier(self) else None
        grown = grow_beside(other, self.running_, rows.representing(shares))
        self._adopt(grown.network, grown.state)
        self.history_ = [*self.history_, *grown.steps]
        return self

    def _learn(
        self,
        x: ArrayLike,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        classes: np.ndarray | None = None,
    ) -> Self:
        """Grow a network from the rows of the first call; then its head is that of all rows seen."""
        first = not hasattr(self, "network_")
        self._check_stream(first)
        if first:
            self._learns_on = True
            try:
                super().fit(x, y, sample_weight)
            finally:
                del self._learns_on
        if first or self.drift is None:
            self._add(x, y, sample_weight, classes, first=first)
        else:
            self._follow(x, y, sample_weight, classes)
        return self

    def _follow(
        self, x: ArrayLike, y: ArrayLike | None, sample_weight: ArrayLike | None, classes: np.ndarray | None
    ) -> None:
        """Learn from rows that are watched; a call that fails changes nothing."""
        labelled = self._labelled(check_more_rows(self, x, y, sample_weight), classes)
        state = self._present(labelled.places)
        followed = follow(self, state.network(self.network_), state, labelled.rows)
        self._adopt(followed.network, followed.state)
        if followed.steps and followed.state.watch is not None:
            n_first, history = followed.state.watch.n_steps, [*self.history_, *followed.steps]
            self.history_ = [*history[:n_first], *history[n_first:][-_MOST_STEPS:]]
        for name, value in labelled.labels.items():
            setattr(self, name, value)

    def _present(self, places: np.ndarray) -> Running:
        """What is known of all rows so far, with further classes."""
        before = self._taught() if self.running_ is None else self.running_
        return before.with_targets(places)

    def _add(
        self,
        x: ArrayLike,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        classes: np.ndarray | None = None,
        first: bool = False,
    ) -> Labelled:
        """Give the network, whose rows these are if they are the first, the head that they make."""
        labelled = self._labelled(check_more_rows(self, x, y, sample_weight), classes)
        if first:
            state = self._state_of(labelled.rows, self.forgetting)
        else:
            state = self._present(labelled.places).learned(self.network_, labelled.rows, self.forgetting)
        self._adopt(state.network(self.network_), state)
        for name, value in labelled.labels.items():
            setattr(self, name, value)
        return labelled

    def _adopt(self, network: Network, state: Running) -> None:
        """Take a network whose head the state has made."""
        self.network_, self.running_ = network, state

    @property
    def stream_(self) -> StreamRecord | None:
        """Errors of recent rows, sizes and events, where ``drift`` lets `partial_fit` record them."""
        running = self.running_
        return None if running is None or running.watch is None else running.watch.record

    def learn(self, chunks: Iterable[Any]) -> Self:
        """Learn from chunks of rows as they come, each by `partial_fit`.

        Parameters
        ----------
        chunks : iterable of (X, y) or (X, y, sample_weight), or a source of `opgrow.stream`
            It may be endless: no chunk is kept. After an error, such as an interruption, the chunks before it
            have been learned, and the one that it came in has not.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from opgrow import BLSClassifier
        >>> X, y = load_digits(return_X_y=True)
        >>> chunks = ((X[start : start + 300], y[start : start + 300]) for start in range(0, 1500, 300))
        >>> clf = BLSClassifier(random_state=0).learn(chunks)
        >>> clf.running_.n_rows
        1500
        """
        for number, chunk in enumerate(chunks, 1):
            self._learn(*_parts_of(chunk, number))
        return self

    def _check_stream(self, first: bool) -> None:
        """Refuse what cannot go on learning, before any work."""
        name = type(self).__name__
        if not is_number(self.forgetting) or not 0 < self.forgetting <= 1:
            raise ValueError(f"forgetting must be a number above 0 and at most 1, got {self.forgetting!r}")
        check_integer("buffer_rows", self.buffer_rows, 0)
        detector_of(self.drift)
        if not current().alone:
            raise ValueError("partial_fit learns in one process, and this is one of several ranks")
        if not first and self.running_ is None and self.sample_ is None:
            raise ValueError(
                f"this {name} holds neither sums nor a sample of the rows that it was fitted to, so that "
                f"partial_fit would forget them: call partial_fit on a new {name}, first with such rows"
            )

    def with_sums(self) -> Self:
        """A copy that holds the sums from which `partial_fit` goes on, and has their head.

        After `fit`, which keeps none, these are the sums of what the network says of its ``sample_``.
        """
        check_is_fitted(self, "network_")
        self._check_stream(first=False)
        other = copy(self)
        other._hold_sums()
        return other

    def _hold_sums(self) -> None:
        if self.running_ is None:
            taught = self._taught()
            self._adopt(taught.network(self.network_), taught)

    def _taught(self) -> Running:
        """The state of a network that `fit` has grown: it has learned what it says of its sample."""
        assert self.sample_ is not None
        answers = self._predictions(self.network_, self.sample_, self.loss_)
        return self._state_of(LearnedRows(self.sample_, answers, np.ones(len(answers))), 1.0)

    def _state_of(self, rows: LearnedRows, forgetting: float) -> Running:
        return Running.of(self.network_, rows, forgetting, self.buffer_rows)

    @abstractmethod
    def _labelled(self, rows: Rows, classes: np.ndarray | None) -> Labelled:
        """Rows that have been checked, with the targets as columns, of classes that a user has named, too."""


def _parts_of(chunk: Any, number: int) -> tuple[Any, Any, Any]:
    """Inputs, targets and weights of a chunk, or None for the weights."""
    if isinstance(chunk, Chunk):
        chunk = chunk.x, chunk.y, chunk.weight
    if not isinstance(chunk, tuple | list) or len(chunk) not in (2, 3):
        size = f" of {len(chunk)}" if isinstance(chunk, tuple | list) else ""
        raise ValueError(
            f"chunk {number} must be a pair (X, y) or (X, y, sample_weight), got {type(chunk).__name__}{size}"
        )
    x, y, weight = chunk if len(chunk) == 3 else (*chunk, None)
    if y is None:
        raise ValueError(f"chunk {number} has no targets to learn")
    return x, y, weight
