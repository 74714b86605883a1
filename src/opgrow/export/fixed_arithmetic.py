"""The integer arithmetic of exported C, in numpy, bit for bit: what `c_fixed_operators` has as C text.

Every function is named as in C and takes and returns int64 arrays whose values are those of the C integers.
Operators are given this module to emulate themselves with.
"""

from __future__ import annotations

import numpy as np

from .c_fixed_operators import ROOT_SLOPE, ROOT_START, TABLES

__all__ = [
    "INT32_MAX",
    "TEN",
    "exponential",
    "interpolated",
    "rescale",
    "root",
    "saturated",
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


def rescale(v: int | np.ndarray, bits: int | np.ndarray) -> np.ndarray:
    """v / 2^bits, rounded and saturated; bits may be negative."""
    v, bits = np.asarray(v, np.int64), np.asarray(bits, np.int64)
    right = np.clip(bits, 1, 62)
    down = np.where(bits > 62, 0, saturated((v + (np.int64(1) << (right - 1))) >> right))
    if (bits > 0).all():
        return down
    left = np.clip(-bits, 0, 31)
    limit = np.int64(INT32_MAX) >> left
    fits = (bits >= -31) & (v <= limit) & (v >= -limit)
    up = np.where(fits, np.where(fits, v, 0) << left, np.sign(v) * INT32_MAX)
    return np.where(bits > 0, down, up)


def root(square: np.ndarray) -> np.ndarray:
    """The integer square root of uint64 values, rounded down."""
    square = np.asarray(square, np.uint64)
    found = np.sqrt(square.astype(np.float64)).astype(np.uint64)
    # Double precision is off by one at most, and 2^32 squared is no uint64.
    found = np.minimum(found, np.uint64(2**32 - 1))
    found = np.where(found * found > square, found - np.uint64(1), found)
    more = np.minimum(found + np.uint64(1), np.uint64(2**32 - 1))
    return np.where((more > found) & (more * more <= square), more, found).astype(np.int64)


def squashed(u: np.ndarray, bits: int, bound: int) -> np.ndarray:
    """u / sqrt(1 + u^2) times the bound, of numbers with so many fractional bits."""
    size, one = np.abs(u).astype(np.uint64), np.uint64(1 << bits)
    larger = np.maximum(size, one)
    shift = np.full(np.shape(u), bits - 14, np.uint64)
    while (far := larger >> shift > 32767).any():
        shift = np.where(far, shift + np.uint64(1), shift)
    rounding = np.uint64(1) << (shift - np.uint64(1))
    a, b = (size + rounding) >> shift, (one + rounding) >> shift
    v = a * a + b * b
    wide = np.where(v >> np.uint64(30) > 0, np.uint64(2), np.uint64(0))
    f = v >> (np.uint64(14) + wide)
    y = np.uint64(ROOT_START) - ((np.uint64(ROOT_SLOPE) * f) >> np.uint64(14))
    sixteen = np.uint64(16)
    for _ in range(3):
        rest = (np.uint64(196608) - ((((y * y) >> sixteen) * f) >> np.uint64(14))) >> np.uint64(1)
        y = np.minimum((y * rest) >> sixteen, np.uint64(65535))
    n = (size + (np.uint64(1) << (shift - np.uint64(2)))) >> (shift - np.uint64(1))
    n = np.minimum(n, np.uint64(65535))
    n = ((n * y) >> np.where(wide > 0, sixteen, np.uint64(15))) * np.uint64(bound) + np.uint64(32768)
    return np.sign(u) * np.minimum(n >> sixteen, np.uint64(2**15 - 1)).astype(np.int64)


def interpolated(name: str, at: np.ndarray, shift: int) -> np.ndarray:
    """Between the entries of a table: at / 2^shift entries from its beginning."""
    table, i, rest = _TABLE[name], at >> shift, at & ((1 << shift) - 1)
    low, high = table[i], table[i + 1]
    return low + (((high - low) * rest + (1 << (shift - 1))) >> shift)


def exponential(t: np.ndarray, bits: int | np.ndarray) -> np.ndarray:
    """exp(t / 2^20) with the given fractional bits."""
    u = (t * 1512775) >> 20
    return rescale(65536 + interpolated("EXP2", u & 0xFFFFF, 14), 16 - bits - (u >> 20))


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
