"""Elementary functions in single precision without a mathematical library, as C and in numpy.

Both do the same operations in the same order and give the same bits, unless a compiler fuses multiplications
with additions. Compilers turn loops over the C functions into vector code, and on processors without floating
point these need no more than additions, multiplications and, in a few of them, one division. NaN in, NaN out.

`ERRORS` are the largest errors, relative unless they are said to be absolute; the tests measure them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = [
    "C_FUNCTIONS",
    "ERRORS",
    "bounded",
    "bounded2",
    "exponential",
    "inverse_root",
    "log_of_1_plus",
    "sine_of_half_turns",
    "size_of",
    "two_to",
    "two_to_minus_1",
    "within",
]

Array = np.ndarray

#: C functions in the order in which they may call each other.
C_FUNCTIONS = {
    "bits_of": """\
static INLINE uint32_t bits_of(float x)
{
    union {
        float number;
        uint32_t bits;
    } both;
    both.number = x;
    return both.bits;
}
""",
    "float_of": """\
static INLINE float float_of(uint32_t bits)
{
    union {
        float number;
        uint32_t bits;
    } both;
    both.bits = bits;
    return both.number;
}
""",
    "size_of": """\
static INLINE float size_of(float x)
{
    return float_of(bits_of(x) & UINT32_C(0x7fffffff));
}
""",
    "within": """\
/* x within [-bound, bound]; NaN stays. Without a second comparison, of which gcc would make three cases. */
static INLINE float within(float x, float bound)
{
    float size = size_of(x);
    size = bound < size ? bound : size;
    return float_of(bits_of(size) | (bits_of(x) & UINT32_C(0x80000000)));
}
""",
    "bounded": """\
static INLINE float bounded(float x)
{
    return within(x, 10.0f);
}
""",
    "bounded2": """\
/* t = x log2(e), with x within [-10, 10]. */
static INLINE float bounded2(float t)
{
    return within(t, 14.4269504f);
}
""",
    "power_of": """\
/* 2^n for t = n + f with |t| <= 126, |f| <= 1/2, and 2^f - 1. Adding 1.5 * 2^23 rounds to an integer, and
 * with the exponent's bias added too, the low bits are those of the power. */
static INLINE float power_of(float t, float *rest)
{
    ROUNDED float shifted = t + 12583039.0f;
    const float f = t - (shifted - 12583039.0f);
    float q = 0.00133335392f * f + 0.00966624543f;
    q = q * f + 0.0555050038f;
    q = q * f + 0.240223512f;
    q = q * f + 0.693147123f;
    *rest = q * f;
    return float_of(bits_of(shifted) << 23);
}
""",
    "two_to": """\
/* 2^t and 2^t - 1 for |t| <= 126. */
static INLINE float two_to(float t)
{
    float rest;
    const float power = power_of(t, &rest);
    return power * rest + power;
}
""",
    "two_to_minus_1": """\
static INLINE float two_to_minus_1(float t)
{
    float rest;
    const float power = power_of(t, &rest);
    return power * rest + (power - 1.0f);
}
""",
    "exponential": """\
/* exp(x), which stays within 2^-126 and 2^126. */
static INLINE float exponential(float x)
{
    return two_to(within(x * 1.44269504f, 126.0f));
}
""",
    "sine_of_half_turns": """\
/* sin(pi t). Beyond 2^22 half turns, where numbers are too far apart for that, any number within [-1, 1]. */
static INLINE float sine_of_half_turns(float t)
{
    ROUNDED float shifted = t + 12582912.0f;
    const float f = within(t - (shifted - 12582912.0f), 0.5f), u = f * f;
    float q = 0.0775603876f * u - 0.598242104f;
    q = q * u + 2.55006981f;
    q = q * u - 5.16770983f;
    q = q * u + 3.14159274f;
    return float_of(bits_of(q * f) ^ (bits_of(shifted) << 31));
}
""",
    "log_of_1_plus": """\
