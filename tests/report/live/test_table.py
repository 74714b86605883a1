"""Rows of tables are encoded in JavaScript as in Python, and rows that were kept are turned back."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from sklearn.base import is_classifier

from opgrow import HeMLRNClassifier, HeMLRNRegressor, TableEncoder
from opgrow.report.live.data import as_json
from opgrow.report.live.scripts import script_of
from opgrow.report.live.table import columns_data, values_of
from opgrow.rows.tables import read_table
from tests.report.live import in_node
from tests.report.live.tables import TABLES, fitted, sales
from tests.report.test_page import small

in_a_script = pytest.mark.skipif(in_node.NODE is None, reason=in_node.NEEDED)


def compare(model, X):
    outputs, shares, labels = in_node.predictions(model, X)
    if is_classifier(model):
        assert (model.classes_[labels] == model.predict(X)).all()
        np.testing.assert_allclose(shares, model.predict_proba(X), rtol=1e-4, atol=1e-5)
    else:
        expected = model.predict(X).reshape(len(outputs), -1)
        np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


@in_a_script
@pytest.mark.parametrize("name", TABLES)
def test_all_rows_of_a_table_are_predicted_as_in_python(name):
    model, X, _ = fitted(name)
    compare(model, X)


@in_a_script
@pytest.mark.parametrize("name", ["adult.csv.gz", "titanic.csv", "horse_colic.csv", "cylinder_bands.csv"])
def test_all_rows_of_real_tables(data_home, name):
    table = read_table(data_home / "classification" / name)
    target = table.names[-1]
    keep = np.arange(0, table.n_rows, max(1, table.n_rows // 800))
    X = {column: values[keep] for column, values in table.drop(target).columns.items()}
    model = small(HeMLRNClassifier)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, table.columns[target][keep])
        compare(model, X)


@in_a_script
def test_dates_in_all_forms():
    texts = {
        "day": ["2024-02-29", "1969-12-31T23:59:59.5+02:00", "2024/1/5 7:08", None, "no date"],
        "american": ["12/31/99", "1/2/2024", "2/29/2024 23:59", None, "13/13/2024"],
        "german": ["31.12.99", "01.02.68", "1.2.2024 00:00 UTC", None, "30.2.2024"],
        "clock": ["0:00", "23:59:59", "7:08", None, "25:00"],
        "took": ["36:30", "-2 days, 3:04:05.5", "90 seconds", None, "1:60"],
    }
    encoder = TableEncoder().fit({name: values[:3] * 5 for name, values in texts.items()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = encoder.encode(encoder_table(texts), np.float64)
    model = HeMLRNRegressor()
    model.table_, model.network_ = encoder, None
    columns = columns_data(model, [], values_of(model, texts, None))
    rows = [list(row) for row in zip(*texts.values(), strict=True)]
    actual = in_node.run(
        script_of("columns"),
        f"const encode = encoderOf({as_json(columns)});",
        in_node.written(f"{json.dumps(rows)}.map(encode)"),
    )
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=2e-9)


def encoder_table(columns):
    from opgrow.rows.tables import Table

    return Table.from_any(columns)


def test_rows_that_the_model_keeps_become_values_that_are_encoded_the_same():
    X, y = sales()
    model = small(HeMLRNClassifier).fit(X, y)
    values = values_of(model, None, None)
    assert values.n_rows == len(model.sample_)
    again = model.table_.encode(
        encoder_table(dict(zip(model.table_.feature_names_in_, values.columns, strict=True)))
    )
    means = [i for i, name in enumerate(model.input_names) if name.startswith("town")]
    others = [i for i in range(again.shape[1]) if i not in means]
    np.testing.assert_allclose(again[:, others], model.sample_[:, others], rtol=1e-6, atol=1e-6)


def test_a_far_value_does_not_decide_the_reach_of_a_slider():
    X = np.random.default_rng(0).normal(size=(500, 2))
    X[0, 0] = 1e6
    model = small(HeMLRNRegressor).fit(X, X[:, 1])
    column = columns_data(model, ["a", "b"], values_of(model, X, X))[0]
    assert column["high"] < 10
    assert column["most"] == 1e6
    assert sum(column["bins"]) >= 490
