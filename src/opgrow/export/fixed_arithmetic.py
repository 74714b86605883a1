"""The integer arithmetic of exported C, in numpy, bit for bit: what `c_fixed_operators` has as C text.

Every function is named as in C and takes and returns int64 arrays whose values are those of the C integers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .c_fixed_operators import PSI_DIGITS, TABLES

__all__ = ["ACTIVATIONS", "NODALS", "rescale", "root", "saturated", "within"]

INT32_MAX = 2**31 - 1
_TEN = 10 << 20
_TABLE = {name: np.array(values, np.int64) for name, values in TABLES.items()}
_ONE = 1 << 30


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


def _interpolated(name: str, at: np.ndarray, shift: int) -> np.ndarray:
    table, i, rest = _TABLE[name], at >> shift, at & ((1 << shift) - 1)
    low, high = table[i], table[i + 1]
    return low + (((high - low) * rest + (1 << (shift - 1))) >> shift)


def exponential(t: np.ndarray, bits: int | np.ndarray) -> np.ndarray:
    """exp(t / 2^20) with the given fractional bits."""
    u = (t * 1512775) >> 20
    return rescale(65536 + _interpolated("EXP2", u & 0xFFFFF, 14), 16 - bits - (u >> 20))


def _sine(phase: np.ndarray) -> np.ndarray:
    turn = phase & 0x3FFFF
    half = turn & 0x1FFFF
    s = _interpolated("SINE", np.where(half > 0x10000, 0x20000 - half, half), 10)
    return np.where(turn & 0x20000, -s, s)


def _softplus(z: np.ndarray, bits: int) -> np.ndarray:
    e = exponential(-rescale(np.abs(z), bits - 20), 16)
    return rescale(_interpolated("LOG1P", e, 10), 16 - bits)


# --- psi(y, w), before its limit: the value to rescale, and by how many bits to psi's own ---

Bits = int | np.ndarray
_Psi = Callable[[np.ndarray, np.ndarray, Bits, int, int], tuple[np.ndarray, Bits]]


def _bell(y: np.ndarray, w: np.ndarray, w_bits: Bits, x_bits: int) -> np.ndarray:
    exponent = rescale(-w * (y * y), w_bits + 2 * x_bits - 20)
    return exponential(within(exponent, _TEN), 16)


def _clamped(y: np.ndarray, x_bits: int) -> np.ndarray:
    return within(y, rescale(10, -x_bits))


def _exponential(
    y: np.ndarray, w: np.ndarray, w_bits: Bits, x_bits: int, bits: int
) -> tuple[np.ndarray, Bits]:
    exponent = within(rescale(w * y, w_bits + x_bits - 20), _TEN)
    return exponential(exponent, 16) - 65536, 16 - bits


def _harmonic(y: np.ndarray, w: np.ndarray, w_bits: Bits, x_bits: int, bits: int) -> tuple[np.ndarray, Bits]:
    return _sine(rescale(w * y * 341782638, w_bits + x_bits + 13)), 16 - bits


def _pygop_quadratic(
    y: np.ndarray, w: np.ndarray, w_bits: Bits, x_bits: int, bits: int
) -> tuple[np.ndarray, Bits]:
    product = w * _clamped(y, x_bits)
    return product * product, 2 * (w_bits + x_bits) - bits


def _pygop_dog(y: np.ndarray, w: np.ndarray, w_bits: Bits, x_bits: int, bits: int) -> tuple[np.ndarray, Bits]:
    return w * y * _bell(_clamped(y, x_bits), w, w_bits, x_bits), w_bits + x_bits + 16 - bits


NODALS: dict[str, _Psi] = {
    "multiplication": lambda y, w, w_bits, x_bits, bits: (w * y, w_bits + x_bits - bits),
    "exponential": _exponential,
    "harmonic": _harmonic,
    "quadratic": lambda y, w, w_bits, x_bits, bits: (w * (y * y), w_bits + 2 * x_bits - bits),
    "gaussian": lambda y, w, w_bits, x_bits, bits: (w * _bell(y, w, w_bits, x_bits), w_bits + 16 - bits),
    "dog": lambda y, w, w_bits, x_bits, bits: (
        w * y * _bell(y, w, w_bits, x_bits),
        w_bits + x_bits + 16 - bits,
    ),
    "pygop_quadratic": _pygop_quadratic,
    "pygop_dog": _pygop_dog,
}
assert set(NODALS) == set(PSI_DIGITS)


def _sigmoid(z: np.ndarray, bits: int) -> np.ndarray:
    e = exponential(-rescale(np.abs(z), bits - 20), 30)
    return np.where(z < 0, e << 30, _ONE << 30) // (_ONE + e)


def _tanh(z: np.ndarray, bits: int) -> np.ndarray:
    e = exponential(-rescale(np.abs(z), bits - 21), 30)
    return np.where(z < 0, -1, 1) * (((_ONE - e) << 30) // (_ONE + e))


def _inverse_absolute(z: np.ndarray, bits: int) -> np.ndarray:
    return np.sign(z) * ((np.abs(z) * _ONE) // ((1 << bits) + np.abs(z)))


def _pygop_softplus(z: np.ndarray, bits: int) -> np.ndarray:
    x = _clamped(z, bits)
    return saturated(np.where(x < 0, -x, 0) + _softplus(x, bits))


#: f(z) of z with the given fractional bits.
ACTIVATIONS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "sigmoid": _sigmoid,
    "tanh": _tanh,
    "relu": lambda z, bits: np.maximum(z, 0),
    "softplus": lambda z, bits: saturated(np.where(z < 0, -z, 0) + _softplus(z, bits)),
    "inverse_absolute": _inverse_absolute,
    "elu": lambda z, bits: np.where(
        z < 0,
        exponential(rescale(np.minimum(z, 0), bits - 20), bits) - rescale(1, -bits),
        z,
    ),
    "pygop_softplus": _pygop_softplus,
    "identity": lambda z, bits: z,
}
