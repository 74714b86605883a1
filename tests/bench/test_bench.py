"""The benchmarks run, compare on the same rows and report what they saw."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedShuffleSplit
from typer.testing import CliRunner

from opgrow import POPClassifier, datasets, estimators
from opgrow.bench import app, markdown
from opgrow.bench.accuracy import METHODS, PEERS, Result, compare, summary
from opgrow.bench.speed import Row, _other_fits, measure

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
    assert result.flops > result.parameters
    assert 0.5 < result.accuracy <= 1


def test_parameters_go_to_the_methods_that_have_them():
    settings = {"n_min": 10, "n_step": 5, "max_neurons": 10, "max_layers": 1, "widths": [6], "epochs": [3]}
    settings["learning_rates"] = [0.01]
    results = compare(["iris"], None, 1, ["PMLP", "PLN", "BLS"], settings)
    assert [r.topology for r in results] == ["4-6-3", "4-10-3", "4-10-10-3"]
    with pytest.raises(ValueError, match="no method among the models has a parameter 'alpha'"):
        next(compare(["iris"], None, 1, ["PMLP", "BLS"], {"alpha": 1.0}))
    with pytest.raises(ValueError, match="'n_min'"):
        next(compare(["iris"], None, 1, ["random forest"], {"n_min": 10}))


def test_the_summary_has_means_deviations_and_medians():
    seen = [(0.5, 1, 10, 100), (0.7, 3, 30, 3000)]
    results = [Result("d", i, "m", a, s, p, None, f) for i, (a, s, p, f) in enumerate(seen)]
    (row,) = summary(results)
    assert row["accuracy"] == pytest.approx(0.6)
    assert row["deviation"] == pytest.approx(np.std([0.5, 0.7], ddof=1))
    assert (row["seconds"], row["parameters"], row["flops"], row["splits"]) == (2, 20, 1550, 2)
    assert "| d | m | 60.0 ± 14.1 | 20 | 1,550 | 2.00 |" in markdown([row])
    assert "| d | m | 60.0 ± 14.1 |  |  | 2.00 |" in markdown([row | {"parameters": None, "flops": None}])


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


def test_every_method_takes_part():
    assert {f"{name}Classifier" for name in METHODS} == {
        name for name in estimators.__all__ if name.endswith("Classifier")
    }


def test_all_peers_can_be_built():
    for name, build in PEERS.items():
        if name == "LightGBM":
            pytest.importorskip("lightgbm")
        assert hasattr(build(0), "fit")


def test_speed_measures_kernels_search_and_tuning():
    rows = list(measure(None, 1, quick=True))
    assert len(rows) == 7
    assert all(row.value > 0 for row in rows)
    assert all(peer > 0 for row in rows for peer in row.peers.values())


def test_speed_fits_the_methods_of_the_papers_table(monkeypatch):
    few = {"widths": [3], "operators": [("harmonic", "sum", "tanh")], "epochs": [2], "learning_rates": [0.01]}
    monkeypatch.setattr(
        sys.modules["opgrow.bench.speed"], "POPClassifier", lambda **given: POPClassifier(**(given | few))
    )
    monkeypatch.setattr(datasets, "load", lambda name, data_home: load_iris())
    rows = list(_other_fits(None, 1, pop=True))
    assert [row.name.partition("(")[0] for row in rows] == [
        *("PMLPClassifier", "PLNClassifier", "BLSClassifier", "POPClassifier"),
    ]
    assert all(row.value > 0 for row in rows)
    assert "at most 100 epochs a training, patience 5; paper 14 s" in rows[0].note
    assert "layers searched 1, kept 1; at most 2 epochs a training, patience 5; paper" in rows[-1].note


def test_pop_is_a_fit_and_quick_leaves_fits_out():
    result = CliRunner().invoke(app, ["speed", "--quick", "--pop"])
    assert isinstance(result.exception, ValueError)
    assert "--pop" in str(result.exception)


def test_a_row_of_speed_names_its_ratios():
    row = Row("step", 10.0, "us", {"torch": 250.0}, "warm")
    assert row.text() == "step: 10 us; torch 250 (25 x as fast)  [warm]"
    rate = Row("forward", 3.0, "G elements/s", {"torch": 4.0})
    assert rate.text() == "forward: 3 G elements/s; torch 4 (0.75 x as fast)"
    assert row.plain()["peers"] == {"torch": 250.0}
