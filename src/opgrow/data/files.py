"""Table files: CSV, Parquet, NPZ and NPY.

Files come from anywhere, so nothing in them is executed (`allow_pickle=False`) and each way in which one can
be wrong ends in one sentence that names the file, what it holds and what was expected. A CSV of numbers goes
through `numpy.loadtxt`, which is C; anything else is read in blocks of rows, so that a large file never
exists as Python strings all at once.
"""

from __future__ import annotations

import csv
import gzip
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from opgrow.data.table import Table, as_column, check_names

__all__ = ["read_npz", "read_table"]

MISSING = frozenset(["", "NA", "NaN", "nan", "null", "?"])
BLOCK_CELLS = 1_000_000


def read_table(path: str | os.PathLike[str]) -> Table:
    r"""Read a table from a file; the ending of its name says which kind it is.

    Parameters
    ----------
    path : str or path-like
        - ``.csv``, ``.csv.gz``: UTF-8 with a header row; comma, semicolon or tab between fields. Empty fields
          and ``NA``, ``NaN``, ``nan``, ``null`` and ``?`` are missing. A column is numeric if every other
          value of it is a number (with a decimal point). Blanks around fields are ignored, and so are empty
          lines.
        - ``.parquet``: needs pyarrow. Dictionary-encoded columns are text.
        - ``.npz``: array ``X`` of shape (n_rows, n_features), optionally ``y`` of shape (n_rows,), which
          becomes the column ``target``, and ``feature_names``; otherwise the columns are x0, x1, ...
        - ``.npy``: one array of shape (n_rows, n_features).

    Returns
    -------
    Table
        The columns in the file's order.

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
    reader = next((reader for ending, reader in _READERS.items() if name.endswith(ending)), None)
    if reader is None:
        raise ValueError(
            f"Cannot tell the format of {str(path)!r}: expected a name ending in {', '.join(_READERS)}."
        )
    if path.is_dir():
        raise ValueError(f"{str(path)!r} is a folder: expected a file.")
    if not path.exists():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    table = reader(path)
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


def _read_csv(path: Path) -> Table:
    try:
        return _parse_csv(path)
    except UnicodeDecodeError as error:
        raise ValueError(f"{str(path)!r} is not UTF-8 text.") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{str(path)!r} is not a complete gzip file ({error}).") from error
    except csv.Error as error:
        raise ValueError(f"{str(path)!r} is not a CSV file ({error}).") from error


def _parse_csv(path: Path) -> Table:
    with _open_text(path) as handle:
        first = next((line for line in handle if line.strip()), None)
    if first is None:
        raise ValueError(f"{str(path)!r} is empty: expected a header row and data rows.")
    # Whichever delimiter splits the header into most names; a single column counts as comma-separated.
    delimiter = max(",;\t", key=lambda mark: len(next(csv.reader([first], delimiter=mark))))
    with _open_text(path) as handle:
        names = _header(csv.reader(handle, delimiter=delimiter), path)
        matrix = _parse_numbers(handle, delimiter, len(names))
    if matrix is not None:
        return Table.from_matrix(matrix, names)

    columns, text, late = _parse_blocks(path, delimiter, len(names), frozenset())
    if late:
        # Text below numbers: the upper part is no longer what stood there ("007" became 7.0), so read again.
        columns, _, _ = _parse_blocks(path, delimiter, len(names), text)
    return Table(dict(zip(names, columns, strict=True)))


def _open_text(path: Path) -> IO[str]:
    # utf-8-sig reads files with and without a byte order mark.
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return open(path, encoding="utf-8-sig", newline="")


def _header(reader: Any, path: Path) -> list[str]:
    names = [name.strip() for name in next(row for row in reader if row)]
    for i, name in enumerate(names, start=1):
        if not name:
            raise ValueError(
                f"Column {i} in the header of {str(path)!r} has no name "
                "(if it numbers the rows, leave it out)."
            )
    counting = [str(i) for i in range(len(names))]  # how pandas writes columns without names
    if names != counting and all(_is_number(name) for name in names):
        raise ValueError(
            f"{str(path)!r} has no header row: its first row holds numbers only, expected names."
        )
    check_names(names, repr(str(path)))
    return names


def _parse_numbers(handle: IO[str], delimiter: str, n_columns: int) -> np.ndarray | None:
    """Read the rest of the file as a matrix of numbers; None if it is anything else."""
    first = next((line for line in handle if line.strip()), None)
    if first is None:
        return np.empty((0, n_columns))

    def lines() -> Iterator[str]:
        yield first
        yield from handle

    try:
        matrix = np.loadtxt(lines(), delimiter=delimiter, comments=None, quotechar='"', ndmin=2)
    except UnicodeDecodeError:
        raise
    except ValueError:
        return None
    return matrix if matrix.shape[1] == n_columns else None


def _parse_blocks(
    path: Path, delimiter: str, n_columns: int, text: frozenset[int]
) -> tuple[list[np.ndarray], frozenset[int], bool]:
    """Read block by block, the columns in `text` as text and the others as numbers for as long as they are.

    Returns the columns, which of them are text, and whether one turned out to be text after its first block.
    """
    parts: list[list[np.ndarray]] = [[] for _ in range(n_columns)]
    late = False
    for block in _blocks(path, delimiter, n_columns):
        for i, cells in enumerate(block):
            numbers = None if i in text else _numbers(cells)
            if numbers is None and i not in text:
                text |= {i}
                late |= bool(parts[i])
            parts[i].append(_texts(cells) if numbers is None else numbers)
    return [np.concatenate(part) if part else np.empty(0) for part in parts], text, late


def _blocks(path: Path, delimiter: str, n_columns: int) -> Iterator[list[tuple[str, ...]]]:
    """Yield blocks of rows as lists of columns; refuse a row that is not as long as the header."""
    with _open_text(path) as handle:
        reader = csv.reader(handle, delimiter=delimiter)
        next(row for row in reader if row)

        def rows() -> Iterator[list[str]]:
            for row in reader:
                if len(row) == n_columns:
                    yield row
                elif row:
                    raise ValueError(
                        f"Line {reader.line_num} of {str(path)!r} has {len(row)} fields: "
                        f"expected {n_columns}, as many as the header."
                    )

        checked = rows()
        while block := list(islice(checked, max(1, BLOCK_CELLS // n_columns))):
            yield list(zip(*block, strict=True))


def _numbers(cells: tuple[str, ...]) -> np.ndarray | None:
    joined = "".join(cells)
    if "_" in joined or not joined.isascii():
        return None  # Python's own conversion, and with it NumPy's, takes 1_000 and other scripts' digits
    for candidate in (cells, ["nan" if cell.strip() in MISSING else cell for cell in cells]):
        try:
            return np.array(candidate, dtype=np.float64)
        except ValueError:
            continue
    return None


def _texts(cells: tuple[str, ...]) -> np.ndarray:
    texts = np.empty(len(cells), dtype=object)
    texts[:] = [None if cell in MISSING else cell for cell in map(str.strip, cells)]
    return texts


def _is_number(text: str) -> bool:
    numbers = _numbers((text,))
    return numbers is not None and not np.isnan(numbers[0])


def _read_parquet(path: Path) -> Table:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError('Parquet files need pyarrow: pip install "opgrow[tables]".') from error

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


_READERS: dict[str, Callable[[Path], Table]] = {
    ".csv": _read_csv,
    ".csv.gz": _read_csv,
    ".parquet": _read_parquet,
    ".npz": _read_npz_table,
    ".npy": _read_npy,
}
