"""`opgrow bench stream`: the data is the same each time, and what is measured is told."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

pytest.importorskip("pyarrow")

from opgrow.bench.chunked_growth import StreamRow, figure, generate
from opgrow.cli import app
from opgrow.rows.chunks import from_parquet


def test_the_generated_folder_is_always_the_same(tmp_path):
    for name in "ab":
        generate(tmp_path / name, 1000, 6)
    first, second = (from_parquet(tmp_path / name, "y").read(0) for name in "ab")
    assert first.x.shape == (1000, 6)
    np.testing.assert_array_equal(first.x, second.x)
    np.testing.assert_array_equal(first.y, second.y)
    assert set(first.y) == {0, 1, 2}


def test_the_command_measures_and_draws(tmp_path):
    options = ["--inputs", "5", "--neurons", "2", "--operators", "few", "--memory", "1MB", "--json"]
    places = ["--folder", str(tmp_path / "data"), "--figure", str(tmp_path / "figure.svg")]
    result = CliRunner().invoke(app, ["bench", "stream", "600,1200", *options, *places])
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["measurements"]
    assert [row["rows"] for row in rows] == [600, 600, 1200, 1200]
    assert all(row["value"] > 0 and row["cpu_us_a_row"] > 0 for row in rows)
    assert [row["name"].split(",")[0] for row in rows] == ["HeMLRN", "HeMLGOP"] * 2
    assert (tmp_path / "figure.svg").read_text().startswith("<svg")
    assert not any((tmp_path / "data").iterdir())


def test_the_figure_begins_at_nothing():
    rows = [StreamRow(f"HeMLRN, {n}", 1.0, "rows/s", n_rows=n, busy=20.0) for n in (100, 1000)]
    assert ">0<" in figure(rows)
