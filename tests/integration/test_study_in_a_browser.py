"""The page of a study in a real browser: everything is drawn, nothing is fetched, nothing complains."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from browser import NEEDED, PROGRAM, Browser
from typer.testing import CliRunner

from opgrow.cli.bench import app

pytestmark = pytest.mark.skipif(PROGRAM is None, reason=NEEDED)


def test_tables_and_figures_are_drawn(tmp_path):
    """A screenshot stays in the folder that OPGROW_SCREENSHOTS names, if it does."""
    arguments = ["paper", "--datasets", "iris,wine,breast_cancer", "--models", "HeMLGOP,HeMLRN,PLN,BLS"]
    arguments += ["--splits", "1", "--select", "none", "--jobs", "1", "--out", str(tmp_path / "out")]
    made = CliRunner().invoke(app, arguments)
    assert made.exit_code == 0, made.output
    page = tmp_path / "out" / "index.html"
    picture = Path(os.environ.get("OPGROW_SCREENSHOTS") or tmp_path) / "study.png"
    with Browser(tmp_path) as browser:
        browser.open(page, 1200)
        browser.picture(picture)
        assert picture.stat().st_size > 50_000
        for name in ("accuracy", "parameters", "seconds", "flops"):
            assert browser.look(f"document.querySelectorAll('table#{name} tbody tr').length") >= 3
        for name in (
            "ranks",
            "operators-nodal",
            "operators-pool",
            "sizes-iris",
            "curves-iris-loss",
            "curves-wine-score",
        ):
            assert browser.look(f"document.querySelector('#{name} svg').getBoundingClientRect().height") > 50
        assert browser.fetched == [page.as_uri()]
        assert browser.complaints == []
