"""The operators as C functions on fixed-point integers.

A number is an integer and a count of fractional bits. Values between layers have 16 bits, everything else 32;
products have 64, and ``rescale`` brings them back, rounded and saturated. Exponentials, sines and logarithms
are tables of 64 steps with linear interpolation, whose errors are below 1e-4.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable

from . import c_text as text

__all__ = [
    "ACTIVATION_BITS",
    "PSI_DIGITS",
    "TABLES",
    "fixed_operators",
    "fixed_pool",
    "is_exact",
    "pooled_call",
]

#: Fractional bits that an activation returns; others return as many as they are given.
ACTIVATION_BITS = {"sigmoid": 30, "tanh": 30, "inverse_absolute": 30}
#: Most fractional bits that psi is worth: its tables and factors have no more.
PSI_DIGITS = {
    "multiplication": 24,
    "exponential": 16,
    "harmonic": 16,
    "quadratic": 24,
    "gaussian": 20,
    "dog": 20,
    "pygop_quadratic": 24,
    "pygop_dog": 20,
}

_ARITHMETIC = """\
static int32_t saturated(int64_t v)
{
    return v > INT32_MAX ? INT32_MAX : v < -INT32_MAX ? -INT32_MAX : (int32_t)v;
}

/* v / 2^bits, rounded; bits may be negative. Right shifts of negative numbers must keep the sign. */
static int32_t rescale(int64_t v, int bits)
{
    if (bits > 0) {
        return bits > 62 ? 0 : saturated((v + ((int64_t)1 << (bits - 1))) >> bits);
    }
    if (bits < -31 || v > (INT32_MAX >> -bits) || v < -(INT32_MAX >> -bits)) {
        return v > 0 ? INT32_MAX : v < 0 ? -INT32_MAX : 0;
    }
    return (int32_t)(v * ((int64_t)1 << -bits));
}

static int32_t within(int32_t v, int32_t limit)
{
    return v > limit ? limit : v < -limit ? -limit : v;
}
"""
_LIMITED = """\
static int32_t psi(int64_t v, int bits)
{
    return within(rescale(v, bits), PSI_MAX);
}
"""
_PAIR = """\
static int32_t pair(int32_t first, int32_t second, int bits)
{
    return within(rescale((int64_t)first * second, bits), PAIR_MAX);
}
"""
_INTERPOLATED = """\
/* Between the entries of a table: at / 2^shift entries from its beginning. */
static int32_t interpolated(const uint16_t *table, uint32_t at, int shift)
{
    const uint32_t i = at >> shift, rest = at & ((UINT32_C(1) << shift) - 1);
    const uint32_t low = table[i], high = table[i + 1];
    return (int32_t)(low + (((high - low) * rest + (UINT32_C(1) << (shift - 1))) >> shift));
}
"""
_EXPONENTIAL = """\
/* exp(t / 2^20) with the given fractional bits. */
static int32_t exponential(int32_t t, int bits)
{
    const int64_t u = ((int64_t)t * 1512775) >> 20;
    const int32_t mantissa = 65536 + interpolated(EXP2, (uint32_t)(u & 0xFFFFF), 14);
    return rescale(mantissa, 16 - bits - (int)(u >> 20));
}
"""
_SINE = """\
/* sin of a phase in 2^-18 turns, with 16 fractional bits. */
static int32_t sine(int32_t phase)
{
    const uint32_t turn = (uint32_t)phase & 0x3FFFF, half = turn & 0x1FFFF;
    const int32_t s = interpolated(SINE, half > 0x10000 ? 0x20000 - half : half, 10);
    return turn & 0x20000 ? -s : s;
}
"""
_LOGARITHM = """\
/* log(1 + exp(-|z|)) of z with the given fractional bits. */
static int32_t softplus(int32_t z, int bits)
{
    const int32_t e = exponential(-rescale(z < 0 ? -z : z, bits - 20), 16);
    return rescale(interpolated(LOG1P, (uint32_t)e, 10), 16 - bits);
}
"""

#: What a function's text must contain for a helper to be needed; later helpers may call earlier ones.
_HELPERS = {
    "psi(": _LIMITED,
    "pair(": _PAIR,
    "interpolated(": _INTERPOLATED,
    "exponential(": _EXPONENTIAL,
    "sine(": _SINE,
    "softplus(": _LOGARITHM,
}

_PRODUCT = "(int64_t)w * y"
_EXPONENT = "exponential(within(rescale({sign}(int64_t)w * ({y} * {y}), w_bits + 2 * x_bits - 20), TEN), 16)"
NODALS = {
    "multiplication": f"psi({_PRODUCT}, w_bits + x_bits - psi_bits)",
    "exponential": "psi(exponential(within(rescale((int64_t)w * y, w_bits + x_bits - 20), TEN), 16)\n"
    "        - 65536, 16 - psi_bits)",
    # 341782638 = 2^31 / (2 pi)
    "harmonic": "psi(sine(rescale((int64_t)w * y * 341782638, w_bits + x_bits + 13)), 16 - psi_bits)",
    "quadratic": "psi((int64_t)w * (y * y), w_bits + 2 * x_bits - psi_bits)",
    "gaussian": f"psi((int64_t)w * {_EXPONENT.format(sign='-', y='y')},\n        w_bits + 16 - psi_bits)",
    "dog": f"psi((int64_t)(w * y) * {_EXPONENT.format(sign='-', y='y')},\n"
    "        w_bits + x_bits + 16 - psi_bits)",
    "pygop_quadratic": "psi((int64_t)(w * c) * (w * c), 2 * (w_bits + x_bits) - psi_bits)",
    "pygop_dog": f"psi((int64_t)(w * y) * {_EXPONENT.format(sign='-', y='c')},\n"
    "        w_bits + x_bits + 16 - psi_bits)",
}
ACTIVATIONS = {
    "sigmoid": """\
    const int64_t one = (int64_t)1 << 30, e = exponential(-rescale(z < 0 ? -z : z, bits - 20), 30);
    return (int32_t)((z < 0 ? e << 30 : one << 30) / (one + e));
