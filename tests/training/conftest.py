"""What the tests of this folder share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _one_thread(one_thread: None) -> None:
    """All of them take steps of a few rows."""
