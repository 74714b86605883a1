"""The requests: an ASGI application of a few routes, without a framework.

Bodies are read on the event loop and everything else is done by a pool of threads, whose queue is bounded: a
request that finds it full is told to come back later, at once and before its body is kept.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

from opgrow.cli.serving.answers import as_csv, as_json
from opgrow.cli.serving.bodies import table_of_csv, table_of_json
from opgrow.cli.serving.limits import Limits, Refused
from opgrow.cli.serving.model import ServedModel
from opgrow.cli.serving.openapi import openapi
from opgrow.cli.serving.page import page

__all__ = ["App"]

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

JSON, CSV, HTML = "application/json", "text/csv; charset=utf-8", "text/html; charset=utf-8"
_READERS = {"json": table_of_json, "csv": table_of_csv}
_WRITERS = {"json": (as_json, JSON), "csv": (as_csv, CSV)}
#: Bytes that are handed to the connection at once, so that a slow client is noticed by what it takes.
_PIECE = 1 << 16
#: What is still read of a request that was refused, so that its client gets to read why.
_LINGER_BYTES, _LINGER_SECONDS = 64 << 20, 2.0
_RETRY_SECONDS = b"1"
_BUSY = "The server is busy: ask again in a second."
_SAFE = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),
)


class Gone(Exception):
    """The client has left."""


class App:
    """The ASGI application.

    Parameters
    ----------
    model : what is served
    limits : of requests
    """

    def __init__(self, model: ServedModel, limits: Limits) -> None:
        self.model, self.limits = model, limits
        self.answered = 0
        self.under_way = 0
        self.memory = 0
        self._pool = ThreadPoolExecutor(limits.workers, thread_name_prefix="opgrow-serve")
        self._openapi = json.dumps(openapi(model, limits)).encode()

    def close(self) -> None:
        """End the threads, after what they are doing."""
        self._pool.shutdown(cancel_futures=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; whatever goes wrong is an answer, too."""
        if scope["type"] != "http":
            raise ValueError(f"expected HTTP, got {scope['type']}")
        held = _Held(self, complete=not _has_body(scope))
        try:
            await self._answer(scope, receive, send, held)
        except Gone:
            pass
        except Refused as error:
            await _refuse(scope, receive, send, error, held.complete)
        except TimeoutError:
            await _refuse(scope, receive, send, Refused(503, "The prediction took too long."), held.complete)
        except Exception as error:
            print(f"error: {type(error).__name__}: {error}", file=sys.stderr)
            failed = Refused(500, "The server failed; its log says why.")
            await _refuse(scope, receive, send, failed, held.complete)
        finally:
            held.release()

    async def _answer(self, scope: Scope, receive: Receive, send: Send, held: _Held) -> None:
        path, method = scope["path"], scope["method"]
        if path not in _ROUTES:
            raise Refused(404, f"There is no {path!r:.200}: there are {', '.join(_ROUTES)}.")
        if method not in _ROUTES[path]:
            raise Refused(405, f"{path} takes {' or '.join(_ROUTES[path])}, got {method!r:.40}.")
        if path == "/predict":
            body, kind = await self._predict(scope, receive, held)
        elif path == "/openapi.json":
            body, kind = self._openapi, JSON
        elif path == "/health":
            body, kind = json.dumps(self.health()).encode(), JSON
        else:
            body, kind = page(self.model, self.limits, _address(scope)).encode(), HTML
        await _respond(send, 200, body, kind)

    def health(self) -> dict[str, Any]:
        """What the server is doing."""
        return {"status": "ok", "answered": self.answered, "under_way": self.under_way}

    async def _predict(self, scope: Scope, receive: Receive, held: _Held) -> tuple[bytes, str]:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        form = _form(headers)
        writer, kind = _WRITERS[_accepted(headers.get("accept", ""))]
        interval = _interval(scope["query_string"], self.model)
        self._refuse_if_busy()
        body = await self._body(headers, receive, held)
        self._refuse_if_busy()
        self.under_way += 1
        try:
            work = partial(self._compute, _READERS[form], body, interval, writer)
            loop = asyncio.get_running_loop()
            async with asyncio.timeout(self.limits.answer_seconds):
                answer = await loop.run_in_executor(self._pool, work)
        finally:
            self.under_way -= 1
        self.answered += 1
        held.take(len(answer))
        return answer, kind

    def _compute(self, reader: Any, body: bytes, interval: float | None, writer: Any) -> bytes:
        """From the bytes of a request to those of its answer, in a thread of the pool."""
        table = reader(body, self.model, self.limits.max_rows)
        most = self.limits.max_numbers // (1 + self.model.n_outputs)
        if table.n_rows > most:
            raise Refused(
                413, f"The model answers {most} rows at once, got {table.n_rows}: send them in parts."
            )
        answer: bytes = writer(self.model.predict(table, interval))
        return answer

    def _refuse_if_busy(self) -> None:
        if self.under_way >= self.limits.workers + self.limits.queue:
            raise Refused(503, _BUSY)

    async def _body(self, headers: Mapping[str, str], receive: Receive, held: _Held) -> bytes:
        """The whole body, which has to arrive in time and to be within the limits."""
        most = self.limits.max_body
        too_large = Refused(413, f"The body has more than {most} bytes: send the rows in parts.")
        length = headers.get("content-length", "")
        if length.isdigit() and int(length[:20]) > most:
            raise too_large
        parts, size, more = [], 0, True
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Gone
                    part = message.get("body", b"")
                    size += len(part)
                    if size > most:
                        raise too_large
                    if self.memory + len(part) > self.limits.max_memory:
                        raise Refused(503, _BUSY)
                    held.take(len(part))
                    parts.append(part)
                    more = message.get("more_body", False)
            held.complete = True
        except TimeoutError:
            seconds = f"{self.limits.body_seconds:g}"
            raise Refused(408, f"The body took more than {seconds} seconds.") from None
        return b"".join(parts)


