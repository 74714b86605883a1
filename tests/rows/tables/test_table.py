"""Tables of arrays and data frames."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from opgrow.rows.tables import Table
from tests.rows.tables.tables import Polars, assert_same


def test_numbers_become_float64_and_text_stays_text():
    table = Table.from_any({"n": [1, None, 3], "flag": [True, False, True], "digits": ["1", "2", None]})
    assert_same(table, {"n": [1, np.nan, 3], "flag": [1, 0, 1], "digits": ["1", "2", None]})
    assert table.n_rows == 3


def test_data_frame_columns_of_every_usual_dtype():
    frame = pd.DataFrame(
        {
            "int": [1, 2],
            "float": [0.5, np.nan],
            "bool": [True, False],
            "nullable int": pd.array([1, None], dtype="Int64"),
            "nullable bool": pd.array([True, None], dtype="boolean"),
            "text": ["a", None],
            "string": pd.array(["a", pd.NA], dtype="string"),
            "category": pd.Categorical(["b", None]),
            "numbered category": pd.Categorical([3, 1]),
            "objects": np.array([1, None], dtype=object),
        }
    )
    expected = {
        "int": [1, 2],
        "float": [0.5, np.nan],
        "bool": [1, 0],
        "nullable int": [1, np.nan],
        "nullable bool": [1, np.nan],
        "text": ["a", None],
        "string": ["a", None],
        "category": ["b", None],
        "numbered category": ["3", "1"],
        "objects": [1, np.nan],
    }
    assert_same(Table.from_any(frame), expected)


def test_a_masked_array_does_not_lose_its_mask():
    column = np.ma.masked_array([1.0, 2.0], mask=[False, True])
    assert_same(Table.from_any({"a": column}), {"a": [1, np.nan]})


def test_an_array_gets_numbered_names():
    assert_same(Table.from_any(np.array([[1, 2], [3, 4]])), {"x0": [1, 3], "x1": [2, 4]})


def test_select_and_drop():
    table = Table.from_any({"a": [1], "b": [2], "c": [3]})
    assert table.select(["c", "a"]).names == ["c", "a"]
    assert table.drop("b").names == ["a", "c"]
    with pytest.raises(ValueError, match="no column 'd': the table has 'a', 'b', 'c'"):
        table.drop("d")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"a": [1, 2], "b": [1]}, "equally long"),
        ({"a": "text"}, "Column 'a' must be a sequence"),
        ({"a": np.zeros((2, 2))}, r"Column 'a' must be one-dimensional, got shape \(2, 2\)"),
        ({"a": [[1], [2]]}, "Column 'a' must hold numbers or text, got a value of type list"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "more than one column named 'a'"),
        ([1, 2], "Expected a table .* got a value of type list"),
    ],
)
def test_what_is_no_table_is_refused(data, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Table.from_any(data)


def test_frames_of_other_libraries():
    data = {"n": [1, None], "t": ["a", None]}
    expected = {"n": [1, np.nan], "t": ["a", None]}
    assert_same(Table.from_any(Polars(data)), expected)
    pyarrow = pytest.importorskip("pyarrow")
    assert_same(Table.from_any(pyarrow.table(data)), expected)


def test_frames_of_polars_itself():
    polars = pytest.importorskip("polars")
    category = polars.Series(["x", "y"]).cast(polars.Categorical)
    frame = polars.DataFrame({"n": [1, None], "t": ["a", None], "c": category})
    assert_same(Table.from_any(frame), {"n": [1, np.nan], "t": ["a", None], "c": ["x", "y"]})
