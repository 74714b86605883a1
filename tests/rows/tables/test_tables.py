"""Tables from files and data frames, and the matrices made of them."""

from __future__ import annotations

import datetime
import gzip
import json
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import opgrow
from opgrow import TableWarning
from opgrow.rows.tables import Table, TableEncoder, csv_files, guess_task, infer_task, read_table


@pytest.fixture
def write(tmp_path):
    """Write text to a file and return its path."""

    def write(text: str, name: str = "table.csv", encoding: str = "utf-8") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode(encoding))
        return path

    return write


def assert_same(table: Table, expected: dict[str, list]) -> None:
    assert table.names == list(expected)
    for name, values in expected.items():
        column = table.columns[name]
        text = any(isinstance(value, str) for value in values)
        assert column.dtype == (object if text else np.float64), name
        if text:
            assert column.tolist() == values
        else:
            np.testing.assert_array_equal(column, np.array(values, dtype=np.float64))


# Table


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


@pytest.mark.parametrize(
    "dates",
    [
        pd.Series(pd.to_datetime(["2020-01-01", None])),
        pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01"])).dt.tz_localize("UTC"),
        pd.Series(pd.period_range("2020", periods=2, freq="Y")),
        [datetime.date(2020, 1, 1), None],
        np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]"),
    ],
    ids=["timestamps", "zoned", "periods", "dates", "numpy"],
)
def test_dates_are_refused_by_the_encoder_and_can_be_left_out(dates):
    for data in ({"when": dates, "n": [1, 2]}, pd.DataFrame({"when": dates, "n": [1, 2]})):
        with pytest.raises(ValueError, match="Column 'when' holds dates or times, such as '20.*--drop"):
            TableEncoder().fit(data)
        assert TableEncoder().fit_transform(Table.from_any(data).drop("when")).tolist() == [[1], [2]]
        names = TableEncoder(text=["when"]).fit(data).get_feature_names_out()
        assert names[0].startswith("when=2020-01-01")


@pytest.mark.parametrize(
    ("values", "refused"),
    [
        (["2024-05-31", "2024-06-01"], True),
        (["2024-05-31 12:30", None, "2024-05-31T12:30:59.5Z"], True),
        (["31.05.2024", "1.6.2024"], True),
        (["5/31/24", "6/1/24"], True),
        (["2024/05/31"], True),
        (["12:30", "23:59:59"], True),
        ([datetime.timedelta(days=3, hours=1), datetime.timedelta(days=1)], True),
        (np.array([3, 4], dtype="timedelta64[h]"), True),
        (["2024-05-31", "soon"], False),
        (["1.2.3.4", "1.2.3.5"], False),
        (["12", "2024"], False),
        (["1/2", "3/4"], False),
    ],
)
def test_texts_that_are_dates_or_times(values, refused):
    table = {"when": values}
    if refused:
        with pytest.raises(ValueError, match="holds dates or times"):
            TableEncoder().fit(table)
    else:
        assert TableEncoder().fit(table).columns_[0].categories


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


@pytest.mark.parametrize(
    ("column", "task"),
    [
        (["yes", "no"], "classification"),
        ([0, 1, 1], "classification"),
        ([True, False], "classification"),
        (np.arange(20), "classification"),
        (np.arange(21), "regression"),
        (np.repeat(np.arange(26), 5), "classification"),  # codes from 0
        (np.repeat(np.arange(1, 101), 9), "classification"),  # codes from 1
        (np.repeat(np.arange(26), 4), "regression"),  # too few rows each
        (np.repeat(np.arange(2, 28), 9), "regression"),  # codes do not begin at 2
        (np.repeat(np.arange(0, 52, 2), 9), "regression"),  # gaps
        (np.repeat(np.arange(26), np.arange(5, 31)), "regression"),  # the rarest is too rare
        ([0.0, 1.0, None], "classification"),
        ([0.5, 1.0], "regression"),
        ([1.0, np.inf], "regression"),
        (pd.Series(["a", "b"], dtype="category"), "classification"),
    ],
)
def test_infer_task(column, task):
    assert infer_task(column) == task


