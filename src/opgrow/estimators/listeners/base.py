"""The hooks of a listener, and how events reach them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...common.checks import check_integer
from ...growth.events import (
    CandidateFinished,
    EpochFinished,
    Event,
    FitFinished,
    FitStarted,
    GrowthFinished,
    GrowthStarted,
    PhaseStarted,
    PopulationEpochFinished,
    StepFinished,
    StopGrowth,
)

__all__ = ["Callback", "broadcast", "check_callbacks"]


class Callback:
    """Hooks that growth calls; all of them do nothing.

    A hook that raises `StopGrowth` ends the growth of the network, and of those that are grown beside it,
    with what they have; every other exception ends the fit. A student that is to take their place is grown
    nevertheless, and its events reach the hooks, too.

    Attributes
    ----------
    max_parameters : int or None
        Parameters that the fitted network may have at most; the least one of all callbacks counts.

    Examples
    --------
    >>> from opgrow import HeMLGOPClassifier
    >>> from opgrow.estimators.listeners import Callback
    >>> class Sizes(Callback):
    ...     def on_step_end(self, event):
    ...         print(event.step.kind, event.step.n_parameters)
    >>> clf = HeMLGOPClassifier(callbacks=[Sizes()])
    """

    max_parameters: int | None = None

    def on_fit_start(self, event: FitStarted) -> None:
        """A fit begins: one network or several."""

    def on_growth_start(self, event: GrowthStarted) -> None:
        """The growth of a network begins."""

    def on_phase_start(self, event: PhaseStarted) -> None:
        """A search, a tuning or the fine-tuning begins."""

    def on_epoch_end(self, event: EpochFinished) -> None:
        """An epoch of tuning is over and scored."""

    def on_candidate_end(self, event: CandidateFinished) -> None:
        """A candidate of a population, as POP trains them, is trained and scored."""

    def on_population_epoch_end(self, event: PopulationEpochFinished) -> None:
        """Candidates that are trained together have done another epoch."""

    def on_step_end(self, event: StepFinished) -> None:
        """A block, a layer or the fine-tuned network was accepted or thrown away."""

    def on_growth_end(self, event: GrowthFinished) -> None:
        """A network is finished."""

    def on_fit_end(self, event: FitFinished) -> None:
        """The fit has its network."""

    def close(self) -> None:
        """The fit is over, whether it succeeded or not: release what is held."""


def check_callbacks(callbacks: Any) -> list[Callback]:
    """The ``callbacks`` of an estimator as a list."""
    if callbacks is None:
        return []
    if not isinstance(callbacks, list | tuple) or not all(isinstance(c, Callback) for c in callbacks):
        raise ValueError(f"callbacks must be None or a list of opgrow.Callback objects, got {callbacks!r}")
    for callback in callbacks:
        if callback.max_parameters is not None:
            check_integer(f"max_parameters of {type(callback).__name__}", callback.max_parameters, 1)
    return list(callbacks)


_HOOKS = {
    FitStarted: "on_fit_start",
    GrowthStarted: "on_growth_start",
    PhaseStarted: "on_phase_start",
    EpochFinished: "on_epoch_end",
    CandidateFinished: "on_candidate_end",
    PopulationEpochFinished: "on_population_epoch_end",
    StepFinished: "on_step_end",
    GrowthFinished: "on_growth_end",
    FitFinished: "on_fit_end",
}


def broadcast(event: Event, callbacks: Iterable[Callback]) -> None:
    """Hand an event to every callback's hook; raise the first `StopGrowth` when all of them have heard it."""
    hook = _HOOKS[type(event)]
    first: StopGrowth | None = None
    for callback in callbacks:
        try:
            getattr(callback, hook)(event)
        except StopGrowth as stop:
            first = first or stop
    if first is not None:
        raise first
