"""What a page knows: rows, their true values, and nothing that could be markup."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

from opgrow import HeMLRNClassifier, HeMLRNRegressor
from opgrow.report.live.data import Rows, as_json, live_data
from opgrow.report.page import page
from tests.report.live.tables import sales
from tests.report.test_page import small


def test_data_are_json_without_markup():
    text = as_json(
        {"<b>": ["</script>", "&", np.float64("nan"), float("inf"), np.int64(3), None, "\ud800\u2028"]}
    )
    assert not set("<>&") & set(text)
    assert json.loads(text) == {"<b>": ["</script>", "&", None, None, 3, None, "\ud800\u2028"]}


def test_rows_are_spread_and_keep_their_true_values():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 3))
    y = np.stack([X[:, 0], -X[:, 1]], axis=1)
    model = small(HeMLRNRegressor).fit(X[:200], y[:200])
    rows = live_data(model, Rows(X, X, y), ["a", "b", "c"], ["one", "two"])["rows"]
    places = rows["numbers"]
    assert len(places) == 1000
    assert (places[0], places[-1]) == (0, 4999)
    np.testing.assert_array_equal(rows["values"], X[places])
    np.testing.assert_array_equal(rows["truth"], y[places])


def test_single_precision_is_said_and_written_in_few_digits():
    X = load_iris().data.astype(np.float32)
    model = small(HeMLRNClassifier).fit(X, load_iris().target)
    data = live_data(model, Rows(X, X), list("abcd"), list("xyz"))
    assert all(column["single"] for column in data["columns"])
    assert data["rows"]["values"][0] == [5.1, 3.5, 1.4, 0.2]


@pytest.mark.parametrize("given", [True, False])
def test_a_page_can_do_without_rows(given):
    X, y = sales()
    model = small(HeMLRNClassifier).fit(X, y)
    rows = (X, y) if given else (None, None)

    def values(text):
        held = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1]
        return json.loads(held)["rows"]["values"]

    with_rows, without = page(model, *rows), page(model, *rows, with_rows=False)
    assert values(with_rows)
    assert values(without) == []


def test_a_table_of_ten_thousand_rows_makes_less_than_a_megabyte():
    X, y = load_diabetes(return_X_y=True)
    X, y = np.tile(X, (23, 1))[:10_000], np.tile(y, 23)[:10_000]
    model = small(HeMLRNRegressor).fit(X[:400], y[:400])
    assert len(page(model, X, y)) < 1_000_000
