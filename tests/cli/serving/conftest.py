"""Models behind servers that run in a thread of the tests."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opgrow import HeMLGOPClassifier, HeMLGOPRegressor
from opgrow.cli.serving.limits import Limits
from opgrow.cli.serving.model import ServedModel, served
from opgrow.cli.serving.server import serve_model
from opgrow.common.errors import TableWarning
from opgrow.estimators.files import save
from opgrow.rows.tables import TableEncoder

QUICK = {"preset": None, "max_layers": 1, "max_neurons": 20, "epochs": (3, 3, 3), "random_state": 0}
ROWS = {
    "size": [1.0, 2.0, None, 4.0] * 20,
    "colour <b>": ["red", "blue", "red", None] * 20,
    "code": ["1", "2", "3", "1"] * 20,
}
#: A row of everything that tables hold; the last column is the same in all rows, which training leaves out.
MANY = {
    "size": [0.1 if i % 3 else None for i in range(200)],
    "kind": [("b", "a", None, "c")[i % 4] for i in range(200)],
    "code": [f"0{i % 50}" for i in range(200)],
    "day": [f"2024-{1 + i % 12:02}-{1 + i % 28:02}" if i % 7 else None for i in range(200)],
    "at": [f"{i % 24:02}:30" for i in range(200)],
    "took": [f"{i % 5} days, {i % 24:02}:00:00" for i in range(200)],
    "same": ["x"] * 200,
}


@dataclass
class Answered:
    """An answer: status, headers by their small names, and the body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Running:
    """A server, by its port."""

    port: int
    server: Any

    def ask(self, path: str = "/predict", body: Any = None, method: str = "POST", **headers: str) -> Answered:
        """Send a request; lists and dictionaries as JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if isinstance(body, list | dict):
            body, given = json.dumps(body).encode(), {"Content-Type": "application/json"} | given
        try:
            connection.request(method, path, body, given)
            answer = connection.getresponse()
            return Answered(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()


@contextmanager
def running(model: ServedModel, limits: Limits | None = None) -> Iterator[Running]:
    """A server in a thread, ended with the block."""
    ready, found = threading.Event(), []

    def started(server: Any, address: str) -> None:
        found.append(Running(int(address.rpartition(":")[2]), server))
        ready.set()

    arguments = (model, ("127.0.0.1", 0), limits or Limits(), started)
    thread = threading.Thread(target=serve_model, args=arguments)
    thread.start()
    assert ready.wait(30)
    try:
        yield found[0]
    finally:
        found[0].server.should_exit = True
        thread.join(60)
    assert not thread.is_alive()


@pytest.fixture(scope="session")
def files(tmp_path_factory) -> dict[str, Path]:
    """Model files: classes and numbers of tables, numbers of a matrix, two targets."""
    folder = tmp_path_factory.mktemp("served")
    paths = {name: folder / f"{name}.safetensors" for name in ("classes", "many", "numbers", "targets")}
    labels = np.array(["no", "yes", "no", "maybe,so"] * 20)
    model = HeMLGOPClassifier(**QUICK, table=TableEncoder(text=("code",))).fit(ROWS, labels)
    save(model, paths["classes"], target="answer")
    x = np.random.default_rng(0).normal(size=(200, 3))
    with pytest.warns(TableWarning, match="'same' is left out"):
        model = HeMLGOPRegressor(**QUICK, table=TableEncoder(text=("code",))).fit(MANY, x[:, 0])
    save(model, paths["many"], target="answer")
    HeMLGOPRegressor(**QUICK).fit(x, x[:, 0] + x[:, 1]).save(paths["numbers"])
    HeMLGOPRegressor(**QUICK).fit(x, x[:, :2]).save(paths["targets"])
    return paths


@pytest.fixture(scope="session")
def models(files) -> dict[str, ServedModel]:
    return {name: served(path) for name, path in files.items()}
