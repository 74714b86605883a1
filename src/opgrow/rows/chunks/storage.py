"""What is kept of chunks between passes: in memory, in a temporary file, or not at all.

Whatever is not kept is computed again. The memory has a limit; files may take half of what is free on their
disk. A disk that turns out to be full costs time and not the fit.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .spool import Spool

__all__ = ["Kept", "Storage"]


class Kept:
    """A matrix by chunk; this one keeps nothing."""

    def get(self, number: int) -> np.ndarray | None:
        """The rows of a chunk, or None."""
        return None

    def put(self, number: int, rows: Callable[[], np.ndarray]) -> None:
        """Keep the rows of a chunk, unless they are."""


class _InMemory(Kept):
    def __init__(self) -> None:
        self.chunks: dict[int, np.ndarray] = {}

    def get(self, number: int) -> np.ndarray | None:
        return self.chunks.get(number)

    def put(self, number: int, rows: Callable[[], np.ndarray]) -> None:
        if number not in self.chunks:
            self.chunks[number] = rows()


class _OnDisk(Kept):
    """In a temporary file, as far as there is ``room``, which is asked before each chunk."""

    def __init__(self, room: Callable[[int], bool]) -> None:
        self.room = room
        self.spool: Spool | None = Spool()
        self.places: dict[int, Any] = {}

    def get(self, number: int) -> np.ndarray | None:
        if self.spool is None or number not in self.places:
            return None
        return self.spool.get(*self.places[number])

    def put(self, number: int, rows: Callable[[], np.ndarray]) -> None:
        if self.spool is None or number in self.places:
            return
        values = rows()
        if not self.room(values.nbytes):
            return
        try:
            self.places[number] = self.spool.add(values)
        except OSError:  # the disk is full: from now on nothing is kept
            self.spool = None
            self.places.clear()


@dataclass
class Storage:
    """Hands out places for matrices as long as there is room.

    Attributes
    ----------
    memory : bytes that may be kept in memory; disk : bytes in files, None for half of what is free
    """

    memory: int
    disk: int | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    in_memory: int = 0
    on_disk: int = 0

    def keep(self, n_rows: int, columns: int) -> Kept:
        """A place for a float32 matrix."""
        size = 4 * n_rows * columns
        with self._lock:
            if self.in_memory + size <= self.memory:
                self.in_memory += size
                return _InMemory()
            if self._fits(size):
                self.on_disk += size
                return _OnDisk(lambda more: True)
        return Kept()

    def keep_inputs(self, n_rows: int, columns: int, slow: bool) -> Kept:
        """A place for inputs, which can be read again: memory, or files if reading them is slow.

        Files take as many chunks as fit into three quarters of the room, for features come later.
        """
        size = 4 * n_rows * columns
        with self._lock:
            if self.in_memory + size <= self.memory:
                self.in_memory += size
                return _InMemory()
        return _OnDisk(self._take) if slow and self._disk() else Kept()

    def _fits(self, size: int) -> bool:
        return self.on_disk + size <= self._disk()

    def _take(self, size: int) -> bool:
        with self._lock:
            if self.on_disk + size > self._disk() * 3 // 4:
                return False
            self.on_disk += size
            return True

    def _disk(self) -> int:
        if self.disk is None:
            try:
                self.disk = shutil.disk_usage(tempfile.gettempdir()).free // 2
            except OSError:
                self.disk = 0
        return self.disk
