"""Whatever the rows are in, a source gives the same ones, whenever and in whichever order it is asked."""

from __future__ import annotations

import mmap

import numpy as np
import pytest

from opgrow.rows.chunks import (
    Source,
    from_arrays,
    from_chunks,
    from_files,
    from_parquet,
    open_source,
    parse_bytes,
)
from opgrow.rows.chunks.sources import memory_map

N, D = 53, 4


@pytest.fixture
def rows():
    rng = np.random.default_rng(3)
    return rng.normal(size=(N, D)).astype(np.float32), rng.integers(0, 3, N), rng.uniform(0.5, 2, N)


def _npy_folder(path, x, y, w):
    np.save(path / "X.npy", x)
    np.save(path / "y.npy", y)
    return from_files(path, chunk_rows=10)


def _npy_set(path, x, y, w):
    for part, span in enumerate((slice(0, 20), slice(20, N))):
        np.save(path / f"X_{part}.npy", x[span])
        np.save(path / f"y_{part}.npy", y[span])
    return from_files(path, chunk_rows=7)


def _npz_set(path, x, y, w):
    for part, span in enumerate((slice(0, 20), slice(20, N))):
        np.savez(path / f"day{part}.npz", X=x[span], y=y[span], sample_weight=w[span])
    return from_files(path)


def _parquet(path, x, y, w):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for part, span in enumerate((slice(0, 20), slice(20, N))):
        columns = {f"c{i}": x[span, i] for i in range(D)} | {"label": y[span], "w": w[span]}
        pq.write_table(pa.table(columns), path / f"part{part}.parquet", row_group_size=6)
    return from_parquet(path, "label", sample_weight="w", chunk_rows=12)


def _parquet_lists(path, x, y, w):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    lists = pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), D)
    pq.write_table(pa.table({"x": lists, "label": y}), path / "all.parquet", row_group_size=11)
    return from_parquet(path / "all.parquet", "label", chunk_rows=11)


SOURCES = {
    "arrays": lambda path, x, y, w: from_arrays(x, y, w, chunk_rows=9),
    "npy": _npy_folder,
    "npy set": _npy_set,
    "npz set": _npz_set,
    "parquet": _parquet,
    "parquet lists": _parquet_lists,
    "function": lambda path, x, y, w: from_chunks(
        lambda i: (x[8 * i : 8 * i + 8], y[8 * i : 8 * i + 8]), n_chunks=7
    ),
    "sequence": lambda path, x, y, w: from_chunks([(x[:30], y[:30], w[:30]), (x[30:], y[30:], w[30:])]),
    "generator": lambda path, x, y, w: from_chunks((x[i : i + 9], y[i : i + 9]) for i in range(0, N, 9)),
}


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_gives_all_rows_in_any_order(name, rows, tmp_path):
    x, y, weight = rows
    source = SOURCES[name](tmp_path, *rows)
    assert isinstance(source, Source)
    assert source.n_rows == N
    assert source.n_features == D
    assert source.n_chunks > 1
    assert source.dtype == np.float32
    for number in np.random.default_rng(0).permutation(np.repeat(np.arange(source.n_chunks), 2)):
        span = slice(source.starts[number], source.starts[number] + source.sizes[number])
        chunk = source.read(number)
        np.testing.assert_array_equal(chunk.x, x[span])
        np.testing.assert_array_equal(chunk.y, y[span])
        if chunk.weight is not None:
            np.testing.assert_array_equal(chunk.weight, weight[span])


@pytest.mark.parametrize("name", SOURCES)
def test_shards_are_all_chunks_once_and_know_their_rows(name, rows, tmp_path):
    source = SOURCES[name](tmp_path, *rows)
    seen = np.zeros(N, int)
    for rank in range(2):
        shard = source.shard(rank, 2)
        for number in range(shard.n_chunks):
            span = slice(shard.starts[number], shard.starts[number] + shard.sizes[number])
            np.testing.assert_array_equal(shard.read(number).x, rows[0][span])
            seen[span] += 1
    assert (seen == 1).all()
    with pytest.raises(ValueError, match="is not there"):
        source.shard(2, 2)


@pytest.mark.parametrize(
    ("sizes", "n_shards", "expected"),
    [
        ([10] * 8, 4, [20, 20, 20, 20]),
        ([10, 10, 10, 90], 2, [30, 90]),
        ([90, 10, 10, 10], 2, [90, 30]),
        ([100, 1, 1], 3, [100, 1, 1]),
        ([1, 1, 100], 3, [1, 1, 100]),
    ],
)
def test_shards_are_runs_of_chunks_with_about_equal_shares(sizes, n_shards, expected):
    source = from_chunks(lambda i: (np.full((sizes[i], 1), i),), n_chunks=len(sizes))
    shards = [source.shard(rank, n_shards) for rank in range(n_shards)]
    assert [shard.n_rows for shard in shards] == expected
    values = np.concatenate([chunk.x[:, 0] for shard in shards for chunk in shard])
    np.testing.assert_array_equal(values, np.repeat(np.arange(len(sizes)), sizes))


