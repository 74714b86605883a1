"""A table: named columns of equal length, each of them numbers or text.

Only two kinds of column exist, so that everything downstream has two cases to think of: float64 with NaN for
missing, and object arrays of `str` with None for missing. Whatever a user holds (data frame, dictionary,
matrix) is brought into this form once, here. Data frames are recognised by their methods; no library of data
frames is imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from opgrow.rows.tables.csv_format import CsvFormat
from opgrow.rows.tables.dates import is_date

__all__ = ["Table", "as_column", "as_text"]


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
        data : Table, data frame of pandas or polars, pyarrow.Table, mapping of str to sequence, or 2-D array
            Booleans and integers become float64. Strings stay text, even if they look like numbers, and so do
            categories of a data frame. None, NaN and pandas' NA are missing values. The columns of an array
            are called x0, x1, ... Dates and times become text, which `TableEncoder` refuses unless it is told
            to take it as categories.

        Returns
        -------
        Table
            The data; ``data`` itself if it is a table.
        """
        if isinstance(data, Table):
            return data
        if hasattr(data, "iloc") and hasattr(data, "columns"):
            names = [str(name) for name in data.columns]
            check_names(names, "The data frame")
            return cls({name: _from_series(data.iloc[:, i], name) for i, name in enumerate(names)})
        if hasattr(data, "get_column") and hasattr(data, "columns"):  # polars
            data = {name: data.get_column(name).to_list() for name in data.columns}
        elif hasattr(data, "to_pydict"):  # pyarrow
            check_names(list(data.schema.names), "The table")
            data = data.to_pydict()
        if isinstance(data, Mapping):
            names = [str(name) for name in data]
            check_names(names, "The dictionary")
            pairs = zip(names, data.values(), strict=True)
            return cls({name: as_column(values, name) for name, values in pairs})
        if isinstance(data, np.ndarray) and data.ndim == 2:
            return cls.from_matrix(data)
        remedy = ": turn it into an array with .toarray()." if hasattr(data, "toarray") else "."
        raise TypeError(
            "Expected a table (a data frame of pandas or polars, a table of pyarrow, a dictionary of columns "
            f"or a 2-D array), got {_described(data)}{remedy}"
        )

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
        if np.ndim(matrix) != 2:
            raise ValueError(f"A matrix has rows and columns, got {_described(matrix)}.")
        if names is None:
            names = [f"x{i}" for i in range(matrix.shape[1])]
        elif len(names) != matrix.shape[1]:
            raise ValueError(f"There are {len(names)} names for the {matrix.shape[1]} columns of the matrix.")
        check_names(names, "The matrix")
        if matrix.dtype.kind in "biuf":
            # One copy with contiguous columns, instead of one copy per column.
            matrix = matrix.astype(np.float64, order="F", copy=False)
        return cls({name: as_column(matrix[:, i], name) for i, name in enumerate(names)})


def as_column(values: Any, name: str = "values") -> np.ndarray:
    """Bring a sequence of values into the form of a table's column.

    Parameters
    ----------
    values : sequence of shape (n_rows,)
        Numbers, booleans, strings, and None or NaN for missing values. Where strings and numbers are mixed,
        all become text. A pandas Series is welcome.
    name : str, default="values"
        What the column is called in error messages.

    Returns
    -------
    ndarray of shape (n_rows,)
        float64 with NaN for missing values, or objects: `str`, None for missing values.

    Examples
    --------
    >>> as_column([True, 2, None])
    array([ 1.,  2., nan])
    >>> as_column(["a", None])
    array(['a', None], dtype=object)
    """
    if hasattr(values, "iloc") and hasattr(values, "dtype"):
        return _from_series(values, name)
    if isinstance(values, np.ma.MaskedArray):
        values = values.tolist()  # with None where it is masked
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
        raise TypeError(f"Column {name!r} must be a sequence of values, got {_described(values)}.")
    # A list goes through objects: NumPy would turn [1.5, "a"] into text and None into the word "None".
    array = values if hasattr(values, "dtype") else _objects(values)
    array = np.asarray(array)
    if array.ndim != 1:
        raise ValueError(f"Column {name!r} must be one-dimensional, got shape {array.shape}.")
    if array.dtype.kind in "biuf":
        return array.astype(np.float64, copy=False)
    if array.dtype.kind in "mM":
        array = array.astype("M8[s]" if array.dtype.kind == "M" else "m8[s]")
        return _objects(None if np.isnat(value) else str(value) for value in array)
    return _from_objects(array.tolist(), name)


def check_names(names: list[str], owner: str, remedy: str = "") -> None:
    """Refuse columns that share a name; `owner` begins the sentence that says so, `remedy` ends it."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{owner} has more than one column named {name!r}{remedy}.")
        seen.add(name)


def listed(names: Iterable[str], limit: int = 8) -> str:
    """Write names for an error message, the first few of many."""
    quoted = [repr(name) for name in names]
    more = f" and {len(quoted) - limit} more" if len(quoted) > limit else ""
    return (", ".join(quoted[:limit]) or "no columns") + more


def _from_series(series: Any, name: str) -> np.ndarray:
    dtype = series.dtype
    kind = getattr(dtype, "kind", "O")
    if str(dtype).startswith("period"):
        series = series.dt.start_time
    if str(dtype) != "category" and kind in "biuf":
        return np.array(series.to_numpy(dtype=np.float64, na_value=np.nan))
    values = series.astype(object).to_numpy().tolist()
    missing = series.isna().to_numpy().tolist()
    values = [None if gone else value for value, gone in zip(values, missing, strict=True)]
    if str(dtype) == "category":
        # Whoever made it a category wants no arithmetic on it, even if its labels are numbers.
        return _objects(None if value is None else str(value) for value in values)
    return _from_objects(values, name)


def _from_objects(values: list[Any], name: str) -> np.ndarray:
    present = [value for value in values if not _is_missing(value)]
    if all(isinstance(value, (Real, Decimal, np.bool_)) for value in present):
        try:
            numbers = [np.nan if _is_missing(value) else float(value) for value in values]
        except OverflowError:
            raise ValueError(f"Column {name!r} holds an integer that is too large for a float.") from None
        return np.array(numbers, dtype=np.float64)
    for value in present:
        if not isinstance(value, (str, Real, Decimal, np.bool_)) and not is_date(value):
            raise ValueError(f"Column {name!r} must hold numbers or text, got {_described(value)}.")
    return _objects(None if _is_missing(value) else str(value) for value in values)


def as_text(numbers: np.ndarray) -> np.ndarray:
    """A column as text: numbers as a file would have them, whole ones without a point."""
    if numbers.dtype == object:
        return numbers
    return _objects(None if x != x else str(int(x)) if x.is_integer() else repr(x) for x in numbers.tolist())


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, (float, np.floating, Decimal)) and value != value)


def _objects(values: Iterable[Any]) -> np.ndarray:
    values = list(values)
    array = np.empty(len(values), dtype=object)
    # Filled afterwards, so that NumPy does not look inside the values for further dimensions.
    array[:] = values
    return array


def _described(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return f"a value of type {type(value).__name__}" + (
        f" and shape {tuple(shape)}" if shape is not None else ""
    )
