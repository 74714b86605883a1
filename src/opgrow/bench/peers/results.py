"""The results file: one line of JSON for each run, whether it finished or not.

Lines are only ever added, as soon as a run ends, so that an interruption loses the runs that were under way
and nothing else, and several commands can share a file. A later line of a run replaces an earlier one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...common.atomic import append_line

__all__ = ["Key", "Line", "Results", "key_of"]

#: What is known of a run; what does not apply is left out.
Line = dict[str, Any]
#: What tells runs apart: table, split and model.
Key = tuple[str, int, str]


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
        """The last line of each run. A line that was cut off while it was written is passed over."""
        if not self.path.exists():
            return {}
        found: dict[Key, Line] = {}
        for number, text in enumerate(self.path.read_bytes().splitlines(), 1):
            try:
                line = json.loads(text)
            except ValueError:
                continue
            if not isinstance(line, dict) or not {"table", "split", "model", "status"} <= line.keys():
                raise ValueError(f"{str(self.path)!r}, line {number}, is not a run of opgrow bench peers")
            found[key_of(line)] = line
        return found

    def add(self, line: Line) -> None:
        """Add a line to the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        given = {name: value for name, value in line.items() if value is not None}
        append_line(self.path, json.dumps(given, ensure_ascii=False, allow_nan=False).encode())
