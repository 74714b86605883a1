"""The report: one HTML page on what was grown, how it grew, how good it is and what it costs."""

from __future__ import annotations

import os
import platform
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_array, column_or_1d

from ..common.atomic import check_suffix, check_writable, write_atomically
from ..common.version import __version__
from ..growth.model import GrownModel, criterion_of
from ..network.drawing.drawing import Drawing, draw
from ..network.drawing.svg import counted
from ..rows.preparation import as_array
from .cost import cost_parts
from .growth import growth_parts
from .html import details, document, paragraph, section, table
from .live import (
    Moving,
    Rows,
    block_parts,
    computed_parts,
    moving_sections,
    navigation,
    replay_parts,
)
from .opening import heading, opening_parts
from .predictions import class_parts, number_parts
from .quality import ClassQuality, NumberQuality
from .stream import stream_parts

__all__ = ["Report", "draw_estimator", "page", "write_report"]


def write_report(
    estimator: Any, path: str | os.PathLike[str], X: Any = None, y: Any = None, **more: Any
) -> None:
    """Write a report on a fitted estimator to one HTML file, which needs nothing else; see `Report`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from opgrow import HeMLRNClassifier
    >>> from opgrow.report import write_report
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = HeMLRNClassifier(n_min=10, max_layers=1, random_state=0).fit(X[::2], y[::2])
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "report.html"
    >>> write_report(clf, path, X[1::2], y[1::2])
    >>> path.read_text().count("<section")
    7
    """
    check_writable(path)
    check_suffix(path, ".html", "report")
    write_atomically(path, page(estimator, X, y, **more).encode())


def page(estimator: Any, X: Any = None, y: Any = None, **about: Any) -> str:
    """The report as HTML text; whatever comes from data is escaped. `Report` describes the parameters."""
    return Report(estimator, X, y, **about).text()


class Report:
    """A report on a fitted estimator.

    Parameters
    ----------
    estimator : a fitted estimator of this package
    X, y : array-likes of shape (n_samples, n_features) and (n_samples,) or (n_samples, n_targets), optional
        Rows that were not learned from, to say how good predictions are.
    feature_names : sequence of str, optional
        Names of the inputs; by default those of the data frame that the estimator was fitted on.
    target : str, optional
        Name of what is predicted; by default that of y, if it is a named column.
    rows : str, default="test rows"
        What the rows of X are.
    file_bytes : int, optional
        Size of the model file, where there is one.
    with_rows : bool, default=True
        Whether the page may contain rows: of X, or, without X, of those that the model keeps.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        feature_names: Sequence[str] | None = None,
        target: str | None = None,
        rows: str = "test rows",
        file_bytes: int | None = None,
        with_rows: bool = True,
    ) -> None:
        self.estimator, self.network = estimator, _network(estimator)
        self.target = _name_of(y) if target is None else target
        self.feature_names, self.rows, self.file_bytes = feature_names, rows, file_bytes
        if (X is None) != (y is None):
            one, other = ("X_test", "y_test") if y is None else ("y_test", "X_test")
            wanted = "A report needs both X_test and y_test to say how good a model is"
            raise ValueError(f"{wanted}: got {one} without {other}.")
        self.quality: ClassQuality | NumberQuality | None = None
        self.given = Rows(shown=with_rows)
        if X is not None:
            quality = self.quality = _quality(estimator, X, y)
            truth = quality.codes if isinstance(quality, ClassQuality) else quality.values
            self.given = Rows(X, estimator.network_rows(X), truth, with_rows)

    def text(self) -> str:
        """The page."""
        estimator, target = self.estimator, self.target
        grown = _grown_parts(estimator, draw_estimator(estimator, self.feature_names, target))
        outputs, inputs = _output_names(estimator, target), _input_names(estimator, self.feature_names)
        moving = Moving.of(estimator, self.given, inputs, outputs, target)
        classes, about = outputs if is_classifier(estimator) else None, moving.data["explanation"]
        words = heading(target, classes)
        parts = [
            *opening_parts(estimator, words, classes, self.quality, self.rows, about),
            navigation(moves=moving.reason is None, streams=estimator.stream_ is not None),
            *moving_sections(moving.reason),
            section("what-it-computes", "What it computes", computed_parts(about)),
            section("what-was-grown", "What was grown", block_parts(moving.reason) + grown),
            section("how-it-grew", "How it grew", replay_parts(estimator) + _growth(estimator)),
            *_stream(estimator),
            section("how-good", "How good it is", _quality_parts(self.quality, outputs, self.rows)),
            section(
                "what-it-costs", "What it costs", cost_parts(estimator, self.given.matrix, self.file_bytes)
            ),
            paragraph(f"opgrow {__version__}, Python {platform.python_version()}", "note"),
        ]
        return document(words, parts, script=moving.script, data=moving.json())


def _input_names(estimator: Any, feature_names: Sequence[str] | None) -> list[str]:
    names = estimator.input_names if feature_names is None else feature_names
    if names is None:
        return [f"x{i}" for i in range(estimator.network_.n_inputs)]
    return [str(name) for name in names]


def _name_of(y: Any) -> str | None:
    name = getattr(y, "name", None)
    return name if isinstance(name, str) and name else None


def _network(estimator: Any) -> Any:
    if not isinstance(estimator, GrownModel):
        raise TypeError(f"Only opgrow's own estimators have reports, got {type(estimator).__name__}.")
    if not hasattr(estimator, "network_"):
        raise NotFittedError(f"This {type(estimator).__name__} is not fitted: call fit first.")
    return estimator.network_


# --- what was grown ---


def draw_estimator(
    estimator: Any, feature_names: Sequence[str] | None = None, target: str | None = None
) -> Drawing:
    """The drawing of an estimator's network, with the names that the estimator knows."""
    network = _network(estimator)
    if feature_names is None:
        feature_names = estimator.input_names
    return draw(
        network,
        feature_names=feature_names,
        output_names=_output_names(estimator, target),
        members=_members(estimator),
    )


