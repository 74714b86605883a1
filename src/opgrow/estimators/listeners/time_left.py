"""How long a fit has taken, and how long it may still take.

Nobody knows how many blocks a network will have before it is grown, so a single network has no estimate. Of
several networks, those that are finished say how long the others may take. A budget is an upper bound.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from ...growth.events import FitStarted

__all__ = ["FitClock", "duration"]


@dataclass
class FitClock:
    """Counts the networks of a fit that have begun and ended.

    Examples
    --------
    >>> clock = FitClock(n_networks=5)
    >>> clock.began, clock.ended = 2, 1
    >>> clock.left(elapsed=3.0)  # one and a half networks in three seconds
    'about 7 s left'
    """

    n_networks: int = 1
    student: bool = False
    max_seconds: float | None = None
    started: float = field(default_factory=time.perf_counter)
    began: int = 0
    ended: int = 0
    resumed: bool = False

    @classmethod
    def of(cls, event: FitStarted) -> FitClock:
        """The clock of a fit; what went before a checkpoint counts."""
        budget = event.parameters.get("max_seconds")
        started = time.perf_counter() - event.seconds
        return cls(event.n_networks, event.student, budget, started, resumed=event.seconds > 0)

    @property
    def elapsed(self) -> float:
        """Seconds since the fit began."""
        return time.perf_counter() - self.started

    def left(self, elapsed: float) -> str:
        """What can be said of the time that is left; empty if nothing honest can be."""
        estimate = None
        if 0 < self.ended < self.n_networks and not self.resumed:  # of earlier runs, nothing is counted
            # Networks under way are taken to be halfway.
            done = self.ended + (self.began - self.ended) / 2
            estimate = elapsed / done * (self.n_networks - done)
        bound = None if self.max_seconds is None else max(self.max_seconds - elapsed, 0.0)
        if estimate is not None and estimate >= 0.5 and (bound is None or estimate < bound):
            return f"about {duration(estimate)} left" + (" before the student" if self.student else "")
        return "" if bound is None else f"at most {duration(bound)} left"

    def words(self) -> str:
        """Elapsed time and, where it can be told, the time that is left."""
        elapsed = self.elapsed
        return ", ".join(
            filter(
                None,
                (
                    f"{elapsed:.1f} s so far" if elapsed < 10 else f"{duration(elapsed)} so far",
                    self.left(elapsed),
                ),
            )
        )


def duration(seconds: float) -> str:
    """Seconds for people: minutes and hours where there are any.

    Examples
    --------
    >>> duration(7.4), duration(125), duration(3725)
    ('7 s', '2 min 05 s', '1 h 02 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
