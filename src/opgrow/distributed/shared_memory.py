"""Ranks of one machine exchange arrays through memory that they share.

A step of tuning sends little and waits for it: what counts is how soon a message is there. Through gloo's
threads and sockets that takes the better part of a millisecond, and through memory some microseconds. This is
for Linux on x86, where stores become visible in their order; elsewhere the ranks stay with gloo.
"""

from __future__ import annotations

import mmap
import os
import platform
import select
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

__all__ = ["MemoryLine", "create_file", "possible"]

#: Bytes that a rank hands over at a time.
SLOT = 1 << 18
#: Bytes before the slots, and those for the state of a rank: a cache line.
_LINE = 64
#: Seconds for which a rank that waits stays awake, since steps are short, and those that it sleeps then.
_PATIENCE, _NAP = 0.002, 0.0002
#: Seconds of waiting after which a rank looks whether the others still live, and how often then.
_LOOK = 0.2


def possible() -> bool:
    """Whether this machine has what it takes."""
    supported = platform.machine() in ("x86_64", "AMD64") and sys.platform == "linux"
    return supported and hasattr(os, "pidfd_open") and Path("/dev/shm").is_dir()


def create_file(size: int) -> str | None:
    """An empty file in memory for so many ranks, if there is room for it."""
    with suppress(OSError):
        handle, name = tempfile.mkstemp(prefix="opgrow-", dir="/dev/shm")
        try:
            os.posix_fallocate(handle, 0, _bytes(size))
            return name
        except OSError:
            os.unlink(name)
        finally:
            os.close(handle)
    return None


def _bytes(size: int) -> int:
    return size * (_LINE + 2 * SLOT)


class MemoryLine:
    """A rank's view of the file.

    Each rank has two slots, which it fills in turn, and says for which exchange it has filled one last. An
    exchange waits until all ranks have. A slot is filled again two exchanges later, and by then all ranks
    have read it, since they have come to the exchange in between.
    """

    def __init__(self, name: str, rank: int, size: int, timeout: float) -> None:
        self.rank, self.size, self.timeout = rank, size, timeout
        with open(name, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), _bytes(size))
        everything = np.frombuffer(self.memory, np.uint8)
        states = everything[: size * _LINE].view(np.int64).reshape(size, -1)
        self.filled, self.left = states[:, 0], states[:, 1]
        self.slots = everything[size * _LINE :].reshape(2, size, SLOT)
        self.number = 0
        self.lives = select.poll()
        self.handles: list[int] = []

    def watch(self, processes: list[int]) -> None:
        """Learn which processes the others are; OSError where they cannot be seen from here."""
        for process in processes:
            self.handles.append(os.pidfd_open(process))
            self.lives.register(self.handles[-1], select.POLLIN)

    def exchange(self, data: np.ndarray) -> Iterator[np.ndarray]:
        """For each piece of an array of bytes, that of every rank: (ranks, bytes), to be read at once."""
        for start in range(0, len(data), SLOT):
            piece = data[start : start + SLOT]
            self.number += 1
            slots = self.slots[self.number % 2]
            slots[self.rank, : len(piece)] = piece
            self.filled[self.rank] = self.number
            self._wait()
            yield slots[:, : len(piece)]

    def _wait(self) -> None:
        began = look = now = time.monotonic()
        while self.filled.min() < self.number:
            if now - began < _PATIENCE:
                os.sched_yield()
            else:
                time.sleep(_NAP)
            now = time.monotonic()
            if now - look > _LOOK:
                look = now
                if (self.left.any() or self.lives.poll(0)) and self.filled.min() < self.number:
                    raise RuntimeError("a rank has left, or its process has ended")
                if now - began > self.timeout:
                    raise RuntimeError(f"a rank has not answered for {self.timeout} s")

    def leave(self) -> None:
        """Let the others know, and give back what is held."""
        self.left[self.rank] = 1
        for handle in self.handles:
            os.close(handle)
        self.handles = []
