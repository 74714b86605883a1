"""From a table to the matrix that the estimators take, and the same for new rows.

What was learned about a column is a small object that knows how to encode it. The whole encoder is therefore
a list of plain facts, which the model file can carry as JSON: `to_dict` and `from_dict`.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from opgrow.rows.tables.categories import TextColumn
from opgrow.rows.tables.checks import require
from opgrow.rows.tables.columns import Column, DroppedColumn, NumberColumn
from opgrow.rows.tables.descriptions import columns_from, description_of, parameters_from, wishes_of
from opgrow.rows.tables.facts import PYTHON, ColumnFacts, column_lines
from opgrow.rows.tables.learning import Wishes, learned
from opgrow.rows.tables.table import Table, listed
from opgrow.rows.tables.target_means import Target, TargetColumn
from opgrow.rows.tables.wishes import check_choices, check_names_of, check_single, warn

__all__ = ["TableEncoder"]


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn a table into a matrix of numbers.

    Numbers pass through. A gap becomes the median of the training rows, and a further column says where gaps
    were, if training rows had several. Text becomes one column of zeros and ones per category (sorted), with
    a further one for missing values if the training rows had any; a category that was not seen in training is
    all zeros, and `transform` warns of it. Text of many categories becomes means of the target. Dates, times
    and durations become numbers: time that has passed, and the place in the year, the week and the day, each
    as a sine and a cosine. Columns that tell no training row from another are left out, with a warning.

    Parameters
    ----------
    max_categories : int, default=30
        The categories of a text column that have a column each.
    text : collection of str, default=()
        Columns to take as categories, although they hold numbers or dates.
    numeric : collection of str, default=()
        Columns to take as numbers, although they hold text; whatever is no number in them is missing.
    verbose : int, default=0
        1 prints what `fit` decided about the columns.
    many : {"target", "pool"}, default="target"
        What becomes of a text column with more categories. "target": each becomes the mean of the target in
        the training rows that have it, for classes the share of each class; training rows get the means of
        other rows. "pool": the most frequent ones that occur more than once have a column each, and all
        others share the category "<other>". They are also pooled where there is no target, or more than ten
        classes.
    gaps : {"mark", "fill"}, default="mark"
        Whether gaps in numbers, if there are at least ten, have a column of their own.

    Attributes
    ----------
    columns_ : list
        What was learned about each column; ``print(encoder)`` shows a line for each.
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
    >>> print(encoder)
    age: number, gaps become 41.5
    colour: 2 categories, a column for each: 'blue', 'red'; one for gaps
    """

    columns_: list[Column]
    facts_: list[ColumnFacts]

    def __init__(
        self,
        max_categories: int = 30,
        text: Collection[str] = (),
        numeric: Collection[str] = (),
        verbose: int = 0,
        many: str = "target",
        gaps: str = "mark",
    ) -> None:
        self.max_categories = max_categories
        self.text = text
        self.numeric = numeric
        self.verbose = verbose
        self.many = many
        self.gaps = gaps

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn medians, categories and means.

        Parameters
        ----------
        X : Table, data frame, mapping of str to sequence, or 2-D array
            The training rows, without the target.
        y : array-like of shape (n_rows,), optional
            The target, for ``many="target"``.

        Returns
        -------
        self : TableEncoder
            The fitted encoder.
        """
        self.learn(Table.from_any(X), self._target(y))
        check_single(self)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Learn from rows and encode them; means of the target are those of other rows.

        Parameters
        ----------
        X : Table, data frame, mapping of str to sequence, or 2-D array
        y : array-like of shape (n_rows,), optional

        Returns
        -------
        ndarray of shape (n_rows, n_outputs), float32
        """
        table = Table.from_any(X)
        crossed = self.learn(table, self._target(y))
        check_single(self)
        return self.encode(table, np.float32, crossed)

    def learn(
        self, table: Table, target: Target | None = None, *, keep_constant: bool = False
    ) -> dict[str, np.ndarray]:
        """Fit, and return the values of training rows, by column, that are not those that other rows get.

        Parameters
        ----------
        table : Table
        target : Target, optional
        keep_constant : bool, default=False
            Whether columns stay that tell no training row from another.
        """
        check_choices(self)
        if not table.n_rows:
            raise ValueError("The table to learn from has no columns or no rows.")
        check_names_of(self.text, self.numeric, table)
        common = (self.max_categories, self.many, self.gaps == "mark", keep_constant)
        found = {
            name: learned(name, values, Wishes(*common, name in self.text, name in self.numeric), target)
            for name, values in table.columns.items()
        }
        self._set_columns([column for column, _ in found.values()])
        self._warn_of_dropped()
        self.facts_ = [
            ColumnFacts.of(column, values)
            for column, values in zip(self.columns_, table.columns.values(), strict=True)
        ]
        if self.verbose:
            for label, line in column_lines(self.facts_, PYTHON):
                print(f"{label:<10} {line}", file=sys.stderr)
        return {name: values for name, (_, values) in found.items() if values is not None}

    def _target(self, y: Any) -> Target | None:
        return None if y is None or self.many != "target" else Target.of(y)

    def _warn_of_dropped(self) -> None:
        dropped = [column for column in self.columns_ if isinstance(column, DroppedColumn)]
        if len(dropped) == len(self.columns_):
            raise ValueError(f"There is no column to learn from: {dropped[0].name!r}, {dropped[0].reason}.")
        if dropped:
            first, more = dropped[0], f", and {len(dropped) - 1} more" if len(dropped) > 1 else ""
            warn(f"column {first.name!r} is left out, because {first.reason}{more}")

    def transform(self, X: Any) -> np.ndarray:
        """Encode rows.

        Parameters
        ----------
        X : Table, data frame, mapping of str to sequence, or 2-D array
            Rows with the columns of the training table; their order does not matter, and further columns are
            ignored.

        Returns
        -------
        ndarray of shape (n_rows, n_outputs), float32
            The matrix whose columns `get_feature_names_out` names.
        """
        check_is_fitted(self)
        return self.encode(Table.from_any(X), np.float32)

    def encode(
        self, table: Table, dtype: Any = None, crossed: dict[str, np.ndarray] | None = None
    ) -> np.ndarray:
        """Encode rows in a precision; by default float32 if it loses nothing, and otherwise float64.

        Parameters
        ----------
        table : Table
        dtype : float32 or float64, optional
        crossed : what `learn` has returned, if these are the training rows
        """
        used = [column for column in self.columns_ if not isinstance(column, DroppedColumn)]
        absent = [column.name for column in used if column.name not in table.columns]
        if absent:
            raise ValueError(
                f"The table lacks {listed(absent)}, which the encoder was fitted with: "
                f"it has {listed(table.names)}."
            )
        matrix = np.zeros((table.n_rows, len(self.get_feature_names_out())), dtype or self._precision(table))
        start, remarks = 0, []
        for column in used:
            stop = start + len(column.outputs)
            part = matrix[:, start:stop]
            if crossed is not None and column.name in crossed:
                part[:] = crossed[column.name]
            else:
                remarks += column.encode(table.columns[column.name], part)
            start = stop
        if remarks:
            warn("; ".join(remarks))
        return matrix

    def _precision(self, table: Table) -> Any:
        """The smaller precision that holds all values of the table."""
        for column in self.columns_:
            if isinstance(column, NumberColumn):
                values = table.columns[column.name]
                values = np.array([column.median]) if values.dtype == object else values
                with np.errstate(over="ignore", invalid="ignore"):
                    same = values.astype(np.float32).astype(np.float64)
                if column.text_is_missing or not ((same == values) | np.isnan(values)).all():
                    return np.float64
                if float(np.float32(column.median)) != column.median:
                    return np.float64
            elif not isinstance(column, TextColumn | DroppedColumn):
                return np.float64
        return np.float32

    def __str__(self) -> str:
        """A line for each column, of a fitted encoder."""
        if not hasattr(self, "columns_"):
            return repr(self)
        return "\n".join(f"{column.name}: {column.describe()}" for column in self.columns_)

    @property
    def text_columns(self) -> list[str]:
        """Names of the columns that are taken as text."""
        return [column.name for column in self.columns_ if isinstance(column, TextColumn | TargetColumn)]

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
        return description_of(self)

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
        encoder = cls.wished(data)
        encoder._set_columns(columns_from(data))
        return encoder

    @classmethod
    def of(cls, columns: Sequence[Column]) -> Self:
        """Make an encoder from what is known of its columns.

        Parameters
        ----------
        columns : sequence of NumberColumn and others

        Returns
        -------
        TableEncoder
            A fitted encoder.
        """
        encoder = cls()
        encoder._set_columns(list(columns))
        return encoder

    def wishes(self) -> dict[str, Any]:
        """Write the parameters as plain data, ready for JSON."""
        return wishes_of(self)

    @classmethod
    def wished(cls, data: Any) -> Self:
        """Make an encoder with the parameters of a description, which is checked."""
        encoder = cls(**parameters_from(data))
        try:
            check_choices(encoder)
        except ValueError as error:
            require(False, str(error).rstrip("."))
        return encoder

    def _set_columns(self, columns: list[Column]) -> None:
        self.columns_ = columns
        self.n_features_in_ = len(columns)
        self.feature_names_in_ = np.array([column.name for column in columns], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags
