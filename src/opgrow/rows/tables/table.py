"""A table: named columns of equal length, each of them numbers or text.

Only two kinds of column exist, so that everything downstream has two cases to think of: float64 with NaN for
missing, and object arrays of `str` with None for missing. Whatever a user holds (data frame, dictionary,
matrix) is brought into this form once, here. Data frames are recognised by their methods; no library of data
frames is imported.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from opgrow.rows.tables.csv_format import CsvFormat
from opgrow.rows.tables.frames import columns_of, columns_of_matrix
from opgrow.rows.tables.values import as_column, as_text, check_names, listed

__all__ = ["Table", "as_column", "as_text", "check_names", "listed"]


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of equal length.

    Parameters
    ----------
    columns : dict of str to ndarray of shape (n_rows,)
        Numeric columns are float64 with NaN for missing values; all others are object arrays of `str` with
        None for missing values. `Table.from_any` brings other data into this form.
    read_as : CsvFormat, optional
        How the file was read that the table comes from, if it was a CSV file.

    Examples
    --------
    >>> table = Table.from_any({"age": [31, None, 52], "colour": ["red", "blue", None]})
    >>> table.n_rows, table.names
    (3, ['age', 'colour'])
    >>> table.columns["age"]
    array([31., nan, 52.])
    >>> table.drop("age").names
    ['colour']
    """

    columns: dict[str, np.ndarray]
    read_as: CsvFormat | None = None

    def __post_init__(self) -> None:
        lengths = set()
        for name, values in self.columns.items():
            if (
                not isinstance(values, np.ndarray)
                or values.ndim != 1
                or values.dtype not in (np.float64, object)
            ):
                raise ValueError(
                    f"Column {name!r} of a Table must be a 1-D float64 or object array; "
                    "Table.from_any accepts other data."
                )
            lengths.add(len(values))
        if len(lengths) > 1:
            raise ValueError(
                f"The columns of a table must be equally long, and these have {sorted(lengths)} rows."
            )

    @property
    def n_rows(self) -> int:
        """The number of rows; 0 for a table without columns."""
        return len(next(iter(self.columns.values()), ()))

    def __len__(self) -> int:
        return self.n_rows

    @property
    def names(self) -> list[str]:
        """The names of the columns, in order."""
        return list(self.columns)

    def select(self, names: Iterable[str]) -> Table:
        """Keep the named columns, in the order given.

        Parameters
        ----------
        names : iterable of str
            Names of columns of this table.

        Returns
        -------
        Table
            A table that shares the columns' memory with this one.
        """
        return Table({name: self.columns[self._known(name)] for name in names})

    def drop(self, name: str) -> Table:
        """Leave one column out.

        Parameters
        ----------
        name : str
            Name of a column of this table.

        Returns
        -------
        Table
            A table that shares the columns' memory with this one.
        """
        self._known(name)
        return self.select(other for other in self.columns if other != name)

    def _known(self, name: str) -> str:
        if name not in self.columns:
            raise ValueError(f"There is no column {name!r}: the table has {listed(self.columns)}.")
        return name

    @classmethod
    def from_any(cls, data: Any) -> Table:
        """Bring data of another form into a table.

        Parameters
        ----------
        data : Table, data frame, mapping of str to sequence, or 2-D array
            Data frames are those of pandas, polars and pyarrow, and all that narwhals, the Arrow stream or
            the interchange protocol knows. Booleans and integers become float64. Strings stay text, even if
            they look like numbers, and so do categories of a data frame. None, NaN, NaT and pandas' NA are
            missing values. The columns of an array are called x0, x1, ... Dates, times and all other objects
            become text.

        Returns
        -------
        Table
            The data; ``data`` itself if it is a table.
        """
        return data if isinstance(data, Table) else cls(columns_of(data))

    @classmethod
    def from_matrix(cls, matrix: np.ndarray, names: list[str] | None = None) -> Table:
        """Name the columns of a matrix.

        Parameters
        ----------
        matrix : ndarray of shape (n_rows, n_columns)
            Numbers or strings.
        names : list of str, optional
            One name per column; x0, x1, ... by default.

        Returns
        -------
        Table
            One column per column of the matrix.
        """
        return cls(columns_of_matrix(matrix, names))
