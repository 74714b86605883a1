"""The paper's tables, with what it prints, its procedure run here, and our defaults below each other.

The measured figures come from the CSV file of a study, so that tables on pages can be made again from it.
Sizes, times and FLOPs are those of the run with the median accuracy, as in the paper.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence

from ...operators import library
from ..models import OF_PAPER
from ..published import METHODS, QUANTITIES, TABLES, printed
from ..published_datasets import DATASETS
from ..runs import DONE
from ..tables import Table, median_run

__all__ = ["paper_tables", "rows_of"]

_NUMERALS = ("", "I", "II", "III", "IV", "V", "VI")
_PUBLISHED, _AS_PRINTED, _OURS = "published", "run as printed", "our defaults"


def rows_of(text: str) -> list[dict[str, str]]:
    """The lines of the CSV file of a study."""
    return list(csv.DictReader(io.StringIO(text)))


def paper_tables(rows: Sequence[Mapping[str, str]]) -> list[Table]:
    """Tables I to VI, of the data sets that there are runs of."""
    return [_operator_table(), _dataset_table(), *(_measured_table(rows, name) for name in QUANTITIES)]


def _title(name: str) -> str:
    table = TABLES[name]
    return f"Table {_NUMERALS[table.number]}: {table.content}"


def _operator_table() -> Table:
    """The operators as they are computed here."""
    sets = library("paper")
    kinds = [("nodal", [s.nodal for s in sets]), ("pool", [s.pool for s in sets])]
    kinds.append(("activation", [s.activation for s in sets]))
    body = tuple((kind, ", ".join(dict.fromkeys(names))) for kind, names in kinds)
    note = f"{TABLES['operators'].note} Here softplus is as printed, and ELU as usual."
    return Table("operators", _title("operators"), ("kind", f"{len(sets)} sets of"), body, note)


def _dataset_table() -> Table:
    """The paper's data sets, and which of them can be had."""
    body = []
    for one in DATASETS.values():
        here = "the same" if one.comparable else "a stand-in" if one.local else "no"
        body.append((one.title, *(f"{n:,}" for n in (one.samples, one.inputs, one.classes)), here))
    head = ("", "samples", "inputs", "classes", "here")
    return Table("datasets", _title("datasets"), head, tuple(body))


def _measured_table(rows: Sequence[Mapping[str, str]], quantity: str) -> Table:
    """A quantity of all methods: three rows for each data set."""
    body = []
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        known = [name for name, one in DATASETS.items() if one.local == dataset]
        if known:
            cells = [printed(known[0], method, quantity) or "" for method in METHODS]
            title = "" if DATASETS[known[0]].comparable else ", other inputs"
            if any(cells):
                body.append((f"{dataset}, {_PUBLISHED}{title}", *cells))
        for kind, suffix in ((_AS_PRINTED, OF_PAPER), (_OURS, "")):
            runs = [
                [row for row in rows if (row["dataset"], row["model"]) == (dataset, method + suffix)]
                for method in METHODS
            ]
            if any(runs):
                body.append((f"{dataset}, {kind}", *(_cell(some, quantity) for some in runs)))
        body += _changed(rows, dataset, quantity)
    return Table(quantity, _title(quantity), ("", *METHODS), tuple(body))


def _changed(rows: Sequence[Mapping[str, str]], dataset: str, quantity: str) -> Iterator[tuple[str, ...]]:
    """A row for each change of the paper's settings that was run of some method, named by what it changes."""
    runs: dict[str, dict[str, list[Mapping[str, str]]]] = {}
    for row in rows:
        method, _, change = row["model"].partition(" ")
        if row["dataset"] == dataset and change and method.endswith(OF_PAPER):
            runs.setdefault(change, {}).setdefault(method.removesuffix(OF_PAPER), []).append(row)
    for change, by_method in runs.items():
        cells = (_cell(by_method.get(method, []), quantity) for method in METHODS)
        yield (f"{dataset}, {_AS_PRINTED}, but `{change}`", *cells)


def _cell(runs: Sequence[Mapping[str, str]], quantity: str) -> str:
    """The figure of the run with the median accuracy, and how many runs did not end."""
    done = [row for row in runs if row["status"] == DONE]
    if not runs:
        return ""
    missing = f"{len(runs) - len(done)} of {len(runs)} not finished"
    if not done:
        return missing
    [middle] = median_run(done)
    shown = _shown(float(middle[quantity]), quantity)
    return shown if len(done) == len(runs) else f"{shown}, {missing}"


def _shown(value: float, quantity: str) -> str:
    if quantity == "accuracy":
        return f"{100 * value:.2f}"
    return f"{value:.3g}" if quantity == "seconds" else f"{value / 1000:.1f}k"


def operator_counts(rows: Sequence[Mapping[str, str]]) -> Iterator[tuple[str, str, int]]:
    """Method, operator set and neurons of every block of the runs with the paper's settings."""
    for row in rows:
        method = row["model"].removesuffix(OF_PAPER)
        if method == row["model"]:
            continue
        for block in row["operators"].split():
            operators, _, neurons = block.rpartition(":")
            yield method, operators, int(neurons)
