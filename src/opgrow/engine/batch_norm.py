"""What batch norm divides by, for arrays and tensors of any precision.

The same is in `c/batch_norm.h` for C, and in `cuda/triton_norms.py` for Triton kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["NORM_EPSILON", "deviation"]

#: Added to the variance by every batch norm. Small, because pooled products of small numbers have small
#: but meaningful variances.
NORM_EPSILON = 1e-8


def deviation(variance: Any) -> Any:
    """The square root of variances, none of which counts as zero."""
    shifted = variance + NORM_EPSILON
    return np.sqrt(shifted) if isinstance(shifted, np.ndarray) else shifted.sqrt()
