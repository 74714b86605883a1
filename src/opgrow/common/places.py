"""Some of many places, chosen without chance."""

from __future__ import annotations

import numpy as np

__all__ = ["evenly"]


def evenly(n: int, most: int) -> np.ndarray:
    """At most so many of n places, at equal distances from the first to the last one."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(int))
