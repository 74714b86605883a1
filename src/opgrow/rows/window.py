"""Rows that an epoch of training shuffles together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .problem import Place

__all__ = ["EpochWindows", "Window"]


@dataclass(frozen=True)
class Window:
    """Rows on the host or on a device, as trainers take them, and their place among those of all ranks."""

    rows: Any
    place: Place | None = None


#: From random numbers to the windows of one epoch, in which every row comes once.
EpochWindows = Callable[[np.random.Generator], Iterator[Window]]
