"""The matrices that are made of tables."""

from __future__ import annotations

import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import opgrow
from opgrow import TableWarning
from opgrow.rows.tables import TableEncoder, read_table

TRAIN = {"age": [31, None, 52], "colour": ["red", "blue", None], "size": ["s", "l", "s"]}


def test_the_matrix_has_medians_and_one_column_per_category():
    encoder = TableEncoder()
    matrix = encoder.fit_transform(TRAIN)
    names = ["age", "colour=blue", "colour=red", "colour=<missing>", "size=l", "size=s"]
    assert encoder.get_feature_names_out().tolist() == names
    assert matrix.dtype == np.float32
    expected = [[31, 0, 1, 0, 0, 1], [41.5, 1, 0, 0, 1, 0], [52, 0, 0, 1, 0, 1]]
    np.testing.assert_array_equal(matrix, np.array(expected))


def test_missing_values_become_the_median_of_the_training_rows_and_not_of_the_new_ones():
    encoder = TableEncoder().fit({"a": [1, 2, 100]})
    assert encoder.transform({"a": [None, 7, 9]})[:, 0].tolist() == [2, 7, 9]


def test_unknown_categories_and_unseen_missing_ones_are_all_zeros_and_counted():
    encoder = TableEncoder().fit({"size": ["s", "l"], "n": ["a", None]})
    with pytest.warns(TableWarning) as heard:
        matrix = encoder.transform({"size": ["m", None, "l", "m"], "n": ["b", None, "a", "a"]})
    assert matrix[:, :2].tolist() == [[0, 0], [0, 0], [1, 0], [0, 0]]
    assert [str(warning.message) for warning in heard] == [
        "2 of 4 rows have categories in 'size' that were not seen in fit, such as 'm'; "
        "1 of 4 rows have no value in 'size', which fit never saw; "
        "1 of 4 rows have categories in 'n' that were not seen in fit, such as 'b'"
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder.transform({"size": ["s", "l"], "n": [None, "a"]})


def test_columns_are_found_by_name_and_further_ones_ignored():
    encoder = TableEncoder().fit(TRAIN)
    shuffled = {"further": [1, 2, 3], **{name: TRAIN[name] for name in ("size", "age", "colour")}}
    np.testing.assert_array_equal(encoder.transform(shuffled), encoder.transform(TRAIN))


def test_absent_columns_are_named():
    encoder = TableEncoder().fit(TRAIN)
    with pytest.raises(ValueError, match="lacks 'age', 'size', which the encoder was fitted with"):
        encoder.transform({"colour": ["red"]})


def test_text_in_a_numeric_column_is_named():
    encoder = TableEncoder().fit(TRAIN)
    with pytest.raises(ValueError, match=r"Column 'age' held numbers .* now holds the text 'old'"):
        encoder.transform({**TRAIN, "age": ["31", "old", "52"]})


def test_a_file_whose_texts_are_all_digits_still_fits_the_categories(write):
    encoder = TableEncoder().fit(read_table(write("zip\n10\n2.5\nB7\n")))
    table = read_table(write("zip\n2.5\n10\n?\n"))
    assert table.columns["zip"].dtype == np.float64
    with pytest.warns(TableWarning, match="1 of 3 rows have no value in 'zip'"):
        assert encoder.transform(table).tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]


def test_rare_categories_are_pooled():
    values = ["z"] * 4 + ["y"] * 3 + ["x"] * 3 + ["b"] * 2 + ["a", None]
    encoder = TableEncoder(max_categories=3).fit({"t": values})
    names = ["t=x", "t=y", "t=z", "t=<other>", "t=<missing>"]
    assert encoder.get_feature_names_out().tolist() == names
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what is new is other, and nothing to warn of
        matrix = encoder.transform({"t": ["z", "b", "a", "new", None]})
    assert matrix.argmax(axis=1).tolist() == [2, 3, 3, 3, 4]
    assert (matrix.sum(axis=1) == 1).all()
    again = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    np.testing.assert_array_equal(again.transform({"t": values}), encoder.transform({"t": values}))
    # With as many as are allowed, nothing is pooled; with more, what occurs once is.
    assert "t=<other>" not in TableEncoder(max_categories=5).fit({"t": values}).get_feature_names_out()
    once = TableEncoder(max_categories=3).fit({"t": ["a", "a", "b", "b", "c", "d"]})
    assert once.get_feature_names_out().tolist() == ["t=a", "t=b", "t=<other>"]
    reversed_order = TableEncoder(max_categories=2).fit({"t": values[::-1]})
    assert reversed_order.columns_ == TableEncoder(max_categories=2).fit({"t": values}).columns_