""",
    "tanh": """\
    const int64_t one = (int64_t)1 << 30, e = exponential(-rescale(z < 0 ? -z : z, bits - 21), 30);
    const int32_t value = (int32_t)(((one - e) << 30) / (one + e));
    return z < 0 ? -value : value;
""",
    "relu": "    (void)bits;\n    return z < 0 ? 0 : z;\n",
    "softplus": "    return saturated((int64_t)(z < 0 ? -z : 0) + softplus(z, bits));\n",
    "inverse_absolute": """\
    const int64_t size = z < 0 ? -(int64_t)z : z;
    return (int32_t)((int64_t)z * ((int64_t)1 << 30) / (((int64_t)1 << bits) + size));
""",
    "elu": "    return z < 0 ? exponential(rescale(z, bits - 20), bits) - rescale(1, -bits) : z;\n",
    "pygop_softplus": """\
    const int32_t x = within(z, rescale(10, -bits));
    return saturated((int64_t)(x < 0 ? -x : 0) + softplus(x, bits));
""",
    "identity": "    (void)bits;\n    return z;\n",
}
_POOLS = {
    "sum": """\
    int64_t total = 0;
    for (int i = 0; i < n; i++) {
        total += PSI(i);
    }
    return rescale(total, BITS - pooled_bits);
""",
    "correlation1": """\
    int64_t total = 0;
    int32_t before = PSI(0);
    for (int i = 1; i < n; i++) {
        const int32_t now = PSI(i);
        total += (int64_t)before * now;
        before = now;
    }
    return rescale(total, BITS - pooled_bits);
""",
    "correlation2": """\
    int64_t total = 0;
    int32_t first = PSI(0);
    int32_t second = n > 1 ? PSI(1) : 0;
    for (int i = 2; i < n; i++) {
        const int32_t third = PSI(i);
        total += (int64_t)pair(first, second, 2 * psi_bits - pair_bits) * third;
        first = second;
        second = third;
    }
    return rescale(total, BITS - pooled_bits);
