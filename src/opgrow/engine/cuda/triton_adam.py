"""The optimiser: a step of Adam for all candidates, and the check that their gradients are finite."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import triton
import triton.language as tl

_ADAM_EPSILON = tl.constexpr(1e-7)
_LOG2_BETA1 = tl.constexpr(-0.15200309344504997)
_LOG2_BETA2 = tl.constexpr(-0.001443416871225665)


@triton.jit(
    do_not_specialize=["size", "stride"],
    do_not_specialize_on_alignment=["grad", "sums"],
)
def check_sums(grad, sums, size, stride, BLOCK: tl.constexpr):
    """Sums of parts of each candidate's gradient, which are finite only if all of it is."""
    block, candidate = tl.program_id(0), tl.program_id(1)
    at = block * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(grad + candidate.to(tl.int64) * stride + at, mask=at < size, other=0.0)
    tl.store(sums + candidate * tl.num_programs(0) + block, tl.sum(values * 0.0, axis=0))


@triton.jit(
    do_not_specialize=["step", "size", "stride", "n_sums"],
    do_not_specialize_on_alignment=["theta", "grad", "first", "second", "sums", "skipped", "active", "rate"],
)
def adam(
    theta,
    grad,
    first,
    second,
    decay,
    sums,
    skipped,
    active,
    rate,
    base,
    step,
    size,
    stride,
    n_sums,
    BLOCK: tl.constexpr,
    SUMS: tl.constexpr,
):
    """One step of Adam as torch computes it; none for a candidate whose gradient is not finite.

    ``sums`` are those of `check_sums`, or the gradient itself where it is small.
    """
    block, candidate = tl.program_id(0), tl.program_id(1)
    lanes = tl.arange(0, SUMS)
    checks = tl.load(sums + candidate * n_sums + lanes, mask=lanes < n_sums, other=0.0)
    finite = tl.sum(checks * 0.0, axis=0) == 0.0
    moves = tl.load(active + candidate) != 0
    if block == 0:
        if moves and not finite:
            tl.store(skipped + candidate, tl.load(skipped + candidate) + 1)
    if moves and finite:
        count = (tl.load(base) + step + 1).to(tl.float64)
        length = (tl.load(rate + candidate) / (1.0 - tl.exp2(count * _LOG2_BETA1))).to(tl.float32)
        root = tl.sqrt(1.0 - tl.exp2(count * _LOG2_BETA2)).to(tl.float32)
        at = block * BLOCK + tl.arange(0, BLOCK)
        there = at < size
        place = candidate.to(tl.int64) * stride + at
        value = tl.load(theta + place, mask=there, other=0.0)
        g = tl.load(grad + place, mask=there, other=0.0) + tl.load(decay + at, mask=there, other=0.0) * value
        m = tl.load(first + place, mask=there, other=0.0)
        v = tl.load(second + place, mask=there, other=0.0)
        m += (1.0 - 0.9) * (g - m)
        v = v * 0.999 + (1.0 - 0.999) * g * g
        tl.store(first + place, m, mask=there)
        tl.store(second + place, v, mask=there)
        tl.store(theta + place, value - length * m / (tl.sqrt(v) / root + _ADAM_EPSILON), mask=there)
