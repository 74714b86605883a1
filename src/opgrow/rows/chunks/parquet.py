"""Parquet files and folders as sources: a chunk is one row group, or several small ones."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...common.extras import require
from .sources import Chunk, Source, rows_at_once

__all__ = ["from_parquet"]

#: Values that are transposed at once.
_BLOCK = 1 << 19
#: Integers that float32 holds exactly.
_SMALL_INTEGERS = ("int8", "int16", "uint8", "uint16", "bool")


def from_parquet(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    target: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    sample_weight: str | None = None,
    chunk_rows: int | None = None,
) -> Source:
    """Make a source from Parquet files, which needs pyarrow.

    Parameters
    ----------
    path : path or list of paths
        A file, a folder with ``.parquet`` files (also in its folders; in the order of names), or a list.
    target : str, optional
        Name of the column that holds y. Not needed to predict.
    columns : sequence of str, optional
        Columns that hold X, all of numbers; by default all but the target and the weights. A column of lists
        of a fixed size is as many columns of X.
    sample_weight : str, optional
        Name of the column that holds the weights.
    chunk_rows : int, optional
        Row groups of a file are read together up to so many rows; by default as many as take 16 MB, at most
        65,536. A larger row group is one chunk: with a small ``memory_limit``, write smaller ones.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> from opgrow.rows.chunks import from_parquet
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> table = pa.table({"a": [1.0, 2.0, 3.0], "b": [4, 5, 6], "label": ["x", "y", "x"]})
    >>> pq.write_table(table, folder / "part0.parquet", row_group_size=2)
    >>> source = from_parquet(folder, "label")
    >>> source.feature_names, source.n_rows
    (['a', 'b'], 3)
    """
    return _Parquet(_files(path), target, columns, sample_weight, chunk_rows)


def _arrow() -> tuple[Any, Any]:
    what = "Reading Parquet files"
    return require("pyarrow", what, "parquet"), require("pyarrow.parquet", what, "parquet")


def _files(path: Any) -> list[Path]:
    listed = [path] if isinstance(path, str | os.PathLike) else list(path)
    files: list[Path] = []
    for item in map(Path, listed):
        item = item.expanduser()
        if not item.exists():
            raise FileNotFoundError(f"There is no file or folder {str(item)!r}.")
        inside = sorted(item.rglob("*.parquet")) if item.is_dir() else [item]
        if not inside:
            raise ValueError(f"The folder {str(item)!r} holds no .parquet files.")
        files += inside
    if not files:
        raise ValueError("there are no files")
    return files


class _Parquet(Source):
    slow = True

    def __init__(
        self,
        files: list[Path],
        target: str | None,
        columns: Sequence[str] | None,
        sample_weight: str | None,
        chunk_rows: int | None,
    ) -> None:
        self.files, self.target, self.weight = files, target, sample_weight
        self.metadata = [_metadata(path) for path in files]
        schema = self.metadata[0].schema.to_arrow_schema()
        for path, metadata in zip(files, self.metadata, strict=True):
            if metadata.schema.to_arrow_schema().names != schema.names:
                raise ValueError(f"{str(path)!r} has other columns than {str(files[0])!r}.")
        for name in (target, sample_weight, *(columns or ())):
            if name is not None and name not in schema.names:
                few = ", ".join(repr(n) for n in schema.names[:8]) + (
                    ", ..." if len(schema.names) > 8 else ""
                )
                raise ValueError(f"{str(files[0])!r} has no column {name!r}: it has {few}.")
        others = [n for n in schema.names if n not in (target, sample_weight)]
        self.columns = [n for n in others if not n.startswith("__index_level_")]
        if columns is not None:
            self.columns = [str(name) for name in columns]
        if not self.columns:
            raise ValueError(f"{str(files[0])!r} has no column to learn from.")
        self.widths = [_width(schema.field(name)) for name in self.columns]
        self.n_features = sum(self.widths)
        self.feature_names = [
            name if width == 1 else f"{name}_{i}"
            for name, width in zip(self.columns, self.widths, strict=True)
            for i in range(width)
        ]
        self.dtype = np.result_type(*(_dtype(schema.field(name)) for name in self.columns))
        rows = rows_at_once(self.n_features, self.dtype) if chunk_rows is None else chunk_rows
        self.places = [
            (number, groups)
            for number, metadata in enumerate(self.metadata)
            for groups in _together(metadata, rows)
        ]
        self.sizes = np.array(
            [
                sum(self.metadata[number].row_group(g).num_rows for g in groups)
                for number, groups in self.places
            ],
            np.int64,
        )

    def read(self, number: int) -> Chunk:
        pa, pq = _arrow()
        place, groups = self.places[number]
        names = [*self.columns, *(n for n in (self.target, self.weight) if n is not None)]
        try:
            with pq.ParquetFile(self.files[place], metadata=self.metadata[place]) as file:
                table = file.read_row_groups(groups, columns=names, use_threads=False)
        except (pa.ArrowException, OSError) as error:
            path = str(self.files[place])
            raise ValueError(f"{path!r} is not a Parquet file that can be read ({error}).") from error
        y = None if self.target is None else _target(table.column(self.target), self.target)
        weight = None if self.weight is None else _numbers(table.column(self.weight), np.dtype(np.float64))
        return Chunk(self._matrix(table), y, weight)

    def _matrix(self, table: Any) -> np.ndarray:
        """Columns of a table as rows of a matrix."""
        if self.widths == [self.n_features]:
            return _numbers(table.column(self.columns[0]), self.dtype).reshape(table.num_rows, -1)
        columns = [_numbers(table.column(name), self.dtype) for name in self.columns]
        out = np.empty((table.num_rows, self.n_features), self.dtype)
        # Blocks of rows stay in the cache while they are transposed.
        size = max(64, _BLOCK // self.n_features)
        block = np.empty((self.n_features, size), self.dtype)
        for start in range(0, len(out), size):
            rows = out[start : start + size]
            place = 0
            for values, width in zip(columns, self.widths, strict=True):
                part = values[width * start : width * (start + size)]
                block[place : place + width, : len(rows)] = part if width == 1 else part.reshape(-1, width).T
                place += width
            rows[:] = block[:, : len(rows)].T
        return out


def _metadata(path: Path) -> Any:
    pa, pq = _arrow()
    try:
        return pq.read_metadata(path)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{str(path)!r} is not a Parquet file that can be read.") from error


def _together(metadata: Any, rows: int) -> list[list[int]]:
    """Row groups to read together: neighbours, up to so many rows."""
    groups: list[list[int]] = []
    size = 0
    for group in range(metadata.num_row_groups):
        more = metadata.row_group(group).num_rows
        if not more:
            continue
        if groups and size + more <= rows:
            groups[-1].append(group)
            size += more
        else:
            groups.append([group])
            size = more
    return groups


def _width(field: Any) -> int:
    pa, _ = _arrow()
    return field.type.list_size if pa.types.is_fixed_size_list(field.type) else 1


def _dtype(field: Any) -> np.dtype:
    """float32 where that holds all values of a column, else float64."""
    pa, _ = _arrow()
    kind = field.type.value_type if pa.types.is_fixed_size_list(field.type) else field.type
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        raise ValueError(
            f"The column {field.name!r} holds {kind}, and a source takes numbers: turn it into numbers, or "
            "name the columns to learn from."
        )
    single = str(kind) in ("float", "halffloat", *_SMALL_INTEGERS)
    return np.dtype(np.float32 if single else np.float64)


def _numbers(column: Any, dtype: np.dtype) -> np.ndarray:
    """Values of a column; missing ones are NaN."""
    pa, _ = _arrow()
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks else pa.array([], column.type)
    if pa.types.is_fixed_size_list(array.type):
        array = array.flatten()
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    return array.to_numpy(zero_copy_only=False).astype(dtype, copy=False)


def _target(column: Any, name: str) -> np.ndarray:
    """The target: numbers as they are, everything else as text."""
    pa, _ = _arrow()
    if column.null_count:
        raise ValueError(f"The target {name!r} is missing in some rows: leave them out.")
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return np.asarray(column.to_numpy())
    return np.array(column.cast(pa.string()).to_pylist(), dtype=str)
