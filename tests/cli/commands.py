"""Commands as users give them, for the tests of this folder."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from opgrow.cli import app


def run(*arguments: Any, code: int = 0) -> Any:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def refused(*arguments: Any) -> str:
    """The one line that an error prints."""
    result = run(*arguments, code=2)
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    return str(result.stderr.removeprefix("error: ").strip())


def write_csv(path: Path, header: list[str], rows: Any) -> Path:
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path
