"""The server of a playground: for browsers on this machine, which know the token in its address.

Other pages in the same browser could send requests here, too. So a request has to name this server as its
host, which a name that an attacker lets point here does not; it has to come from a page of this server, if
it says where it comes from; and its address has to contain the token.
"""

from __future__ import annotations

import hmac
import json
import secrets
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from opgrow.cli.playing.session import Session
from opgrow.report.live import as_json, watching_page

__all__ = ["PlaygroundServer"]

_MOST_BYTES = 100
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'self'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_HTML, _JSON = "text/html; charset=utf-8", "application/json"


class PlaygroundServer(ThreadingHTTPServer):
    """Answers about one session, on this machine alone.

    Parameters
    ----------
    session : Session
    heading, about : what the page says above the growth
    port : 0 for any that is free

    Attributes
    ----------
    address : where the page is, with the token
    """

    daemon_threads = True

    def __init__(self, session: Session, heading: str, about: str, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.session, self.token = session, secrets.token_urlsafe(24)
        self.page = watching_page(heading, about)
        self.hosts = {f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost")}
        self.address = f"http://127.0.0.1:{self.server_port}/{self.token}/"


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: PlaygroundServer
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        place = self._place()
        session = self.server.session
        if place == "":
            self._send(200, self.server.page, _HTML)
        elif place == "state":
            after = parse_qs(urlsplit(self.path).query).get("after", ["0"])[0]
            self._send(200, as_json(session.state(int(after) if after.isdecimal() else 0)), _JSON)
        elif place == "report" and session.page:
            self._send(200, session.page, _HTML)
        elif place is not None:
            self._refuse(404, "There is no such page.")

    def do_POST(self) -> None:
        if self._place() != "do" or self.headers.get("Origin") is None:
            return self._refuse(404, "There is no such page.")
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _MOST_BYTES:
            return self._refuse(413, f"A request has {_MOST_BYTES} bytes at most, and says how many.")
        if self.headers.get_content_type() != _JSON:
            return self._refuse(415, f"A request is of the type {_JSON}.")
        try:
            asked = json.loads(self.rfile.read(int(length)))
        except ValueError:
            asked = None
        what = asked.get("what") if isinstance(asked, dict) else None
        if not isinstance(what, str):
            return self._refuse(400, 'A request is {"what": "stop"}, "go", "finish" or "save".')
        self.server.session.tell(what)
        self._send(200, as_json(self.server.session.state()), _JSON)

    def _place(self) -> str | None:
        """The address behind the token; None, and an answer, for requests that are not from here."""
        origin, host = self.headers.get("Origin"), self.headers.get("Host")
        if host not in self.server.hosts or origin not in (None, f"http://{host}"):
            self._refuse(403, "This server answers pages of its own.")
            return None
        token, _, place = urlsplit(self.path).path.removeprefix("/").partition("/")
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            self._refuse(404, "There is no such page.")
            return None
        return place

    def _refuse(self, status: int, sentence: str) -> None:
        self.close_connection = True  # what is left of the request is not read
        self._send(status, as_json({"error": sentence}), _JSON)

    def _send(self, status: int, text: str, kind: str) -> None:
        body = text.encode()
        self.send_response(status)
        for name, value in (_HEADERS | {"Content-Type": kind, "Content-Length": str(len(body))}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def version_string(self) -> str:
        return "opgrow"

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the terminal is the user's."""
