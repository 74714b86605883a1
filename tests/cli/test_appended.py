"""Files of a folder: new ones are offered once they are complete, and again only if they change."""

from __future__ import annotations

from itertools import islice

import pytest

from opgrow.cli.appended import appearing, new_files


def test_new_files_are_tables_that_are_not_known(tmp_path):
    for name in ("b.csv", "a.CSV.gz", "c.parquet", "d.npz", ".e.csv", "f.txt", "g.npy", "h.csv.part"):
        (tmp_path / name).write_text("x")
    (tmp_path / "folder.csv").mkdir()
    assert [path.name for path in new_files(tmp_path, ["c.parquet"])] == ["a.CSV.gz", "b.csv", "d.npz"]
    with pytest.raises(ValueError, match="is no folder"):
        new_files(tmp_path / "b.csv", [])


def test_files_are_offered_when_they_have_stopped_growing(tmp_path):
    known, looks = [], []

    def wait():
        looks.append(len(looks))
        file = tmp_path / "a.csv"
        if len(looks) < 4:
            file.write_text("x" * len(looks))
        if len(looks) == 8:
            (tmp_path / "b.csv").write_text("y")
        if len(looks) == 12:
            file.write_text("mended")

    offered = []
    for path in islice(appearing(tmp_path, lambda: known, wait), 3):
        offered.append((path.name, len(looks)))
        if path.name == "b.csv":
            known.append(path.name)
    assert offered == [("a.csv", 4), ("b.csv", 9), ("a.csv", 13)]
