"""Rows that are read in chunks, again and again and in any order: data that does not fit into memory.

A fit asks a source for chunks by their number; nothing else of it is ever in memory. The rows are numbered
over all chunks, and a shard, which is some of the chunks, keeps these numbers: what is decided by the number
of a row, such as whether it validates, does not depend on who reads it.
"""

from __future__ import annotations

import mmap
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..preparation import as_array

__all__ = [
    "Chunk",
    "Source",
    "as_matrix",
    "as_numpy",
    "chunk_sizes",
    "from_arrays",
    "memory_map",
    "rows_at_once",
]

#: Bytes and rows of a chunk where the source is free to choose.
CHUNK_BYTES = 1 << 24
CHUNK_ROWS = 1 << 16


@dataclass(frozen=True)
class Chunk:
    """Some rows: inputs (n, D), targets (n,) or (n, outputs) or None, weights (n,) or None."""

    x: np.ndarray
    y: np.ndarray | None = None
    weight: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.x)


class Source(ABC):
    """Rows in chunks that can be read again and again, in any order.

    A subclass sets the attributes and reads a chunk by its number. `from_arrays`, `from_files`,
    `from_parquet` and `from_chunks` make sources.

    Attributes
    ----------
    sizes : array of int, rows of each chunk
    starts : array of int, number of each chunk's first row in the whole data
    n_features : columns of X
    dtype : of X
    feature_names : list of str, or None
    slow : whether reading takes more than copying, so that chunks are better kept in a temporary file
    """

    sizes: np.ndarray
    n_features: int
    dtype: np.dtype
    feature_names: list[str] | None = None
    slow: bool = False

    @abstractmethod
    def read(self, number: int) -> Chunk:
        """Read one chunk; threads may read at the same time."""

    @property
    def starts(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]])

    @property
    def n_rows(self) -> int:
        return int(self.sizes.sum())

    @property
    def n_chunks(self) -> int:
        return len(self.sizes)

    def __iter__(self) -> Iterator[Chunk]:
        return (self.read(number) for number in range(self.n_chunks))

    def shard(self, rank: int, n_ranks: int) -> Source:
        """What one of several readers reads: consecutive chunks with about an equal share of the rows."""
        if not 0 <= rank < n_ranks <= self.n_chunks:
            raise ValueError(
                f"shard {rank} of {n_ranks} is not there: shards count from 0, and a source of "
                f"{self.n_chunks} chunks has at most as many of them"
            )
        start, stop = _shares(self.sizes, n_ranks)[rank : rank + 2]
        return _Shard(self, start, stop, int(self.starts[start]))

    def numbered_from(self, first: int) -> Source:
        """The same rows, which follow ``first`` others."""
        return _Shard(self, 0, self.n_chunks, first)


class _Shard(Source):
    """Chunks ``start`` to ``stop`` of a source, whose rows are numbered from ``first`` on."""

    def __init__(self, whole: Source, start: int, stop: int, first: int) -> None:
        self.whole, self.start, self.first = whole, start, first
        self.sizes = whole.sizes[start:stop]
        self.n_features, self.dtype, self.feature_names = whole.n_features, whole.dtype, whole.feature_names
        self.slow = whole.slow

    @property
    def starts(self) -> np.ndarray:
        return super().starts + self.first

    def read(self, number: int) -> Chunk:
        return self.whole.read(self.start + number)


def _shares(sizes: np.ndarray, n_shares: int) -> list[int]:
    """Chunks at which the shares of rows begin, and the end; each share has at least one chunk."""
    borders = np.concatenate([[0], np.cumsum(sizes)])
    wanted = borders[-1] * np.arange(1, n_shares) / n_shares
    above = np.searchsorted(borders, wanted)
    cuts = above - (wanted - borders[above - 1] < borders[above] - wanted)
    place = np.arange(1, n_shares)
    cuts = np.maximum.accumulate(np.maximum(cuts, place) - place) + place
    return [0, *np.minimum(cuts, len(sizes) - n_shares + place).tolist(), len(sizes)]