def test_the_guess_says_why():
    assert guess_task(["a", "b"]).reason == "it holds text"
    assert guess_task([0.5, 3]).reason == "it holds numbers that are not whole, such as 0.5"
    assert "2 different whole numbers" in guess_task([0, 1]).reason
    assert "from 0 to 25" in guess_task(np.repeat(np.arange(26), 5)).reason
    assert "21 different whole numbers" in guess_task(np.arange(21)).reason


def test_infer_task_needs_a_value():
    with pytest.raises(ValueError, match="without any value"):
        infer_task([None, np.nan])


# CSV


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_csv_in_its_dialects(write, delimiter, line_end, encoding):
    rows = [["größe", "colour", "note"], ["1.5", "red", '"a,b;c\t""d"""'], ["-2e3", " blue ", "x"]]
    path = write("".join(delimiter.join(row) + line_end for row in rows), encoding=encoding)
    expected = {"größe": [1.5, -2000], "colour": ["red", "blue"], "note": ['a,b;c\t"d"', "x"]}
    assert_same(read_table(path), expected)


def test_csv_of_numbers_only(write):
    path = write('"a","b"\n1,2\n\n3,"4"\n')
    assert_same(read_table(path), {"a": [1, 3], "b": [2, 4]})
    assert_same(read_table(write("a\n1\n2\n")), {"a": [1, 2]})


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_decimal_commas_are_recognised(write, delimiter):
    rows = ["a;b;c;d", "1,5;2;x,y;", "-2e3;3;z;,5", "?;4;z;1,"]
    table = read_table(write("\n".join(rows).replace(";", delimiter)))
    expected = {"a": [1.5, -2000, np.nan], "b": [2, 3, 4], "c": ["x,y", "z", "z"], "d": [np.nan, 0.5, 1]}
    assert_same(table, expected)
    assert "decimal comma" in str(table.read_as)
    kept = read_table(table_path := write("a;b\n1,5;2\n2,5;3\n"), decimal=".")
    assert_same(kept, {"a": ["1,5", "2,5"], "b": [2, 3]})
    assert_same(read_table(table_path, text=["a"]), {"a": ["1,5", "2,5"], "b": [2, 3]})
    assert_same(read_table(write('a,b\n"1,5",2\n'), decimal=","), {"a": [1.5], "b": [2]})
    with pytest.raises(ValueError, match="decimal must be '.' or ',', got ';'"):
        read_table(table_path, decimal=";")


def test_a_file_without_header_keeps_all_its_rows_when_told(write):
    path = write("5.1,setosa\n4.9,virginica\n")
    table = read_table(path, header=False)
    assert_same(table, {"x0": [5.1, 4.9], "x1": ["setosa", "virginica"]})
    assert "no header" in str(table.read_as)
    assert_same(read_table(path, header=True), {"5.1": [4.9], "setosa": ["virginica"]})
    assert_same(read_table(write("1,2\n3,4\n"), header=False), {"x0": [1, 3], "x1": [2, 4]})
    with pytest.raises(ValueError, match="Line 2 of .* has 1 fields: expected 2, as many as the first row"):
        read_table(write("a,2\n3\n"), header=False)


@pytest.mark.parametrize(
    "text", ["0,1,2\n5,6,7\n", "country,1990,1991\nA,1,2\n", "a,b\na,1\n", "a,b\nx,y\nz,y\n", "0\n5\n"]
)
def test_names_that_are_numbers_or_texts_are_names(write, text):
    table = read_table(write(text))
    assert table.names == text.split("\n")[0].split(",")
    assert table.read_as.header


def test_columns_are_kept_as_text_if_told(write, tmp_path):
    path = write("zip,n\n007,1\n08,2\n")
    assert_same(read_table(path, text=["zip", "absent"]), {"zip": ["007", "08"], "n": [1, 2]})
    np.savez(tmp_path / "a.npz", X=np.array([[7.0, 0.5]]))
    assert_same(read_table(tmp_path / "a.npz", text=["x0"]), {"x0": ["7"], "x1": [0.5]})
    with pytest.raises(ValueError, match="is no CSV file"):
        read_table(tmp_path / "a.npz", header=False)


