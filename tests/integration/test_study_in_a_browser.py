"""The page of a study in a real browser: everything is drawn, nothing is fetched, nothing complains."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from opgrow.bench import app

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs Chromium (Debian: apt-get install chromium)")


def browse(page: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    command += [
        "--window-size=1200,3000",
        f"--user-data-dir={page.parent / 'browser'}",
        *options,
        page.as_uri(),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def test_tables_and_figures_are_drawn(tmp_path):
    """A screenshot stays in the folder that OPGROW_SCREENSHOTS names, if it does."""
    arguments = ["paper", "--datasets", "iris,wine,breast_cancer", "--models", "HeMLGOP,HeMLRN,PLN,MLP 60"]
    arguments += ["--splits", "1", "--select", "none", "--jobs", "1", "--out", str(tmp_path / "out")]
    made = CliRunner().invoke(app, arguments)
    assert made.exit_code == 0, made.output
    page = tmp_path / "out" / "index.html"
    folder = Path(os.environ.get("OPGROW_SCREENSHOTS") or tmp_path)
    picture = folder / "study.png"
    browse(page, f"--screenshot={picture}")
    assert picture.stat().st_size > 50_000
    seen = browse(page, "--dump-dom")
    for name in ("accuracy", "parameters", "seconds", "flops"):
        assert f'<table id="{name}">' in seen.stdout
    for name in ("ranks", "operators-nodal", "operators-pool", "sizes-iris", "curves-iris", "curves-wine"):
        assert f'<figure id="{name}"><svg' in seen.stdout
    assert "CONSOLE" not in seen.stderr