def rows_at_once(n_features: int, dtype: np.dtype, n_bytes: int = CHUNK_BYTES) -> int:
    """Rows that a chunk of so many bytes has."""
    return max(1, min(n_bytes // max(1, n_features * dtype.itemsize), CHUNK_ROWS))


def chunk_sizes(n_rows: int, chunk_rows: int) -> np.ndarray:
    """Sizes of chunks of equal size, the last one smaller."""
    if not n_rows:
        return np.zeros(0, np.int64)
    sizes = np.full(-(-n_rows // chunk_rows), chunk_rows, np.int64)
    sizes[-1] = n_rows - chunk_rows * (len(sizes) - 1)
    return sizes


def from_arrays(X: Any, y: Any = None, sample_weight: Any = None, *, chunk_rows: int | None = None) -> Source:
    """Make a source from arrays, above all from memory maps: their rows stay where they are.

    Parameters
    ----------
    X : array of shape (n_rows, n_features), such as ``numpy.load("X.npy", mmap_mode="r")``
    y : array of shape (n_rows,) or (n_rows, n_targets), optional
        Not needed to predict.
    sample_weight : array of shape (n_rows,), optional
    chunk_rows : int, optional
        Rows of a chunk; by default as many as take 16 MB, at most 65,536.

    Examples
    --------
    >>> import numpy as np
    >>> from opgrow.rows.chunks import from_arrays
    >>> source = from_arrays(np.zeros((10, 3)), np.arange(10), chunk_rows=4)
    >>> source.n_chunks, source.read(2).y
    (3, array([8, 9]))
    """
    return _Arrays(X, y, sample_weight, chunk_rows)


class _Arrays(Source):
    def __init__(self, x: Any, y: Any, weight: Any, chunk_rows: int | None) -> None:
        self.x = as_matrix(as_array(x))
        self.columns = [None if v is None else as_numpy(as_array(v)) for v in (y, weight)]
        for name, values in zip(("y", "sample_weight"), self.columns, strict=True):
            if values is not None and (not values.ndim or len(values) != len(self.x)):
                raise ValueError(f"{name} has shape {values.shape}, and X has {len(self.x)} rows")
        self.n_features, self.dtype = self.x.shape[1], self.x.dtype
        rows = rows_at_once(self.n_features, self.dtype) if chunk_rows is None else chunk_rows
        if rows < 1:
            raise ValueError(f"chunk_rows must be at least 1, got {chunk_rows}")
        self.sizes = chunk_sizes(len(self.x), int(rows))
        self.map = _shared_map(self.x)

    def read(self, number: int) -> Chunk:
        start = int(self.starts[number])
        span = slice(start, start + int(self.sizes[number]))
        # A copy, and the pages of the map are given back: they would count as memory of this process.
        x = np.array(self.x[span])
        if self.map is not None:
            self.map.madvise(mmap.MADV_DONTNEED)
        y, weight = (None if v is None else np.asarray(v[span]) for v in self.columns)
        return Chunk(x, y, weight)


def as_numpy(values: Any) -> np.ndarray:
    """Values as an array; an array stays as it is."""
    return values if isinstance(values, np.ndarray) else np.asarray(values)


def as_matrix(x: Any) -> np.ndarray:
    """Inputs as a matrix of numbers; anything else is refused."""
    x = as_numpy(x)
    if x.ndim != 2 or x.dtype.kind not in "biuf":
        raise ValueError(
            f"X must be a matrix of numbers of shape (n_rows, n_features), got {x.dtype} of shape {x.shape}"
        )
    return x


def memory_map(array: Any) -> np.memmap | None:
    """The memory map that an array looks into, if it does."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and getattr(array, "_mmap", None) is not None:
            return array
        array = array.base
    return None


def _shared_map(array: np.ndarray) -> mmap.mmap | None:
    """The map below an array, if what was read of it can be given back without a loss."""
    mapped = memory_map(array)
    if mapped is None or mapped.mode == "c" or not hasattr(mmap, "MADV_DONTNEED"):
        return None
    return mapped._mmap  # type: ignore[attr-defined]
