"""How much memory a fit may use for rows, and what it spends it on."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Plan", "check_memory_limit", "parse_bytes", "total_memory"]

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
#: Rows that are held in memory, at most: to score on, and to estimate from while parameters still change.
HELD_ROWS = 1 << 16
#: Where nothing is known of the machine.
_UNKNOWN = 1 << 31


def parse_bytes(value: Any, name: str = "memory_limit") -> int:
    """A number of bytes from a number, or from text such as "2GB", "1.5 GiB" or "500M".

    Examples
    --------
    >>> parse_bytes("2GB"), parse_bytes("1.5 MiB"), parse_bytes(4096)
    (2000000000, 1572864, 4096)
    """
    n_bytes = None
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\s*", value, re.IGNORECASE)
        if match:
            number, unit, binary = match[1], match[2].upper(), match[3]
            n_bytes = float(number) * (1024 ** "KMGT".index(unit) * 1024 if binary and unit else _UNITS[unit])
    elif isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        n_bytes = float(value)
    if n_bytes is None or not 1 <= n_bytes < 2**60:
        raise ValueError(
            f"{name} must be None, a number of bytes or text such as '2GB' or '500MB', got {value!r}"
        )
    return int(n_bytes)


def check_memory_limit(value: Any) -> int | None:
    """The limit in bytes, or None."""
    return None if value is None else parse_bytes(value)


def total_memory() -> int:
    """Bytes of the machine, or of the container: the same in every process, unlike what is free."""
    limits = []
    with suppress(OSError, ValueError):
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        limits += [int(limit)] if limit.isdecimal() else []
    with suppress(AttributeError, OSError, ValueError):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(limits, default=_UNKNOWN)


@dataclass(frozen=True)
class Plan:
    """What the bytes of a limit are spent on: rows of so many inputs and outputs.

    An eighth each goes to rows that validate, to a sample, to the rows among which tuning shuffles and to
    those that are read meanwhile; a quarter to features that are kept; the rest to chunks that pass through.
    """

    limit: int
    n_features: int
    n_outputs: int

    def _rows(self, share: int, columns: int) -> int:
        return max(1, self.limit // share // (4 * columns))

    @property
    def held_rows(self) -> int:
        """Rows that validate, and as many for the sample."""
        return max(256, min(HELD_ROWS, self._rows(8, 2 * self.n_features + self.n_outputs + 1)))

    def window_rows(self, columns: int) -> int:
        """Rows of so many columns among which an epoch shuffles."""
        return self._rows(8, columns)

    @property
    def kept_bytes(self) -> int:
        """Bytes of features that are kept in memory."""
        return self.limit // 4

    def check_chunks(self, rows: int) -> None:
        """Complain of chunks that are too large to have three of them in memory."""
        size = rows * self.n_features * 4
        if 3 * size > self.limit // 4 and rows > 256:
            raise ValueError(
                f"the largest chunk has {rows} rows, {size / 1e6:.3g} MB, and memory_limit leaves "
                f"{self.limit / 12e6:.3g} MB for one: make smaller chunks (row groups) or raise memory_limit"
            )
