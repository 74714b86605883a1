"""Progress: lines everywhere, a live display on terminals, which leaves them clean."""

from __future__ import annotations

import copy
import gc
import io
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console
from sklearn.base import clone
from sklearn.datasets import load_iris

from opgrow import Callback, HeMLGOPClassifier, OperatorSet
from opgrow.estimators.listeners import broadcast
from opgrow.estimators.listeners.progress import Progress, growth_table
from opgrow.estimators.listeners.time_left import FitClock
from opgrow.growth.events import (
    EpochFinished,
    Event,
    FitFinished,
    FitStarted,
    GrowthFinished,
    GrowthStarted,
    GrowthStep,
    PhaseStarted,
    StepFinished,
)
from opgrow.training.schedule import Epoch
from opgrow.training.scores import Score

QUICK = {
    "preset": None,
    "n_min": 6,
    "n_step": 3,
    "epochs": (3, 2),
    "fine_tune_epochs": 2,
    "max_layers": 1,
    "random_state": 0,
}
CLASSES = load_iris(return_X_y=True)
HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
LONGEST = OperatorSet("exponential", "correlation1", "inverse_absolute")
STARTED = GrowthStarted("HeMLGOP", 100, 20, 8, 3, "brier")


def terminal(width: int = 100) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=width, height=24, color_system=None)


def written(console: Console) -> str:
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def last_drawing(*events: Event) -> str:
    """What the live display shows of a growth after some events; it is drawn once more when it ends."""
    console = terminal(80)
    with Progress(console=console) as progress:
        for event in (STARTED, *events):
            broadcast(event, [progress])
    return written(console).rpartition(STARTED.method)[2]


def refreshers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if type(thread).__name__ == "_RefreshThread"]


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    for thread in refreshers():
        thread.join(5)
    assert refreshers() == []


def step(**changes: Any) -> GrowthStep:
    values = {"kind": "block", "layer": 1, "block": 2, "accepted": True, "score": Score(0.0843, 0.2)}
    values |= {"improvement": 0.25, "n_parameters": 12345, "operator_set": LONGEST, "n_neurons": 20}
    return GrowthStep(**(values | changes))


def test_a_pipe_gets_a_line_a_step(capfd: pytest.CaptureFixture[str]) -> None:
    estimator = HeMLGOPClassifier(verbose=1, **QUICK).fit(*CLASSES)
    out, err = capfd.readouterr()
    lines = err.splitlines()
    assert out == ""
    assert len(lines) == len(estimator.history_) + 2
    for line, done in zip(lines, estimator.history_, strict=False):
        assert line.startswith("accepted" if done.accepted else "rejected")
        assert f"brier {done.score.value:.4g}" in line
        assert f"{done.n_parameters:,} parameters" in line
        assert str(done.operator_set or "") in line
        assert " s so far" in line
    score = f"{next(s for s in reversed(estimator.history_) if s.accepted).score.value:.4g}"
    assert lines[-2].startswith(f"HeMLGOP grew {estimator.network_.topology()}: ")
    assert f"parameters, validation brier {score}, " in lines[-2]
    assert lines[-1].startswith(f"done: {estimator.network_.topology()}, ")
    assert " parameters, brier 0." in lines[-1]
    assert " on held-out rows, " in lines[-1]
    HeMLGOPClassifier(verbose=0, **QUICK).fit(*CLASSES)
    assert capfd.readouterr() == ("", "")


def test_a_log_says_what_is_under_way_in_a_long_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opgrow.estimators.listeners.progress.SILENT_SECONDS", 0.0)
    file = io.StringIO()
    events = [STARTED, PhaseStarted("tune", 1, 2, 100, LONGEST)]
    events.append(EpochFinished("tune", 1, 2, Epoch(3, 0.01, 1.0, Score(0.3, 1.0))))
    with Progress(console=Console(file=file)) as progress:
        for event in events:
            broadcast(event, [progress])
    assert f"under way  HeMLGOP  layer 1 block 2  tune  {LONGEST}  3/100 epochs  " in file.getvalue()


def test_networks_side_by_side_are_all_shown_whichever_begins_first() -> None:
    file = io.StringIO()
    started = [replace(STARTED, member=member, n_members=2) for member in (2, 1)]
    events: list[Any] = [FitStarted("HeMLGOPClassifier", {}, 2), *started]
    network = HeMLGOPClassifier(**QUICK).fit(*CLASSES).network_
    for member in (2, 1):
        events += [StepFinished(step(member=member)), GrowthFinished(network, Score(0.1, 1.0), 1.0, member)]
    events.append(FitFinished(network, 2.0, Score(0.2, 1.0)))
    with Progress(console=Console(file=file, width=200)) as progress:
        for event in events:
            broadcast(event, [progress])
    lines = file.getvalue().splitlines()
    assert [line[:9] for line in lines] == ["network 2", "HeMLGOP 2", "network 1", "HeMLGOP 1", "done: the"]


