"""What a neuron pools of its inputs, as C functions on fixed-point integers.

Sums of products of a weight and an input are exact, whatever adds them up: two products at once where a
processor can, and in 32 bits where no sum needs more.
"""

from __future__ import annotations

import re

from ..operators import OperatorSet
from ..operators.kinds import stated
from .c_operators import with_terms
from .c_storage import STORAGES

__all__ = ["DUAL", "adds_products", "is_exact", "pool_function", "pooled_call"]


def is_exact(operators: OperatorSet) -> bool:
    """Whether the pool adds up products that need no format of their own."""
    return operators.pool_operator.window == 1 and stated(operators.nodal_operator.fixed).exact is not None


def adds_products(operators: OperatorSet) -> bool:
    """Whether sums of products of a weight and an input are all that the pool computes."""
    exact = stated(operators.nodal_operator.fixed).exact
    return is_exact(operators) and exact is not None and exact.power == 1


def pooled_call(operators: OperatorSet) -> str:
    """What a neuron of a block b has pooled, with its bias, in a loop over neurons."""
    if adds_products(operators):
        return f"{_name(operators)}(&b, &neuron, x, w)"
    given = "".join(f", b.{name}" for name in _formats(operators))
    call = f"{_name(operators)}(x, w, b.n_inputs, neuron.weight_bits{given})"
    return f"saturated((int64_t)neuron.bias\n            + {call})"


def pool_function(operators: OperatorSet, weights: str, narrow: bool) -> str:
    """rho over the inputs of psi, with ``pooled_bits`` fractional bits; for sums of products, with the bias.

    The weights are stored as ``weights``; ``narrow`` says that sums of products fit into 32 bits.
    """
    if adds_products(operators):
        return _sum_of_products(operators, weights, narrow)
    pool, exact = stated(operators.pool_operator.fixed), stated(operators.nodal_operator.fixed).exact
    term = f"psi_{operators.nodal}(x[{{i}}], WEIGHT_AT(w + {{i}}), w_bits, x_bits, psi_bits)"
    bits = pool.bits
    if exact is not None and is_exact(operators):
        term, bits = exact.c, exact.bits
    return _POOL.format(
        name=_name(operators),
        formats=", ".join(f"int {name}" for name in _formats(operators)),
        body=with_terms(pool.c, term).replace("BITS", bits),
    )


def _formats(operators: OperatorSet) -> list[str]:
    """The fractional bits that a pool's function is given."""
    psi = [] if is_exact(operators) else ["psi_bits"]
    pair = ["pair_bits"] if "pair_bits" in stated(operators.pool_operator.fixed).c else []
    return ["x_bits", *psi, "pooled_bits", *pair]


_POOL = """\
static int32_t {name}(const int16_t *x, weights_t w, int n, int w_bits,
    {formats})
{{
{body}}}
"""
_SUM = """\
static INLINE int32_t {name}(const struct block *b, const struct neuron *neuron,
    const int16_t *x, weights_t w)
{{
    const int n = b->n_inputs, w_bits = neuron->weight_bits, x_bits = b->x_bits;
{body}    return rescale_and_add(total, {bits} - b->pooled_bits, neuron->bias);
}}
"""
#: Two products of 16-bit numbers fit into 32 bits, which are quicker than 64.
_IN_PAIRS = """\
int64_t total = 0;
int i = 0;
DUAL
for (; i + 2 <= n; i += 2) {
    total += PSI(i) + PSI(i + 1);
}
if (i < n) {
    total += PSI(i);
}
"""
_NARROW = """\
int32_t total = 0;
int i = 0;
DUAL
for (; i < n; i++) {
    total += PSI(i);
}
"""


#: Where two weights share a byte, it is read once; a neuron's weights may begin in the middle of one.
_TWO_IN_A_BYTE = """\
#ifndef __OPTIMIZE_SIZE__
if (w & 1) {
    total += PSI(0);
    i = 1;
}
for (; i + 2 <= n; i += 2) {
    const uint8_t both = PAIR_AT(packed + ((w + i) >> 1));
    const int32_t low = LEVEL_AT(levels + (both & 15)), high = LEVEL_AT(levels + (both >> 4));
    total += low * x[i] + high * x[i + 1];
}
#endif
"""


def _sum_of_products(operators: OperatorSet, weights: str, narrow: bool) -> str:
    """Most of the sum is left to instructions for two products at once, where there are any."""
    exact = stated(operators.nodal_operator.fixed).exact
    assert exact is not None
    steps = _DUAL_STEPS.get(weights)
    dual = "" if steps is None else _DUAL_LOOP.replace("    STEPS\n", steps)
    if narrow:
        dual = dual.replace("__smlald", "__smlad")
    if STORAGES[weights].levels:
        dual = _TWO_IN_A_BYTE
    body = with_terms((_NARROW if narrow else _IN_PAIRS).replace("DUAL\n", dual), exact.c)
    body = re.sub(r"^ +(?=#)", "", body, flags=re.MULTILINE)  # preprocessor lines begin at the margin
    return _SUM.format(name=_name(operators), body=body, bits=exact.bits)


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
DUAL = """\
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


def _name(operators: OperatorSet) -> str:
    return f"{operators.nodal}_{operators.pool}"
