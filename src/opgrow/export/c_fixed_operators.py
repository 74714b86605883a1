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

from ..operators import Activation, FixedPool, Nodal, OperatorSet
from ..operators.kinds import stated
from . import c_text as text
from .c_operators import with_terms

__all__ = ["ROOT_SLOPE", "ROOT_START", "TABLES", "fixed_operators", "is_exact", "pooled_call"]

_ARITHMETIC = """\
static INLINE int32_t saturated(int64_t v)
{
    return v > INT32_MAX ? INT32_MAX : v < -INT32_MAX ? -INT32_MAX : (int32_t)v;
}

/* v / 2^bits, rounded; bits may be negative. Right shifts of negative numbers must keep the sign. */
static INLINE int32_t rescale(int64_t v, int bits)
{
    if (bits > 0) {
        return bits > 62 ? 0 : saturated((v + ((int64_t)1 << (bits - 1))) >> bits);
    }
    if (bits < -31 || v > (INT32_MAX >> -bits) || v < -(INT32_MAX >> -bits)) {
        return v > 0 ? INT32_MAX : v < 0 ? -INT32_MAX : 0;
    }
    return (int32_t)(v * ((int64_t)1 << -bits));
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
    const int64_t u = ((int64_t)t * 1512775) >> 20;
    const int32_t mantissa = 65536 + interpolated(EXP2, (uint32_t)(u & 0xFFFFF), 14);
    /* Always to the right, so that nothing depends on the sign of t. */
    int down = 46 - bits - (int)(u >> 20);
    down = down > 62 ? 62 : down < 1 ? 1 : down;
    return saturated((((int64_t)mantissa << 30) + ((int64_t)1 << (down - 1))) >> down);
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
    "sine(": _SINE,
    "softplus(": _LOGARITHM,
}

#: 1 / sqrt(f) for f from 1 to 4 is about start - slope f, within 9 %; in units of 2^-16.
ROOT_START, ROOT_SLOPE = 69796, 9961
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
    sets: Iterable[OperatorSet], also: str, digits: tuple[int, int], weights: str = "int16"
) -> str:
    """The functions of operator sets, with the helpers and tables that they need.

    ``also`` is further text whose helpers are needed; psi and products of two saturate at 2^digits. The
    weights are stored as ``weights``.
    """
    sets = list(sets)
    pools = {(s.nodal, s.pool): s for s in sets}.values()
    functions = [_nodal(psi) for psi in dict.fromkeys(s.nodal_operator for s in pools if not is_exact(s))]
    functions += [_pool(operators, weights) for operators in pools]
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
    dual = [_DUAL] if any("#if DUAL" in function for function in functions) else []
    return "\n".join([*limits, *tables, *dual, _ARITHMETIC, *helpers, *functions])


def _calls(code: str, mark: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(mark)}", code) is not None


def is_exact(operators: OperatorSet) -> bool:
    """Whether the pool adds up products that need no format of their own."""
    return operators.pool_operator.window == 1 and stated(operators.nodal_operator.fixed).exact is not None


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


def _pool(operators: OperatorSet, weights: str) -> str:
    """rho over the inputs of psi, with ``pooled_bits`` fractional bits."""
    pool, exact = stated(operators.pool_operator.fixed), stated(operators.nodal_operator.fixed).exact
    term = f"psi_{operators.nodal}(x[{{i}}], WEIGHT_AT(w + {{i}}), w_bits, x_bits, psi_bits)"
    bits, formats = pool.bits, "int x_bits, int psi_bits, int pooled_bits"
    if exact is not None and is_exact(operators):
        term, bits, formats = exact.c, exact.bits, "int x_bits, int pooled_bits"
    pairs = _SUM_OF_PAIRS.replace("DUAL\n", _dual_loop(weights))
    body = with_terms(pairs if _fits_in_pairs(operators) else pool.c, term).replace("BITS", bits)
    body = re.sub(r"^ +(?=#)", "", body, flags=re.MULTILINE)  # preprocessor lines begin at the margin
    formats += ", int pair_bits" if _multiplies_pairs(pool) else ""
    return (
        f"static int32_t {operators.nodal}_{operators.pool}(const int16_t *x, weights_t w, int n, "
        f"int w_bits,\n    {formats})\n{{\n{body}}}\n"
    )


#: Two products of 16-bit numbers fit into 32 bits, which are quicker than 64. Most of the sum is left to
#: instructions for two products at once, where there are any.
_SUM_OF_PAIRS = """\
int64_t total = 0;
int i = 0;
DUAL
for (; i + 2 <= n; i += 2) {
    total += PSI(i) + PSI(i + 1);
}
if (i < n) {
    total += PSI(i);
}
return rescale(total, BITS - pooled_bits);
"""


#: Cortex-M4, M7 and M33: four products by two instructions; the sum is exact, and so the same. Bytes are
#: widened to 16 bits two at a time, those with even numbers first.
_DUAL_LOOP = """\
#if DUAL
for (; i + 4 <= n; i += 4) {
    const uint32_t first = WORD_AT(x + i), second = WORD_AT(x + i + 2);
    STEPS
}
#endif
"""
_DUAL_STEPS = {
    "int16": """\
    total = __smlald((int32_t)first, (int32_t)WORD_AT(w + i), total);
    total = __smlald((int32_t)second, (int32_t)WORD_AT(w + i + 2), total);
""",
    "int8": """\
    const uint32_t bytes = WORD_AT(w + i);
    const uint32_t even = (first & 0xFFFF) | second << 16, odd = first >> 16 | (second & 0xFFFF0000);
    total = __smlald((int32_t)even, __sxtb16((int32_t)bytes), total);
    total = __smlald((int32_t)odd, __sxtb16((int32_t)(bytes >> 8)), total);
""",
}
_DUAL = """\
/* Instructions that multiply two pairs of 16-bit numbers and add both products to a sum. */
#if defined(__ARM_FEATURE_SIMD32) && defined(__ARM_FEATURE_UNALIGNED) && !defined(__ARM_BIG_ENDIAN)
#include <arm_acle.h>
#define DUAL 1
struct __attribute__((packed, may_alias)) word {
    uint32_t bits;
};
#define WORD_AT(place) (((const struct word *)(const void *)(place))->bits)
#else
#define DUAL 0
#endif
"""


def _dual_loop(weights: str) -> str:
    """The part of a sum that is computed two products at a time, where weights are stored so."""
    steps = _DUAL_STEPS.get(weights)
    return "" if steps is None else _DUAL_LOOP.replace("    STEPS\n", steps)


def _fits_in_pairs(operators: OperatorSet) -> bool:
    exact = stated(operators.nodal_operator.fixed).exact
    return is_exact(operators) and exact is not None and exact.power == 1


def _multiplies_pairs(pool: FixedPool) -> bool:
    return "pair_bits" in pool.c


def _table(name: str) -> str:
    return f"/* {_TABLES[name][0]}, with 16 fractional bits. */\n" + text.array(
        f"uint16_t {name}[{_TABLE_ENTRIES}] IN_FLASH", [TABLES[name]]
    )


def pooled_call(operators: OperatorSet) -> str:
    """The call of a pool's function in a loop over neurons, for a block b and its neuron k."""
    psi = "" if is_exact(operators) else "b.psi_bits, "
    pair = ", b.pair_bits" if _multiplies_pairs(stated(operators.pool_operator.fixed)) else ""
    return (
        f"{operators.nodal}_{operators.pool}(x, w, (int)b.n_inputs, neuron.weight_bits,\n"
        f"            b.x_bits, {psi}b.pooled_bits{pair})"
    )
