"""The server: a socket, uvicorn, and the signals that end it."""

from __future__ import annotations

import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import uvicorn

from opgrow.cli.serving.app import App
from opgrow.cli.serving.limits import Limits
from opgrow.cli.serving.model import ServedModel
from opgrow.cli.serving.notes import listening
from opgrow.cli.serving.protocol import patient

__all__ = ["Server", "listening_socket", "serve_model"]

#: Connections that the system keeps waiting for the server.
_BACKLOG = 1024
#: Connections that are accepted at once: the loop looks at none of them before, and each is an open file.
_ACCEPTED = 16
Started = Callable[["Server", str], None]
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Server(uvicorn.Server):
    """A server that a signal ends as a success: requests under way are answered first."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin; what waits for the server is then longer than what it accepts before it looks at any."""
        await super().startup(sockets)
        for sock in sockets or []:
            sock.listen(_BACKLOG)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take the signals that end the server, in the thread that gets them."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._end) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _end(self, *_: Any) -> None:
        self.force_exit = self.should_exit  # asked twice: at once
        self.should_exit = True


def serve_model(model: ServedModel, address: tuple[str, int], limits: Limits, started: Started) -> None:
    """Answer requests until the server is told to end.

    ``started`` hears of the server and of where it can be called, as soon as it can.
    """
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
    with closing(App(model, limits)) as app, listening_socket(*address) as sock, listening():
        server = Server(_config(app, limits))
        host, port = sock.getsockname()[:2]
        started(server, f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")
        server.run([sock])


def _config(app: App, limits: Limits) -> uvicorn.Config:
    longest = limits.body_seconds + limits.answer_seconds + limits.stall_seconds
    return uvicorn.Config(
        app,
        http=patient(limits),
        loop="asyncio",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=_ACCEPTED,
        timeout_keep_alive=max(1, int(limits.header_seconds)),
        timeout_graceful_shutdown=int(longest) + 1,
    )


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens, so that its port is known and requests wait while the server starts."""
    try:
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except socket.gaierror as error:
        raise ValueError(f"There is no address {host!r} ({error.strerror}).") from error
    except OverflowError as error:
        raise ValueError(f"A port is at most 65535, got {port}.") from error
    except OSError as error:
        raise ValueError(f"Cannot listen on {host} port {port}: {error.strerror}.") from error
