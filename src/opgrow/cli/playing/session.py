"""A growth in a thread of its own: what it is doing, and how it is stopped, gone on with, finished and saved.

It is a callback of the estimator. Where it is asked to stop, its hooks wait, and with them all networks that
grow; where it is asked to finish, growth ends with what it has.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from opgrow.estimators.listeners.base import Callback
from opgrow.growth.events import (
    EpochFinished,
    Event,
    GrowthStarted,
    PhaseStarted,
    StepFinished,
    StopGrowth,
)
from opgrow.report.live import step_data

__all__ = ["Session", "Table"]

_WORDS = {
    "growing": "Growing.",
    "stopped": "Stopped: it waits.",
    "finishing": "Finishing.",
    "finished": "Finished.",
    "failed": "The fit has failed.",
}
_CAN = {"growing": ["stop", "finish", "save"], "stopped": ["go", "finish", "save"], "finished": ["save"]}


class Table:
    """The rows of a playground: those to learn from, and those that say how good the network is."""

    def __init__(self, target: str, training: tuple[Any, Any], test: tuple[Any, Any]) -> None:
        self.target, self.training, self.test = target, training, test


class Session(Callback):
    """The growth of one estimator.

    Parameters
    ----------
    estimator : not fitted
    table : Table
    output : where the model is saved; the page is saved beside it
    """

    def __init__(self, estimator: Any, table: Table, output: Path) -> None:
        self.estimator, self.table, self.output = estimator, table, output
        self.page = ""
        self._status, self._doing, self._error = "growing", "", ""
        self._steps: list[dict[str, Any]] = []
        self._criterion = ""
        self._to_save, self._saved = False, ""
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="opgrow-playground")

    # --- what the server asks ---

    def start(self) -> None:
        """Begin to grow."""
        self._thread.start()

    def state(self, after: int = 0) -> dict[str, Any]:
        """What is going on, and the steps from a number on."""
        with self._changed:
            first = max(0, min(after, len(self._steps)))
            return {
                "status": self._status,
                "words": self._saved or _WORDS[self._status],
                "doing": self._doing,
                "error": self._error,
                "can": _CAN.get(self._status, []),
                "criterion": self._criterion,
                "first": first,
                "steps": self._steps[first:],
            }

    def tell(self, what: str) -> None:
        """Do what was asked for, if that can be done now."""
        with self._changed:
            if what not in _CAN.get(self._status, []):
                return
            if what == "save" and self._status == "finished":
                self._save()
            elif what == "save":
                self._to_save, self._status = True, "finishing"
            else:
                self._status = {"stop": "stopped", "go": "growing", "finish": "finishing"}[what]
            self._changed.notify_all()

    def end(self) -> None:
        """Finish the growth, and wait for that."""
        self.tell("finish")
        self._thread.join()

    # --- the thread of the fit ---

    def _run(self) -> None:
        from opgrow.cli.common import notes

        try:
            with notes(quiet=True):
                self.estimator.set_params(callbacks=[self]).fit(*self.table.training)
                self.estimator.set_params(callbacks=None)
                page = self._written()
        except Exception as error:
            with self._changed:
                self._status, self._error = "failed", f"{type(error).__name__}: {error}"
            return
        with self._changed:
            self.page, self._status, self._doing = page, "finished", ""
            if self._to_save:
                self._save()

    def _written(self) -> str:
        from opgrow.report.page import page

        return page(self.estimator, *self.table.test, target=self.table.target)

    def _save(self) -> None:
        from opgrow.common.atomic import write_atomically
        from opgrow.estimators.files import save

        shown = self.output.with_suffix(".html")
        try:
            save(self.estimator, self.output, target=self.table.target)
            write_atomically(shown, self.page.encode())
        except (OSError, ValueError) as error:
            self._error = f"It could not be saved: {error}"
        else:
            self._error, self._saved = "", f"Saved as {self.output} and {shown}."

    # --- hooks ---

    def on_growth_start(self, event: GrowthStarted) -> None:
        """Note the name of the score."""
        with self._changed:
            self._criterion = {"brier": "Brier score"}.get(event.criterion, event.criterion)
        self._look(event)

    def on_phase_start(self, event: PhaseStarted) -> None:
        """Note what begins."""
        with self._changed:
            what = {"search": "searches operators for", "tune": "tunes"}.get(event.phase, "tunes all of")
            block = "" if event.phase == "fine-tune" else f" layer {event.layer}, block {event.block}"
            self._doing = f"Network {event.member} {what}{block or ' it'}."
        self._look(event)

    def on_epoch_end(self, event: EpochFinished) -> None:
        """Note how far the tuning is."""
        with self._changed:
            score = f"{event.epoch.score.value:.4g}"
            what = "all of it" if event.phase == "fine-tune" else f"layer {event.layer}, block {event.block}"
            self._doing = (
                f"Network {event.member} tunes {what}: epoch {event.epoch.number}, {self._criterion} {score}."
            )
        self._look(event)

    def on_step_end(self, event: StepFinished) -> None:
        """Note the step."""
        with self._changed:
            self._steps.append(step_data(event.step))
        self._look(event)

    def _look(self, event: Event) -> None:
        with self._changed:
            while self._status == "stopped":
                self._changed.wait()
            if self._status == "finishing":
                raise StopGrowth("it was finished in the playground")

    on_candidate_end = on_population_epoch_end = _look
