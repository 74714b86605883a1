"""Chunks that come only once, kept in a temporary file.

The file has no name, so it is gone when the process ends, however it ends.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterable

import numpy as np

from .sources import Chunk, Source

__all__ = ["Spool", "spooled"]


class Spool:
    """Arrays in a temporary file, in the order in which they were added."""

    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile(prefix="opgrow-")  # noqa: SIM115 - it lives as long as this object
        self.lock = threading.Lock()
        self.end = 0

    def add(self, array: np.ndarray) -> tuple[int, tuple[int, ...], np.dtype]:
        """Write an array at the end; what it takes to `get` it."""
        array = np.ascontiguousarray(array)
        with self.lock:
            place = self.end
            self.file.seek(place)
            self.file.write(array.data if array.size else b"")
            self.file.flush()
            self.end += array.nbytes
        return place, array.shape, array.dtype

    def get(self, place: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        array = np.empty(shape, dtype)
        with self.lock:
            self.file.seek(place)
            if array.size and self.file.readinto(array.data.cast("B")) != array.nbytes:
                raise OSError("a temporary file of opgrow is shorter than what was written to it")
        return array

    def close(self) -> None:
        self.file.close()


class _Spooled(Source):
    def __init__(self, chunks: Iterable[Chunk], feature_names: list[str] | None) -> None:
        self.spool = Spool()
        self.places, sizes, widths = [], [], set()
        for chunk in chunks:
            parts = (chunk.x, chunk.y, chunk.weight)
            plain = (None if part is None else _plain(part) for part in parts)
            self.places.append([None if part is None else self.spool.add(part) for part in plain])
            sizes.append(len(chunk))
            widths.add(chunk.x.shape[1])
            self.dtype = chunk.x.dtype
        if not sizes:
            raise ValueError("there are no chunks")
        if len(widths) > 1:
            raise ValueError(f"all chunks must have the same columns, and these have {sorted(widths)}")
        self.sizes, self.n_features = np.array(sizes, np.int64), widths.pop()
        self.feature_names = feature_names

    def read(self, number: int) -> Chunk:
        x, y, weight = (None if p is None else self.spool.get(*p) for p in self.places[number])
        assert x is not None
        return Chunk(x, y, weight)


def _plain(values: np.ndarray) -> np.ndarray:
    """Objects as text: bytes of pointers would mean nothing."""
    return values.astype(str) if values.dtype == object else values


def spooled(chunks: Iterable[Chunk], feature_names: list[str] | None = None) -> Source:
    """A source of chunks that are gone through once and copied to a temporary file."""
    return _Spooled(chunks, feature_names)
