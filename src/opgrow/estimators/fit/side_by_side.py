"""The listeners of networks that grow side by side."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from ...common.team import current
from ...growth.events import Event, StopGrowth, of_member
from ..listeners.base import Callback, broadcast

__all__ = ["Listeners", "listening"]


class Listeners:
    """Hands the events of networks that grow side by side to callbacks, one at a time.

    Once closed, as after an error or an interruption, it ends those that still grow. ``stopped`` is why a
    callback has stopped them all, or None.
    """

    def __init__(self, callbacks: Sequence[Callback], n_networks: int) -> None:
        self.callbacks, self.n_networks, self.team = callbacks, n_networks, current()
        self.lock, self.closed = threading.Lock(), False
        self.stopped: str | None = None

    def hear(self, member: int, event: Event) -> None:
        """Hand on an event of one network, from 1; 0 is the fit as a whole."""
        with self.lock:
            if self.closed:
                raise RuntimeError("the fit that this network belongs to is over")
            try:
                broadcast(of_member(event, member, self.n_networks), self.callbacks)
            except StopGrowth as stop:
                self.stopped = self.stopped or str(stop) or "a callback has stopped it"
            self.stopped = self.team.same(self.stopped)
            if self.stopped is not None:
                raise StopGrowth(self.stopped)

    def hear_all(self, event: Event) -> None:
        """Hand on an event that concerns the fit as a whole."""
        with suppress(StopGrowth):
            self.hear(0, event)

    def begin_student(self) -> None:
        """One network more, for which the callbacks decide anew."""
        self.n_networks, self.stopped = self.n_networks + 1, None

    def close(self) -> None:
        """End the networks that still grow."""
        self.closed = True


@contextmanager
def listening(callbacks: Sequence[Callback], n_networks: int) -> Iterator[Listeners]:
    """Listeners for the time of a fit; afterwards the callbacks are closed, whether it succeeded or not."""
    with ExitStack() as stack:
        for callback in callbacks:
            stack.callback(callback.close)
        listeners = Listeners(callbacks, n_networks)
        stack.callback(listeners.close)
        yield listeners
