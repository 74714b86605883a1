"""Networks that are grown on trial: listeners hear of one, and its steps are those of what stays."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from ...growth.events import Event, GrowthFinished, GrowthStarted, StepFinished, StopGrowth
from ...growth.loop import Growth
from ...network import Network
from ...training.scores import Score

__all__ = ["Rehearsal", "Trial"]


@dataclass
class Trial:
    """A growth that is over, its network, and the events that are not told until it is chosen."""

    growth: Growth
    network: Network
    events: list[Event] = field(default_factory=list)

    @property
    def score(self) -> Score:
        """How good the network is on the rows that decide."""
        assert self.growth.score is not None
        return self.growth.score


class Rehearsal:
    """Tells of the networks that are tried as of one: its steps and its end are those of the chosen one."""

    def __init__(self, hear: Callable[[Event], None]) -> None:
        self._hear = hear
        self.n_trials = 0

    def next(self, kept: list[Event]) -> Callable[[Event], None]:
        """What hears the events of the next network, and keeps some for later."""
        self.n_trials += 1
        first = self.n_trials == 1

        def hear(event: Event) -> None:
            if isinstance(event, StepFinished | GrowthFinished):
                kept.append(event)
            elif first or not isinstance(event, GrowthStarted):
                self._hear(event)

        return hear

    def end(self, chosen: Trial) -> None:
        """Tell what has come of the chosen network."""
        for event in chosen.events:
            with suppress(StopGrowth):
                self._hear(event)
