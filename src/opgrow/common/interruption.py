"""Signals that end a fit: its progress is saved first.

The first SIGINT or SIGTERM asks growth to stop at its next epoch, candidate or step; the same signal again
stops it at once. (torchrun hands Ctrl-C on as SIGTERM, after the SIGINT that the terminal has sent.)
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Interrupted", "Interruption", "listening"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(BaseException):
    """Growth has saved where it is, and ends."""


class Interruption:
    """Whether the fit has been asked to end, and by which signal."""

    def __init__(self) -> None:
        self.signal: int | None = None

    @property
    def asked(self) -> bool:
        return self.signal is not None


@contextmanager
def listening(interruption: Interruption) -> Iterator[None]:
    """Let signals ask for an end; when growth has answered, they do what they do otherwise.

    That is KeyboardInterrupt for SIGINT, and SystemExit(143) for SIGTERM where the process has no handler of
    its own. Only the main thread hears signals: a fit in another thread is not interrupted by them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[int, Any] = {number: signal.getsignal(number) for number in _SIGNALS}

    def ask(number: int, frame: Any) -> None:
        if interruption.signal == number:
            _pass_on(number, before[number])
        interruption.signal = number

    # What is ignored stays so, and a handler that was not set from Python could not be put back.
    heard = [number for number in _SIGNALS if before[number] not in (None, signal.SIG_IGN)]
    for number in heard:
        signal.signal(number, ask)
    interrupted = False
    try:
        yield
    except Interrupted:
        interrupted = True
    finally:
        for number in heard:
            signal.signal(number, before[number])
    if interruption.signal is not None:
        _pass_on(interruption.signal, before[interruption.signal])
    if interrupted:  # whoever has a handler of their own, which returns, still has no network
        raise KeyboardInterrupt


def _pass_on(number: int, handler: Any) -> None:
    if callable(handler):
        handler(number, None)
    elif handler == signal.SIG_DFL:
        sys.exit(128 + number)
