"""The values of one column, from whatever a user holds, in the two forms that tables have."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from opgrow.rows.tables.dates import is_date

__all__ = ["as_column", "as_text", "check_names", "described", "listed", "objects"]

#: pandas' NA and NaT by their names, because pandas need not be there.
_MISSING_TYPES = ("NAType", "NaTType")


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
        raise TypeError(f"Column {name!r} must be a sequence of values, got {described(values)}.")
    # A list goes through objects: NumPy would turn [1.5, "a"] into text and None into the word "None".
    array = values if hasattr(values, "dtype") else objects(values)
    array = np.asarray(array)
    if array.ndim != 1:
        raise ValueError(f"Column {name!r} must be one-dimensional, got shape {array.shape}.")
    if array.dtype.kind in "biuf":
        return array.astype(np.float64, copy=False)
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: column {name!r} holds complex numbers.")
    if array.dtype.kind in "mM":
        array = array.astype("M8[s]" if array.dtype.kind == "M" else "m8[s]")
        return objects(None if np.isnat(value) else str(value) for value in array)
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
    if kind == "c":
        raise ValueError(f"Complex data not supported: column {name!r} holds complex numbers.")
    if str(dtype) != "category" and kind in "biuf":
        return np.array(series.to_numpy(dtype=np.float64, na_value=np.nan))
    values = series.astype(object).to_numpy().tolist()
    missing = series.isna().to_numpy().tolist()
    values = [None if gone else value for value, gone in zip(values, missing, strict=True)]
    if str(dtype) == "category":
        # Whoever made it a category wants no arithmetic on it, even if its labels are numbers.
        return objects(None if value is None else str(value) for value in values)
    return _from_objects(values, name)


def _from_objects(values: list[Any], name: str) -> np.ndarray:
    present = [value for value in values if not _is_missing(value)]
    if all(isinstance(value, (Real, Decimal, np.bool_)) for value in present):
        try:
            numbers = [np.nan if _is_missing(value) else float(value) for value in values]
        except OverflowError:
            raise ValueError(f"Column {name!r} holds an integer that is too large for a float.") from None
        return np.array(numbers, dtype=np.float64)
    return objects(None if _is_missing(value) else _text(value, name) for value in values)


def _text(value: Any, name: str) -> str:
    """An object as text that is the same in every process."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
        clock = seconds % 86400
        hours, minutes = int(clock // 3600), int(clock // 60 % 60)
        return f"{int(seconds // 86400)} days {hours:02}:{minutes:02}:{clock % 60:09.6f}"
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, complex):
        raise ValueError(f"Complex data not supported: column {name!r} holds {value!r}.")
    cls: Any = type(value)
    has_text = not (cls.__str__ is object.__str__ and cls.__repr__ is object.__repr__)
    if not has_text or (isinstance(value, (list, tuple, set, np.ndarray)) and not is_date(value)):
        raise ValueError(f"Column {name!r} must hold numbers or text, got {described(value)}.")
    return str(value)


def as_text(numbers: np.ndarray) -> np.ndarray:
    """A column as text: numbers as a file would have them, whole ones without a point."""
    if numbers.dtype == object:
        return numbers
    return objects(None if x != x else str(int(x)) if x.is_integer() else repr(x) for x in numbers.tolist())


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in _MISSING_TYPES or value is np.ma.masked:
        return True
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    return isinstance(value, (float, np.floating, Decimal)) and bool(value != value)


def objects(values: Iterable[Any]) -> np.ndarray:
    values = list(values)
    array = np.empty(len(values), dtype=object)
    # Filled afterwards, so that NumPy does not look inside the values for further dimensions.
    array[:] = values
    return array


def described(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return f"a value of type {type(value).__name__}" + (
        f" and shape {tuple(shape)}" if shape is not None else ""
    )
