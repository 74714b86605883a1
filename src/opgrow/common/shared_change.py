"""Changes to the process that several fits need at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["SharedChange", "Undo"]

Undo = Callable[[], None]


class SharedChange:
    """A change to the process that holds as long as any fit needs it.

    Counts the fits, so that the last one to end undoes what the first one did.
    """

    def __init__(self, change: Callable[[], Undo]) -> None:
        self.change, self.lock, self.users = change, threading.Lock(), 0
        self.undo: Undo

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self.lock:
            if self.users == 0:
                self.undo = self.change()
            self.users += 1
        try:
            yield
        finally:
            with self.lock:
                self.users -= 1
                if self.users == 0:
                    self.undo()
