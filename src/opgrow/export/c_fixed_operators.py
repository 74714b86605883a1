"""The operators of a program as C functions on fixed-point integers, and the helpers that these may call.

A number is an integer and a count of fractional bits. Values between layers have 16 bits, everything else 32;
products have 64, and ``rescale`` brings them back, rounded and saturated. Exponentials, sines and logarithms
are tables of 64 steps with linear interpolation, whose errors are below 1e-4.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Iterable

from ..operators import Activation, Nodal, OperatorSet
from ..operators.kinds import stated
from . import c_text as text
from .c_fixed_pools import DUAL, is_exact, pool_function

__all__ = ["TABLES", "fixed_operators"]

_ARITHMETIC = """\
static INLINE int32_t saturated(int64_t v)
{
    return v > INT32_MAX ? INT32_MAX : v < -INT32_MAX ? -INT32_MAX : (int32_t)v;
}

/* v / 2^bits, rounded, plus more; bits may be negative. Right shifts of negative numbers keep the sign. */
static INLINE int32_t rescale_and_add(int64_t v, int bits, int32_t more)
{
    if (bits > 0) {
        v = bits > 62 ? 0 : (v + ((int64_t)1 << (bits - 1))) >> bits;
    } else {
        v = (int64_t)((uint64_t)(int64_t)saturated(v) << (bits < -31 ? 31 : -bits));
    }
    return saturated(v + more);
}

static INLINE int32_t rescale(int64_t v, int bits)
{
    return rescale_and_add(v, bits, 0);
}

