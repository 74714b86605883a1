"""Float32 scalar mathematics that LLVM can vectorise: polynomials and bit tricks, no library calls.

A call of libm in an inner loop keeps the loop scalar and costs a factor of eight. The functions below
have relative errors of a few units in the last place, checked in the tests against float64. The
polynomials are weighted least-squares (Lawson) fits of the minimax problem on the reduced interval.

Functions that round by adding and subtracting a large constant must never be compiled with
reassociation; ``STRICT`` therefore allows fused multiply-add alone.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

#: Fused multiply-add only: safe everywhere.
STRICT = {"contract"}
#: Sums may be reordered, so that reductions vectorise. Only for loops without rounding tricks.
REORDER = {"contract", "reassoc", "nsz"}


#: Stamp of the compiled code on disk. numba compares a function's own file alone, but a kernel is made
#: of functions from several files: a change in any of them must compile it anew.
_SOURCES = sorted(Path(__file__).parent.glob("cpu*.py"))
_STAMP = hashlib.sha256(b"".join(path.read_bytes() for path in _SOURCES)).hexdigest()


def compiled(**options: Any) -> Any:
    """``numba.njit`` with the settings of all our kernels: cached on disk, without the GIL."""
    settings = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": STRICT, **options}

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = njit(**settings)(function)
        index: Any = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
        if hasattr(index, "_source_stamp"):
            index._source_stamp = _STAMP
        return dispatcher

    return decorate


@intrinsic
def item(typingctx: Any, array: Any, index: Any) -> Any:
    """array[index] of a flat contiguous array, for an index that is not negative.

    numba lets negative indices count from the end. Where LLVM cannot prove that an index is not negative it
    then has to look at every element on its own, and the loop is not vectorised.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.load(builder.gep(data, [args[1]], inbounds=True))

    return array.dtype(array, types.intp), codegen


