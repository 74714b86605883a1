"""A limit on the time of a run: durations as people write them, and work that is stopped in time."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["OverBudget", "parse_duration", "time_limit"]

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


class OverBudget(Exception):
    """A run's time was over before it had ended."""


def parse_duration(text: str) -> float:
    """Seconds from "90", "90s", "10m", "1.5h" or "1h30m".

    Examples
    --------
    >>> parse_duration("1h30m")
    5400.0
    """
    match = re.fullmatch(r"(?:\d+(?:\.\d+)?[smh])+|\d+(?:\.\d+)?", text.strip())
    if match is None:
        raise ValueError(f"a duration is written like 90s, 10m or 1h30m, got {text!r}")
    parts = re.findall(r"(\d+(?:\.\d+)?)([smh]?)", text.strip())
    seconds = sum(float(number) * _UNITS[unit or "s"] for number, unit in parts)
    if seconds <= 0:
        raise ValueError(f"a duration must be positive, got {text!r}")
    return seconds


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Raise `OverBudget` in the work below when its time is over.

    It works in the main thread of a process, as workers of joblib run their tasks, on systems with alarms;
    elsewhere there is no limit. Compiled code ends first: the exception comes at the next step in Python.
    """
    main = threading.current_thread() is threading.main_thread()
    if seconds is None or not main or not hasattr(signal, "setitimer"):
        yield
        return

    def over(number: int, frame: FrameType | None) -> None:
        raise OverBudget(f"not finished within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
