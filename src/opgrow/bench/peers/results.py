"""The results file: one CSV line for each run, whether it finished or not.

The file is written as a whole and atomically after each run, and read again just before, so that what another
command has added stays. A later line of the same run replaces the earlier one.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ...common.atomic import write_atomically
from .metrics import METRICS

__all__ = ["COLUMNS", "Key", "Line", "Results", "key_of"]

#: One line: a value for each column that it has; empty cells are left out.
Line = dict[str, Any]
#: What tells runs apart: table, split and model.
Key = tuple[str, int, str]

_TEXTS = ("commit", "machine", "command", "table", "task", "model", "status", "message")
_STRUCTURE = ("layers", "blocks", "operator_sets", "networks")
_WHOLE = ("split", "max_rows", "rows", "test_rows", "seed", "parameters", *_STRUCTURE)
COLUMNS = (
    *(
        "commit",
        "machine",
        "command",
        "table",
        "task",
        "split",
        "max_rows",
        "rows",
        "test_rows",
        "model",
        "seed",
    ),
    *("status", "message", *METRICS["classification"], *METRICS["regression"]),
    *("fit_seconds", "fit_cpu_seconds", "predict_seconds", "budget", "parameters", *_STRUCTURE),
)


def key_of(line: Mapping[str, Any]) -> Key:
    """Which run a line is of."""
    return line["table"], line["split"], line["model"]


class Results:
    """The lines of a file, by run.

    Parameters
    ----------
    path : path-like
        Made when the first run is added.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self) -> dict[Key, Line]:
        """All lines, in the order of the file."""
        if not self.path.exists():
            return {}
        with open(self.path, newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file, restval="")
            missing = {"table", "split", "model", "status"}.difference(reader.fieldnames or ())
            if missing:
                raise ValueError(f"{str(self.path)!r} has no column {', '.join(sorted(missing))}")
            try:
                lines = [_read(row) for row in reader]
            except ValueError as error:
                raise ValueError(f"{str(self.path)!r}, line {reader.line_num}: {error}") from None
        return {key_of(line): line for line in lines}

    def add(self, line: Line) -> None:
        """Write a line, in place of an earlier one of the same run."""
        lines = self.lines()
        lines[key_of(line)] = line
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path, _text(lines.values()).encode())


def _text(lines: Iterable[Line]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for line in lines:
        writer.writerow({name: value for name, value in line.items() if value is not None})
    return text.getvalue()


def _read(row: Mapping[str, str]) -> Line:
    return {name: _value(name, text) for name, text in row.items() if name in COLUMNS and text != ""}


def _value(name: str, text: str) -> Any:
    if name in _TEXTS:
        return text
    number = int(text) if name in _WHOLE else float(text)
    if math.isinf(number):
        raise ValueError(f"{name} is finite, got {text!r}")
    return number
