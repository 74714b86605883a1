"""The server of a playground answers its own page on this machine, and nobody else."""

from __future__ import annotations

import http.client
import json
import threading

import pytest

from opgrow.cli.playing.server import PlaygroundServer


class Told:
    """A session that notes what it is told."""

    def __init__(self):
        self.told, self.page = [], ""

    def state(self, after=0):
        return {"status": "growing", "first": after, "steps": []}

    def tell(self, what):
        self.told.append(what)


@pytest.fixture
def server():
    with PlaygroundServer(Told(), "<b>hostile</b>", "about </script>") as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def ask(server, method, path, body=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.request(method, path, body, headers={name.replace("_", "-"): v for name, v in headers.items()})
    answer = connection.getresponse()
    result = answer.status, answer.read().decode(), answer.headers
    connection.close()
    return result


def test_it_listens_on_this_machine_alone(server):
    assert server.server_address[0] == "127.0.0.1"
    assert server.address == f"http://127.0.0.1:{server.server_port}/{server.token}/"
    assert len(server.token) >= 32


def test_the_page_and_the_state_need_the_token(server):
    status, text, headers = ask(server, "GET", f"/{server.token}/")
    assert status == 200
    assert "&lt;b&gt;hostile" in text
    assert "<b>hostile" not in text
    assert "connect-src 'self'" in text
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "opgrow" in headers["Server"]
    status, text, _ = ask(server, "GET", f"/{server.token}/state?after=3")
    assert (status, json.loads(text)["first"]) == (200, 3)
    for path in (
        "/",
        "/state",
        f"/{server.token[:-1]}/",
        f"/{server.token}x/state",
        "//",
        "/%C3%A9/",
    ):
        status, text, _ = ask(server, "GET", path)
        assert status == 404
        assert server.token not in text
    assert ask(server, "GET", f"/{server.token}/report")[0] == 404  # not yet
    assert ask(server, "GET", f"/{server.token}/../../etc/passwd")[0] == 404


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "evil.example:{port}", ""])
def test_a_name_that_points_here_is_refused(server, host):
    status, text, _ = ask(server, "GET", f"/{server.token}/", Host=host.format(port=server.server_port))
    assert status == 403
    assert server.token not in text


def test_localhost_is_this_machine(server):
    assert ask(server, "GET", f"/{server.token}/", Host=f"localhost:{server.server_port}")[0] == 200


def post(server, body, origin=None, kind="application/json", path="do"):
    origins = {"Origin": origin or f"http://127.0.0.1:{server.server_port}"} if origin != "none" else {}
    return ask(server, "POST", f"/{server.token}/{path}", body, Content_Type=kind, **origins)


def test_only_pages_of_its_own_may_tell_it_something(server):
    assert post(server, '{"what": "stop"}')[0] == 200
    assert server.session.told == ["stop"]
    for origin in ("http://evil.example", "null", "none", f"https://127.0.0.1:{server.server_port}"):
        assert post(server, '{"what": "save"}', origin)[0] in (403, 404)
    assert post(server, '{"what": "save"}', kind="text/plain")[0] == 415
    assert post(server, '{"what": "save"}', path="state")[0] == 404
    assert server.session.told == ["stop"]


@pytest.mark.parametrize(
    ("body", "status"),
    [("", 400), ("{", 400), ("[]", 400), ('{"what": 3}', 400), ("[" * 99, 400), ("x" * 101, 413)],
)
def test_what_is_no_request_is_refused_in_a_sentence(server, body, status):
    answer = post(server, body)
    assert answer[0] == status
    assert json.loads(answer[1])["error"].endswith(".")
    assert server.session.told == []


def test_a_page_elsewhere_may_not_read_the_state(server):
    status, _, _ = ask(server, "GET", f"/{server.token}/state", Origin="http://evil.example")
    assert status == 403
