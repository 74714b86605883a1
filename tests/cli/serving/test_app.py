"""Requests and their answers, over a connection."""

from __future__ import annotations

import csv
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import opgrow
from opgrow.cli.serving.limits import Limits
from tests.cli.commands import run

from .conftest import MANY, ROWS, running

ROW = {"size": 1, "colour <b>": "red", "code": "1"}


@pytest.fixture(scope="module")
def classes(models):
    with running(models["classes"]) as server:
        yield server


@pytest.fixture(scope="module")
def numbers(models):
    with running(models["numbers"]) as server:
        yield server


def expected(files):
    pipeline = opgrow.load(files["classes"])
    return pipeline.predict(ROWS).tolist(), pipeline.predict_proba(ROWS)


def table_as_csv():
    names = list(ROWS)
    lines = [",".join("" if v is None else str(v) for v in row) for row in zip(*ROWS.values(), strict=True)]
    return "\n".join([",".join(names), *lines]).encode()


def test_all_forms_of_a_table_get_the_predictions_of_the_loaded_model(classes, files):
    labels, shares = expected(files)
    rows = [dict(zip(ROWS, values, strict=True)) for values in zip(*ROWS.values(), strict=True)]
    matrix = [list(row.values()) for row in rows]
    for body in ({"rows": rows}, rows, {"columns": ROWS}, {"matrix": matrix}, matrix):
        answer = classes.ask(body=body)
        assert answer.status == 200, answer.body
        assert answer.json["predictions"] == labels
        assert answer.json["classes"] == ["maybe,so", "no", "yes"]
        np.testing.assert_array_equal(answer.json["probabilities"], shares.astype(float))
    answer = classes.ask(body=table_as_csv(), Content_Type="text/csv; charset=UTF-8")
    assert answer.json["predictions"] == labels


def test_csv_is_answered_where_it_is_preferred(classes, files):
    labels, shares = expected(files)
    answer = classes.ask(
        body=table_as_csv(), Content_Type="text/csv", Accept="application/json;q=0.5, text/csv"
    )
    assert answer.headers["content-type"].startswith("text/csv")
    header, *rows = csv.reader(answer.body.decode().splitlines())
    assert header == ["prediction", "p_maybe,so", "p_no", "p_yes"]
    assert [row[0] for row in rows] == labels
    np.testing.assert_array_equal(np.array([row[1:] for row in rows], float), shares.astype(float))


def test_numbers_come_with_intervals_on_request(numbers, files):
    model, x = opgrow.load(files["numbers"]), np.random.default_rng(1).normal(size=(5, 3))
    answer = numbers.ask("/predict?interval=0.8", {"matrix": x.tolist()})
    assert answer.json["predictions"] == model.predict(x).tolist()
    low, high = model.predict_interval(x, 0.8)
    assert answer.json["intervals"] == {"coverage": 0.8, "low": low.tolist(), "high": high.tolist()}
    assert "intervals" not in numbers.ask(body={"matrix": x.tolist()}).json


def test_several_targets_are_lists(models, files):
    model, x = opgrow.load(files["targets"]), np.random.default_rng(1).normal(size=(5, 3))
    with running(models["targets"]) as server:
        assert server.ask(body=x.tolist()).json["predictions"] == model.predict(x).tolist()
        header = (
            server.ask("/predict?interval=0.5", x.tolist(), Accept="text/csv").body.decode().split("\n")[0]
        )
    assert header == "prediction_0,prediction_1,low_0,low_1,high_0,high_1"


def test_rows_unlike_those_of_training_are_noted_with_their_own_request(models):
    """The server begins within the test: pytest, too, takes the warnings of all threads."""
    unseen = [{**ROW, "colour <b>": f"colour {i}"} for i in range(20)]
    with running(models["classes"]) as server, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda row: server.ask(body=[row]).json, [*unseen, *[ROW] * 20]))
    for i, answer in enumerate(answers[:20]):
        assert len(answer["notes"]) == 1
        assert f"'colour {i}'" in answer["notes"][0]
    assert not any("notes" in answer for answer in answers[20:])


def test_large_requests_are_predicted_in_pieces(numbers, files, monkeypatch):
    monkeypatch.setattr("opgrow.cli.serving.model._PIECE", 30)
    x = np.random.default_rng(1).normal(size=(101, 3))
    assert (
        numbers.ask(body=x.tolist()).json["predictions"] == opgrow.load(files["numbers"]).predict(x).tolist()
    )


@pytest.mark.parametrize("piece", [None, 30])
def test_answers_are_byte_for_byte_those_of_predict(models, files, tmp_path, monkeypatch, piece):
    """Categories by the means of the target, dates, gaps, what training never saw, and a column left out."""
    columns = {name: [*values[:99], *changed] for (name, values), changed in zip(
        MANY.items(),
        [(1 / 3, None), ("new", None), ("51", "0"), ("soon", "31.12.2031 12:00"),
         (None, "7:15"), ("36:30", None), ("y", None)],
        strict=True,
    )}  # fmt: skip
    lines = [[("" if v is None else v) for v in row] for row in zip(*columns.values(), strict=True)]
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        csv.writer(file).writerows([list(columns), *lines])
    rows = (tmp_path / "rows.csv").read_bytes()
    predicted = run("predict", files["many"], tmp_path / "rows.csv", "--interval", "0.8")
    if piece is not None:
        monkeypatch.setattr("opgrow.cli.serving.model._PIECE", piece)
    with running(models["many"]) as server:
        where, form = "/predict?interval=0.8", {"Accept": "text/csv"}
        assert server.ask(where, rows, Content_Type="text/csv", **form).body.decode() == predicted.stdout
        assert server.ask(where, {"columns": columns}, **form).body.decode() == predicted.stdout
        notes = server.ask(body={"columns": columns}).json["notes"]
        if piece is None:
            assert predicted.stderr.split("note: ")[1:] == [f"{note}\n" for note in notes]
        del columns["same"]  # which the network does not see
        assert server.ask(where, {"columns": columns}, **form).body.decode() == predicted.stdout
        del columns["day"]
        assert "lacks 'day'" in server.ask(where, {"columns": columns}, **form).json["error"]


