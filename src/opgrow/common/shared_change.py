"""Changes to the process that several fits need at the same time.

Fits run at the same time in threads, and processes fork while they do. A child has only the thread that
forked: a lock that another thread held would stay locked for ever. So a fork waits for the lock.
"""

from __future__ import annotations

import os
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
        if hasattr(os, "register_at_fork"):
            free = self.lock.release
            os.register_at_fork(before=self.lock.acquire, after_in_parent=free, after_in_child=free)

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