def test_time_left_is_an_estimate_a_bound_or_nothing() -> None:
    assert FitClock(1).left(10.0) == ""
    assert FitClock(5, began=2, ended=0).left(10.0) == ""
    assert FitClock(5, began=3, ended=1).left(10.0) == "about 15 s left"
    assert FitClock(5, student=True, began=3, ended=1).left(10.0) == "about 15 s left before the student"
    assert FitClock(1, max_seconds=100).left(30.0) == "at most 1 min 10 s left"
    assert FitClock(5, max_seconds=12, began=3, ended=1).left(10.0) == "at most 2 s left"
    assert FitClock(5, began=5, ended=5).left(10.0) == ""


def test_a_pipe_has_no_cursor_even_where_colours_are_forced(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as continuous integration does
    with Progress() as progress:
        progress.on_growth_start(STARTED)
        progress.on_step_end(StepFinished(step()))
    err = capfd.readouterr().err
    assert err.count("\n") == 1
    assert HIDE_CURSOR not in err


def test_every_line_is_there_as_soon_as_its_step_is_finished() -> None:
    class Buffered(io.StringIO):
        flushed = ""

        def flush(self) -> None:
            self.flushed = self.getvalue()

    file = Buffered()
    with Progress(console=Console(file=file)) as progress:
        progress.on_growth_start(STARTED)
        progress.on_step_end(StepFinished(step()))
        assert file.flushed.count("\n") == 1


def test_the_live_display_shows_phase_progress_and_best_score() -> None:
    events: list[Any] = [PhaseStarted("search", 1, 2, 144)]
    assert "layer 1 block 2  searching 144 operator sets" in last_drawing(*events)
    events.append(PhaseStarted("tune", 1, 2, 100, LONGEST))
    for number, value in ((1, 0.5), (2, 0.3), (3, 0.4)):
        events.append(EpochFinished("tune", 1, 2, Epoch(number, 0.01, 1.0, Score(value, 1.0))))
    drawing = last_drawing(*events)
    assert f"tune  {LONGEST}" in drawing
    assert "3/100 epochs" in drawing
    assert "best brier 0.3" in drawing
    events.append(StepFinished(step()))
    assert "12,345 parameters" in last_drawing(*events)
    assert "…" not in last_drawing(*events)
    events.append(PhaseStarted("fine-tune", 2, 0, 200))
    assert "0/200 epochs" in last_drawing(*events)


def test_a_rejected_part_does_not_count_as_the_size_of_the_network() -> None:
    accepted = StepFinished(step(n_parameters=100))
    rejected = StepFinished(step(n_parameters=900, accepted=False, improvement=-0.5))
    assert " 100 parameters" in last_drawing(accepted, rejected)


def test_the_end_of_growth_ends_the_display() -> None:
    console = terminal()
    HeMLGOPClassifier(callbacks=[Progress(console=console)], **QUICK).fit(*CLASSES)
    text = written(console)
    assert text.count(HIDE_CURSOR) == text.count(SHOW_CURSOR) == 1


class Failing(Callback):
    """A listener that ends the fit."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def on_epoch_end(self, event: EpochFinished) -> None:
        raise self.error


@pytest.mark.parametrize("error", [RuntimeError("no"), KeyboardInterrupt()])
def test_a_fit_that_fails_leaves_a_clean_terminal(error: BaseException) -> None:
    console = terminal()
    with pytest.raises(type(error)), Progress(console=console) as progress:
        HeMLGOPClassifier(callbacks=[progress, Failing(error)], **QUICK).fit(*CLASSES)
    assert written(console).count(HIDE_CURSOR) == written(console).count(SHOW_CURSOR) == 1


def test_a_forgotten_display_ends_itself() -> None:
    console = terminal()
    progress = Progress(console=console)
    progress.on_growth_start(STARTED)
    assert len(refreshers()) == 1
    del progress
    gc.collect()
    assert written(console).count(SHOW_CURSOR) == 1


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals are POSIX")
@pytest.mark.parametrize("verbose", [0, 1])
def test_an_interrupt_on_a_real_terminal_brings_the_cursor_back(verbose: int) -> None:
    # A fit closes the display at once, its own (verbose=1) as well as one among the callbacks.
    script = f"""
from sklearn.datasets import load_iris
from opgrow import Callback, HeMLGOPClassifier
from opgrow.estimators.listeners.progress import Progress

class Interrupt(Callback):
    def on_epoch_end(self, event):
        raise KeyboardInterrupt

callbacks = [Interrupt()] if {verbose} else [Progress(), Interrupt()]
model = HeMLGOPClassifier(n_min=4, epochs=(1, 1), random_state=0, callbacks=callbacks, verbose={verbose})
try:
    model.fit(*load_iris(return_X_y=True))
except KeyboardInterrupt as error:
    kept = error  # and with it every frame of the fit
    print("after the fit", flush=True)
"""
    master, slave = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    environment.pop("TTY_COMPATIBLE", None)
    environment.pop("FORCE_COLOR", None)
    process = subprocess.Popen([sys.executable, "-c", script], stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    text = ""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # Linux says so when the other side is closed
            break
        if not part:
            break
        text += part.decode(errors="replace")
    os.close(master)
    assert process.wait() == 0
    assert HIDE_CURSOR in text
    assert text.rindex(SHOW_CURSOR) > text.rindex(HIDE_CURSOR)
    assert text.index("after the fit") > text.index(SHOW_CURSOR)
    assert "Traceback" not in text


def test_it_is_copied_with_its_estimator_even_while_it_runs() -> None:
    with Progress(console=terminal()) as progress:
        progress.on_growth_start(STARTED)
        copies = [
            copy.deepcopy(progress),
            pickle.loads(pickle.dumps(progress)),
            clone(HeMLGOPClassifier(callbacks=[progress])).callbacks[0],
        ]
        assert len(refreshers()) == 1
        for other in copies:
            assert other.console is None
            other.on_step_end(StepFinished(step()))


def test_fits_in_several_threads_do_not_meet() -> None:
    consoles, streams, failures = [terminal(), terminal()], (sys.stdout, sys.stderr), []

    class Watching(Callback):
        def on_epoch_end(self, event: EpochFinished) -> None:
            if (sys.stdout, sys.stderr) != streams:
                failures.append("a display has replaced the standard streams")

    def grow(seed: int) -> None:
        try:
            with Progress(console=consoles[seed]) as progress:
                parameters = QUICK | {"random_state": seed, "n_jobs": 1}
                HeMLGOPClassifier(callbacks=[progress, Watching()], **parameters).fit(*CLASSES)
        except Exception as error:
            failures.append(repr(error))

    threads = [threading.Thread(target=grow, args=(seed,)) for seed in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    for console in consoles:
        assert written(console).count("HeMLGOP grew") == 1
        assert written(console).count(SHOW_CURSOR) == 1


def test_ten_thousand_epochs_are_drawn_a_few_times_only() -> None:
    class Counting(io.StringIO):
        writes = 0

        def write(self, text: str) -> int:
            self.writes += 1
            return super().write(text)

    file = Counting()
    with Progress(console=Console(file=file, force_terminal=True)) as progress:
        progress.on_growth_start(STARTED)
        progress.on_phase_start(PhaseStarted("tune", 1, 1, 10_000, LONGEST))
        for number in range(1, 10_001):
            progress.on_epoch_end(EpochFinished("tune", 1, 1, Epoch(number, 0.01, 1.0, Score(0.5, 1.0))))
    assert "10000/10000 epochs" in file.getvalue()
    assert file.writes < 1000


def test_one_display_serves_several_fits() -> None:
    console = terminal()
    progress = Progress(console=console)
    for _ in range(2):
        HeMLGOPClassifier(callbacks=[progress], **QUICK).fit(*CLASSES)
    assert written(console).count("HeMLGOP grew") == 2


def test_the_table_of_growth_holds_every_step_and_fits_into_80_characters() -> None:
    history = [
        step(block=1, improvement=None, search_seconds=1.25, tuning_seconds=12.5),
        step(accepted=False, improvement=-3.0, n_parameters=123456),
        step(kind="layer", block=0, operator_set=None, n_neurons=180, improvement=float("inf")),
        step(kind="fine-tune", block=0, operator_set=None, n_neurons=0, score=Score(0.9, 0.1, True)),
    ]
    table = growth_table(history)
    assert table.row_count == 4
    narrow, wide = terminal(80), terminal(130)
    narrow.print(table)
    wide.print(table)
    assert "…" not in written(narrow)
    assert max(map(len, written(narrow).splitlines())) <= 80
    rows = [line for line in written(wide).splitlines() if " yes " in line or " no " in line]
    assert len(rows) == 4
    assert rows[0].split() == [
        *("1", "1", "exponential", "/", "correlation1", "/", "inverse_absolute"),
        *("20", "0.0843", "yes", "12,345", "1.25", "12.50"),
    ]
    assert "-300.0 %" in rows[1]
    assert "+inf" in rows[2]
    assert rows[3].split()[:3] == ["all", "(fine-tuning)", "0.9"]