class _Held:
    """The bytes that a request holds, of all that may be held, and whether its body has been read."""

    def __init__(self, app: App, complete: bool) -> None:
        self._app, self._n, self.complete = app, 0, complete

    def take(self, n: int) -> None:
        self._n += n
        self._app.memory += n

    def release(self) -> None:
        self._app.memory -= self._n
        self._n = 0


_ROUTES = {
    "/predict": ("POST",),
    "/": ("GET", "HEAD"),
    "/docs": ("GET", "HEAD"),
    "/openapi.json": ("GET", "HEAD"),
    "/health": ("GET", "HEAD"),
}


# --- what requests say ---


def _has_body(scope: Scope) -> bool:
    return any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])


def _form(headers: Mapping[str, str]) -> str:
    if headers.get("content-encoding", "identity").lower() not in ("", "identity"):
        raise Refused(415, "The body is compressed: send it as it is.")
    media, _, parameters = headers.get("content-type", JSON).partition(";")
    charset = parameters.lower().replace(" ", "").partition("charset=")[2].strip('"') or "utf-8"
    if charset not in ("utf-8", "utf8", "us-ascii"):
        raise Refused(415, f"The body is in {charset!r:.40}: expected UTF-8.")
    media = media.strip().lower()
    if media in (JSON, "") or media.endswith("+json"):
        return "json"
    if media in ("text/csv", "application/csv"):
        return "csv"
    raise Refused(415, f"The body is {media!r:.80}: expected Content-Type: application/json or text/csv.")


def _accepted(accept: str) -> str:
    """Which of "json" and "csv" is preferred; JSON where both are."""
    best: dict[str, float] = {}
    for item in accept.split(","):
        media, *parameters = (part.strip().lower() for part in item.split(";"))
        quality = next((p[2:] for p in parameters if p.startswith("q=")), "1")
        try:
            weight = float(quality)
        except ValueError:
            weight = 0.0
        for form, names in (
            ("json", (JSON, "application/*", "*/*", "")),
            ("csv", ("text/csv", "text/*", "*/*")),
        ):
            if media in names:
                # What is named counts more than what a pattern happens to include.
                best[form] = max(best.get(form, 0.0), weight - 1e-6 * ("*" in media))
    form = max(("json", "csv"), key=lambda one: best.get(one, 0.0))
    if best.get(form, 0.0) <= 0:
        raise Refused(406, f"Accept is {accept!r:.200}: the server answers application/json or text/csv.")
    return form


def _interval(query: bytes, model: ServedModel) -> float | None:
    try:
        pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=10)
    except ValueError:
        raise Refused(422, "The address has too many parameters.") from None
    interval = None
    for name, value in pairs:
        if name != "interval":
            raise Refused(422, f"There is no parameter {name!r:.80}: there is 'interval'.")
        if model.classes is not None:
            raise Refused(422, "Intervals are for numbers, and this model predicts classes.")
        try:
            interval = float(value)
        except ValueError:
            interval = 0.0
        if not 0 < interval < 1:
            raise Refused(422, f"interval is {value!r:.80}: expected a share between 0 and 1, such as 0.9.")
    return interval


def _address(scope: Scope) -> str:
    host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "localhost")
    return f"http://{host}"


# --- answers ---


async def _respond(
    send: Send, status: int, body: bytes, kind: str, more: tuple[tuple[bytes, bytes], ...] = ()
) -> None:
    await _begin(send, status, body, kind, more)
    for start in range(0, len(body), _PIECE):
        piece = body[start : start + _PIECE]
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _begin(
    send: Send, status: int, body: bytes, kind: str, more: tuple[tuple[bytes, bytes], ...]
) -> None:
    facts = ((b"content-type", kind.encode()), (b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": [*facts, *_SAFE, *more]})


async def _refuse(scope: Scope, receive: Receive, send: Send, error: Refused, complete: bool) -> None:
    """Answer with an error; unless the request is complete, end the connection.

    Some of what the client still sends is read before: a connection that is closed while the client writes is
    reset, and the client would not see the answer.
    """
    body = json.dumps({"error": str(error)}).encode()
    headers: list[tuple[bytes, bytes]] = [] if complete else [(b"connection", b"close")]
    if error.status == 503:
        headers.append((b"retry-after", _RETRY_SECONDS))
    if error.status == 405:
        headers.append((b"allow", ", ".join(_ROUTES[scope["path"]]).encode()))
    await _begin(send, error.status, body, JSON, tuple(headers))
    await send({"type": "http.response.body", "body": body, "more_body": True})
    if not complete:
        await _linger(receive)
    await send({"type": "http.response.body", "body": b""})


async def _linger(receive: Receive) -> None:
    size = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(_LINGER_SECONDS):
            while size < _LINGER_BYTES:
                message = await receive()
                size += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return
