"""From a table to the matrix that the estimators take, and the same way again for new rows.

What was learned about a column is a small object that knows how to encode it. The whole encoder is therefore
a list of plain facts, which the model file can carry as JSON: `to_dict` and `from_dict`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from opgrow.data.table import Table, listed

__all__ = ["TableEncoder"]

FORMAT = 1
SINGLE = np.finfo(np.float32)


@dataclass(frozen=True)
class NumberColumn:
    """A numeric column: its values pass through, missing ones become the training median."""

    name: str
    median: float

    @property
    def outputs(self) -> list[str]:
        """The name of the one column of the matrix."""
        return [self.name]

    @classmethod
    def learn(cls, name: str, values: np.ndarray) -> NumberColumn:
        """Take the median of the finite values."""
        finite = values[np.isfinite(values)]
        if not finite.size:
            raise ValueError(f"Column {name!r} holds no value at all: drop it.")
        largest = np.abs(finite).max()
        if 0 < largest < SINGLE.tiny:
            raise ValueError(
                f"Column {name!r} holds nothing above {largest:.3g}, which is lost in single precision: "
                "rescale it."
            )
        return cls(name, float(np.median(finite)))

    def encode(self, values: np.ndarray, out: np.ndarray) -> None:
        """Write the values into `out`, of shape (n_rows, 1)."""
        if values.dtype == object:
            raise ValueError(
                f"Column {self.name!r} held numbers when the encoder was fitted, and now holds the text "
                f"{_first_text(values)!r}."
            )
        beyond = np.abs(values) > SINGLE.max
        if beyond.any():
            raise ValueError(
                f"Column {self.name!r} holds {values[beyond][0]:.3g}, which does not fit into single "
                "precision: rescale it, or leave out such rows."
            )
        out[:, 0] = np.where(np.isnan(values), self.median, values)

    def to_dict(self) -> dict[str, Any]:
        """Write the column as plain data."""
        return {"name": self.name, "kind": "number", "median": self.median}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> NumberColumn:
        """Read what `to_dict` wrote."""
        median: Any = data.get("median")
        finite = isinstance(median, float) and math.isfinite(median)
        _require(finite, f"the median of column {data['name']!r} must be a finite number, got {median!r}")
        return cls(data["name"], median)


@dataclass(frozen=True)
class TextColumn:
    """A text column: one column of zeros and ones per category, and one for missing if that was seen."""

    name: str
    categories: tuple[str, ...]
    missing: bool

    @property
    def outputs(self) -> list[str]:
        """The names of the columns of the matrix."""
        labels = [*self.categories, "<missing>"] if self.missing else self.categories
        return [f"{self.name}={label}" for label in labels]

    @classmethod
    def learn(cls, name: str, values: np.ndarray, max_categories: int) -> TextColumn:
        """Collect the categories."""
        distinct = set(values.tolist())
        categories = tuple(sorted(distinct - {None}))
        if not categories:
            raise ValueError(f"Column {name!r} holds no value at all: drop it.")
        if len(categories) > max_categories:
            raise ValueError(
                f"Column {name!r} has {len(categories)} distinct texts, more than "
                f"max_categories={max_categories}: it looks like an identifier and should be dropped."
            )
        return cls(name, categories, None in distinct)

    def encode(self, values: np.ndarray, out: np.ndarray) -> None:
        """Write ones into `out`, of shape (n_rows, n_outputs) and zero before."""
        if values.dtype != object:
            values = _as_text(values)
        index: dict[str | None, int] = {category: i for i, category in enumerate(self.categories)}
        if self.missing:
            index[None] = len(self.categories)
        codes = np.fromiter((index.get(value, -1) for value in values), dtype=np.intp, count=len(values))
        known = np.flatnonzero(codes >= 0)
        out[known, codes[known]] = 1.0

    def to_dict(self) -> dict[str, Any]:
        """Write the column as plain data."""
        return {
            "name": self.name,
            "kind": "text",
            "categories": list(self.categories),
            "missing": self.missing,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TextColumn:
        """Read what `to_dict` wrote."""
        name, categories, missing = data["name"], data.get("categories"), data.get("missing")
        texts = isinstance(categories, list) and all(isinstance(item, str) for item in categories)
        distinct = texts and len(set(categories or ())) == len(categories or ()) > 0
        _require(distinct, f"the categories of column {name!r} must be a list of distinct texts")
        _require(
            isinstance(missing, bool), f"'missing' of column {name!r} must be true or false, got {missing!r}"
        )
        return cls(name, tuple(categories or ()), bool(missing))


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn a table of numbers and text into a float32 matrix.

    Numeric columns pass through, with missing values replaced by the median of the training rows. Text
    columns become one column of zeros and ones per category (sorted), with a further one for missing values
    if the training rows had any; a category that was not seen in training is all zeros.

    Parameters
    ----------
    max_categories : int, default=100
        A text column with more distinct values than this is refused: it looks like an identifier.

    Attributes
    ----------
    columns_ : list of NumberColumn or TextColumn
        What was learned about each column.
    n_features_in_ : int
        The number of columns of the training table.
    feature_names_in_ : ndarray of str
        Their names.

    Examples
    --------
    >>> encoder = TableEncoder().fit({"age": [31, None, 52], "colour": ["red", "blue", None]})
    >>> list(encoder.get_feature_names_out())
    ['age', 'colour=blue', 'colour=red', 'colour=<missing>']
    >>> encoder.transform({"colour": ["red", "green"], "age": [40, None]})
    array([[40. ,  0. ,  1. ,  0. ],
           [41.5,  0. ,  0. ,  0. ]], dtype=float32)
    """

    columns_: list[NumberColumn | TextColumn]

    def __init__(self, max_categories: int = 100) -> None:
        self.max_categories = max_categories

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn medians and categories.

        Parameters
        ----------
        X : Table, pandas.DataFrame, mapping of str to sequence, or 2-D array
            The training rows, without the target.
        y : ignored
            For use in a pipeline.

        Returns
        -------
        self : TableEncoder
            The fitted encoder.
        """
        _check_max_categories(self.max_categories)
        table = Table.from_any(X)
        if not table.n_rows:
            raise ValueError("The table to learn from has no columns or no rows.")
        self._set_columns(
            [
                TextColumn.learn(name, values, self.max_categories)
                if values.dtype == object
                else NumberColumn.learn(name, values)
                for name, values in table.columns.items()
            ]
        )
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Encode rows.

        Parameters
        ----------
        X : Table, pandas.DataFrame, mapping of str to sequence, or 2-D array
            Rows with the columns of the training table; their order does not matter, and further columns are
            ignored.

        Returns
        -------
        ndarray of shape (n_rows, n_outputs), float32
            The matrix whose columns `get_feature_names_out` names.
        """
        check_is_fitted(self)
        table = Table.from_any(X)
        absent = [column.name for column in self.columns_ if column.name not in table.columns]
        if absent:
            raise ValueError(
                f"The table lacks {listed(absent)}, which the encoder was fitted with: "
                f"it has {listed(table.names)}."
            )
        matrix = np.zeros((table.n_rows, len(self.get_feature_names_out())), dtype=np.float32)
        start = 0
        for column in self.columns_:
            stop = start + len(column.outputs)
            column.encode(table.columns[column.name], matrix[:, start:stop])
            start = stop
        return matrix

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Name the columns of the matrix, such as ``age`` or ``colour=red``.

        Parameters
        ----------
        input_features : ignored
            For use in a pipeline: the names are those of the training table.

        Returns
        -------
        ndarray of str
            One name per column of the matrix.
        """
        check_is_fitted(self)
        return np.array([name for column in self.columns_ for name in column.outputs], dtype=object)

    def to_dict(self) -> dict[str, Any]:
        """Write the fitted encoder as plain data, ready for JSON.

        Returns
        -------
        dict
            What `from_dict` reads.
        """
        check_is_fitted(self)
        columns = [column.to_dict() for column in self.columns_]
        return {"format": FORMAT, "max_categories": int(self.max_categories), "columns": columns}

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Read an encoder from what `to_dict` wrote.

        Parameters
        ----------
        data : dict
            Plain data, perhaps from a file of unknown origin: it is checked before use.

        Returns
        -------
        TableEncoder
            A fitted encoder.
        """
        _require(isinstance(data, dict), f"expected a dictionary, got {type(data).__name__}")
        _require(
            data.get("format") == FORMAT, f"format {data.get('format')!r} is not known, expected {FORMAT}"
        )
        try:
            _check_max_categories(data.get("max_categories"))
        except ValueError as error:
            _require(False, str(error).rstrip("."))
        columns = data.get("columns")
        _require(isinstance(columns, list) and len(columns) > 0, "'columns' must be a list of columns")
        encoder = cls(max_categories=data["max_categories"])
        encoder._set_columns([_column_from_dict(column) for column in columns])
        names = list(encoder.feature_names_in_)
        _require(len(set(names)) == len(names), "two columns share a name")
        return encoder

    def _set_columns(self, columns: list[NumberColumn | TextColumn]) -> None:
        self.columns_ = columns
        self.n_features_in_ = len(columns)
        self.feature_names_in_ = np.array([column.name for column in columns], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def _column_from_dict(data: Any) -> NumberColumn | TextColumn:
    _require(isinstance(data, dict), f"a column must be a dictionary, got {type(data).__name__}")
    _require(isinstance(data.get("name"), str), f"a column's name must be text, got {data.get('name')!r}")
    kinds: dict[str, type[NumberColumn] | type[TextColumn]] = {"number": NumberColumn, "text": TextColumn}
    kind = data.get("kind")
    _require(isinstance(kind, str) and kind in kinds, f"column {data['name']!r} is of unknown kind {kind!r}")
    return kinds[kind].from_dict(data)


def _require(condition: Any, otherwise: str) -> None:
    if not condition:
        raise ValueError(f"This description of a table encoder is not valid: {otherwise}.")


def _check_max_categories(value: Any) -> None:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
        raise ValueError(f"max_categories must be a whole number of at least 1, got {value!r}.")


def _as_text(numbers: np.ndarray) -> np.ndarray:
    """Write numbers as a file would have, since a part of a column of texts may consist of digits only."""
    texts = np.empty(len(numbers), dtype=object)
    texts[:] = [
        None if math.isnan(x) else str(int(x)) if x.is_integer() else repr(x) for x in numbers.tolist()
    ]
    return texts


def _first_text(values: np.ndarray) -> Any:
    """Return the first value that is no number, the likely culprit, or else the first value."""
    present = [value for value in values if value is not None]
    for value in present:
        try:
            float(value)
        except ValueError:
            return value
    return present[0] if present else None