/* log(1 + t) for 0 <= t <= 1, as 2 atanh(t / (2 + t)). */
static INLINE float log_of_1_plus(float t)
{
    const float s = t / (2.0f + t), u = s * s;
    float q = 0.169987336f * u + 0.198169082f;
    q = q * u + 0.333367795f;
    return (s + s) * (u * q) + (s + s);
}
""",
    "hyperbolic_tangent": """\
/* (exp(2 x) - 1) / (exp(2 x) + 1) */
static INLINE float hyperbolic_tangent(float x)
{
    const float e = two_to_minus_1(within(x * 2.88539008f, 30.0f));
    return e / (e + 2.0f);
}
""",
    "softplus": """\
/* log(1 + exp(-x)) */
static INLINE float softplus(float x)
{
    return (x < 0.0f ? -x : 0.0f) + log_of_1_plus(exponential(-size_of(x)));
}
""",
    "linear_above_0": """\
/* exp(x) - 1 for x < 0, and x */
static INLINE float linear_above_0(float x)
{
    const float below = two_to_minus_1(within(x * 1.44269504f, 60.0f));
    return x < 0.0f ? below : x;
}
""",
    "inverse_root": """\
/* 1 / sqrt(v) of a normal v > 0, by two steps of Newton whose constants spread the error (Moroz 2018). */
static INLINE float inverse_root(float v)
{
    const float half = 0.5f * v;
    float y = float_of(UINT32_C(0x5f376908) - (bits_of(v) >> 1));
    y = y * (1.50087896f - half * y * y);
    return y * (1.50000057f - half * y * y);
}
""",
}

#: Largest errors of the functions.
ERRORS = {
    "two_to": 2.6e-7,
    "two_to_minus_1": 7.6e-7,
    "sine_of_half_turns": 2.1e-7,
    "log_of_1_plus": 3.7e-7,
    "inverse_root": 7.6e-7,
}


def _single(value: float) -> np.float32:
    return np.float32(value)


def _floats(bits: Array) -> Array:
    return bits.view(np.float32)


def _bits(x: Array) -> Array:
    return np.atleast_1d(np.asarray(x, np.float32)).view(np.uint32).reshape(np.shape(x))


def size_of(x: Array) -> Array:
    return np.abs(x)


def within(x: Array, bound: float) -> Array:
    return np.clip(x, _single(-bound), _single(bound))


def bounded(x: Array) -> Array:
    return within(x, 10.0)


def bounded2(t: Array) -> Array:
    return within(t, 14.4269504)


def _power_of(t: Array) -> tuple[Array, Array]:
    shifted = t + _single(12583039.0)
    f = t - (shifted - _single(12583039.0))
    q = _polynomial(f, 0.00133335392, 0.00966624543, 0.0555050038, 0.240223512, 0.693147123)
    return _floats(_bits(shifted) << np.uint32(23)), q * f


def _polynomial(x: Array, first: float, *others: float) -> Any:
    q: Any = _single(first)
    for coefficient in others:
        q = q * x + _single(coefficient)
    return q


def two_to(t: Array) -> Array:
    power, rest = _power_of(t)
    return power * rest + power


def two_to_minus_1(t: Array) -> Array:
    power, rest = _power_of(t)
    return power * rest + (power - _single(1.0))


def exponential(x: Array) -> Array:
    return two_to(within(x * _single(1.44269504), 126.0))


def sine_of_half_turns(t: Array) -> Array:
    shifted = t + _single(12582912.0)
    f = within(t - (shifted - _single(12582912.0)), 0.5)
    q = _polynomial(f * f, 0.0775603876, -0.598242104, 2.55006981, -5.16770983, 3.14159274)
    return _floats(_bits(q * f) ^ (_bits(shifted) << np.uint32(31)))


def log_of_1_plus(t: Array) -> Array:
    s = t / (_single(2.0) + t)
    u = s * s
    q = _polynomial(u, 0.169987336, 0.198169082, 0.333367795)
    return (s + s) * (u * q) + (s + s)


def inverse_root(v: Array) -> Array:
    half = _single(0.5) * v
    y = _floats(np.uint32(0x5F376908) - (_bits(v) >> np.uint32(1)))
    y = y * (_single(1.50087896) - half * y * y)
    return y * (_single(1.50000057) - half * y * y)
