"""A short version of `make extremes`: extreme rows, with sanitizers, for two estimators."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attack.extreme_rows import fitted, reports
from tests.export.compiled import MODES, needs_compiler


@needs_compiler
@pytest.mark.parametrize("name", ["HeMLGOPClassifier", "PLNRegressor"])
def test_extreme_rows_overflow_nothing_and_read_nothing_that_is_not_theirs(name: str, tmp_path: Path) -> None:
    ((model, learning),) = fitted([name])
    assert reports(model, learning, tmp_path, 200) == (len(MODES) + 1, "")