def test_an_identifier_tells_nothing_and_is_said_to_be_one(capsys):
    names = [f"person {i}" for i in range(101)]
    table = {"id": names, "n": range(101)}
    with pytest.warns(TableWarning, match="'id' is left out, because its text is different in every row"):
        assert TableEncoder(verbose=1).fit_transform(table)[:, 0].tolist() == list(range(101))
    assert "dropped    1: 'id' (its text is different in every row" in capsys.readouterr().err
    twice = [*names, "person 0"]
    TableEncoder(verbose=1, max_categories=100).fit({"id": twice})
    said = "'id' looks like an identifier, 101 different texts in 102 rows: dropping 'id' leaves it out"
    assert said in capsys.readouterr().err
    assert TableEncoder(max_categories=101).fit_transform({"id": names}).shape == (101, 101)


def test_encoders_of_old_files_read_as_before():
    old = {
        "format": 1,
        "max_categories": 100,
        "columns": [
            {"name": "age", "kind": "number", "median": 2.0},
            {"name": "size", "kind": "text", "categories": ["l", "s"], "missing": True},
        ],
    }
    encoder = TableEncoder.from_dict(old)
    assert encoder.transform({"age": [None], "size": ["s"]}).tolist() == [[2, 0, 1, 0]]
    assert encoder.to_dict() == old


def test_numbers_as_categories_and_text_as_numbers():
    table = {"zip": [10, 20, 10], "age": ["31", "unknown", "52"]}
    encoder = TableEncoder(text=["zip"], numeric=["age"]).fit(table)
    assert encoder.get_feature_names_out().tolist() == ["zip=10", "zip=20", "age"]
    assert encoder.transform(table).tolist() == [[1, 0, 31], [0, 1, 41.5], [1, 0, 52]]
    again = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    assert again.transform({"zip": ["20"], "age": ["old"]}).tolist() == [[0, 1, 41.5]]
    assert again.get_params() == encoder.get_params() | {"text": ("zip",), "numeric": ("age",)}
    with pytest.raises(ValueError, match="no column 'zap'"):
        TableEncoder(text=["zap"]).fit(table)
    with pytest.raises(ValueError, match="'age' cannot be both text and numeric"):
        TableEncoder(text=["age"], numeric=["age"]).fit(table)
    with pytest.raises(ValueError, match="text must be a collection of names"):
        TableEncoder(text="age").fit(table)


def test_verbose_says_what_was_decided_and_how_to_decide_otherwise(capsys):
    texts = ["1"] * 30 + ["unknown"] * 3 + [None]
    table = {"n": [None, *range(33)], "almost": texts, "kind": ["x", "y"] * 17}
    TableEncoder().fit(table)
    assert capsys.readouterr() == ("", "")
    TableEncoder(verbose=1).fit(table)
    assert capsys.readouterr().err.splitlines() == [
        "numbers    1: 'n' (1 gap filled with 16) (otherwise: text=['NAME'])",
        "text       2: 'almost' (2 categories, such as 'unknown', 1 gap), 'kind' (2 categories, such as 'x') "
        "(otherwise: numeric=['NAME'])",
        "note       'almost' is text, because 3 of 33 values are no numbers, such as 'unknown': "
        "numeric=['almost'] takes these as missing",
    ]


def test_a_sparse_matrix_is_made_dense():
    eye = np.eye(2)
    assert TableEncoder().fit_transform(scipy.sparse.csr_matrix(eye)).tolist() == eye.tolist()


def test_the_encoder_is_at_the_top_level():
    assert opgrow.TableEncoder is TableEncoder


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            {"a": [1, 1], "gone": [None, None]},
            "no column to learn from: 'a', all rows have the same value, 1.0",
        ),
        ({"a": [np.inf, None]}, "Column 'a' holds infinity"),
        ({}, "no columns or no rows"),
        ({"a": []}, "no columns or no rows"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(table, message):
    with pytest.raises(ValueError, match=message):
        TableEncoder().fit(table)


@pytest.mark.parametrize("value", [1e39, -1e39])
def test_numbers_beyond_single_precision_are_refused_by_their_column(value):
    with pytest.raises(ValueError, match=re.escape(f"Column 'a' holds {value:.3g}, which does not fit")):
        TableEncoder().fit_transform({"a": [value, 1, 3, None]})
    encoder = TableEncoder().fit({"a": [1, 3, None]})
    with pytest.raises(ValueError, match=re.escape(f"Column 'a' holds {value:.3g}, which does not fit")):
        encoder.transform({"a": [2, value]})


def test_a_column_that_single_precision_would_lose_is_refused():
    with pytest.raises(ValueError, match="^Column 'a' holds nothing above 3e-50, which is lost"):
        TableEncoder().fit({"a": [1e-50, 3e-50, 0.0]})
    assert TableEncoder().fit_transform({"a": [1e-50, 3.0, 0.0]})[:, 0].tolist() == [0, 3, 0]


@pytest.mark.parametrize("value", [0, -1, 2.5, True, None])
def test_max_categories_is_checked_in_fit(value):
    with pytest.raises(ValueError, match="max_categories must be a whole number"):
        TableEncoder(max_categories=value).fit(TRAIN)


def test_the_encoder_survives_json():
    encoder = TableEncoder(max_categories=7).fit(TRAIN)
    again = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict(), allow_nan=False)))
    fresh = {"age": [None, 3], "colour": [None, "red"], "size": ["l", "s"]}
    np.testing.assert_array_equal(again.transform(fresh), encoder.transform(fresh))
    assert again.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()
    assert again.get_params() == encoder.get_params()
    assert again.to_dict() == encoder.to_dict()


