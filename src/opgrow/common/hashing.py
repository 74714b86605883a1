"""Random numbers and checksums that follow from the number of a row among all rows, wherever it is held."""

from __future__ import annotations

import numpy as np

__all__ = ["checksum", "draw_batches"]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def _mixed(z: np.ndarray) -> np.ndarray:
    """The output function of splitmix64: all bits of the result depend on all bits of ``z``."""
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


def draw_batches(numbers: np.ndarray, seed: int, n_batches: int) -> np.ndarray:
    """A random batch, from 0, for each row."""
    key = _mixed(numbers.astype(np.uint64) * _GOLDEN + np.uint64(seed)) >> np.uint64(32)
    return ((key * np.uint64(n_batches)) >> np.uint64(32)).astype(np.int64)


def checksum(words: np.ndarray, first: int) -> np.int64:
    """The wrapping sum of a number for each row (n, words) and its place: ``first`` and on."""
    state = _mixed((first + np.arange(len(words))).astype(np.uint64) * _GOLDEN)
    for column in words.T:
        state = (state ^ column) * _FIRST
        state ^= state >> np.uint64(29)
    return _mixed(state).view(np.int64).sum()
