"""From a table to the matrix that the estimators take, and the same for new rows.

What was learned about a column is a small object that knows how to encode it. The whole encoder is therefore
a list of plain facts, which the model file can carry as JSON: `to_dict` and `from_dict`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from opgrow.common.errors import TableWarning
from opgrow.rows.tables.columns import NumberColumn, TextColumn, column_from_dict, require
from opgrow.rows.tables.facts import PYTHON, ColumnFacts, column_lines
from opgrow.rows.tables.table import Table, listed

__all__ = ["TableEncoder"]

FORMAT = 1


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn a table of numbers and text into a float32 matrix.

    Numeric columns pass through, with missing values replaced by the median of the training rows. Text
    columns become one column of zeros and ones per category (sorted), with a further one for missing values
    if the training rows had any; a category that was not seen in training is all zeros, and `transform` warns
    of it. Dates and times are refused.

    Parameters
    ----------
    max_categories : int, default=100
        Of a text column with more categories, this many at most are kept, the most frequent ones that occur
        more than once. All others, and those that were not seen in training, share the category "<other>".
    text : collection of str, default=()
        Columns to take as categories, although they hold numbers or dates.
    numeric : collection of str, default=()
        Columns to take as numbers, although they hold text; whatever is no number in them is missing.
    verbose : int, default=0
        1 prints what `fit` decided about the columns.

    Attributes
    ----------
    columns_ : list of NumberColumn or TextColumn
        What was learned about each column.
    facts_ : list of ColumnFacts
        What the training table looked like; not part of a saved encoder.
    n_features_in_ : int
        The number of columns of the training table.
    feature_names_in_ : ndarray of str
        Their names.

    Examples
    --------
    >>> encoder = TableEncoder().fit({"age": [31, None, 52], "colour": ["red", "blue", None]})
    >>> list(encoder.get_feature_names_out())
    ['age', 'colour=blue', 'colour=red', 'colour=<missing>']
    >>> encoder.transform({"colour": ["red", None], "age": [40, None]})
    array([[40. ,  0. ,  1. ,  0. ],
           [41.5,  0. ,  0. ,  1. ]], dtype=float32)
    """

    columns_: list[NumberColumn | TextColumn]
    facts_: list[ColumnFacts]

    def __init__(
        self,
        max_categories: int = 100,
        text: Collection[str] = (),
        numeric: Collection[str] = (),
        verbose: int = 0,
    ) -> None:
        self.max_categories = max_categories
        self.text = text
        self.numeric = numeric
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn medians and categories.

        Parameters
        ----------
        X : Table, data frame of pandas or polars, mapping of str to sequence, or 2-D array
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
        _check_choice(self.text, self.numeric, table)
        self._set_columns([self._learned(name, values) for name, values in table.columns.items()])
        self.facts_ = [
            ColumnFacts.of(column, values)
            for column, values in zip(self.columns_, table.columns.values(), strict=True)
        ]
        if self.verbose:
            for label, line in column_lines(self.facts_, PYTHON):
                print(f"{label:<10} {line}", file=sys.stderr)
        return self

    def _learned(self, name: str, values: np.ndarray) -> NumberColumn | TextColumn:
        if name in self.text or (values.dtype == object and name not in self.numeric):
            return TextColumn.learn(name, values, self.max_categories, dates=name in self.text)
        return NumberColumn.learn(name, values, text_is_missing=name in self.numeric)

    def transform(self, X: Any) -> np.ndarray:
        """Encode rows.

        Parameters
        ----------
        X : Table, data frame of pandas or polars, mapping of str to sequence, or 2-D array
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
        start, remarks = 0, []
        for column in self.columns_:
            stop = start + len(column.outputs)
            remarks += column.encode(table.columns[column.name], matrix[:, start:stop])
            start = stop
        if remarks:
            warnings.warn("; ".join(remarks), TableWarning, stacklevel=3)  # above scikit-learn's wrapper
        return matrix

    @property
    def text_columns(self) -> list[str]:
        """Names of the columns that are taken as text."""
        return [column.name for column in self.columns_ if isinstance(column, TextColumn)]

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
        chosen = {"text": list(self.text), "numeric": list(self.numeric)}
        return {
            "format": FORMAT,
            "max_categories": int(self.max_categories),
            **{key: names for key, names in chosen.items() if names},
            "columns": columns,
        }

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
        require(isinstance(data, dict), f"expected a dictionary, got {type(data).__name__}")
        require(
            data.get("format") == FORMAT, f"format {data.get('format')!r} is not known, expected {FORMAT}"
        )
        try:
            _check_max_categories(data.get("max_categories"))
        except ValueError as error:
            require(False, str(error).rstrip("."))
        columns = data.get("columns")
        require(isinstance(columns, list) and len(columns) > 0, "'columns' must be a list of columns")
        chosen = {key: data.get(key, []) for key in ("text", "numeric")}
        for key, names in chosen.items():
            texts = isinstance(names, list) and all(isinstance(name, str) for name in names)
            require(texts, f"{key!r} must be a list of names, got {names!r}")
        encoder = cls(data["max_categories"], tuple(chosen["text"]), tuple(chosen["numeric"]))
        encoder._set_columns([column_from_dict(column) for column in columns])
        names = list(encoder.feature_names_in_)
        require(len(set(names)) == len(names), "two columns share a name")
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


def _check_max_categories(value: Any) -> None:
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
        raise ValueError(f"max_categories must be a whole number of at least 1, got {value!r}.")


def _check_choice(text: Any, numeric: Any, table: Table) -> None:
    for key, names in (("text", text), ("numeric", numeric)):
        if isinstance(names, str) or not isinstance(names, Collection):
            raise ValueError(f"{key} must be a collection of names of columns, got {names!r}.")
        table.select(names)  # which says what it does not know
    both = [name for name in text if name in numeric]
    if both:
        raise ValueError(f"Column {both[0]!r} cannot be both text and numeric.")
