"""What is served: a model, the columns that it takes, and its predictions for a table.

How a model file is turned into these is in `served`, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline

from opgrow.cli import common
from opgrow.cli.pipelines import first_encoder, pipeline_columns, pipeline_inputs
from opgrow.cli.serving.answers import Answer
from opgrow.cli.serving.limits import Refused
from opgrow.cli.serving.notes import heard
from opgrow.estimators.files import ModelFile, read
from opgrow.rows.tables import Table, TableEncoder
from opgrow.rows.tables.categories import TextColumn
from opgrow.rows.tables.columns import NumberColumn
from opgrow.rows.tables.date_columns import DateColumn
from opgrow.rows.tables.table import listed
from opgrow.rows.tables.target_means import TargetColumn

__all__ = ["Column", "ServedModel", "served"]

#: Numbers of the inputs that are predicted at once, which bounds the memory of large requests.
_PIECE = 1 << 21


@dataclass(frozen=True)
class Column:
    """A column of the tables that a model takes.

    Attributes
    ----------
    kind : "number", "text", "date", "time", "duration", or "any" where the steps of a pipeline decide and for
        columns that are not used
    gaps : whether a value may be missing
    categories : texts that were seen in training; others are accepted, too
    example : a value that the model takes
    also_text : for numbers: whether text counts as missing
    used : whether predictions depend on it; a table may lack it otherwise
    """

    name: str
    kind: str
    gaps: bool
    example: Any
    categories: tuple[str, ...] = ()
    also_text: bool = False
    used: bool = True


@dataclass(frozen=True)
class ServedModel:
    """A model and what is said about it.

    Attributes
    ----------
    name : of the file
    estimator : the fitted estimator
    columns : in the order in which matrices have them
    target : name of the column that it predicts, or None
    inputs : from a table to what the estimator takes
    library : the version of opgrow that wrote the file
    """

    name: str
    estimator: Any
    columns: tuple[Column, ...]
    target: str | None
    inputs: Callable[[Table], Any]
    library: str

    @property
    def classes(self) -> list[Any] | None:
        """The labels of a classifier, None for a regressor."""
        return self.estimator.classes_.tolist() if is_classifier(self.estimator) else None

    @property
    def n_outputs(self) -> int:
        return int(self.estimator.network_.n_outputs)

    def checked(self, table: Table) -> Table:
        """The columns of the model, in its order; refuses tables with others."""
        names = [column.name for column in self.columns]
        absent = [column.name for column in self.columns if column.name not in table.columns and column.used]
        if absent:
            raise Refused(422, f"The request lacks {listed(absent)}: the model takes {listed(names, 20)}.")
        others = [name for name in table.names if name not in {*names, self.target}]
        if others:
            raise Refused(422, f"The model has no column {listed(others)}: it takes {listed(names, 20)}.")
        nothing = np.full(table.n_rows, None, dtype=object)
        columns = {name: table.columns.get(name, nothing) for name in names}
        for column in self.columns:
            _check(column, columns[column.name])
        return Table(columns)

    def predict(self, table: Table, interval: float | None = None) -> Answer:
        """Predictions for the rows of a table that was `checked`."""
        if interval is not None and self.classes is not None:
            raise Refused(422, "Intervals are for numbers, and this model predicts classes.")
        with heard() as notes:
            parts = [self._piece(piece, interval) for piece in self._pieces(table)]
        predictions, probabilities, low, high = map(_joined, zip(*parts, strict=True))
        return Answer(predictions, self.classes, probabilities, low, high, interval, notes)

    def _pieces(self, table: Table) -> Iterator[Table]:
        # Text and dates become several inputs each, and steps of a pipeline may make fewer of more columns.
        size = max(1, _PIECE // max(len(self.columns), self.estimator.network_.n_inputs))
        for start in range(0, table.n_rows, size):
            yield Table({name: values[start : start + size] for name, values in table.columns.items()})

    def _piece(self, table: Table, interval: float | None) -> tuple[np.ndarray | None, ...]:
        try:
            x = self.inputs(table)
            if self.classes is not None:
                probabilities = self.estimator.predict_proba(x)
                return self.estimator.predict(x), probabilities, None, None
            bounds = (None, None) if interval is None else self.estimator.predict_interval(x, interval)
            return self.estimator.predict(x), None, *bounds
        except (ValueError, TypeError) as error:  # the latter from steps of scikit-learn
            raise Refused(422, " ".join(str(error).split())[:1000]) from error


def served(path: Path) -> ServedModel:
    """The model of a file, its columns, and how a table becomes its inputs."""
    file = read(path, pipelines=True)
    if file.pipeline is not None:
        columns = _pipeline_columns(file.pipeline)
    elif file.encoder is not None:
        columns = _encoded_columns(file.encoder)
    else:
        columns = _plain_columns(file.estimator)
    return ServedModel(
        path.name, file.estimator, columns, file.target, lambda table: _inputs(file, table), file.library
    )


def _joined(parts: Sequence[np.ndarray | None]) -> np.ndarray | None:
    there = [part for part in parts if part is not None]
    return np.concatenate(there) if there else None


def _inputs(file: ModelFile, table: Table) -> Any:
    if file.pipeline is not None:
        return pipeline_inputs(file.pipeline, table)
    if file.encoder is None and not hasattr(file.estimator, "feature_names_in_"):
        return np.column_stack(list(table.columns.values()))
    return common.inputs(file, table)


def _encoded_columns(encoder: TableEncoder) -> tuple[Column, ...]:
    return tuple(map(_encoded_column, encoder.columns_))


def _encoded_column(column: Any) -> Column:
    if isinstance(column, NumberColumn):
        return Column(column.name, "number", True, _short(column.median), also_text=column.text_is_missing)
    if isinstance(column, TextColumn | TargetColumn):
        first = next(iter(column.categories), "")
        return Column(column.name, "text", True, first, column.categories)
    if isinstance(column, DateColumn):
        return Column(column.name, column.form, True, column.example())
    return Column(column.name, "any", True, None, used=False)


def _pipeline_columns(pipeline: Pipeline) -> tuple[Column, ...]:
    """The columns of a pipeline, whose steps decide which values they take."""
    encoder = first_encoder(pipeline)
    if encoder is not None:
        return _encoded_columns(encoder)
    names = pipeline_columns(pipeline) or [f"x{i}" for i in range(int(pipeline.n_features_in_))]
    return tuple(Column(name, "any", True, None) for name in names)


def _plain_columns(estimator: Any) -> tuple[Column, ...]:
    """The columns of an estimator that takes numbers; with the medians of its sample as an example."""
    n = int(estimator.n_features_in_)
    names = getattr(estimator, "feature_names_in_", [f"x{i}" for i in range(n)])
    sample = estimator.sample_
    values = np.zeros(n) if sample is None else np.median(sample, axis=0)
    return tuple(
        Column(str(name), "number", False, _short(value)) for name, value in zip(names, values, strict=True)
    )


def _short(value: float) -> float | int:
    short = float(f"{value:.4g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def _check(column: Column, values: np.ndarray) -> None:
    """Refuse values that a column does not take, with the first row that has one."""
    if column.kind != "number":
        return
    if values.dtype == object:
        if column.also_text:
            return
        row = next(i for i, value in enumerate(values) if not _is_number(value))
        raise Refused(422, f"Column {column.name!r} takes numbers, and row {row + 1} has {values[row]!r}.")
    wrong = np.isinf(values) if column.gaps else ~np.isfinite(values)
    if wrong.any():
        row = int(wrong.argmax())
        what = "an infinite number" if np.isinf(values[row]) else "no value"
        raise Refused(422, f"Column {column.name!r} takes numbers, and row {row + 1} has {what}.")


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return value is None
    return True
