"""`explain`: what a fitted network does with its columns, with its neurons, and with single rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError

from ...common.checks import is_integer
from ...growth.model import GrownModel
from ...network.scaling import spread_rows
from .columns import axes_of, raw_values
from .context import Context
from .data import explanation_data
from .notebook import explanation_html
from .subject import Subject
from .views import Views

__all__ = ["Explanation", "explain", "explain_rows"]

#: Rows that averages are taken over, and the least that an X must have for them.
_BACKGROUND, _FEW = 128, 20
#: Rows whose range and density are shown, at most.
_SHOWN = 1 << 17
#: Numbers of an average way through a network; fewer rows are taken where there are many columns.
_NUMBERS = 1 << 17


def explain(estimator: Any, X: Any, *, target: str | None = None, random_state: int = 0) -> Explanation:
    """Explain a fitted estimator by rows of data: see `Explanation`.

    Parameters
    ----------
    estimator : a fitted estimator of this package
    X : array-like or table of shape (n_samples, n_features)
        Rows like those that the estimator is used for, such as the test rows. Up to 131,072 of them show
        the range of each column, and averages are taken over up to 128. If there are fewer than 20, averages
        are taken over the sample of the training rows that the model carries, where it does.
    target, random_state : as of the method ``explain`` of estimators

    Returns
    -------
    Explanation
        It computes what it is asked for, when it is asked for the first time.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from opgrow import HeMLRNClassifier
    >>> from opgrow.report import explain
    >>> iris = load_iris(as_frame=True)
    >>> clf = HeMLRNClassifier(preset=None, n_min=4, max_layers=1, random_state=0)
    >>> explanation = explain(clf.fit(iris.data, iris.target), iris.data)
    >>> way = explanation.row(0)
    >>> bool(abs(way.columns.base + way.columns.values.sum(axis=0) - way.outputs).max() < 1e-9)
    True
    """
    if not isinstance(estimator, GrownModel):
        raise TypeError(f"Only opgrow's own estimators can be explained, got {type(estimator).__name__}.")
    if not hasattr(estimator, "network_"):
        raise NotFittedError(f"This {type(estimator).__name__} is not fitted: call fit before explaining it.")
    if not is_integer(random_state) or random_state < 0:
        raise ValueError(f"random_state must be an integer of at least 0, got {random_state!r}")
    rows = np.asarray(estimator.network_rows(X), np.float64)
    return explain_rows(estimator, rows, raw_values(estimator, X), target, int(random_state))


def explain_rows(
    estimator: GrownModel,
    rows: np.ndarray,
    values: list[np.ndarray] | None = None,
    target: str | None = None,
    random_state: int = 0,
) -> Explanation:
    """The same by rows (n, inputs) as the network takes them, and the columns of the table they come from."""
    sample, source = estimator.sample_, "X"
    data = rows
    if len(rows) < _FEW and sample is not None and len(sample) > len(rows):
        data, source = np.asarray(sample, np.float64), "training sample"
    shown = spread_rows(len(data), 0, len(data), _SHOWN)
    data = data[shown]
    known = None if values is None or source != "X" else [column[shown] for column in values]
    axes = axes_of(estimator, data, known)
    most = max(8, min(_BACKGROUND, _NUMBERS // (2 * (len(axes) + 1))))
    background = data[spread_rows(len(data), 0, len(data), most)]
    context = Context(Subject(estimator, target), axes, data, background, random_state)
    return Explanation(estimator, context, rows, values, source)


class Explanation(Views):
    """What a fitted network does with its columns, its neurons and single rows: made by `explain`.

    Everything is computed when it is first asked for. ``print`` shows the importance of the columns, and
    notebooks the responses to the most important ones.

    Attributes
    ----------
    columns : names of the columns that the model uses
    outputs : names of what is explained
    importance : array (columns, outputs), mean size of the contributions of each column over some rows
    order : numbers of the columns, the most important first
    neuron_order : numbers of the neurons that the head reads, those that change the outputs most first
    """

    def data(self, rows: Sequence[int] = (), n_columns: int = 30, n_neurons: int = 12) -> dict[str, Any]:
        """Everything as plain data, ready for JSON; ``opgrow.report.explanation.shape`` describes it.

        Parameters
        ----------
        rows : sequence of int, default=()
            Rows of X whose way through the network is wanted.
        n_columns, n_neurons : int
            How many of the most important ones are described at most.
        """
        return explanation_data(self, self._context, self._source, rows, n_columns, n_neurons)

    def formula(self, digits: int = 4) -> Any:
        """The network as a formula; see `opgrow.report.formula`."""
        from .formula import formula

        return formula(self._estimator, digits)

    def plot(self, n_columns: int = 6) -> Any:
        """A matplotlib figure of the importance and of the responses to the most important columns."""
        from .plots import plot_explanation

        return plot_explanation(self, n_columns)

    def to_shap(self, rows: Sequence[int] | None = None) -> Any:
        """The contributions of columns as shap's ``Explanation``, which shap's plots take.

        Parameters
        ----------
        rows : sequence of int, optional
            Rows of X; by default all of them.
        """
        from .to_shap import to_shap

        return to_shap(self, range(len(self)) if rows is None else rows)

    def __repr__(self) -> str:
        subject, importance = self._context.subject, self.importance.sum(axis=1)
        kind = "classes" if is_classifier(self._estimator) else "numbers"
        lines = [
            f"Explanation of {type(self._estimator).__name__} ({subject.network.topology()}), which predicts "
            f"{kind}, by {len(self._rows)} rows",
            f"  explained: {', '.join(self.outputs[:8])}{', …' if len(self.outputs) > 8 else ''}",
        ]
        width = max(len(name) for name in self.columns)
        for j in self.order[:8]:
            lines.append(f"  {self.columns[j]:<{width}}  {importance[j]:.3g}")
        if len(self.columns) > 8:
            lines.append(f"  and {len(self.columns) - 8} more columns")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return explanation_html(self)
