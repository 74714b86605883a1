"""The runs of the study of operators, and their lines."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

from ..peers.one_run import measure
from ..peers.results import Key, Line, Results
from ..peers.splits import TableSplit, load_split
from ..peers.table_study import TableStudy, beginning_of
from ..runs import DONE, FAILED
from .variants import EQUAL, FULL, PERCEPTRONS, build

__all__ = ["run_study"]


def run_study(study: TableStudy, on_finished: Callable[[Line, int, int], None]) -> None:
    """Run what has no line yet, and write a line for each run as soon as it ends.

    ``on_finished`` hears of the line, how many runs have ended now, and how many there are to do.
    """
    results = Results(study.file)
    known = results.lines()
    study.check(known)
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


def _line(study: TableStudy, key: Key, result: dict[str, Any]) -> Line:
    """The line of a run: what it was, where it ran, and what came of it."""
    finite = {name: value for name, value in result.items() if value == value}  # no NaN
    return {**beginning_of("operators", key, study.max_rows, study.data_home), **finite}
