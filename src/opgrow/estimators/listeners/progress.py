"""What growth looks like: one line for every finished step and, on a terminal, a live line while it runs.

Everything goes to standard error, so that standard output stays free for results. A notebook, a pipe or a log
file gets the plain lines only, each as soon as its step is finished, and in a long step now and then a line
that says what is under way. The last line sums up the fit. The live line is drawn by a thread of rich a few
times a second; an epoch only stores a few numbers, so ten thousand of them cost nothing.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterable
from typing import Any, Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from ...common.texts import plain_console
from ...growth.events import (
    CandidateFinished,
    EpochFinished,
    FitFinished,
    FitStarted,
    GrowthFinished,
    GrowthStarted,
    GrowthStep,
    PhaseStarted,
    StepFinished,
)
from ...growth.step_table import STEP_COLUMNS, left_out, percentage, short_number, step_cells
from ...training.scores import Score
from .base import Callback
from .time_left import FitClock, duration

__all__ = ["Progress", "growth_table"]

REFRESHES_PER_SECOND = 8
#: Without a live line, what is under way is said after so many seconds without a word.
SILENT_SECONDS = 30.0


class Progress(Callback):
    """Shows growth as it happens; ``verbose=1`` uses it.

    A fit that ends in an exception does not tell its callbacks. Use it in a ``with`` statement to have the
    terminal cleaned up at once in that case, too; without, that happens when the object is forgotten or
    Python ends.

    Parameters
    ----------
    console : rich.console.Console, optional
        Where to; standard error by default.

    Examples
    --------
    >>> from opgrow import HeMLGOPClassifier
    >>> from opgrow.estimators.listeners import Progress
    >>> with Progress() as progress:
    ...     clf = HeMLGOPClassifier(callbacks=[progress])  # and fit it here
    """

    def __init__(self, console: Console | None = None) -> None:
        self.console = console
        self._display: _Display | None = None
        self._close: Callable[[], Any] | None = None
        self._clock: FitClock | None = None
        self._criterion = ""

    def __getstate__(self) -> dict[str, Any]:
        # scikit-learn copies callbacks with their estimator, and a display cannot be in two places.
        return {"console": None, "_display": None, "_close": None, "_clock": None, "_criterion": ""}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the live line and leave the terminal as it was; does nothing if none is running."""
        if self._close is not None:
            self._close()
        self._display = self._close = None

    def on_fit_start(self, event: FitStarted) -> None:
        """Start the clock."""
        self.close()
        self._clock = FitClock.of(event)

    def on_growth_start(self, event: GrowthStarted) -> None:
        """Start the display; of several networks, the first one does."""
        self._criterion = event.criterion
        if self._clock is not None:
            self._clock.began += 1
        # Networks that grow side by side begin in any order: only the end of the fit ends its display.
        if self._display is not None and (self._clock is not None or self._display.expects(event)):
            return
        self.close()
        console = self._a_console()
        # FORCE_COLOR makes a pipe a terminal for rich, but no cursor can move in it.
        live = console.is_terminal and (self.console is not None or _is_terminal(console))
        self._display = _Display(
            console, event, live and not console.is_dumb_terminal, self._clock or FitClock(event.n_members)
        )
        # Runs when this object goes, at the end of Python, or when called; but only once.
        self._close = weakref.finalize(self, self._display.stop)
        self._display.start()

    def on_phase_start(self, event: PhaseStarted) -> None:
        """Show the new phase."""
        if self._display is not None:
            self._display.begin(event)

    def on_epoch_end(self, event: EpochFinished) -> None:
        """Move the bar."""
        if self._display is not None:
            self._display.advance(event)

    def on_candidate_end(self, event: CandidateFinished) -> None:
        """Move the bar."""
        if self._display is not None:
            self._display.count(event)

    def on_step_end(self, event: StepFinished) -> None:
        """Print a line about the step."""
        if self._display is not None:
            self._display.finish(event.step)

    def on_growth_end(self, event: GrowthFinished) -> None:
        """Print what was grown, and after the last network stop the live line."""
        if self._clock is not None:
            self._clock.ended += 1
        if self._display is not None:
            self._display.conclude(event)
            if self._clock is not None or self._display.n_unfinished:
                return
        self.close()

    def on_fit_end(self, event: FitFinished) -> None:
        """Sum up the fit."""
        self.close()
        network, n_networks = event.network, 1 if self._clock is None else self._clock.n_networks
        what = f"the mean of {n_networks} networks, " if event.held_out is not None and n_networks > 1 else ""
        score = "no rows were held out from it"
        if event.held_out is not None:
            score = f"{self._criterion} {short_number(event.held_out.value)} on held-out rows"
        self._a_console().print(
            f"done: {what}{network.topology()}, {network.n_parameters():,} parameters, {score}, "
            f"{event.seconds:.1f} s in all",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
        self._clock = None

    def _a_console(self) -> Console:
        # Rich would make HTML of every line in a notebook.
        return self.console or plain_console(stderr=True, force_jupyter=False)


class _Display:
    """The lines and the live line: what they show, and rich's machinery that draws it."""

    def __init__(self, console: Console, started: GrowthStarted, live: bool, clock: FitClock) -> None:
        self.console, self.started, self.clock = console, started, clock
        self.last_line = time.perf_counter()
        self.n_unfinished = started.n_members + 1 - started.member
        self.phase: PhaseStarted | None = None
        self.done = 0  # epochs or candidates of this phase
        self.best: Score | None = None
        self.n_parameters = 0
        self.spinner = Spinner("dots")
        self.live: Live | None = None
        if live:
            # Without redirection, which would replace sys.stdout for all threads.
            self.live = Live(
                console=console,
                get_renderable=self.render,
                refresh_per_second=REFRESHES_PER_SECOND,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )

    def start(self) -> None:
        if self.live is not None:
            self.live.start()

    def stop(self) -> None:
        if self.live is not None:
            self.live.stop()

    def expects(self, event: GrowthStarted) -> bool:
        """Whether this is another network of the same fit."""
        return event.n_members > 1 and self.n_unfinished > 0

    def begin(self, event: PhaseStarted) -> None:
        self.phase, self.done = event, 0

    def advance(self, event: EpochFinished) -> None:
        if self.phase is not None and event.member == self.phase.member:
            self.done = event.epoch.number
        if event.epoch.score.better_than(self.best):
            self.best = event.epoch.score
        self.break_silence()

    def count(self, event: CandidateFinished) -> None:
        self.done = event.done
        if event.best.better_than(self.best):
            self.best = event.best
        self.break_silence()

    def break_silence(self) -> None:
        """Where there is no live line, say what is under way if nothing was said for long."""
        if self.live is None and time.perf_counter() - self.last_line >= SILENT_SECONDS:
            words = [self.doing(), *([self.how_far()] if self.phase is not None else []), self.clock.words()]
            self.say(Text("under way  " + "  ".join(words)))

    def say(self, line: Text) -> None:
        self.last_line = time.perf_counter()
        self.console.print(line, soft_wrap=True)

    def finish(self, step: GrowthStep) -> None:
        if step.accepted:
            self.n_parameters = step.n_parameters
            if step.score.better_than(self.best):
                self.best = step.score
        line = step_line(step, self.started.criterion)
        if self.started.n_members > 1:
            line = Text(f"network {step.member}  ").append_text(line)
        self.say(line.append(f"  {self.clock.words()}", "dim"))

    def conclude(self, event: GrowthFinished) -> None:
        self.n_unfinished -= 1
        network, name = event.network, self.started.method
        if self.started.n_members > 1:
            name = f"{name} {event.member} of {self.started.n_members}"
        left = self.clock.left(self.clock.elapsed)
        self.say(
            Text(
                f"{name} grew {network.topology()}: {network.n_parameters():,} parameters, "
                f"{'validation' if self.started.n_validation else 'training'} "
                f"{self.started.criterion} {short_number(event.score.value)}, {event.seconds:.1f} s"
                + (f"; ended because {event.stopped}" if event.stopped else "")
                + (f"; {left}" if left else "")
            )
        )

    def doing(self) -> str:
        """What is under way."""
        phase, doing = self.phase, [self.started.method]
        if phase is not None and self.started.n_members > 1:
            doing.append(f"network {phase.member} of {self.started.n_members}")
        if phase is not None and phase.phase == "search":
            doing += [_place(phase.layer, phase.block), f"searching {phase.size} operator sets"]
        elif phase is not None:
            place = _place(phase.layer, phase.block) if phase.block else ""
            doing += [place, phase.phase, str(phase.operator_set or "")]
        return "  ".join(filter(None, doing))

    def how_far(self) -> str:
        """How much of a phase is done."""
        assert self.phase is not None
        unit = "candidates" if self.phase.phase == "search" else "epochs"
        return f"{self.done}/{self.phase.size} {unit}"

    def render(self) -> RenderableType:
        """Two rows: what is being done, and how far it is; called by the thread that draws."""
        phase, elapsed = self.phase, self.clock.elapsed
        standing = [duration(elapsed)]
        if self.n_parameters:
            standing.append(f"{self.n_parameters:,} parameters")
        if self.best is not None:
            standing.append(f"best {self.started.criterion} {short_number(self.best.value)}")
        rows = Table.grid(padding=(0, 1))
        rows.add_row(self.spinner, Text(self.doing(), no_wrap=True))
        below = Table.grid(padding=(0, 1))
        cells: list[RenderableType] = []
        if phase is not None and (phase.phase != "search" or self.done):
            cells.append(ProgressBar(total=max(phase.size, 1), completed=self.done, width=20))
            cells.append(Text(f"{self.how_far()} "))
        below.add_row(*cells, Text("  ".join(reversed(standing)), "cyan", no_wrap=True))
        rows.add_row("", below)
        if left := self.clock.left(elapsed):
            rows.add_row("", Text(left, "cyan", no_wrap=True))
        return rows


def step_line(step: GrowthStep, criterion: str = "score") -> Text:
    """One line about a finished step: what was tried, what came of it."""
    part = {
        "fine-tune": "fine-tune",
        "search": f"layer {step.layer} pass {step.block}",
    }.get(step.kind, _place(step.layer, step.block))
    what = f"{step.n_neurons} neurons" if step.n_neurons else ""
    if step.operator_set is not None:
        what = f"{step.n_neurons} x {step.operator_set}"
    if step.head_operators is not None:
        what += f", head {step.head_operators}"
    gain = "" if step.improvement is None else f" ({percentage(step.improvement)})"
    seconds = step.search_seconds + step.tuning_seconds
    return Text.assemble(
        ("accepted", "green") if step.accepted else ("rejected", "yellow"),
        f"  {part:<16}  ",
        (f"{what}  " if what else "", "bold"),
        f"{criterion} {short_number(step.score.value)}{gain}",
        (f"  {step.n_parameters:,} parameters  {seconds:.1f} s", "dim"),
    )


def growth_table(history: Iterable[GrowthStep]) -> Table:
    """All growth steps of an estimator's ``history_`` as a table for the terminal.

    Examples
    --------
    >>> from opgrow.estimators.listeners.progress import growth_table
    >>> growth_table([]).row_count
    0
    """
    table = Table(title="Growth", title_justify="left", title_style="bold", box=None)
    table.pad_edge, table.collapse_padding = False, True
    history = list(history)
    several = any(step.member > 1 for step in history)
    reasons = dict.fromkeys(step.stopped for step in history if step.stopped)
    remarks = [f"Growth ended because {'; '.join(reasons)}."] if reasons else []
    table.caption, table.caption_justify = " ".join([*remarks, *left_out(history)]) or None, "left"
    for name in (*(["net"] if several else []), "layer", "block"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column(
        "operators", min_width=16
    )  # the one that may be wrapped, so that 80 characters are enough
    for name in ("neurons", "score", "gain"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("kept", no_wrap=True)
    for name in ("para-\nmeters", "search\ns", "tuning\ns"):
        table.add_column(name, justify="right", no_wrap=True)
    for step in history:
        cells: list[RenderableType] = [str(step.member)] if several else []
        for name, text in zip(STEP_COLUMNS, step_cells(step), strict=True):
            kept = Text(text, "green" if step.accepted else "yellow")
            cells.append(kept if name == "kept" else text)
        table.add_row(*cells)
    return table


def _place(layer: int, block: int) -> str:
    return f"layer {layer} block {block}" if block else f"layer {layer}"


def _is_terminal(console: Console) -> bool:
    try:
        return bool(console.file.isatty())
    except (AttributeError, ValueError):
        return False
