"""The runs of the study of operators, and their lines."""

from __future__ import annotations

import shlex
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..peers.one_run import measure
from ..peers.results import Key, Line, Results
from ..peers.splits import TableSplit, load_split
from ..provenance import commit, machine
from ..runs import DONE, FAILED
from .variants import EQUAL, FULL, PERCEPTRONS, build

__all__ = ["OperatorStudy", "run_study"]


@dataclass(frozen=True)
class OperatorStudy:
    """What to run.

    Attributes
    ----------
    tables, variants : names
    file : the results, one line a run
    n_splits : splits of each table; the number of a split is the seed of its runs, too
    data_home : folder with tables, or None
    max_rows : training rows at most, or None
    """

    tables: Sequence[str]
    variants: Sequence[str]
    file: Path
    n_splits: int = 1
    data_home: str | None = None
    max_rows: int | None = None

    def runs(self) -> list[Key]:
        """All runs, split by split and table by table."""
        return [
            (table, split, variant)
            for split in range(self.n_splits)
            for table in self.tables
            for variant in self.variants
        ]


def run_study(study: OperatorStudy, on_finished: Callable[[Line, int, int], None]) -> None:
    """Run what has no line yet, and write a line for each run as soon as it ends.

    ``on_finished`` hears of the line, how many runs have ended now, and how many there are to do.
    """
    results = Results(study.file)
    known = results.lines()
    for line in known.values():
        if line.get("max_rows") != study.max_rows:
            found = line.get("max_rows", "no limit")
            raise ValueError(
                f"{str(study.file)!r} has runs with other training rows (--max-rows: {found}); name another "
                "folder by --out"
            )
    waiting = [key for key in study.runs() if key not in known]
    loaded: tuple[Any, TableSplit | None] = (None, None)
    for number, (table, split, variant) in enumerate(waiting, 1):
        if loaded[0] != (table, split):
            loaded = (table, split), load_split(table, split, study.data_home, study.max_rows)
        assert loaded[1] is not None
        limit = _limit(known, table, split) if variant in EQUAL else None
        line = _line(study, (table, split, variant), _run(variant, loaded[1], split, limit))
        known[table, split, variant] = line
        results.add(line)
        on_finished(line, number, len(waiting))


def _limit(known: dict[Key, Line], table: str, split: int) -> int | None:
    """The parameters of the smaller one of two networks that are compared at equal size."""
    sizes = [known[table, split, variant].get("parameters") for variant in (FULL, PERCEPTRONS)]
    known_sizes = [size for size in sizes if size is not None]
    return min(known_sizes) if len(known_sizes) == len(sizes) else None


def _run(variant: str, split: TableSplit, seed: int, limit: int | None) -> dict[str, Any]:
    """Fit a variant and measure it; a failure is a result, too."""
    result: dict[str, Any] = {"task": split.task, "rows": len(split.y_train), "test_rows": len(split.y_test)}
    try:
        model = build(variant, split.task, seed, limit)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # rows far outside the training data
            result |= {"status": DONE, **measure(model, "table", split)}
    except Exception as error:
        first = (str(error).splitlines() or [""])[0]
        return result | {"status": FAILED, "message": f"{type(error).__name__}: {first}"}
    blocks = Counter(str(block.operator_set) for layer in model.network_.layers for block in layer)
    return result | {"max_parameters": limit, "chosen": dict(sorted(blocks.items()))}


def _line(study: OperatorStudy, key: Key, result: dict[str, Any]) -> Line:
    """The line of a run: what it was, where it ran, and what came of it."""
    table, split, variant = key
    limit = [] if study.max_rows is None else ["--max-rows", str(study.max_rows)]
    data = [] if study.data_home is None else ["--data", "DIR"]
    what = ["--tables", table, "--models", variant, "--splits", str(split + 1), *limit]
    return {
        "commit": commit(),
        "machine": machine(),
        "command": f"opgrow bench operators {shlex.join([*data, *what])}",
        "table": table,
        "split": split,
        "max_rows": study.max_rows,
        "model": variant,
        "seed": split,
        **{name: value for name, value in result.items() if value == value},  # no NaN
    }
