"""Durations are read as they are written, and work ends when its time is over."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from opgrow.bench.budget import OverBudget, parse_duration, time_limit


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("10m", 600), ("1.5h", 5400), ("1h30m", 5400), (" 2m5s ", 125), ("0.5", 0.5)],
)
def test_durations_are_read_with_their_units(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "10 m", "ten", "-5s", "5d", "1h30", "0", "0s", "1e3", "10m!"])
def test_what_is_no_duration_is_refused_in_words(text):
    with pytest.raises(ValueError, match="a duration"):
        parse_duration(text)


def sleep_in_pieces(seconds):
    for _ in range(int(1000 * seconds)):
        time.sleep(0.001)


def test_work_ends_when_its_time_is_over_and_the_alarm_with_it():
    handler = signal.getsignal(signal.SIGALRM)
    with pytest.raises(OverBudget, match=r"not finished within 0\.05 s"), time_limit(0.05):
        sleep_in_pieces(60)
    assert signal.getsignal(signal.SIGALRM) is handler
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_work_that_is_quick_enough_is_left_alone():
    with time_limit(60):
        done = True
    assert done
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    with time_limit(None):
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_outside_of_the_main_thread_there_is_no_limit():
    result = []

    def work():
        with time_limit(0.01):
            time.sleep(0.05)
            result.append("done")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert result == ["done"]
