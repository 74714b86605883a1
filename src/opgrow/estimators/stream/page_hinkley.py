"""The Page-Hinkley test: when did errors begin to be larger than they were?

Page (1954, Biometrika 41, 100-115) and Hinkley (1971, Biometrika 58, 509-523), as Gama, Sebastiao and
Rodrigues (2013, Machine Learning 90, 317-346) use it on streams: of values x_1, x_2, ... with the mean x̄_t
and the deviation s_t of the first t, the sum

    m_t = Σ_{i <= t} ((x_i - x̄_i) / s_i - δ)

falls as long as nothing changes. It is an alarm when m_t has risen by more than λ above its least value,
and the values since that least value are those after the change. Dividing by the deviation, which the
original does not, gives δ and λ a meaning for errors of any size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol, Self, runtime_checkable

from ...common.checks import check_integer, check_number

__all__ = ["Detector", "PageHinkley"]

#: Deviations below this one count as this one: a single error among very many right predictions is no drift.
_LEAST_DEVIATION = 0.1


@runtime_checkable
class Detector(Protocol):
    """What notices a drift: detectors of river, and others with their interface."""

    @property
    def drift_detected(self) -> bool:
        """Whether the last value has shown a drift; the next one belongs to a new stream."""

    def update(self, x: float) -> object:
        """Take the next value."""


@dataclass
class PageHinkley:
    """The Page-Hinkley test for values that become larger, in units of their deviation.

    Parameters
    ----------
    delta : float, default=0.1
        Changes of the mean by less than so many deviations are tolerated.
    threshold : float, default=60
        By how many deviations the sum has to rise: an error rate that rises by one deviation is noticed after
        threshold / (1 - delta) rows. A smaller threshold notices earlier, and gives more false alarms.
    min_rows : int, default=50
        Rows before the first alarm.

    Attributes
    ----------
    drift_detected : whether the last value has shown a drift; the next one starts anew
    n_since : after an alarm, how many of the last values are those since the change

    Examples
    --------
    >>> from opgrow import PageHinkley
    >>> detector = PageHinkley()
    >>> for row in range(1000):
    ...     _ = detector.update(float(row % (10 if row < 600 else 2) == 0))
    ...     if detector.drift_detected:
    ...         print(row, row - detector.n_since + 1)
    654 600
    """

    delta: float = 0.1
    threshold: float = 60.0
    min_rows: int = 50
    n: int = field(default=0, repr=False)
    mean: float = field(default=0.0, repr=False)
    squares: float = field(default=0.0, repr=False)
    total: float = field(default=0.0, repr=False)
    least: float = field(default=0.0, repr=False)
    n_since: int = field(default=0, repr=False)
    drift_detected: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        check_number("delta", self.delta, 0.0, 1e6)
        check_number("threshold", self.threshold, 0.0, 1e12)
        check_integer("min_rows", self.min_rows, 1)

    def update(self, x: float) -> Self:
        """Take the next value."""
        if self.drift_detected:
            self._start()
        self.n += 1
        step = x - self.mean
        self.mean += step / self.n
        self.squares += step * (x - self.mean)
        deviation = max(math.sqrt(self.squares / self.n), _LEAST_DEVIATION)
        self.total += (x - self.mean) / deviation - self.delta
        self.n_since += 1
        if self.total < self.least:
            self.least, self.n_since = self.total, 0
        self.drift_detected = self.n >= self.min_rows and self.total - self.least > self.threshold
        return self

    def fresh(self) -> PageHinkley:
        """The test with these parameters before its first value."""
        return PageHinkley(self.delta, self.threshold, self.min_rows)

    def _start(self) -> None:
        self.n = self.n_since = 0
        self.mean = self.squares = self.total = self.least = 0.0