def test_csv_missing_values(write):
    path = write("n,t,gone\n1,a,\n,,NA\nNA,NA,\nNaN,NaN,?\nnan,nan,\nnull,null,\n?,?,\n")
    missing = [None] * 6
    expected = {"n": [1] + [np.nan] * 6, "t": ["a", *missing], "gone": [np.nan] * 7}
    assert_same(read_table(path), expected)


def test_csv_numbers_are_only_what_reads_as_one(write):
    path = write("code,word\n1_000,inf\n2_000,-inf\n")
    assert_same(read_table(path), {"code": ["1_000", "2_000"], "word": [np.inf, -np.inf]})


def test_text_far_below_numbers_keeps_what_stood_above(write, monkeypatch):
    monkeypatch.setattr(csv_files, "BLOCK_CELLS", 4)
    path = write("code,n\n007,1\n08,2\n9,3\n?,\nA1,5\n")
    assert_same(read_table(path), {"code": ["007", "08", "9", None, "A1"], "n": [1, 2, 3, np.nan, 5]})


def test_compressed_csv_equals_the_plain_one(write, tmp_path):
    text = "a,b\n1,x\n2,y\n"
    packed = tmp_path / "packed.csv.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert_same(read_table(packed), {"a": [1, 2], "b": ["x", "y"]})
    packed.write_bytes(packed.read_bytes()[:-6])
    with pytest.raises(ValueError, match="not a complete gzip file"):
        read_table(packed)


@given(values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_csv_keeps_every_digit_on_both_paths(values, tmp_path_factory):
    path = tmp_path_factory.mktemp("digits") / "numbers.csv"
    path.write_text("a\n" + "".join(f"{value!r}\n" for value in values))
    assert_same(read_table(path), {"a": values})
    path.write_text("a,b\n" + "".join(f"{value!r},text\n" for value in values))
    assert_same(read_table(path).select(["a"]), {"a": values})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty: expected a header row"),
        ("\n \n", "is empty: expected a header row"),
        ("a,b\n", "has no data rows"),
        ("a,b,a\n1,2,3\n", "more than one column named 'a'"),
        ("a,b,a\n1,2,3\n", "more than one column named 'a': rename one, or say .*--no-header"),
        (",b\n0,2\n", r"Column 1 in the header of .* has no name: .*index=False.*--no-header"),
        ("1.5,2\n3,4\n", "has no header row.* names the columns x0 to x1"),
        ("5.1,3.5,setosa\n4.9,3.0,setosa\n", "has no header row.*--no-header.*--header"),
        ("7,setosa\n4,virginica\n", "has no header row"),
        ("high,low\nlow,low\nhigh,low\nlow,high\n", "first row has values that are also below it"),
        ('n,price\n1,"1,234"\n', "'price' .* numbers with commas, such as '1,234': .*--decimal ,"),
        ("n;m\n1,5;2.5\n", "Column 'n' .* numbers with commas, such as '1,5'"),
        ("a,b\n1,2\n3\n", "Line 3 of .* has 1 fields: expected 2"),
        ("a,b\n1,2\n\nx,4,5\n", "Line 4 of .* has 3 fields: expected 2"),
        ("a,b\n1,2,3\n4,5,6\n", "Line 2 of .* has 3 fields: expected 2"),
        ("a,b\n1,'" + "x" * 200_000 + "\n", "is not a CSV file"),
    ],
)
def test_a_bad_csv_is_named_in_one_sentence(write, text, message):
    path = write(text, name="bad.csv")
    with pytest.raises(ValueError, match=message) as caught:
        read_table(path)
    assert "bad.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("body", ["1\n", "x\n"], ids=["first", "later"])
