"""The forms in which models take a table."""

from __future__ import annotations

import numpy as np
import pytest

from opgrow.bench.peers import models
from opgrow.bench.peers.inputs import FORMS, inputs_of
from opgrow.bench.peers.splits import TableSplit
from opgrow.rows.tables import Table

TRAIN = {
    "size": [1.0, None, 3.0],
    "code": [1, 2, 1],
    "colour": ["red", None, "blue"],
    "day": ["2024-05-31", "2024-06-01", None],
}
TEST = {"size": [None], "code": [3], "colour": ["new"], "day": ["2031-01-01"]}


def split(x_train, x_test, text=()):
    return TableSplit("regression", 0, x_train, np.arange(3.0), x_test, np.zeros(1), text)


def test_our_models_get_the_table_itself():
    assert {models.form_of(name) for name in (*models.OURS, "HeMLGOP preset=null")} == {"table"}
    given = split(Table.from_any(TRAIN), Table.from_any(TEST), ("code",))
    train, test, categories = inputs_of("table", given)
    assert categories == []
    for made, table in ((train, given.x_train), (test, given.x_test)):
        assert made.names == table.names
        for name in ("size", "colour", "day"):
            assert made.columns[name] is table.columns[name]
    assert train.columns["code"].tolist() == ["1", "2", "1"]  # which the user wants as text
    assert test.columns["code"].tolist() == ["3"]


@pytest.mark.parametrize("form", ["table", "matrix", "codes"])
def test_a_matrix_stays_what_it_is(form):
    x, x_test = np.arange(6.0).reshape(3, 2), np.ones((1, 2))
    train, test, categories = inputs_of(form, split(x, x_test))
    assert train is x
    assert test is x_test
    assert categories == []


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_have_the_rows_of_the_split(form):
    train, test, _ = inputs_of(form, split(Table.from_any(TRAIN), Table.from_any(TEST), ("code",)))
    assert (len(train), len(test)) == (3, 1)
