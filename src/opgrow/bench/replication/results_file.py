"""Results as a CSV file, one line a run, to which lines are added: what it has is not run again."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...common.atomic import append_line

__all__ = ["ResultsFile"]


@dataclass(frozen=True)
class ResultsFile:
    """A CSV file with these columns, of which ``key`` tells runs apart.

    Examples
    --------
    >>> import tempfile
    >>> file = ResultsFile(Path(tempfile.mkdtemp()) / "runs.csv", ("table", "accuracy"), ("table",))
    >>> file.add({"table": "pima", "accuracy": 0.75})
    >>> file.rows(), file.known()
    ([{'table': 'pima', 'accuracy': '0.75'}], {('pima',)})
    """

    path: Path
    columns: Sequence[str]
    key: Sequence[str]

    def rows(self) -> list[dict[str, str]]:
        """All complete lines, as texts."""
        if not self.path.exists():
            return []
        with self.path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            if tuple(reader.fieldnames or ()) != tuple(self.columns):
                raise ValueError(
                    f"{str(self.path)!r} must have the columns {', '.join(self.columns)}, got "
                    f"{', '.join(reader.fieldnames or ())}; name another file"
                )
            return [row for row in reader if None not in row.values()]

    def known(self) -> set[tuple[str, ...]]:
        """The keys of the runs that it has."""
        return {self.key_of(row) for row in self.rows()}

    def key_of(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        """What tells a run apart."""
        return tuple(str(row[name]) for name in self.key)

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a line, after the head where there is none yet."""
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            append_line(self.path, _line(self.columns))
        append_line(self.path, _line([row[name] for name in self.columns]))


def _line(cells: Sequence[Any]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(cells)
    return text.getvalue().encode()
