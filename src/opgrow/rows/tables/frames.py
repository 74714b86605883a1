"""Data frames of every library, dictionaries and arrays, as the columns of a table.

Frames are recognised by their methods and by the protocols that they speak; no library of data frames is
imported before it is there. narwhals, which newer versions of scikit-learn bring along, knows some more.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from opgrow.common.machine import available_bytes
from opgrow.rows.tables.values import as_column, check_names, described

__all__ = ["columns_of", "columns_of_matrix", "dense", "eager", "is_frame", "is_sparse"]

Columns = dict[str, np.ndarray]


def eager(data: Any) -> Any:
    """A lazy frame of polars with its rows; all else as it is."""
    return (
        data.collect()
        if hasattr(data, "collect_schema") and hasattr(data, "collect") and not hasattr(data, "get_column")
        else data
    )


def is_sparse(data: Any) -> bool:
    """Whether data is a sparse matrix or array of scipy."""
    return hasattr(data, "toarray") and hasattr(data, "nnz")


def is_frame(data: Any) -> bool:
    """Whether data has columns with names: a data frame of any library, or a dictionary."""
    if isinstance(data, np.ndarray | list | tuple):
        return False
    protocols = ("iloc", "get_column", "to_pydict", "__arrow_c_stream__", "__dataframe__")
    named = hasattr(data, "columns") or hasattr(data, "to_pydict")
    return (
        isinstance(data, Mapping)
        or (named and any(hasattr(data, name) for name in protocols))
        or any(hasattr(data, name) for name in protocols[3:])
        or _narwhals(data) is not None
    )


def dense(data: Any) -> np.ndarray:
    """A sparse matrix as an array, if there is memory for it."""
    needed, there = int(np.prod(data.shape)) * data.dtype.itemsize, available_bytes()
    if there is not None and needed > there:
        raise ValueError(
            f"The sparse matrix of shape {tuple(data.shape)} would take {needed / 2**30:.1f} GiB as a dense "
            f"one, which networks need, and {there / 2**30:.1f} GiB are available: leave out columns."
        )
    return np.asarray(data.toarray())


def columns_of(data: Any) -> Columns:
    """The columns of anything that is a table."""
    data = dense(data) if is_sparse(data) else eager(data)
    if hasattr(data, "iloc") and hasattr(data, "columns"):
        names = [str(name) for name in data.columns]
        check_names(names, "The data frame")
        return {name: as_column(data.iloc[:, i], name) for i, name in enumerate(names)}
    if hasattr(data, "get_column") and hasattr(data, "columns"):  # polars
        return {str(name): _from_polars(data.get_column(name), str(name)) for name in data.columns}
    if hasattr(data, "to_pydict"):  # pyarrow
        check_names(list(data.schema.names), "The table")
        data = data.to_pydict()
    if isinstance(data, Mapping):
        names = [str(name) for name in data]
        check_names(names, "The dictionary")
        return {name: as_column(values, name) for name, values in zip(names, data.values(), strict=True)}
    if isinstance(data, np.ndarray) and data.ndim == 2:
        return columns_of_matrix(data)
    frame = _narwhals(data)
    if frame is not None:
        return {name: as_column(frame.get_column(name).to_list(), name) for name in frame.columns}
    other = _by_protocol(data)
    if other is not None:
        return columns_of(other)
    raise TypeError(
        "Expected a table (a data frame of pandas, polars or another library, a table of pyarrow, a "
        f"dictionary of columns or a 2-D array), got {described(data)}."
    )


def columns_of_matrix(matrix: np.ndarray, names: list[str] | None = None) -> Columns:
    """The columns of a matrix, called x0, x1, ... if there are no names."""
    if np.ndim(matrix) != 2:
        raise ValueError(f"A matrix has rows and columns, got {described(matrix)}.")
    if names is None:
        names = [f"x{i}" for i in range(matrix.shape[1])]
    elif len(names) != matrix.shape[1]:
        raise ValueError(f"There are {len(names)} names for the {matrix.shape[1]} columns of the matrix.")
    check_names(names, "The matrix")
    if matrix.dtype.kind in "biuf":
        # One copy with contiguous columns, instead of one copy per column.
        matrix = matrix.astype(np.float64, order="F", copy=False)
    return {name: as_column(matrix[:, i], name) for i, name in enumerate(names)}


def _from_polars(column: Any, name: str) -> np.ndarray:
    dtype: Any = getattr(column, "dtype", None)
    if hasattr(dtype, "is_float") and (dtype.is_float() or dtype.is_integer()):
        return np.array(column.to_numpy(), dtype=np.float64)  # with NaN where there is no value
    return as_column(column.to_list(), name)


def _narwhals(data: Any) -> Any:
    """A frame of a library that only narwhals knows, as narwhals has it; None for all else."""
    if type(data).__module__ == "builtins":
        return None
    try:
        narwhals: Any = importlib.import_module("narwhals.stable.v2")
    except ImportError:
        return None
    frame = narwhals.from_native(data, pass_through=True)
    if isinstance(frame, narwhals.LazyFrame):
        frame = frame.collect()
    return frame if isinstance(frame, narwhals.DataFrame) else None


def _by_protocol(data: Any) -> Any:
    """A frame that speaks a protocol, as a table of pyarrow or a frame of pandas; else None."""
    if hasattr(data, "__arrow_c_stream__"):
        try:
            return importlib.import_module("pyarrow").table(data)
        except ImportError:
            pass
    if hasattr(data, "__dataframe__"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the protocol gets old
            for library in ("pyarrow.interchange", "pandas.api.interchange"):
                try:
                    return importlib.import_module(library).from_dataframe(data)
                except ImportError:
                    continue
    return None