@intrinsic
def put(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """array[index] = value of a flat contiguous array, for an index that is not negative."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        builder.store(args[2], builder.gep(data, [args[1]], inbounds=True))
        return context.get_dummy_value()

    return types.none(array, types.intp, array.dtype), codegen


@intrinsic
def float_bits(typingctx: Any, value: Any) -> Any:
    """The 32 bits of a float32 as int32."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(32))

    return types.int32(types.float32), codegen


@intrinsic
def bits_float(typingctx: Any, value: Any) -> Any:
    """The float32 with the given 32 bits."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), codegen


@intrinsic
def shift_left(typingctx: Any, value: Any, bits: Any) -> Any:
    """int32 << int32 without numba's widening to 64 bits, which would halve the vector width."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.shl(args[0], args[1])

    return types.int32(types.int32, types.int32), codegen


@intrinsic
def xor_int(typingctx: Any, left: Any, right: Any) -> Any:
    """int32 ^ int32 without widening."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.xor(args[0], args[1])

    return types.int32(types.int32, types.int32), codegen


ZERO = np.float32(0.0)
ONE = np.float32(1.0)
TWO = np.float32(2.0)
FOUR = np.float32(4.0)
HALF = np.float32(0.5)
CLAMP = np.float32(10.0)
LOG2E = np.float32(1.4426950408889634)
INV_PI = np.float32(0.3183098861837907)
#: The bounds of a nodal operator's exponent (10) and of any exponent, in units of ln 2.
_CLAMP2 = np.float32(10.0 * 1.4426950408889634)
_LIMIT2 = np.float32(126.0)
#: 1.5 * 2**23: adding it rounds to an integer and leaves that integer in the low bits of the mantissa.
#: With the exponent's bias added, those bits shifted up are the power of two itself.
_ROUND = np.float32(12582912.0)
_ROUND_BIASED = np.float32(12582912.0 + 127.0)
_SHIFT_EXPONENT = np.int32(23)
_SHIFT_SIGN = np.int32(31)

# 2**f - 1 = f (E0 + E1 f + ...), |f| <= 1/2; relative error 4e-7
_E0, _E1, _E2, _E3, _E4 = (
    np.float32(c) for c in (0.6931471433, 0.2402235015, 0.0555050058, 0.0096663416, 0.0013333533)
)
# sin(pi f) = f (S0 + S1 u + ...), u = f^2, |f| <= 1/2; relative error 5e-9
_S0, _S1, _S2, _S3, _S4 = (
    np.float32(c) for c in (3.1415926369, -5.1677096796, 2.5500696091, -0.5982412906, 0.0775585403)
)
# cos(pi f) = C0 + C1 u + ...; absolute error 5e-8
_C0, _C1, _C2, _C3, _C4 = (
    np.float32(c) for c in (0.9999999534, -4.9347928439, 4.0584115593, -1.3318775098, 0.2196907357)
)
# atanh(s) = s + s^3 (A0 + A1 u + ...), u = s^2, |s| <= 1/3; relative error 5e-9
_A0, _A1, _A2, _A3 = (np.float32(c) for c in (0.33333207, 0.2001085, 0.1399957, 0.14012233))


@compiled(forceinline=True)
def clamp(x, low, high):
    x = x if x > low else low
    return x if x < high else high


@compiled(forceinline=True)
def _split_exp2(t):
    """2**n and 2**f - 1 with t = n + f, n an integer; |t| <= 126."""
    shifted = t + _ROUND_BIASED
    f = t - (shifted - _ROUND_BIASED)
    power = bits_float(shift_left(float_bits(shifted), _SHIFT_EXPONENT))
    return power, f * (_E0 + f * (_E1 + f * (_E2 + f * (_E3 + f * _E4))))


@compiled(forceinline=True)
def bounded_exp2(t):
    """exp(x) for t = x log2(e), with x clamped to [-10, 10] as the nodal operators need it."""
    power, p = _split_exp2(clamp(t, -_CLAMP2, _CLAMP2))
    return power + power * p


@compiled(forceinline=True)
def bounded_exp2m1(t):
    """exp(x) - 1 for t = x log2(e), with x clamped to [-10, 10]; accurate near 0."""
    power, p = _split_exp2(clamp(t, -_CLAMP2, _CLAMP2))
    return power * p + (power - ONE)


@compiled(forceinline=True)
def exp2_unbounded(t):
    """2**t for |t| <= 126."""
    power, p = _split_exp2(t)
    return power + power * p


@compiled(forceinline=True)
def exp2m1_unbounded(t):
    """2**t - 1 for |t| <= 126, accurate near 0."""
    power, p = _split_exp2(t)
    return power * p + (power - ONE)


@compiled(forceinline=True)
def exp(x):
    """exp(x); arguments beyond float32's range give its smallest or largest values."""
    power, p = _split_exp2(clamp(x * LOG2E, -_LIMIT2, _LIMIT2))
    return power + power * p


@compiled(forceinline=True)
def expm1(x):
    """exp(x) - 1, accurate near 0."""
    power, p = _split_exp2(clamp(x * LOG2E, -_LIMIT2, _LIMIT2))
    return power * p + (power - ONE)


@compiled(forceinline=True)
def _reduce_turns(t):
    """f and the sign bit of (-1)**n with t = n + f; f is clamped where float32 cannot resolve t."""
    shifted = t + _ROUND
    f = t - (shifted - _ROUND)
    return clamp(f, -HALF, HALF), shift_left(float_bits(shifted), _SHIFT_SIGN)


@compiled(forceinline=True)
def _sin_reduced(f, u):
    return f * (_S0 + u * (_S1 + u * (_S2 + u * (_S3 + u * _S4))))


@compiled(forceinline=True)
def sin_pi(t):
    """sin(pi t)."""
    f, sign = _reduce_turns(t)
    return bits_float(xor_int(float_bits(_sin_reduced(f, f * f)), sign))


@compiled(forceinline=True)
def sin_half_turn(t):
    """sin(pi t) for |t| <= 1/2."""
    return _sin_reduced(t, t * t)


@compiled(forceinline=True)
def cos_half_turn(t):
    """cos(pi t) for |t| <= 1/2."""
    u = t * t
    return _C0 + u * (_C1 + u * (_C2 + u * (_C3 + u * _C4)))


@compiled(forceinline=True)
def cos_pi(t):
    """cos(pi t)."""
    f, sign = _reduce_turns(t)
    return bits_float(xor_int(float_bits(cos_half_turn(f)), sign))


@compiled(forceinline=True)
def sin_cos_pi(t):
    """sin(pi t) and cos(pi t)."""
    f, sign = _reduce_turns(t)
    sine, cosine = sin_half_turn(f), cos_half_turn(f)
    return bits_float(xor_int(float_bits(sine), sign)), bits_float(xor_int(float_bits(cosine), sign))


@compiled(forceinline=True)
def sigmoid(x):
    return ONE / (ONE + exp(-x))


@compiled(forceinline=True)
def tanh(x):
    e = expm1(TWO * clamp(x, -CLAMP, CLAMP))
    return e / (e + TWO)


@compiled(forceinline=True)
def softplus_negative(x):
    """log(1 + exp(-x)) = max(-x, 0) + log1p(exp(-|x|)), and log1p(t) = 2 atanh(t / (2 + t))."""
    t = exp(-abs(x))
    s = t / (TWO + t)
    u = s * s
    log1p = TWO * (s + s * u * (_A0 + u * (_A1 + u * (_A2 + u * _A3))))
    return (-x if x < ZERO else ZERO) + log1p
