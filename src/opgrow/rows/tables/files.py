"""Table files: CSV, Parquet, NPZ and NPY.

Files come from anywhere, so nothing in them is executed (`allow_pickle=False`) and each way in which one can
be wrong ends in one sentence that names the file, what it holds and what was expected.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np

from opgrow.common.extras import require
from opgrow.rows.tables.csv_files import read_csv
from opgrow.rows.tables.table import Table, as_column, as_text, check_names

__all__ = ["read_npz", "read_table"]


def read_table(
    path: str | os.PathLike[str],
    *,
    header: bool | None = None,
    decimal: str | None = None,
    text: Collection[str] = (),
) -> Table:
    r"""Read a table from a file; the ending of its name says which kind it is.

    Parameters
    ----------
    path : str or path-like
        - ``.csv``, ``.csv.gz``: UTF-8; comma, semicolon or tab between fields. Empty fields and ``NA``,
          ``NaN``, ``nan``, ``null`` and ``?`` are missing. A column is numeric if every other value of it is
          a number. Blanks around fields are ignored, and so are empty lines.
        - ``.parquet``: needs pyarrow. Dictionary-encoded columns are text.
        - ``.npz``: array ``X`` of shape (n_rows, n_features), optionally ``y`` of shape (n_rows,), which
          becomes the column ``target``, and ``feature_names``; otherwise the columns are x0, x1, ...
        - ``.npy``: one array of shape (n_rows, n_features).
    header : bool, optional
        Whether the first row of a CSV file has the names; without, columns are called x0, x1, ... By default,
        a first row that looks like data is refused.
    decimal : {".", ","}, optional
        The decimal mark of a CSV file. By default a comma where fields are separated by semicolons or tabs
        and all numbers with a fraction have one; a file that could be read in two ways is refused.
    text : collection of str, default=()
        Columns to keep as text, even if they hold numbers only; names that the file lacks do no harm.

    Returns
    -------
    Table
        The columns in the file's order; ``read_as`` says how a CSV file was understood.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not what its name promises, or holds no rows.
    ImportError
        If the file is Parquet and pyarrow is not installed.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = path.write_text("age,colour\n31,red\n?,blue\n")
    >>> read_table(path).columns
    {'age': array([31., nan]), 'colour': array(['red', 'blue'], dtype=object)}
    """
    path = Path(path).expanduser()
    name = path.name.lower()
    ending = next((ending for ending in _READERS if name.endswith(ending)), None)
    if ending is None:
        raise ValueError(
            f"Cannot tell the format of {str(path)!r}: expected a name ending in {', '.join(_READERS)}."
        )
    if path.is_dir():
        raise ValueError(f"{str(path)!r} is a folder: expected a file.")
    if not path.exists():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    if decimal not in (None, ".", ","):
        raise ValueError(f"decimal must be '.' or ',', got {decimal!r}.")
    reader = _READERS[ending]
    if reader is None:
        table = read_csv(path, header, decimal, text)
    elif header is not None or decimal is not None:
        raise ValueError(f"{str(path)!r} is no CSV file: a header and a decimal mark concern these only.")
    else:
        table = reader(path)
        table = Table({n: as_text(v) if n in text else v for n, v in table.columns.items()})
    if not table.n_rows:
        raise ValueError(f"{str(path)!r} has no data rows.")
    return table


def read_npz(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """Read the arrays of an NPZ file that holds a data set.

    Parameters
    ----------
    path : str or path-like
        An NPZ file with an array ``X``, and perhaps ``y`` and others.

    Returns
    -------
    dict of str to ndarray
        All arrays of the file. ``X`` is a matrix of numbers; ``feature_names`` names its columns (x0, x1, ...
        if the file has none); ``y``, if present, has one value per row.
    """
    path = Path(path)
    arrays = _load_numpy(path)
    if not isinstance(arrays, dict):
        raise ValueError(f"{str(path)!r} is a single array and no NPZ archive: name it .npy.")
    if "X" not in arrays:
        held = ", ".join(arrays) or "nothing"
        raise ValueError(
            f"{str(path)!r} must hold an array 'X' of shape (n_rows, n_features), and holds {held}."
        )
    _check_matrix(arrays["X"], path)
    n_features = arrays["X"].shape[1]
    names = arrays.setdefault("feature_names", np.array([f"x{i}" for i in range(n_features)], dtype=str))
    if names.shape != (n_features,) or names.dtype.kind != "U":
        raise ValueError(
            f"Array 'feature_names' of {str(path)!r} must hold {n_features} texts, one per column of 'X', "
            f"got shape {names.shape} of {names.dtype}."
        )
    check_names(names.tolist() + ["target"] * ("y" in arrays), repr(str(path)))
    if "y" in arrays and arrays["y"].shape != (len(arrays["X"]),):
        raise ValueError(
            f"Array 'y' of {str(path)!r} must have one value per row of 'X': "
            f"expected shape ({len(arrays['X'])},), got {arrays['y'].shape}."
        )
    return arrays


def _read_parquet(path: Path) -> Table:
    pa, pq = (require(module, "Reading Parquet files", "tables") for module in ("pyarrow", "pyarrow.parquet"))
    try:
        with pq.ParquetFile(path) as file:
            content = file.read()
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{str(path)!r} is not a Parquet file that can be read.") from error
    check_names(content.column_names, repr(str(path)))
    columns = zip(content.column_names, content.columns, strict=True)
    # pandas keeps row labels that are no plain numbering as a column with a name like this.
    return Table({name: _from_arrow(c, name) for name, c in columns if not name.startswith("__index_level_")})


def _from_arrow(column: Any, name: str) -> np.ndarray:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):
        return as_column([None if value is None else str(value) for value in column.to_pylist()], name)
    if any(test(kind) for test in (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating)):
        return np.array(column.cast(pa.float64(), safe=False).to_numpy())
    return as_column(column.to_pylist(), name)


def _read_npz_table(path: Path) -> Table:
    arrays = read_npz(path)
    table = Table.from_matrix(arrays["X"], arrays["feature_names"].tolist())
    if "y" not in arrays:
        return table
    return Table({**table.columns, "target": as_column(arrays["y"], "target")})


def _read_npy(path: Path) -> Table:
    matrix = _load_numpy(path)
    if isinstance(matrix, dict):
        raise ValueError(f"{str(path)!r} is an NPZ archive and no single array: name it .npz.")
    _check_matrix(matrix, path)
    return Table.from_matrix(matrix)


def _load_numpy(path: Path) -> np.ndarray | dict[str, np.ndarray]:
    try:
        content = np.load(path, allow_pickle=False)
        if isinstance(content, np.ndarray):
            return content
        with content:
            return {name: content[name] for name in content.files}
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no file {str(path)!r}.") from None
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{str(path)!r} is not a NumPy file of plain arrays.") from error


def _check_matrix(matrix: np.ndarray, path: Path) -> None:
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise ValueError(
            f"{str(path)!r} must hold a matrix of numbers of shape (n_rows, n_features), "
            f"got shape {matrix.shape} of {matrix.dtype}."
        )


#: How each kind of file is read; CSV files have ways of their own.
_READERS: dict[str, Callable[[Path], Table] | None] = {
    ".csv": None,
    ".csv.gz": None,
    ".parquet": _read_parquet,
    ".npz": _read_npz_table,
    ".npy": _read_npy,
}
