"""What ``opgrow fit`` prints when it is done: the network, how good it is and on which rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opgrow.cli import common
from opgrow.cli.decisions import Decision
from opgrow.estimators.listeners.base import Callback
from opgrow.growth.events import FitFinished, FitStarted, GrowthStarted

__all__ = ["HeldOut", "Outcome"]


class HeldOut(Callback):
    """Remembers how well networks predict the training rows that were held back from them."""

    def __init__(self) -> None:
        self.n_networks, self.criterion = 0, ""
        self.score: float | None = None

    def on_fit_start(self, event: FitStarted) -> None:
        """Begin anew."""
        self.n_networks, self.score = event.n_networks, None

    def on_growth_start(self, event: GrowthStarted) -> None:
        """Note the name of the score."""
        self.criterion = event.criterion

    def on_fit_end(self, event: FitFinished) -> None:
        """Note the score."""
        self.score = None if event.held_out is None else event.held_out.value

    @property
    def scores(self) -> dict[str, float]:
        """The score, by the name of its criterion; empty if there were no such rows."""
        return {} if self.score is None else {self.criterion: self.score}

    @property
    def words(self) -> str:
        """Which rows these are."""
        if self.n_networks == 1:
            return "rows that were not trained on, but decided what was kept"
        return f"{self.n_networks} networks, each on the rows that it was not trained on"


@dataclass
class Outcome:
    """A finished fit.

    Attributes
    ----------
    scores : by the rows that they were taken on: "training", "held_out", "validation"
    held_out : in words, what the rows are that were held out
    """

    estimator: Any
    task: str
    target: str
    n_rows: int
    seconds: float
    decisions: list[Decision]
    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    held_out: str = ""

    def add_held_out(self, heard: HeldOut) -> None:
        """Add the score on rows that were held out, if there is one."""
        if heard.scores:
            self.scores["held_out"], self.held_out = heard.scores, heard.words

    def to_dict(self, output: Path) -> dict[str, Any]:
        """The outcome as plain data."""
        network = self.estimator.network_
        return {
            "model": str(output),
            "estimator": type(self.estimator).__name__,
            "task": self.task,
            "target": self.target,
            "rows": self.n_rows,
            "decisions": [{"about": label, "text": line} for label, line in self.decisions],
            "topology": network.topology(),
            "network": network.describe(),
            "scores": self.scores,
            "steps": len(self.estimator.history_),
            "seconds": round(self.seconds, 3),
        }

    def show(self, output: Path, report: Path | None) -> None:
        """Print it."""
        from opgrow.estimators.listeners.progress import growth_table

        console = common.console()
        console.print(growth_table(self.estimator.history_))
        console.print()
        console.print(repr(self.estimator.network_), soft_wrap=True)
        console.print()
        for part, values in self.scores.items():
            rows = f" ({self.held_out})" if part == "held_out" else ""
            console.print(f"{part.replace('_', ' '):<10} {common.scores_text(values)}{rows}", soft_wrap=True)
        console.print(f"saved to   {output}", soft_wrap=True)
        if report is not None:
            console.print(f"report     {report}", soft_wrap=True)
