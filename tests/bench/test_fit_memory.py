"""What a fit takes is measured in a process of its own, and is near the estimate."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from opgrow.bench.fit_memory import measure_memory, parse_sizes
from opgrow.cli import app
from opgrow.cli.bench import app as bench


@pytest.mark.parametrize(("method", "size"), [("HeMLRN", "8000x10x2"), ("BLS", "60000x20x4")])
def test_the_estimate_is_within_a_factor_of_two(method: str, size: str, tmp_path: Path) -> None:
    [row] = measure_memory(parse_sizes(size), [method], 1, tmp_path)
    assert row.measured / 2 < row.estimate < row.measured * 2
    assert list(tmp_path.iterdir()) == []


def test_sizes_that_cannot_be_measured_are_refused() -> None:
    for given, why in (("10x2", "SIZES are"), ("ax2x2", "SIZES are"), ("10x2x5", "ten rows of each")):
        result = CliRunner().invoke(app, ["bench", "memory", given])
        assert result.exit_code == 2
        assert why in result.stderr
    assert "unknown method 'x'" in str(CliRunner().invoke(bench, ["memory", "--methods", "x"]).exception)
