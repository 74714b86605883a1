"""Listeners to growth. Subclass `Callback` and override the hooks you need.

The live display is in `opgrow.progress`; it is used by ``verbose=1`` and by the command line.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .events import (
    CandidateFinished,
    EpochFinished,
    Event,
    GrowthFinished,
    GrowthStarted,
    PhaseStarted,
    StepFinished,
)

__all__ = ["Callback", "broadcast", "check_callbacks"]


class Callback:
    """Hooks that growth calls; all of them do nothing.

    Examples
    --------
    >>> from opgrow import HeMLGOPClassifier
    >>> from opgrow.callbacks import Callback
    >>> class Sizes(Callback):
    ...     def on_step_end(self, event):
    ...         print(event.step.kind, event.step.n_parameters)
    >>> clf = HeMLGOPClassifier(callbacks=[Sizes()])
    """

    def on_growth_start(self, event: GrowthStarted) -> None:
        """Growth begins."""

    def on_phase_start(self, event: PhaseStarted) -> None:
        """A search, a tuning or the fine-tuning begins."""

    def on_epoch_end(self, event: EpochFinished) -> None:
        """An epoch of tuning is over and scored."""

    def on_candidate_end(self, event: CandidateFinished) -> None:
        """A candidate of a population, as POP trains them, is trained and scored."""

    def on_step_end(self, event: StepFinished) -> None:
        """A block, a layer or the fine-tuned network was accepted or thrown away."""

    def on_growth_end(self, event: GrowthFinished) -> None:
        """The network is finished."""

    def close(self) -> None:
        """The fit is over, whether it succeeded or not: release what is held."""


def check_callbacks(callbacks: Any) -> list[Callback]:
    """The ``callbacks`` of an estimator as a list."""
    if callbacks is None:
        return []
    if not isinstance(callbacks, list | tuple) or not all(isinstance(c, Callback) for c in callbacks):
        raise ValueError(f"callbacks must be None or a list of opgrow.Callback objects, got {callbacks!r}")
    return list(callbacks)


_HOOKS = {
    GrowthStarted: "on_growth_start",
    PhaseStarted: "on_phase_start",
    EpochFinished: "on_epoch_end",
    CandidateFinished: "on_candidate_end",
    StepFinished: "on_step_end",
    GrowthFinished: "on_growth_end",
}


def broadcast(event: Event, callbacks: Iterable[Callback]) -> None:
    """Hand an event to every callback's hook."""
    hook = _HOOKS[type(event)]
    for callback in callbacks:
        getattr(callback, hook)(event)
