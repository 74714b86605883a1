"""What studies of models on splits of tables share: what to run, and what the line of a run begins with."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..provenance import commit, machine
from .results import Key, Line

__all__ = ["TableStudy", "beginning_of"]


@dataclass(frozen=True)
class TableStudy:
    """What to run.

    Attributes
    ----------
    tables, models : names
    file : the results, one line a run
    n_splits : splits of each table; the number of a split is the seed of its runs, too
    data_home : folder with tables, or None
    max_rows : training rows at most, or None
    """

    tables: Sequence[str]
    models: Sequence[str]
    file: Path
    n_splits: int = 1
    data_home: str | None = None
    max_rows: int | None = None

    def runs(self) -> list[Key]:
        """All runs, split by split, so that an interrupted study has all tables and models first."""
        return [
            (table, split, model)
            for split in range(self.n_splits)
            for table in self.tables
            for model in self.models
        ]

    def check(self, known: Mapping[Key, Line]) -> None:
        """Refuse to add to runs with another number of training rows, which cannot be compared."""
        for line in known.values():
            if line.get("max_rows") != self.max_rows:
                found = line.get("max_rows", "no limit")
                raise ValueError(
                    f"{str(self.file)!r} has runs with other training rows (--max-rows: {found}); name "
                    "another folder by --out"
                )


def beginning_of(program: str, key: Key, max_rows: int | None, data_home: str | None) -> Line:
    """Where and by which program of ``opgrow bench`` a run came about, and which one it is."""
    table, split, model = key
    limit = [] if max_rows is None else ["--max-rows", str(max_rows)]
    data = [] if data_home is None else ["--data", "DIR"]
    what = ["--tables", table, "--models", model, "--splits", str(split + 1), *limit]
    return {
        "commit": commit(),
        "machine": machine(),
        "command": f"opgrow bench {program} {shlex.join([*data, *what])}",
        "table": table,
        "split": split,
        "max_rows": max_rows,
        "model": model,
        "seed": split,
    }