""",
    "maximum": """\
    int32_t largest = PSI(0);
    for (int i = 1; i < n; i++) {
        const int32_t now = PSI(i);
        largest = now > largest ? now : largest;
    }
    return rescale(largest, BITS - pooled_bits);
""",
}
#: Sums of these are exact without psi's own format: product, and its fractional bits.
_EXACT = {
    "multiplication": ("(int32_t)w[{i}] * x[{i}]", "(w_bits + x_bits)"),
    "quadratic": ("(int64_t)w[{i}] * ((int32_t)x[{i}] * x[{i}])", "(w_bits + 2 * x_bits)"),
}
_POOL_BITS = {
    "sum": "psi_bits",
    "correlation1": "2 * psi_bits",
    "correlation2": "(pair_bits + psi_bits)",
    "maximum": "psi_bits",
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
    nodals: Iterable[tuple[str, str]], activations: Iterable[str], also: str, digits: tuple[int, int]
) -> str:
    """The functions of (nodal, pool) pairs and activations, with the helpers and tables that they need.

    ``also`` is further text whose helpers are needed; psi and products of two saturate at 2^digits.
    """
    functions = []
    pairs = list(nodals)
    for nodal in dict.fromkeys(nodal for nodal, pool in pairs if not is_exact(nodal, pool)):
        functions.append(_nodal(nodal))
    functions += [fixed_pool(nodal, pool) for nodal, pool in pairs]
    functions += [
        f"static int32_t f_{name}(int32_t z, int bits)\n{{\n{ACTIVATIONS[name]}}}\n" for name in activations
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
    if "TEN)" in needed:
        limits.append(
            "/* The largest exponent, with 20 fractional bits. */\n#define TEN (INT32_C(10) << 20)\n"
        )
    return "\n".join([*limits, *tables, _ARITHMETIC, *helpers, *functions])


def _calls(code: str, mark: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(mark)}", code) is not None


def is_exact(nodal: str, pool: str) -> bool:
    """Whether the pool adds up products that need no format of their own."""
    return pool == "sum" and nodal in _EXACT


def _nodal(name: str) -> str:
    body = f"    return {NODALS[name]};\n"
    if name.startswith("pygop"):
        body = "    const int32_t c = within(y, rescale(10, -x_bits));\n" + body
    signature = f"static int32_t psi_{name}(int32_t y, int32_t w, int w_bits, int x_bits, int psi_bits)"
    return f"{signature}\n{{\n{body}}}\n"


def fixed_pool(nodal: str, pool: str) -> str:
    """rho over the inputs of psi, with ``pooled_bits`` fractional bits."""
    body = _POOLS[pool]
    bits = _POOL_BITS[pool]
    exact = is_exact(nodal, pool)
    term = f"psi_{nodal}(x[{{i}}], w[{{i}}], w_bits, x_bits, psi_bits)"
    if exact:
        term, bits = _EXACT[nodal]
    for index in ("0", "1", "i"):
        body = body.replace(f"PSI({index})", term.format(i=index))
    used = "int x_bits, int pooled_bits" if exact else "int x_bits, int psi_bits, int pooled_bits"
    used += ", int pair_bits" if pool == "correlation2" else ""
    return (
        f"static int32_t {nodal}_{pool}(const int16_t *x, const weight_t *w, int n, int w_bits,\n"
        f"    {used})\n{{\n{body.replace('BITS', bits)}}}\n"
    )


def _table(name: str) -> str:
    return f"/* {_TABLES[name][0]}, with 16 fractional bits. */\n" + text.array(
        f"uint16_t {name}[{_TABLE_ENTRIES}]", [TABLES[name]]
    )


def pooled_call(nodal: str, pool: str) -> str:
    """The call of `fixed_pool` in a loop over neurons, for a block b and its neuron k."""
    psi = "" if is_exact(nodal, pool) else "b->psi_bits, "
    pair = ", b->pair_bits" if pool == "correlation2" else ""
    return (
        f"{nodal}_{pool}(x, w, b->n_inputs, k->weight_bits,\n"
        f"            b->x_bits, {psi}b->pooled_bits{pair})"
    )