def broken(**changes) -> dict:
    data = TableEncoder().fit({"age": [1, 2], "size": ["s", "l"]}).to_dict()
    for key, value in changes.items():
        if key in data:
            data[key] = value
        else:
            column = next(column for column in data["columns"] if key in column)
            column[key] = value
    return data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "expected a dictionary, got NoneType"),
        ({}, "format None is not known"),
        (broken(format=3), "format 3 is not known, expected 1 to 2"),
        (broken(max_categories="many"), "max_categories must be a whole number"),
        (broken(columns=[]), "'columns' must be a list"),
        (broken(columns={"age": 1}), "'columns' must be a list"),
        (broken(columns=["age"]), "a column must be a dictionary, got str"),
        (broken(name=3), "a column's name must be text, got 3"),
        (broken(name="size"), "two columns share a name"),
        (broken(kind="hash"), "column 'age' is of unknown kind 'hash'"),
        (broken(kind="date"), "column 'age' has the form None"),
        (broken(kind="target"), "'missing' of column 'age' must be true or false"),
        (broken(kind="dropped"), "the reason of column 'age' must be text"),
        ({**broken(), "many": "hash"}, "many must be 'target' or 'pool', got 'hash'"),
        ({**broken(), "gaps": None}, "gaps must be 'mark' or 'fill', got None"),
        (broken(kind=[]), "column 'age' is of unknown kind"),
        (broken(kind="text"), "categories of column 'age' must be a list of distinct texts"),
        (broken(median=float("nan")), "median of column 'age' must be a finite number"),
        (broken(median=float("inf")), "median of column 'age' must be a finite number"),
        (broken(median="1"), "median of column 'age' must be a finite number, got '1'"),
        (broken(categories=["s", "s"]), "categories of column 'size' must be a list of distinct texts"),
        (broken(categories=[]), "categories of column 'size' must be a list of distinct texts"),
        (broken(categories=[1]), "categories of column 'size' must be a list of distinct texts"),
        (broken(categories="sl"), "categories of column 'size' must be a list of distinct texts"),
        (broken(columns=[{**broken()["columns"][1], "pooled": 1}]), "'pooled' of column 'size' must be true"),
        (broken(columns=[{**broken()["columns"][0], "text_is_missing": 0}]), "'text_is_missing' of column"),
        ({**broken(), "text": "size"}, "'text' must be a list of names, got 'size'"),
        (broken(missing=1), "'missing' of column 'size' must be true or false, got 1"),
    ],
)
def test_a_description_from_a_file_is_checked(data, message):
    with pytest.raises(ValueError, match=message):
        TableEncoder.from_dict(data)


def test_the_encoder_must_be_fitted_first():
    for use in (lambda e: e.transform(TRAIN), lambda e: e.to_dict(), lambda e: e.get_feature_names_out()):
        with pytest.raises(NotFittedError):
            use(TableEncoder())


def test_the_encoder_in_a_pipeline():
    frame = pd.DataFrame({"x": [0.0, 1, None, 3], "kind": ["a", "a", "b", "b"]})
    model = make_pipeline(TableEncoder(), LogisticRegression())
    clone(model).fit(frame, [0, 0, 1, 1])
    model.fit(frame, [0, 0, 1, 1])
    assert model.predict(frame[["kind", "x"]]).tolist() == [0, 0, 1, 1]
    assert model[:-1].get_feature_names_out().tolist() == ["x", "kind=a", "kind=b"]


def test_the_encoder_gives_a_data_frame_if_asked():
    frame = pd.DataFrame({"kind": ["a", "b"]}, index=["first", "second"])
    encoded = TableEncoder().set_output(transform="pandas").fit_transform(frame)
    assert encoded.columns.tolist() == ["kind=a", "kind=b"]
    assert encoded.index.tolist() == ["first", "second"]
