"""A run chooses on training rows, measures on test rows, and never fails its study."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import load_iris

from opgrow.bench import models, runs
from opgrow.bench.protocols import Split, draw_split
from opgrow.bench.runs import DONE, FAILED, OVER_BUDGET, Run, execute
from opgrow.network import Network

X, Y = load_iris(return_X_y=True)
SPLIT = draw_split(Y, 0)


class Memory:
    """Remembers which rows it was fitted and scored on; the best ``depth`` is 2."""

    fitted: list[set[int]]
    scored: list[set[int]]
    network_ = Network(1, 2)
    history_ = ()

    def __init__(self, depth=0, random_state=None):
        self.depth = depth

    def fit(self, x, y, eval_set=None):
        type(self).fitted.append(set(x[:, 0].astype(int)))
        type(self).held.append(None if eval_set is None else set(eval_set[0][:, 0].astype(int)))
        return self

    def score(self, x, y):
        type(self).scored.append(set(x[:, 0].astype(int)))
        return 1.0 - abs(self.depth - 2) / 10


@pytest.fixture
def memory(monkeypatch):
    Memory.fitted, Memory.scored, Memory.held = [], [], []
    monkeypatch.setattr(models, "methods", lambda: {"memory": Memory})
    monkeypatch.setattr(models, "grid_of", lambda name, size: tuple({"depth": d} for d in range(4)))
    return Memory


NUMBERED = np.arange(100, dtype=float)[:, None]
CODES = np.arange(100) % 2


@pytest.mark.parametrize("select", ["inner", "test", "none"])
@pytest.mark.parametrize("validates", [False, True])
def test_test_rows_are_seen_once_unless_somebody_asks_for_more(memory, select, validates):
    parts = np.split(np.random.default_rng(0).permutation(100), [60, 80])
    split = Split(parts[0], parts[1], parts[2]) if validates else Split(parts[0], None, parts[2])
    result = execute(Run("numbers", 0, "memory"), NUMBERED, CODES, split, select)
    assert result["status"] == DONE
    assert result["chosen"] == ({} if select == "none" else {"depth": 2})
    train, test = set(parts[0]), set(parts[2])
    assert all(rows <= train for rows in memory.fitted)
    assert memory.fitted[-1] == train
    looks = sum(bool(rows & test) for rows in memory.scored)
    assert looks == (5 if select == "test" else 1)
    assert memory.held[-1] == (set(parts[1]) if validates and select != "none" else None)


@pytest.mark.parametrize("model", ["HeMLRN", "PLN"])
def test_a_result_is_plain_data_with_the_costs(model):
    result = json.loads(json.dumps(execute(Run("iris", 0, model), X, Y, SPLIT, "none")))
    assert result["status"] == DONE
    assert result["accuracy"] > 0.8
    assert result["seconds"] > 0
    assert result["parameters"] > 0
    assert result["flops"] > 0
    assert sum(block["neurons"] for block in result["operators"]) > 0
    assert {"kind", "accepted", "score", "curve"} <= result["steps"][0].keys()


def test_a_name_brings_its_own_parameters(memory):
    result = execute(Run("numbers", 0, "memory depth=3"), NUMBERED, CODES, draw_split(CODES, 0), "inner")
    assert result["accuracy"] == pytest.approx(0.9)
    assert memory.fitted[-1] == set(draw_split(CODES, 0).train)


def test_the_device_reaches_the_method():
    result = execute(Run("iris", 0, "PLN"), X, Y, SPLIT, "none", device="tpu")
    assert result["status"] == FAILED
    assert "got 'tpu'" in result["message"]


def test_the_same_run_gives_the_same_accuracy():
    actual = [execute(Run("iris", 3, "HeMLRN"), X, Y, draw_split(Y, 3), "none") for _ in range(2)]
    assert actual[0]["accuracy"] == actual[1]["accuracy"]
    assert actual[0]["topology"] == actual[1]["topology"]


def test_what_takes_too_long_is_a_result(monkeypatch):
    def endless(*_):
        while True:
            pass

    monkeypatch.setattr(runs, "_measure", endless)
    result = execute(Run("iris", 0, "PLN"), X, Y, SPLIT, "none", budget=0.05)
    assert result["status"] == OVER_BUDGET
    assert result["message"] == "not finished within 0.05 s"


def test_what_fails_is_a_result():
    result = execute(Run("iris", 0, "PLN"), X * np.nan, Y, SPLIT, "none")
    assert result["status"] == FAILED
    assert result["message"].startswith(
        "ValueError: There is no column to learn from: 'x0', it has no values"
    )
    assert "\n" not in result["message"]