def test_a_csv_in_another_encoding_is_refused(tmp_path, body):
    path = tmp_path / "latin.csv"
    path.write_bytes(("a\n" + body * 10_000).encode() + "größe\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"latin\.csv' is not UTF-8 text"):
        read_table(path)


def test_a_nul_character_is_refused(write):
    """numpy would read the labels "b" and "b\\0" as the same one."""
    path = write("a,y\n1,b\n2,b\0\n", name="nul.csv")
    with pytest.raises(ValueError, match=r"nul\.csv' is not a CSV file \(it holds a NUL character\)"):
        read_table(path)


def test_paths_that_lead_nowhere(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file .*absent\.csv"):
        read_table(tmp_path / "absent.csv")
    with pytest.raises(ValueError, match=r"ending in \.csv, \.csv\.gz, \.parquet, \.npz, \.npy"):
        read_table(tmp_path / "sheet.xlsx")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ValueError, match="is a folder"):
        read_table(tmp_path / "folder.csv")


# Parquet, NPZ and NPY


def test_parquet_as_pandas_writes_it(tmp_path):
    frame = pd.DataFrame(
        {
            "int": pd.array([1, None], dtype="Int64"),
            "bool": [True, False],
            "text": ["a", None],
            "category": pd.Categorical(["x", None]),
            "gone": [None, None],
        },
        index=["row", "labels"],
    )
    frame.to_parquet(tmp_path / "table.parquet")
    expected = {
        "int": [1, np.nan],
        "bool": [1, 0],
        "text": ["a", None],
        "category": ["x", None],
        "gone": [np.nan, np.nan],
    }
    assert_same(read_table(tmp_path / "table.parquet"), expected)


def test_parquet_with_dates_or_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "table.parquet"
    pd.DataFrame({"when": pd.to_datetime(["2020-01-01"])}).to_parquet(path)
    table = read_table(path)
    assert table.names == ["when"]  # so that it can be dropped
    with pytest.raises(ValueError, match="Column 'when' holds dates"):
        TableEncoder().fit(table)
    path.write_bytes(b"no parquet")
    with pytest.raises(ValueError, match=r"table\.parquet' is not a Parquet file"):
        read_table(path)


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "table.parquet").touch()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'opgrow\[tables\]'"):
        read_table(tmp_path / "table.parquet")


def test_npz_and_npy(tmp_path):
    X = np.array([[1, 2], [3, 4]], dtype=np.float32)
    np.savez(tmp_path / "a.npz", X=X, y=np.array(["yes", "no"]), feature_names=np.array(["u", "v"]))
    assert_same(read_table(tmp_path / "a.npz"), {"u": [1, 3], "v": [2, 4], "target": ["yes", "no"]})
    np.savez(tmp_path / "b.npz", X=X)
    np.save(tmp_path / "c.npy", X)
    for name in ("b.npz", "c.npy"):
        assert_same(read_table(tmp_path / name), {"x0": [1, 3], "x1": [2, 4]})


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"data": np.zeros((2, 2))}, "must hold an array 'X' .* and holds data"),
        ({"X": np.zeros(2)}, r"got shape \(2,\)"),
        ({"X": np.zeros((2, 2)), "y": np.zeros(3)}, r"expected shape \(2,\), got \(3,\)"),
        ({"X": np.zeros((2, 2)), "feature_names": np.array(["a"])}, "must hold 2 texts"),
        ({"X": np.zeros((2, 2)), "feature_names": np.array(["a", "a"])}, "more than one column named 'a'"),
        ({"X": np.zeros((2, 1)), "y": np.ones(2), "feature_names": np.array(["target"])}, "'target'"),
        ({"X": np.zeros((0, 2))}, "has no data rows"),
        ({"X": np.array([["a"]])}, "must hold a matrix of numbers"),
        ({"X": np.array([[{}]], dtype=object)}, "is not a NumPy file of plain arrays"),
    ],
)
def test_a_bad_npz_is_named_in_one_sentence(tmp_path, arrays, message):
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(ValueError, match=message) as caught:
        read_table(tmp_path / "bad.npz")
    assert "bad.npz" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04 broken", b"\x93NUMPY\x01\x00"])
def test_what_is_no_numpy_file_is_refused(tmp_path, content):
    for name in ("bad.npz", "bad.npy"):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match="is not a NumPy file"):
            read_table(tmp_path / name)


# TableEncoder

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
    assert (TableEncoder(verbose=1).fit_transform({"id": names}) == np.ones((101, 1))).all()
    said = capsys.readouterr().err
    assert (
        "'id' looks like an identifier, 101 different texts in 101 rows: dropping 'id' leaves it out" in said
    )
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
    assert again.get_params() == {"max_categories": 100, "text": ("zip",), "numeric": ("age",), "verbose": 0}
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