static INLINE int32_t within(int32_t v, int32_t limit)
{
    return v > limit ? limit : v < -limit ? -limit : v;
}
"""
_LIMITED = """\
/* within(rescale(v, bits), limit), without the saturation between them. */
static INLINE int32_t limited(int64_t v, int bits, int32_t limit)
{
    if (bits <= 0 || bits > 62) {
        return within(rescale(v, bits), limit);
    }
    v = (v + ((int64_t)1 << (bits - 1))) >> bits;
    return v > limit ? limit : v < -limit ? -limit : (int32_t)v;
}
"""
_PSI = """\
static INLINE int32_t psi(int64_t v, int bits)
{
    return limited(v, bits, PSI_MAX);
}
"""
_PAIR = """\
static INLINE int32_t pair(int32_t first, int32_t second, int bits)
{
    return limited((int64_t)first * second, bits, PAIR_MAX);
}
"""
_INTERPOLATED = """\
/* Between the entries of a table: at / 2^shift entries from its beginning. */
static INLINE int32_t interpolated(const uint16_t *table, uint32_t at, int shift)
{
    const uint32_t i = at >> shift, rest = at & ((UINT32_C(1) << shift) - 1);
    const uint32_t low = TABLE_AT(table + i), high = TABLE_AT(table + i + 1);
    return (int32_t)(low + (((high - low) * rest + (UINT32_C(1) << (shift - 1))) >> shift));
}
"""
_EXPONENTIAL = """\
/* exp(t / 2^20) with the given fractional bits. */
static INLINE int32_t exponential(int32_t t, int bits)
{
    /* t / log(2) with 18 fractional bits, and 2 to the power of these as a number of 31 bits */
    const int32_t u = (int32_t)(((int64_t)t * 1549082005) >> 32);
    const uint32_t power = (uint32_t)(65536 + interpolated(EXP2, (uint32_t)u & 0x3FFFF, 12)) << 14;
    const int down = 30 - bits - (int)(u >> 18);
    if (down < 0 || down > 31) {
        return down < 0 ? INT32_MAX : 0;
    }
    return (int32_t)((power + ((UINT32_C(1) << down) >> 1)) >> down);
}
"""
_LOGISTIC = """\
/* 1 / (1 + exp(t / 2^20)) of t from 0, with 30 fractional bits. */
static INLINE int32_t logistic(int32_t t)
{
    const uint32_t e = (uint32_t)exponential(-t, 30);
    const uint32_t share = UINT32_MAX / (65536 + (e >> 14)) + 1; /* 1 / (1 + e), with 16 fractional bits */
    return (int32_t)(((uint64_t)e * share) >> 16);
}
"""
_SINE = """\
/* sin of a phase in 2^-18 turns, with 16 fractional bits. */
static INLINE int32_t sine(int32_t phase)
{
    const uint32_t turn = (uint32_t)phase & 0x3FFFF, half = turn & 0x1FFFF;
    const int32_t s = interpolated(SINE, half > 0x10000 ? 0x20000 - half : half, 10);
    return turn & 0x20000 ? -s : s;
}
"""
_LOGARITHM = """\
/* log(1 + exp(-|z|)) of z with the given fractional bits. */
static INLINE int32_t softplus(int32_t z, int bits)
{
    const int32_t e = exponential(-rescale(z < 0 ? -z : z, bits - 20), 16);
    return rescale(interpolated(LOG1P, (uint32_t)e, 10), 16 - bits);
}
"""

#: What a function's text must contain for a helper to be needed; later helpers may call earlier ones.
_HELPERS = {
    "limited(": _LIMITED,
    "psi(": _PSI,
    "pair(": _PAIR,
    "interpolated(": _INTERPOLATED,
    "exponential(": _EXPONENTIAL,
    "logistic(": _LOGISTIC,
    "sine(": _SINE,
    "softplus(": _LOGARITHM,
}

#: 64 steps, their end, and one beyond it that is read and multiplied by zero.
_TABLE_ENTRIES = 66
_TABLES: dict[str, tuple[str, Callable[[int], float]]] = {
    "EXP2": ("2^(i / 64) - 1", lambda i: 2 ** (i / 64) - 1),
    "SINE": ("sin(i / 64 quarter turns)", lambda i: math.sin(i / 64 * math.pi / 2)),
    "LOG1P": ("log(1 + i / 64)", lambda i: math.log1p(i / 64)),
}
TABLES = {
    name: [min(65535, round(65536 * function(i))) for i in range(_TABLE_ENTRIES)]
    for name, (_, function) in _TABLES.items()
}


def fixed_operators(
    sets: Iterable[OperatorSet],
    also: str,
    digits: tuple[int, int],
    weights: str = "int16",
    narrow: bool = False,
) -> str:
    """The functions of operator sets, with the helpers and tables that they need.

    ``also`` is further text whose helpers are needed; psi and products of two saturate at 2^digits. The
    weights are stored as ``weights``; ``narrow`` says that sums of products fit into 32 bits.
    """
    sets = list(sets)
    pools = {(s.nodal, s.pool): s for s in sets}.values()
    functions = [_nodal(psi) for psi in dict.fromkeys(s.nodal_operator for s in pools if not is_exact(s))]
    functions += [pool_function(operators, weights, narrow) for operators in pools]
    functions += [
        _activation(activation) for activation in dict.fromkeys(s.activation_operator for s in sets)
    ]
    needed = "\n".join([*functions, also])
    helpers: list[str] = []
    for mark, helper in reversed(_HELPERS.items()):
        if _calls(needed, mark):
            helpers.insert(0, helper)
            needed += helper
    tables = [_table(name) for name in _TABLES if f"{name}," in needed]
    limits = []
    if "PSI_MAX" in needed:
        limits.append(f"/* Where psi saturates. */\n#define PSI_MAX (INT32_C(1) << {digits[0]})\n")
    if "PAIR_MAX" in needed:
        what = "Where the product of two psi saturates, so that no sum of three overflows."
        limits.append(f"/* {what} */\n#define PAIR_MAX (INT32_C(1) << {digits[1]})\n")
    if re.search(r"\bTEN\b", needed):
        limits.append(
            "/* The largest exponent, with 20 fractional bits. */\n#define TEN (INT32_C(10) << 20)\n"
        )
    dual = [DUAL] if any("#if DUAL" in function for function in functions) else []
    return "\n".join([*limits, *tables, *dual, _ARITHMETIC, *helpers, *functions])


def _calls(code: str, mark: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(mark)}", code) is not None


def _nodal(nodal: Nodal) -> str:
    signature = (
        f"static INLINE int32_t psi_{nodal.name}(int32_t y, int32_t w, int w_bits, int x_bits, int psi_bits)"
    )
    return _function(signature, stated(nodal.fixed).c)


def _activation(activation: Activation) -> str:
    return _function(
        f"static INLINE int32_t f_{activation.name}(int32_t z, int bits)", stated(activation.fixed).c
    )


def _function(signature: str, body: str) -> str:
    return f"{signature}\n{{\n{textwrap.indent(body, '    ')}}}\n"


def _table(name: str) -> str:
    return f"/* {_TABLES[name][0]}, with 16 fractional bits. */\n" + text.array(
        f"uint16_t {name}[{_TABLE_ENTRIES}] IN_FLASH", [TABLES[name]]
    )
