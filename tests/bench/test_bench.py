"""The benchmarks run, compare on the same rows and report what they saw."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.model_selection import StratifiedShuffleSplit
from typer.testing import CliRunner

from opgrow import datasets
from opgrow.bench import app, markdown
from opgrow.bench.accuracy import METHODS, PEERS, Result, compare, summary
from opgrow.bench.speed import Row, measure

SMALL = {"n_min": 4, "n_step": 2, "max_layers": 1, "epochs": (2,), "learning_rates": (0.01,)}


def test_every_model_sees_the_same_splits(monkeypatch):
    seen: dict[str, list[np.ndarray]] = {}

    class Spy:
        def __init__(self, name):
            self.name = name

        def fit(self, x, y):
            seen.setdefault(self.name, []).append(x)
            return self

        def score(self, x, y):
            seen[self.name].append(x)
            return 0.5

    for name in ("logistic regression", "random forest"):
        monkeypatch.setitem(PEERS, name, lambda seed, name=name: Spy(name))
    results = list(compare(["wine"], None, 3, ["logistic regression", "random forest"]))
    assert [r.split for r in results] == [0, 0, 1, 1, 2, 2]
    for one, other in zip(*seen.values(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(seen["random forest"][0], seen["random forest"][2])


def test_inner_splits_use_training_rows_only(monkeypatch):
    used = []

    class Spy:
        def fit(self, x, y):
            used.append(x)
            return self

        def score(self, x, y):
            used.append(x)
            return 0.5

    monkeypatch.setitem(PEERS, "random forest", lambda seed: Spy())
    list(compare(["wine"], None, 1, ["random forest"], inner=True))
    bunch = datasets.load("wine")
    splitter = StratifiedShuffleSplit(1, test_size=0.4, random_state=0)
    train, _ = next(splitter.split(bunch.data, bunch.target))
    rows = {tuple(row) for row in np.concatenate(used)}
    assert rows == {tuple(row) for row in bunch.data[train]}


def test_methods_report_their_networks():
    (result,) = compare(["iris"], None, 1, ["HeMLRN"], SMALL)
    assert result.parameters is not None
    assert result.topology.startswith("4-")
    assert 0.5 < result.accuracy <= 1


def test_the_summary_has_means_deviations_and_medians():
    results = [Result("d", i, "m", a, s, p, None) for i, (a, s, p) in enumerate([(0.5, 1, 10), (0.7, 3, 30)])]
    (row,) = summary(results)
    assert row["accuracy"] == pytest.approx(0.6)
    assert row["deviation"] == pytest.approx(np.std([0.5, 0.7], ddof=1))
    assert (row["seconds"], row["parameters"], row["splits"]) == (2, 20, 2)
    assert "| d | m | 60.0 ± 14.1 | 20 | 2.00 |" in markdown([row])


def test_the_command_line_takes_parameters_and_prints_one_json_object():
    arguments = ["accuracy", "--datasets", "iris", "--splits", "1", "--models", "HeMLRN", "--json"]
    arguments += [f"--param={key}={json.dumps(value)}" for key, value in SMALL.items()]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    (row,) = json.loads(result.stdout)["results"]
    assert (row["dataset"], row["model"]) == ("iris", "HeMLRN")


def test_an_unknown_model_is_named():
    result = CliRunner().invoke(app, ["accuracy", "--models", "HeMLGOP,oracle"])
    assert isinstance(result.exception, ValueError)
    assert "oracle" in str(result.exception)


def test_all_methods_and_peers_can_be_built():
    for name, build in (METHODS | PEERS).items():
        if name == "LightGBM":
            pytest.importorskip("lightgbm")
        assert hasattr(build(0), "fit")


def test_speed_measures_kernels_search_and_tuning():
    rows = list(measure(None, 1, quick=True))
    assert len(rows) == 7
    assert all(row.value > 0 for row in rows)
    assert all(peer > 0 for row in rows for peer in row.peers.values())


def test_a_row_of_speed_names_its_ratios():
    row = Row("step", 10.0, "us", {"torch": 250.0}, "warm")
    assert row.text() == "step: 10 us; torch 250 (25 x as fast)  [warm]"
    rate = Row("forward", 3.0, "G elements/s", {"torch": 4.0})
    assert rate.text() == "forward: 3 G elements/s; torch 4 (0.75 x as fast)"
    assert row.plain()["peers"] == {"torch": 250.0}
