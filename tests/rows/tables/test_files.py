"""Tables in Parquet, NPZ and NPY files."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

from opgrow.rows.tables import TableEncoder, read_table
from tests.rows.tables.tables import assert_same


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


def test_parquet_may_hold_dates_and_is_checked(tmp_path):
    path = tmp_path / "table.parquet"
    pd.DataFrame({"when": pd.to_datetime(["2020-01-01", "2020-01-03"])}).to_parquet(path)
    assert TableEncoder().fit_transform(read_table(path))[:, 0].tolist() == [0, 2]
    path.write_bytes(b"no parquet")
    with pytest.raises(ValueError, match=r"table\.parquet' is not a Parquet file"):
        read_table(path)


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "table.parquet").touch()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'opgrow\[tables\]'"):
        read_table(tmp_path / "table.parquet")


def test_npz_and_npy_hold_columns(tmp_path):
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