def test_a_memory_map_is_read_and_its_pages_given_back(rows, tmp_path, monkeypatch):
    np.save(tmp_path / "X.npy", rows[0])
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    source = from_arrays(mapped[5:], rows[1][5:], chunk_rows=20)
    advice = []

    class Watched:
        def madvise(self, what):
            advice.append(what)

    assert source.map is memory_map(mapped[5:])._mmap
    source.map = Watched()
    np.testing.assert_array_equal(source.read(1).x, rows[0][25:45])
    assert advice == [mmap.MADV_DONTNEED]


def test_a_map_with_changes_of_its_own_keeps_them(rows, tmp_path):
    np.save(tmp_path / "X.npy", rows[0])
    mapped = np.load(tmp_path / "X.npy", mmap_mode="c")
    mapped[0, 0] = 77.0
    source = from_arrays(mapped, rows[1], chunk_rows=20)
    source.read(0)
    assert source.read(0).x[0, 0] == 77.0


def test_parquet_columns_by_name_and_their_types(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table(
        {
            "a": pa.array([1, 2, 3], pa.int64()),
            "b": pa.array([True, False, None]),
            "text": ["x", "y", "z"],
            "kind": pa.array(["u", "v", "u"]).dictionary_encode(),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="'text' holds string, and a source takes numbers"):
        from_parquet(tmp_path, "kind")
    source = from_parquet(tmp_path, "kind", columns=["b", "a"])
    assert source.feature_names == ["b", "a"]
    assert source.dtype == np.float64
    chunk = source.read(0)
    np.testing.assert_array_equal(chunk.x, [[1, 1], [0, 2], [np.nan, 3]])
    assert chunk.y.tolist() == ["u", "v", "u"]
    with pytest.raises(ValueError, match="has no column 'c': it has 'a', 'b', 'text', 'kind'"):
        from_parquet(tmp_path, "c")


def test_open_source_looks_into_the_folder(rows, tmp_path):
    (tmp_path / "arrays").mkdir()
    (tmp_path / "table").mkdir()
    _npy_folder(tmp_path / "arrays", *rows)
    _parquet(tmp_path / "table", *rows)
    assert open_source(tmp_path / "arrays").n_rows == N
    assert open_source(tmp_path / "table", "label").feature_names == ["c0", "c1", "c2", "c3", "w"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: from_arrays(np.zeros(3)), "must be a matrix of numbers"),
        (lambda path: from_arrays(np.zeros((3, 2)), np.zeros(4)), r"y has shape \(4,\), and X has 3 rows"),
        (lambda path: from_arrays(np.zeros((3, 2)), chunk_rows=0), "chunk_rows must be at least 1"),
        (lambda path: from_chunks(lambda i: None), "need their number"),
        (lambda path: from_chunks([]), "there are no chunks"),
        (lambda path: from_chunks(iter([])), "there are no chunks"),
        (lambda path: from_chunks([np.zeros((2, 2))]), "a chunk must be a tuple"),
        (lambda path: from_chunks(7), "chunks must be a sequence, a function or an iterable"),
        (
            lambda path: from_chunks(iter([(np.zeros((2, 2)),), (np.zeros((2, 3)),)])),
            r"same columns, and these have \[2, 3\]",
        ),
        (lambda path: from_files(path), "holds no .parquet files"),
        (lambda path: from_files(path / "nothing.npy"), "There is no file or folder"),
        (lambda path: from_parquet(path), "holds no .parquet files"),
    ],
)
def test_bad_sources_are_refused_in_one_sentence(make, message, tmp_path):
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=message):
        make(tmp_path)


def test_a_chunk_that_changes_is_noticed():
    sizes = iter([5, 5, 4])
    source = from_chunks(lambda i: (np.zeros((next(sizes), 2)), None), n_chunks=2)
    with pytest.raises(ValueError, match="must be the same whenever it is read"):
        source.read(0)


def test_text_labels_survive_the_temporary_file():
    labels = np.array(["red", "blue", None], dtype=object)
    source = from_chunks(iter([(np.zeros((3, 1)), labels)]))
    assert source.read(0).y.tolist() == ["red", "blue", "None"]


@pytest.mark.parametrize(
    ("given", "bytes_"), [(10, 10), ("2GB", 2 * 10**9), ("1.5 MiB", 3 << 19), ("300k", 300_000), ("7b", 7)]
)
def test_numbers_of_bytes_are_read_with_their_units(given, bytes_):
    assert parse_bytes(given) == bytes_


@pytest.mark.parametrize("given", ["", "GB", "-1GB", "2 gallons", 0, -5, True, [1], float("nan")])
def test_what_is_no_number_of_bytes_is_refused(given):
    with pytest.raises(ValueError, match="must be None, a number of bytes or text such as '2GB'"):
        parse_bytes(given)
