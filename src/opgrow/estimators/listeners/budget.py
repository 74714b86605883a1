"""Budgets: growth that ends when its time is over, or before its network is too large.

The parameters ``max_seconds`` and ``max_parameters`` of every estimator are these callbacks.
"""

from __future__ import annotations

import math
from time import perf_counter
from typing import Any

from ...common.checks import check_integer, is_number
from ...growth.events import Event, FitFinished, FitStarted, GrowthStarted, StopGrowth
from .base import Callback

__all__ = ["MaxParameters", "MaxSeconds", "budgets"]


class MaxSeconds(Callback):
    """Ends growth when its time is over; the network is what was accepted until then.

    Parameters
    ----------
    seconds : float
        Time that the growth may take. It is looked at after every epoch, search, candidate and step, so what
        is under way still ends. Where a student may follow (``distill``), the networks that it learns from
        get half of it. A fit that goes on from a checkpoint goes on with the time that it had left.

    Examples
    --------
    >>> from opgrow import HeMLGOPClassifier
    >>> from opgrow.estimators.listeners import MaxSeconds
    >>> clf = HeMLGOPClassifier(callbacks=[MaxSeconds(60)])  # the same as max_seconds=60
    """

    def __init__(self, seconds: float) -> None:
        if not is_number(seconds) or not 0 < seconds < math.inf:
            raise ValueError(f"max_seconds must be a positive number, got {seconds!r}")
        self.seconds = float(seconds)
        self._started: float | None = None
        self._share, self._n_networks = 1.0, 1

    def on_fit_start(self, event: FitStarted) -> None:
        """Start the clock."""
        self._started = perf_counter() - event.seconds
        self._share, self._n_networks = 0.5 if event.student else 1.0, event.n_networks

    def on_growth_start(self, event: GrowthStarted) -> None:
        """Give a student all the time that is left."""
        if event.member > self._n_networks:
            self._share = 1.0

    def _look(self, event: Event) -> None:
        if self._started is None or perf_counter() - self._started < self._share * self.seconds:
            return
        share = "" if self._share == 1.0 else "the networks' half of "
        raise StopGrowth(f"{share}max_seconds={self.seconds:g} was over")

    on_phase_start = on_epoch_end = on_candidate_end = on_population_epoch_end = on_step_end = _look

    def on_fit_end(self, event: FitFinished) -> None:
        """Forget the clock."""
        self._started = None


class MaxParameters(Callback):
    """Bounds the size of the fitted network.

    Parameters
    ----------
    n : int
        Parameters that it may have. A block or layer that would make more of them is not added. If the first
        one would, it has fewer neurons; if a single neuron is too much, ``fit`` says how many parameters it
        takes. Networks that are averaged share the bound; where a student may follow (``distill``), it is
        the student's alone.

    Examples
    --------
    >>> from opgrow import HeMLGOPClassifier
    >>> from opgrow.estimators.listeners import MaxParameters, MaxSeconds
    >>> both = [MaxParameters(500), MaxSeconds(60)]  # the same as max_parameters=500, max_seconds=60
    >>> clf = HeMLGOPClassifier(callbacks=both)
    """

    def __init__(self, n: int) -> None:
        check_integer("max_parameters", n, 1)
        self.max_parameters = int(n)


def budgets(max_parameters: Any, max_seconds: Any) -> list[Callback]:
    """The callbacks that an estimator's parameters stand for; None: no such budget."""
    callbacks: list[Callback] = []
    if max_parameters is not None:
        callbacks.append(MaxParameters(max_parameters))
    if max_seconds is not None:
        callbacks.append(MaxSeconds(max_seconds))
    return callbacks
