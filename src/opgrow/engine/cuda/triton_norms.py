"""What batch norm divides by inside Triton kernels; the same as in `opgrow.engine.batch_norm`."""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import triton
import triton.language as tl

_EPSILON = tl.constexpr(1e-8)


@triton.jit
def deviation(variance):
    """The square root of variances, none of which counts as zero."""
    return tl.sqrt(variance + _EPSILON)
