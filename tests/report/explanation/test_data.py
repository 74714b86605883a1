"""The data of an explanation is JSON of the shape that is described, and adds up."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.datasets import load_iris

from opgrow.estimators.registry import ESTIMATORS
from opgrow.report.explanation import shape
from tests.networks import outputs_of
from tests.report.explanation.models import fitted, random_model

X, Y = load_iris(return_X_y=True)
MIXED = {
    "size": np.linspace(-1, 1, 60) ** 3,
    "colour": np.array(["red", "green", "blue", "green"] * 15, dtype=object),
    "age": np.where(np.arange(60) % 5 == 0, np.nan, np.arange(60.0)),
}


def strictly_plain(value):
    """Through JSON, which has no NaN here, and back."""
    return json.loads(json.dumps(value, allow_nan=False))


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_data_of_every_method_is_plain_and_adds_up(name):
    model = fitted(name, X, Y)
    data = model.explain(X).data(rows=[0, 149])
    assert strictly_plain(data) == data
    assert (data["format"], data["version"]) == ("opgrow.explanation", 1)
    assert {one["view"] for one in (*data["responses"], *data["neurons"])} <= set(data["words"])
    for row in data["rows"]:
        outputs = np.array(row["outputs"])
        scale = max(1.0, np.abs(outputs).max())
        columns, neurons = np.array(row["columns"]), np.array(row["neurons"]["values"])
        by_columns = row["base"] + columns.sum(axis=1)
        by_neurons = row["neurons"]["base"] + neurons.sum(axis=1) + row["neurons"]["limit"]
        np.testing.assert_allclose(by_columns, outputs, rtol=0, atol=1e-5 * scale)
        np.testing.assert_allclose(by_neurons, outputs, rtol=0, atol=1e-5 * scale)
        assert neurons.shape == (len(data["outputs"]), data["neurons_in_all"])
        said = np.atleast_1d(outputs_of(model, X[row["row"] : row["row"] + 1])[0])
        raw = np.array(row["raw"])
        np.testing.assert_allclose(raw, said, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose([np.dot(o["mix"], raw) for o in data["outputs"]], outputs, atol=1e-6)
        if is_classifier(model):
            assert row["prediction"] == str(model.predict(X[row["row"] : row["row"] + 1])[0])


@pytest.mark.parametrize("seed", range(0, 50, 7))
def test_data_of_random_networks_is_plain(seed):
    model = random_model(seed)
    x = np.random.default_rng(seed).normal(size=(40, model.network_.n_inputs))
    data = model.explain(x).data(rows=[1], n_columns=2, n_neurons=3)
    assert strictly_plain(data) == data
    assert len(data["responses"]) == 2
    assert len(data["neurons"]) == min(3, data["neurons_in_all"])
    assert len(data["importance"]) == len(data["columns"])


def test_of_a_table_grids_have_as_many_values_everywhere():
    model = fitted("HeMLRNClassifier", MIXED, np.arange(60) % 2, operators=[("dog", "correlation1", "tanh")])
    data = model.explain(MIXED).data(rows=[0])
    n = [len(column["labels"]) for column in data["columns"]]
    for column, size in zip(data["columns"], n, strict=True):
        assert len(column["encoded"]) == size
        assert {len(row) for row in column["encoded"]} == {column["inputs"][1] - column["inputs"][0]}
        assert column["grid"] is None or len(column["grid"]) == size
    assert data["columns"][2]["grid"][-1] is None
    assert data["columns"][2]["labels"][-1] == "<missing>"
    for response, curves in zip(data["responses"], data["rows"][0]["curves"], strict=True):
        for key in ("mean", "low", "high"):
            assert np.shape(response[key]) == (1, n[response["column"]])
        assert np.shape(response["probability"]) == (2, n[response["column"]])
        assert np.shape(curves) == (1, n[response["column"]])
    for neuron in data["neurons"]:
        assert all(len(curve["values"]) == n[curve["column"]] for curve in neuron["curves"])
        assert all(np.shape(m["values"]) == tuple(map(len, m["places"])) for m in neuron["maps"])
        assert all(
            max(p) == n[c] - 1 for m in neuron["maps"] for c, p in zip(m["columns"], m["places"], strict=True)
        )


def test_every_key_is_described():
    model = fitted("HeMLRNClassifier", MIXED, np.arange(60) % 2, operators=[("dog", "correlation2", "tanh")])
    data = model.explain(MIXED).data(rows=[0])
    described = set(re.findall(r"``(\w+)``", shape.__doc__))

    def keys(value):
        if isinstance(value, dict):
            return {key for key in value if not key.isdigit()}.union(*map(keys, value.values()))
        return set().union(*map(keys, value)) if isinstance(value, list) else set()

    data.pop("words")
    assert keys(data) - described == set()


def test_a_page_has_less_than_a_megabyte_of_it():
    x = np.random.default_rng(0).normal(size=(10_000, 40))
    model = fitted("HeMLRNClassifier", x, (x[:, 0] * x[:, 1] > 0).astype(int), max_layers=1)
    assert len(json.dumps(model.explain(x).data(rows=range(3)))) < 500_000
