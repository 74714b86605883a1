"""Connections that cannot be kept open by doing nothing.

uvicorn ends a connection that is idle after a request. This protocol also ends those that never finish the
head of a request, that do not take their answer, and that stay half open when they were closed; and it
refuses connections beyond a number. One timer for each connection looks after all of this.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from opgrow.cli.serving.limits import Limits

__all__ = ["patient"]

_TICK = 0.5


def patient(limits: Limits) -> type[H11Protocol]:
    """The protocol with limits."""
    return type("LimitedProtocol", (PatientProtocol,), {"limits": limits})


class PatientProtocol(H11Protocol):
    """HTTP/1.1 with limits on what a connection may wait for."""

    limits = Limits()
    _timer: asyncio.TimerHandle | None = None
    _waits_since = 0.0
    _head_begun = False
    _stalled_since: float | None = None
    _closing_since: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Look after a new connection, or refuse it where there are too many."""
        super().connection_made(transport)
        self._waits_since = self.loop.time()
        self._timer = self.loop.call_later(_TICK, self._look)
        if len(self.connections) > self.limits.max_connections:
            self._close_with(503, "The server has too many connections: ask again in a second.")

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read, unless the connection is being closed; the time for a head begins with its first bytes."""
        if self.transport.is_closing():
            return
        if not self._head_begun:
            self._head_begun, self._waits_since = True, self.loop.time()
        super().data_received(data)

    def on_response_complete(self) -> None:
        """Wait for the next request from now on."""
        self._head_begun, self._waits_since = False, self.loop.time()
        super().on_response_complete()

    def eof_received(self) -> bool:  # type: ignore[override]
        """A client that has sent its whole request and closed its half still gets the answer."""
        if self.cycle is None or self.cycle.response_complete or self.cycle.more_body:
            return False
        self.cycle.keep_alive = False
        return True

    def pause_writing(self) -> None:
        """Note since when the client takes nothing."""
        self._stalled_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Note that it does."""
        self._stalled_since = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP."""
        self._close_with(400, "This is not a valid HTTP request.")

    def _look(self) -> None:
        """End the connection if something has taken too long."""
        now, limits = self.loop.time(), self.limits
        self._timer = self.loop.call_later(_TICK, self._look)
        if self.transport.is_closing():
            self._closing_since = self._closing_since or now
            if now - self._closing_since > limits.close_seconds:
                self.transport.abort()
            return
        if self._stalled_since is not None and now - self._stalled_since > limits.stall_seconds:
            self.transport.abort()
            return
        answering = self.cycle is not None and not self.cycle.response_complete
        if not answering and now - self._waits_since > limits.header_seconds:
            self.transport.close()

    def _close_with(self, status: int, sentence: str) -> None:
        """Send an error by hand, where no request can be answered, and close."""
        body = json.dumps({"error": sentence}).encode()
        retry: list[Any] = [(b"retry-after", b"1")] if status == 503 else []
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
            *retry,
        ]
        try:
            events = (
                h11.Response(status_code=status, headers=headers),
                h11.Data(data=body),
                h11.EndOfMessage(),
            )
            for event in events:
                self.transport.write(self.conn.send(event) or b"")
        except h11.LocalProtocolError:  # an answer is under way
            pass
        self.transport.close()