def _output_names(estimator: Any, target: str | None) -> list[str]:
    if is_classifier(estimator):
        return [str(label) for label in estimator.classes_.tolist()]
    n, name = estimator.network_.n_outputs, target or "target"
    return [name] if n == 1 else [f"{name} {i + 1}" for i in range(n)]


def _members(estimator: Any) -> list[int] | None:
    """Which network of an average each block is from, where history and network agree on it."""
    layers = estimator.network_.layers
    steps = [step for step in estimator.history_ if step.kind == "block" and step.accepted]
    if len(layers) != 1 or len({step.member for step in steps}) < 2:
        return None
    grown = [(step.operator_set, step.n_neurons) for step in steps]
    there = [(block.operator_set, block.n_neurons) for block in layers[0]]
    return [step.member for step in steps] if grown == there else None


def _grown_parts(estimator: Any, drawing: Drawing) -> list[str]:
    network = estimator.network_
    n_neurons = sum(layer.n_neurons for layer in network.layers)
    n_blocks = sum(len(layer) for layer in network.layers)
    changed = _changed(estimator)
    parts = [
        paragraph(
            f"{counted(n_neurons, 'hidden neuron')} in {counted(n_blocks, 'block')} and "
            f"{counted(len(network.layers), 'layer')}; {network.n_parameters():,} parameters. Each dot is a "
            "neuron, in the colour of its operator set (nodal / pool / activation), and the larger, the more "
            "weight it has in what follows: hover over it to see more, or use the arrow keys."
        ),
        f'<figure id="network">{drawing.svg}</figure>',
    ]
    if estimator.table_ is not None:
        columns = [(column.name, column.describe()) for column in estimator.table_.columns_]
        shown = table("columns", ("column", "what became of it"), columns, words=(0, 1))
        parts.append(details(f"Columns of the table: {len(columns)}", [shown]))
    if changed:
        rows = [(name, repr(value)) for name, value in changed.items()]
        settings = table("settings", ("parameter", "value"), rows, words=(1,))
        parts.append(details(f"Settings that differ from the defaults: {len(rows)}", [settings]))
    return parts


def _changed(estimator: Any) -> dict[str, Any]:
    defaults = type(estimator)().get_params(deep=False)
    chosen = estimator.get_params(deep=False)
    return {name: value for name, value in chosen.items() if repr(value) != repr(defaults[name])}


def _growth(estimator: Any) -> list[str]:
    history = estimator.history_
    criterion = criterion_of(estimator, is_classifier(estimator))
    return growth_parts(history, criterion, student=_has_learned(estimator))


def _stream(estimator: GrownModel) -> list[str]:
    """What became of later rows, where they were watched."""
    record = estimator.stream_
    if record is None:
        return []
    return [section("how-it-went-on", "How it went on", stream_parts(record, is_classifier(estimator)))]


def _has_learned(estimator: Any) -> bool:
    """Whether the network is a student: then it has fewer neurons than all that were grown."""
    layers = [step for step in estimator.history_ or () if step.kind == "layer" and step.accepted]
    several = len({step.member for step in layers}) > 1
    return several and sum(step.n_neurons for step in layers) > sum(
        layer.n_neurons for layer in estimator.network_.layers
    )


# --- how good it is ---


def _quality(estimator: Any, x: Any, y: Any) -> ClassQuality | NumberQuality:
    y = np.asarray(as_array(y))
    classes = is_classifier(estimator)
    with warnings.catch_warnings():
        # Rows of a matrix have no names that could be compared.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        predicted = estimator.predict(x)
        probabilities = estimator.predict_proba(x) if classes else None
    if y.ndim == 0 or len(predicted) != len(y):
        raise ValueError(f"X_test has {len(predicted)} rows, and y_test {len(y) if y.ndim else 'none'}.")
    if probabilities is not None:
        return ClassQuality.of(_codes(estimator, y), probabilities, _codes(estimator, predicted))
    values = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y_test").reshape(
        len(predicted), -1
    )
    predicted = predicted.reshape(len(predicted), -1)
    if values.shape != predicted.shape:
        raise ValueError(f"y_test has {values.shape[1]} targets, and the model {predicted.shape[1]}.")
    return NumberQuality.of(values, predicted)


def _codes(estimator: Any, labels: Any) -> np.ndarray:
    """Positions of labels among the classes."""
    codes = {label: i for i, label in enumerate(estimator.classes_.tolist())}
    values = column_or_1d(labels).tolist()
    unknown = [label for label in values if label not in codes]
    if unknown:
        raise ValueError(f"y_test holds the class {unknown[0]!r}, which the model does not know.")
    return np.array([codes[label] for label in values])


def _quality_parts(
    quality: ClassQuality | NumberQuality | None, names: Sequence[str], rows: str
) -> list[str]:
    if quality is None:
        return [
            paragraph(
                "No rows were given to tell. report(path, X_test, y_test) in Python, or a table as in "
                "'opgrow report model.safetensors test.csv', fills this section."
            )
        ]
    about = paragraph(f"On the {rows}:")
    if isinstance(quality, ClassQuality):
        return [about, *class_parts(quality, names)]
    return [about, *number_parts(quality, names)]
