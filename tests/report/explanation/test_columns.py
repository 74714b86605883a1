"""Columns are what users know, with values that they may take."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch

from opgrow import TableEncoder, TableWarning
from tests.report.explanation.models import fitted

N = 240


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, N), "D")
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, N),
            "colour": rng.choice(["red", "green", "blue"], N),
            "weight": np.where(rng.random(N) < 0.1, np.nan, rng.normal(70, 10, N)),
            "since": days.astype(str),
            "city": rng.choice([f"city {i}" for i in range(50)], N),
            "nothing": "same",
        }
    )


@pytest.fixture(scope="module")
def model(table):
    with pytest.warns(UserWarning, match="'nothing' is left out"):
        return fitted("HeMLRNClassifier", table, np.where(table["age"] > 50, "old", "young"))


@pytest.fixture(scope="module")
def explanation(model, table):
    return model.explain(table)


def test_a_table_has_its_columns_and_no_others(explanation, model):
    assert explanation.columns == ["age", "colour", "weight", "since", "city"]
    stops = [explanation.axis(name).stop for name in explanation.columns]
    assert stops[-1] == model.network_.n_inputs
    assert [explanation.axis(j).start for j in range(5)] == [0, *stops[:-1]]


def test_what_a_grid_says_is_what_the_encoder_makes_of_it(explanation, model, table):
    """The labels of a column, read as a table, become the encoded values beside them."""
    for name in explanation.columns:
        axis = explanation.axis(name)
        labels = [None if label in ("<missing>", "<other>") else label for label in axis.labels]
        made = pd.concat([table.iloc[:1]] * len(labels), ignore_index=True)
        if axis.kind == "number":
            made[name] = [np.nan if label is None else float(label) for label in labels]
        else:
            made[name] = labels
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TableWarning)  # a city that is no city counts as another one
            encoded = model.table_.transform(made)[:, axis.inputs]
        # Labels of numbers have five digits.
        np.testing.assert_allclose(encoded, axis.encoded, rtol=1e-4, atol=1e-6, err_msg=name)


def test_counts_are_those_of_the_table(explanation, table):
    colours = explanation.axis("colour")
    assert dict(zip(colours.labels, colours.counts, strict=True)) == dict(table["colour"].value_counts())
    cities = explanation.axis("city")
    assert len(cities.labels) == 21
    assert cities.labels[-1] == "<other>"
    assert cities.counts.sum() == N
    known = table["city"].value_counts()
    assert all(known[label] == n for label, n in zip(cities.labels[:-1], cities.counts[:-1], strict=True))
    weight = explanation.axis("weight")
    assert weight.labels[-1] == "<missing>"
    assert weight.counts[-1] == table["weight"].isna().sum()
    assert len(weight.counts) == len(weight.edges)


def test_numbers_stay_within_their_range_and_whole_ones_are_whole(explanation, table):
    age = explanation.axis("age")
    assert age.whole
    assert (age.grid == np.round(age.grid)).all()
    assert age.low == table["age"].min()
    assert age.high == table["age"].max()
    weight = explanation.axis("weight")
    assert not weight.whole
    assert weight.low <= np.nanmin(weight.grid) < np.nanmax(weight.grid) <= weight.high


def test_rows_show_the_values_of_the_table(explanation, table):
    for number in (0, 17, int(table["weight"].isna().to_numpy().argmax())):
        texts = dict(zip(explanation.columns, explanation.row(number).texts, strict=True))
        expected = table.iloc[number]
        assert texts["age"] == str(expected["age"])
        assert texts["colour"] == expected["colour"]
        assert texts["city"] == expected["city"]
        assert texts["since"] == expected["since"]
        weight = "<missing>" if np.isnan(expected["weight"]) else f"{expected['weight']:.5g}"
        assert texts["weight"] == weight


def test_few_rows_are_explained_by_the_sample_that_the_model_carries(model, table):
    explanation = model.explain(table.iloc[:3])
    background = explanation.data()["background"]
    assert background["source"] == "training sample"
    assert 20 <= background["rows"] <= len(model.sample_)
    assert len(explanation.row(2).texts) == 5
    assert len(explanation.axis("city").labels) == 21
    assert abs(explanation.row(0).columns.values).max() > 0


def test_an_array_has_its_columns_in_their_order(model, table):
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        explanation = model.explain(table.to_numpy(dtype=object))
    assert explanation.row(0).texts == model.explain(table).row(0).texts


def test_rows_with_gaps_are_known_in_every_form():
    x = np.random.default_rng(0).normal(size=(60, 2)).round(2)
    x[::5, 1] = np.nan
    model = fitted("HeMLRNClassifier", x, np.arange(60) % 2)
    for rows in (x, x.tolist(), torch.from_numpy(x), np.ma.masked_invalid(x), x.astype(object)):
        assert model.explain(rows).row(0).texts == [f"{x[0, 0]:g}", "<missing>"]
    assert model.explain(scipy.sparse.csr_array(np.nan_to_num(x))).row(0).texts == [f"{x[0, 0]:g}", "0"]


def test_a_matrix_has_columns_without_names():
    x = np.random.default_rng(0).normal(size=(50, 3))
    explanation = fitted("HeMLRNRegressor", x, x[:, 0]).explain(x)
    assert explanation.columns == ["x0", "x1", "x2"]


def test_columns_with_one_value_or_far_ones_have_a_grid():
    x = np.random.default_rng(0).normal(size=(300, 3))
    x[:, 1] = 7.0
    x[0, 2] = 1e12
    explanation = fitted("HeMLRNRegressor", x, x[:, 0]).explain(x)
    assert explanation.axis(1).grid.tolist() == [7.0]
    assert explanation.axis(2).grid.max() < 10
    assert np.isfinite(explanation.response(1).mean).all()


def test_categories_that_were_pooled_are_one_level():
    colours = np.array(["a"] * 30 + ["b"] * 20 + [f"rare {i}" for i in range(10)], dtype=object)
    table = {"colour": colours, "size": np.arange(60.0)}
    encoder = TableEncoder(max_categories=2, many="pool")
    model = fitted("HeMLRNRegressor", table, np.arange(60.0), table=encoder)
    axis = model.explain(table).axis("colour")
    assert axis.labels == ("a", "b", "<other>")
    assert axis.counts.tolist() == [30, 20, 10]
