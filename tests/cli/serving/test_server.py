"""The server as a process: it starts, says where it is, and ends cleanly."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys

import pytest

from opgrow.cli.serving.server import listening_socket


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_after_the_requests_under_way(files, number):
    order = [sys.executable, "-m", "opgrow", "serve", str(files["numbers"]), "--port", "0"]
    process = subprocess.Popen(order, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    port = int(line.split("http://127.0.0.1:")[1].split()[0])
    body = b'{"matrix": [[1, 2, 3]]}'
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        head = b"POST /predict HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
        connection.sendall(head % len(body))
        assert connection.recv(1000).startswith(b"HTTP/1.1 100")  # it is under way
        process.send_signal(number)
        connection.sendall(body)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "", "")


def test_connections_stay_below_what_the_system_allows(files):
    """More clients than files: the ones beyond are told so, and the server goes on."""
    resource = pytest.importorskip("resource", reason="limits of processes")
    limit = (128, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    order = [sys.executable, "-m", "opgrow", "serve", str(files["numbers"]), "--port", "0"]
    process = subprocess.Popen(
        order,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit),
    )
    port = int(process.stdout.readline().split("http://127.0.0.1:")[1].split()[0])
    clients = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(150)]
    answers = []
    for client in clients:
        try:
            client.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            answers.append(client.recv(65536)[:12])
        except ConnectionError:  # refused, and closed before this was sent
            answers.append(b"HTTP/1.1 503")
        client.close()
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert set(answers) == {b"HTTP/1.1 200", b"HTTP/1.1 503"}
    assert answers[0] == b"HTTP/1.1 200"
    assert (process.returncode, err) == (0, "")


def test_a_port_that_is_taken_and_a_host_that_does_not_exist_are_named():
    with listening_socket("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
        with pytest.raises(ValueError, match=f"Cannot listen on 127.0.0.1 port {port}: "):
            listening_socket("127.0.0.1", port)
    with pytest.raises(ValueError, match="no address 'no such host'"):
        listening_socket("no such host", 0)