class Polars:
    """A data frame with the methods of polars', which need not be installed."""

    class Series(list):
        to_list = list.copy

    def __init__(self, data):
        self.data, self.columns = data, list(data)

    def get_column(self, name):
        return self.Series(self.data[name])


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


def test_a_sparse_matrix_is_refused_with_the_way_out():
    with pytest.raises(TypeError, match=r"got a value of type csr_matrix .*with .toarray\(\)"):
        TableEncoder().fit(scipy.sparse.csr_matrix(np.eye(2)))


def test_the_encoder_is_at_the_top_level():
    assert opgrow.TableEncoder is TableEncoder


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"a": [1, 2], "gone": [None, None]}, "Column 'gone' holds no value at all"),
        ({"a": [np.inf, None]}, "Column 'a' holds no value at all"),
        ({}, "no columns or no rows"),
        ({"a": []}, "no columns or no rows"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(table, message):
    with pytest.raises(ValueError, match=message):
        TableEncoder().fit(table)


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e39])
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
        (broken(format=2), "format 2 is not known, expected 1"),
        (broken(max_categories="many"), "max_categories must be a whole number"),
        (broken(columns=[]), "'columns' must be a list"),
        (broken(columns={"age": 1}), "'columns' must be a list"),
        (broken(columns=["age"]), "a column must be a dictionary, got str"),
        (broken(name=3), "a column's name must be text, got 3"),
        (broken(name="size"), "two columns share a name"),
        (broken(kind="date"), "column 'age' is of unknown kind 'date'"),
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


# Estimators, which take numbers


FRAME = pd.DataFrame({"age": [31, np.nan, 52], "far": [1.0, np.nan, 2.0], "sex": ["male", "female", None]})


class PolarsArray(Polars):
    """As scikit-learn sees such a frame."""

    shape = (3, 3)

    def __array__(self, dtype=None, copy=None):
        return np.array(list(zip(*self.data.values(), strict=True)), dtype=dtype or object)


@pytest.mark.parametrize(
    ("data", "beginning"),
    [
        (FRAME, "X holds text in column 'sex', such as 'male': put"),
        (PolarsArray(FRAME.to_dict("list")), "X holds text in column 'sex', such as 'male': put"),
        (FRAME.to_numpy(), "X holds text in column 'x2', such as 'male': put"),
        ([["a", 1], ["b", 2]], "X holds text in column 'x0', such as 'a': put"),
        (np.array([["a"], ["b"]]), "X holds text in column 'x0', such as 'a': put"),
        (FRAME[["age", "far"]], r"X has gaps \(NaN or None\) in column 'age' and 1 more: put"),
        (FRAME[["far", "age"]].to_numpy(), r"X has gaps \(NaN or None\) in column 'x0' and 1 more: put"),
        ([[1, None], [2, 3]], r"X has gaps \(NaN or None\) in column 'x1': put"),
    ],
)
def test_estimators_say_what_to_do_with_a_table(data, beginning):
    remedy = (
        r" an opgrow.TableEncoder in front, as in make_pipeline\(TableEncoder\(\), HeMLRNClassifier\(\)\)"
    )
    y = np.arange(len(data) if isinstance(data, list) else data.shape[0]) % 2
    with pytest.raises(ValueError, match=f"^{beginning}{remedy}, which [a-z ]+$"):
        opgrow.HeMLRNClassifier().fit(data, y)


def test_other_refusals_of_estimators_stay_as_they_are():
    with pytest.raises(ValueError, match="infinity"):
        opgrow.HeMLRNClassifier().fit(FRAME[["age"]].fillna(np.inf), [0, 1, 0])
    with pytest.raises(TypeError, match=r"Sparse data was passed for X.*'\.toarray\(\)'"):
        opgrow.HeMLRNClassifier().fit(scipy.sparse.csr_matrix(np.eye(3)), [0, 1, 0])
    with pytest.raises(ValueError, match="y has missing values"):
        opgrow.HeMLRNClassifier().fit([[1], [2], [3]], [0, 1, None])
