"""CSV files in their dialects, and those that are refused."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opgrow.rows.tables import csv_files, read_table
from tests.rows.tables.tables import assert_same


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
