"""The integer arithmetic of exported C, in numpy, bit for bit: what `c_fixed_operators` has as C text.

Every function is named as in C and takes and returns int64 arrays whose values are those of the C integers.
Operators are given this module to emulate themselves with.
"""

from __future__ import annotations

import numpy as np

from .c_fixed_inputs import KNEES, PLACE_BITS, squash_table
from .c_fixed_operators import TABLES

__all__ = [
    "INT32_MAX",
    "TEN",
    "exponential",
    "interpolated",
    "logistic",
    "rescale",
    "root",
    "saturated",
    "shifted",
    "sine",
    "softplus",
    "squashed",
    "within",
]

INT32_MAX = 2**31 - 1
#: The largest exponent, with 20 fractional bits.
TEN = 10 << 20
_TABLE = {name: np.array(values, np.int64) for name, values in TABLES.items()}


def saturated(v: np.ndarray) -> np.ndarray:
    return np.clip(v, -INT32_MAX, INT32_MAX)


def within(v: np.ndarray, limit: int | np.ndarray) -> np.ndarray:
    return np.clip(v, -np.asarray(limit), limit)


def shifted(v: int | np.ndarray, bits: int | np.ndarray) -> np.ndarray:
    """v / 2^bits, rounded; bits may be negative, and v is saturated then."""
    v, bits = np.asarray(v, np.int64), np.asarray(bits, np.int64)
    right = np.clip(bits, 1, 62)
    down = np.where(bits > 62, 0, (v + (np.int64(1) << (right - 1))) >> right)
    return down if (bits > 0).all() else np.where(bits > 0, down, saturated(v) << np.clip(-bits, 0, 31))


def rescale(v: int | np.ndarray, bits: int | np.ndarray) -> np.ndarray:
    """v / 2^bits, rounded and saturated; bits may be negative."""
    return saturated(shifted(v, bits))


def root(square: np.ndarray) -> np.ndarray:
    """The integer square root of uint64 values, rounded down."""
    square = np.asarray(square, np.uint64)
    found = np.sqrt(square.astype(np.float64)).astype(np.uint64)
    # Double precision is off by one at most, and 2^32 squared is no uint64.
    found = np.minimum(found, np.uint64(2**32 - 1))
    found = np.where(found * found > square, found - np.uint64(1), found)
    more = np.minimum(found + np.uint64(1), np.uint64(2**32 - 1))
    return np.where((more > found) & (more * more <= square), more, found).astype(np.int64)


def squashed(place: np.ndarray, bound: int) -> np.ndarray:
    """Squashed inputs of places in the table for a bound."""
    at = np.abs(place)
    for knee in KNEES[:-1]:
        start = knee << PLACE_BITS
        at = np.where(at > start, (at >> 2) + 3 * start // 4, at)
    at = np.minimum(at, KNEES[-1] << PLACE_BITS)
    return np.sign(place) * _between(np.array(squash_table(bound), np.int64), at, PLACE_BITS)


def interpolated(name: str, at: np.ndarray, shift: int) -> np.ndarray:
    """Between the entries of a table: at / 2^shift entries from its beginning."""
    return _between(_TABLE[name], at, shift)


def _between(table: np.ndarray, at: np.ndarray, shift: int) -> np.ndarray:
    i, rest = at >> shift, at & ((1 << shift) - 1)
    low, high = table[i], table[i + 1]
    return low + (((high - low) * rest + (1 << (shift - 1))) >> shift)


def exponential(t: np.ndarray, bits: int | np.ndarray) -> np.ndarray:
    """exp(t / 2^20) with the given fractional bits."""
    u = (t * 1549082005) >> 32
    return rescale(65536 + interpolated("EXP2", u & 0x3FFFF, 12), 16 - bits - (u >> 18))


def logistic(t: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(t / 2^20)) of t from 0, with 30 fractional bits."""
    e = exponential(-t, 30)
    return (e * ((2**32 - 1) // (65536 + (e >> 14)) + 1)) >> 16


def sine(phase: np.ndarray) -> np.ndarray:
    """The sine of a phase in 2^-18 turns, with 16 fractional bits."""
    turn = phase & 0x3FFFF
    half = turn & 0x1FFFF
    s = interpolated("SINE", np.where(half > 0x10000, 0x20000 - half, half), 10)
    return np.where(turn & 0x20000, -s, s)


def softplus(z: np.ndarray, bits: int) -> np.ndarray:
    """log(1 + exp(-|z|)) of z with the given fractional bits."""
    e = exponential(-rescale(np.abs(z), bits - 20), 16)
    return rescale(interpolated("LOG1P", e, 10), 16 - bits)