@pytest.mark.parametrize(
    ("path", "method", "headers", "status", "says"),
    [
        ("/nosuch", "GET", {}, 404, "There is no '/nosuch'"),
        ("/predict", "GET", {}, 405, "/predict takes POST, got 'GET'"),
        ("/health", "POST", {}, 405, "takes GET or HEAD"),
        ("/predict", "POST", {"Content_Type": "image/png"}, 415, "'image/png'"),
        ("/predict", "POST", {"Content_Type": "text/csv; charset=latin-1"}, 415, "'latin-1'"),
        ("/predict", "POST", {"Content_Encoding": "gzip"}, 415, "compressed"),
        ("/predict", "POST", {"Accept": "image/png"}, 406, "'image/png'"),
        ("/predict?nosuch=1", "POST", {}, 422, "no parameter 'nosuch'"),
        ("/predict?interval=0.9", "POST", {}, 422, "this model predicts classes"),
    ],
)
def test_what_cannot_be_answered_is_said_in_one_sentence(classes, path, method, headers, status, says):
    body = None if method == "GET" else {"rows": [ROW]}
    answer = classes.ask(path, body, method, **headers)
    assert answer.status == status
    assert says in answer.json["error"]
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize("interval", ["0", "1", "nan", "much", "-0.5", ""])
def test_an_interval_is_a_share(numbers, interval):
    answer = numbers.ask(f"/predict?interval={interval}", {"matrix": [[1, 2, 3]]})
    assert answer.status == 422
    assert "expected a share between 0 and 1" in answer.json["error"]


def test_too_much_is_refused_and_the_next_request_answered(models):
    limits = Limits(max_body=2000, max_rows=10, max_numbers=20)
    with running(models["classes"], limits) as server:
        answer = server.ask(body=[ROW] * 11)
        assert (answer.status, "at most" in answer.json["error"]) == (413, False)
        assert "11 rows, and the server answers 10" in answer.json["error"]
        assert "answers 5 rows at once, got 6" in server.ask(body=[ROW] * 6).json["error"]
        large = b"[" * 3_000_000
        assert "more than 2000 bytes" in server.ask(body=large, Content_Type="application/json").json["error"]
        chunks = (b"[" * 1000 for _ in range(3000))
        answer = server.ask(body=chunks, Content_Type="application/json")
        assert (answer.status, answer.headers["connection"]) == (413, "close")
        assert server.ask(body=[ROW]).status == 200


def test_a_full_queue_is_told_to_come_back_and_everything_accepted_is_answered(models):
    release, begun = threading.Event(), threading.Semaphore(0)
    model = models["numbers"]

    def slow(table):
        begun.release()
        assert release.wait(30)
        return model.inputs(table)

    with (
        running(replace(model, inputs=slow), Limits(workers=1, queue=2)) as server,
        ThreadPoolExecutor(3) as pool,
    ):
        accepted = [pool.submit(server.ask, body=[[1, 2, 3]]) for _ in range(3)]
        assert begun.acquire(timeout=30)
        deadline = time.monotonic() + 30
        while server.ask("/health", method="GET").json["under_way"] < 3:
            assert time.monotonic() < deadline
        refused = server.ask(body=[[1, 2, 3]])
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert "busy" in refused.json["error"]
        release.set()
        assert [one.result().status for one in accepted] == [200] * 3
        assert server.ask("/health", method="GET").json == {"status": "ok", "answered": 3, "under_way": 0}


def test_bodies_in_memory_are_bounded(models):
    with running(models["numbers"], Limits(max_memory=100)) as server:
        assert server.ask(body=[[1, 2, 3]]).status == 200
        assert server.ask(body=[[1, 2, 3]] * 50).status == 503
        assert server.ask(body=[[1, 2, 3]]).status == 200


def test_what_takes_too_long_is_given_up(models):
    release = threading.Event()
    model = replace(
        models["numbers"], inputs=lambda table: release.wait(30) and models["numbers"].inputs(table)
    )
    with running(model, Limits(answer_seconds=0.1)) as server:
        answer = server.ask(body=[[1, 2, 3]])
        release.set()
    assert (answer.status, answer.json["error"]) == (503, "The prediction took too long.")


def test_a_fault_of_ours_is_told_without_its_details(models, capfd):
    def broken(table):
        raise RuntimeError("secret")

    with running(replace(models["numbers"], inputs=broken)) as server:
        answer = server.ask(body=[[1, 2, 3]])
    assert answer.status == 500
    assert b"secret" not in answer.body
    assert "RuntimeError: secret" in capfd.readouterr().err


def test_the_page_shows_the_columns_and_loads_nothing(classes):
    for path in ("/", "/docs"):
        answer = classes.ask(path, method="GET")
        page = answer.body.decode()
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert "colour &lt;b&gt;" in page
        assert "<b>" not in page
        assert not any(word in page for word in ("src=", "@import", "<link", "<script"))
        assert f"http://127.0.0.1:{classes.port}/predict" in page
    assert classes.ask("/", method="HEAD").body == b""


def test_the_description_is_json(classes):
    assert json.loads(classes.ask("/openapi.json", method="GET").body)["openapi"] == "3.1.0"
