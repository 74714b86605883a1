"""Connections of clients that are slow, silent or half gone end by themselves, and others are answered."""

from __future__ import annotations

import http.client
import json
import socket
import time

import pytest

from opgrow.cli.serving.limits import Limits

from .conftest import running

BODY = b'{"matrix": [[1, 2, 3]]}'
HEAD = b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
#: Far above what a connection is allowed here, so that a slow machine does not matter.
PATIENCE = 30.0


@pytest.fixture(scope="module")
def server(models):
    limits = Limits(header_seconds=1, body_seconds=1, stall_seconds=1, close_seconds=1)
    with running(models["numbers"], limits) as found:
        yield found


def connected(server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)


def everything(connection) -> bytes:
    """What the server sends until it closes."""
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


def is_ended(connection, sent) -> bool:
    """Whether the server ends a connection on which this is sent again and again, and nothing is read."""
    connection.setblocking(False)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            connection.send(sent)
        except BlockingIOError:
            pass
        except OSError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("sent", [b"", b"POST /predict HTTP/1.1\r\nHost: x\r\n"])
def test_a_head_that_never_comes_ends_the_connection(server, sent):
    with connected(server) as connection:
        connection.sendall(sent)
        assert everything(connection) == b""


def test_a_head_that_comes_slowly_ends_the_connection(server):
    with connected(server) as connection:
        connection.sendall(b"POST /predict HTTP/1.1\r\n")
        assert is_ended(connection, b"X-A: b\r\n")


def test_a_body_that_comes_slowly_is_refused(server):
    with connected(server) as connection:
        connection.sendall(HEAD % 1000 + b"[")
        answer = everything(connection)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"took more than 1 seconds" in answer


def test_a_connection_is_used_again_for_longer_than_a_head_may_take(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    connection.connect()
    end, first = time.monotonic() + 2.5, connection.sock
    while time.monotonic() < end:
        connection.request("POST", "/predict", BODY)
        answer = connection.getresponse()
        assert (answer.status, bool(answer.read()), connection.sock) == (200, True, first)
        time.sleep(0.05)
    connection.close()


def test_a_client_that_closes_its_half_gets_its_answer(server):
    with connected(server) as connection:
        connection.sendall(HEAD % len(BODY) + BODY)
        connection.shutdown(socket.SHUT_WR)
        assert b'{"predictions":[' in everything(connection)


def test_what_is_no_http_is_told_so(server):
    with connected(server) as connection:
        connection.sendall(b"\x16\x03\x01\x02\r\n\r\n")
        head, _, body = everything(connection).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400")
    assert json.loads(body) == {"error": "This is not a valid HTTP request."}


def test_a_client_that_takes_nothing_is_left(server):
    with connected(server) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        assert is_ended(connection, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 100)


def test_connections_beyond_a_number_are_refused(models):
    with running(models["numbers"], Limits(max_connections=2)) as server:
        first, second = connected(server), connected(server)
        for connection in (first, second):
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        with connected(server) as third:
            assert everything(third).startswith(b"HTTP/1.1 503")
        first.close()
        second.close()
        end = time.monotonic() + PATIENCE
        while server.ask("/health", method="GET").status != 200:
            assert time.monotonic() < end
