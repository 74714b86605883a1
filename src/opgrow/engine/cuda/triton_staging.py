"""Gathering the rows of a window, wherever they are stored, in one launch."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import triton
import triton.language as tl

#: Numbers that describe a job.
N_FIELDS = tl.constexpr(5)


@triton.jit(
    do_not_specialize=["order_stride", "window"],
    do_not_specialize_on_alignment=["jobs", "shares", "order", "at", "seed"],
)
def stage_rows(
    jobs,
    shares,
    order,
    at,
    seed,
    order_stride,
    window,
    DROP: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Copy a feature's values in the order of a window, for every job one feature.

    ``jobs`` (J, 5): address of the values, how far apart they lie, address to copy them to, number of the
    order, and a number that tells features apart in the draws of dropout. ``shares`` (J,): what dropout
    leaves out, which takes place with DROP. ``order`` (G, rows of an epoch), from row ``at`` on.
    """
    job, tile = tl.program_id(0), tl.program_id(1)
    columns = tile * ROWS + tl.arange(0, ROWS)
    there = columns < window
    jobs += job * N_FIELDS
    source = tl.load(jobs).to(tl.pointer_type(tl.float32))
    apart = tl.load(jobs + 1)
    target = tl.load(jobs + 2).to(tl.pointer_type(tl.float32))
    begin = tl.load(at)
    rows = tl.load(order + tl.load(jobs + 3) * order_stride + begin + columns, mask=there, other=0)
    values = tl.load(source + rows.to(tl.int64) * apart, mask=there, other=0.0)
    if DROP:
        share = tl.load(shares + job)
        number = tl.load(jobs + 4).to(tl.int32)
        chance = tl.rand(tl.load(seed) + begin, number * window + columns)
        values *= tl.where(chance >= share, 1.0 / (1.0 - share), 0.0)
    tl.store(target + columns, values, mask=there)
