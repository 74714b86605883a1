"""The pool operators of the paper's Table 1, rho over the inputs, each with all that is known about it."""

from __future__ import annotations

from typing import Any

import numpy as np

from .fixed_forms import Array, FixedPool
from .kinds import Pool

__all__ = ["POOLS"]


SUM = Pool(
    name="sum",
    function=lambda z: z.sum(dim=1),
    flops=lambda n: n,
    code=0,
    formula=lambda z: z.sum(axis=1),
    slopes=np.ones_like,
    js="""\
// In parts of 64, rounded to single precision after each addition, as the engine has it.
let total = 0;
for (let i = 0; i < n;) {
  const end = min(n, i + 64);
  let part = 0;
  for (; i < end; i++) part = fround(part + PSI(i));
  total = fround(total + part);
}
return total;
""",
    fixed=FixedPool(
        """\
int64_t total = 0;
for (int i = 0; i < n; i++) {
    total += PSI(i);
}
return rescale(total, BITS - pooled_bits);
""",
        lambda arithmetic, psi, bits, pair_bits, most: (psi.sum(axis=2), bits),
    ),
    window=1,
)


def _correlation1_slopes(z: Array) -> Array:
    slopes = np.zeros_like(z)
    slopes[:, :-1] += z[:, 1:]
    slopes[:, 1:] += z[:, :-1]
    return slopes


CORRELATION1 = Pool(
    name="correlation1",
    function=lambda z: (z[:, :-1] * z[:, 1:]).sum(dim=1),
    flops=lambda n: 2 * max(n - 1, 0),
    code=1,
    formula=lambda z: (z[:, :-1] * z[:, 1:]).sum(axis=1),
    slopes=_correlation1_slopes,
    js="""\
let total = 0, before = PSI(0);
for (let i = 1; i < n; i++) {
  const now = PSI(i);
  total += before * now;
  before = now;
}
return total;
""",
    fixed=FixedPool(
        """\
int64_t total = 0;
int32_t before = PSI(0);
for (int i = 1; i < n; i++) {
    const int32_t now = PSI(i);
    total += (int64_t)before * now;
    before = now;
}
return rescale(total, BITS - pooled_bits);
""",
        lambda arithmetic, psi, bits, pair_bits, most: (
            (psi[:, :, :-1] * psi[:, :, 1:]).sum(axis=2),
            2 * bits,
        ),
        bits="2 * psi_bits",
    ),
    window=2,
)


def _correlation2_slopes(z: Array) -> Array:
    slopes = np.zeros_like(z)
    slopes[:, :-2] += z[:, 1:-1] * z[:, 2:]
    slopes[:, 1:-1] += z[:, :-2] * z[:, 2:]
    slopes[:, 2:] += z[:, :-2] * z[:, 1:-1]
    return slopes


def _fixed_correlation2(
    arithmetic: Any, psi: Array, bits: int, pair_bits: int, most: int
) -> tuple[Array, int]:
    pair = arithmetic.rescale(psi[:, :, :-2] * psi[:, :, 1:-1], 2 * bits - pair_bits)
    return (arithmetic.within(pair, most) * psi[:, :, 2:]).sum(axis=2), pair_bits + bits


CORRELATION2 = Pool(
    name="correlation2",
    function=lambda z: (z[:, :-2] * z[:, 1:-1] * z[:, 2:]).sum(dim=1),
    flops=lambda n: 3 * max(n - 2, 0),
    code=2,
    formula=lambda z: (z[:, :-2] * z[:, 1:-1] * z[:, 2:]).sum(axis=1),
    slopes=_correlation2_slopes,
    js="""\
let total = 0, first = PSI(0), second = n > 1 ? PSI(1) : 0;
for (let i = 2; i < n; i++) {
  const third = PSI(i);
  total += first * second * third;
  first = second;
  second = third;
}
return total;
""",
    fixed=FixedPool(
        """\
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
        _fixed_correlation2,
        bits="(pair_bits + psi_bits)",
    ),
    window=3,
)


def _maximum_slopes(z: Array) -> Array:
    slopes = np.zeros_like(z)
    np.put_along_axis(slopes, z.argmax(axis=1, keepdims=True), 1, axis=1)
    return slopes


MAXIMUM = Pool(
    name="maximum",
    # max, not amax: on ties the gradient goes to the first maximum alone.
    function=lambda z: z.max(dim=1).values,
    flops=lambda n: n - 1,
    code=3,
    formula=lambda z: z.max(axis=1),
    slopes=_maximum_slopes,
    fold="psi > total || psi != psi ? psi : total",
    js="""\
let largest = PSI(0);
for (let i = 1; i < n; i++) largest = max(largest, PSI(i));
return largest;
""",
    fixed=FixedPool(
        """\
int32_t largest = PSI(0);
for (int i = 1; i < n; i++) {
    const int32_t now = PSI(i);
    largest = now > largest ? now : largest;
}
return rescale(largest, BITS - pooled_bits);
""",
        lambda arithmetic, psi, bits, pair_bits, most: (psi.max(axis=2), bits),
    ),
    onnx=lambda graph, z: graph.add("ReduceMax", z, axes=[1], keepdims=0),
)

POOLS = (SUM, CORRELATION1, CORRELATION2, MAXIMUM)
