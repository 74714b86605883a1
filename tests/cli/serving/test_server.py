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


def test_a_port_that_is_taken_and_a_host_that_does_not_exist_are_named():
    with listening_socket("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
        with pytest.raises(ValueError, match=f"Cannot listen on 127.0.0.1 port {port}: "):
            listening_socket("127.0.0.1", port)
    with pytest.raises(ValueError, match="no address 'no such host'"):
        listening_socket("no such host", 0)
