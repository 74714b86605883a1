"""What several test files share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_home() -> Path:
    """The folder with the real data sets, which are not part of the repository."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    home = Path(os.environ.get("OPGROW_DATA") or beside)
    if not home.is_dir():
        pytest.skip("needs a folder with data sets: name it in the environment variable OPGROW_DATA")
    return home
