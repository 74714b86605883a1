"""The paper's protocol for large problems: all that a page shows of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from opgrow.bench.models import OF_PAPER
from opgrow.bench.published import METHODS, QUANTITIES
from opgrow.bench.replication.paper_tables import paper_tables
from opgrow.bench.runs import DONE

from .marks import markdown_table
from .paired import paired

__all__ = ["large_problems", "large_values"]

_TITLES = {
    "accuracy": "Accuracy (%)",
    "parameters": "Parameters",
    "seconds": "Training time (s)",
    "flops": "FLOPs of a prediction",
}
_HEAD = ("HeMLGOP against", "on", "splits", "points", "parameters of the other")
_Rows = Sequence[Mapping[str, str]]


def large_problems(rows: _Rows) -> str:
    """Where the runs are from, the paper's tables of them, and HeMLGOP against the other methods."""
    done = [row for row in rows if row["status"] == DONE]
    machines = ", ".join(dict.fromkeys(row["machine"] for row in rows))
    parts = [f"{len(done)} of {len(rows)} runs ended. Commit {_commits(rows)}, on {machines}."]
    tables = {table.name: table for table in paper_tables(rows)}
    for name in QUANTITIES:
        parts += [f"**{_TITLES[name]}**", markdown_table(tables[name].head, tables[name].rows)]
    parts += ["**HeMLGOP on the same splits**", markdown_table(_HEAD, _against(rows))]
    return "\n\n".join(part.strip() for part in parts)


def large_values(rows: _Rows) -> dict[str, str]:
    """On each data set: HeMLGOP against each method, HoMLGOP against HoMLRN, and what POP takes and gains."""
    values = {}
    for dataset, of_it in _by_dataset(rows):
        name = f"large-{dataset.partition('_')[0]}"
        for method, pairs in paired(of_it, OF_PAPER):
            values[f"{name}-{method.lower()}-points"] = pairs.points
            values[f"{name}-{method.lower()}-size"] = pairs.size
        homogeneous = dict(paired(of_it, OF_PAPER, "HoMLGOP"))
        if "HoMLRN" in homogeneous:
            values[f"{name}-homogeneous-points"] = homogeneous["HoMLRN"].points
            values[f"{name}-homogeneous-size"] = homogeneous["HoMLRN"].size
        values |= _populations(name, of_it)
    return values


def _populations(name: str, rows: _Rows) -> dict[str, str]:
    """Seconds of POP, how many times HeMLGOP's on the same split they are, and what it gains."""
    ours = {row["split"]: row for row in rows if row["model"] == METHODS[0] + OF_PAPER}
    values = {}
    for row in rows:
        method, _, change = row["model"].partition(" epochs=[")
        if row["status"] == DONE and method == f"POP{OF_PAPER}":
            key = f"{name}-pop{change.partition(',')[0]}"
            other = ours[row["split"]]
            values[f"{key}-seconds"] = f"{float(row['seconds']):.0f}"
            values[f"{key}-times"] = f"{float(row['seconds']) / float(other['seconds']):.2g}"
            values[f"{key}-gain"] = f"{100 * (float(row['accuracy']) - float(other['accuracy'])):+.1f}"
    return values


def _commits(rows: _Rows) -> str:
    return ", ".join(dict.fromkeys(row["commit"] for row in rows))


def _by_dataset(rows: _Rows) -> Iterator[tuple[str, _Rows]]:
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        yield dataset, [row for row in rows if row["dataset"] == dataset]


def _against(rows: _Rows) -> list[tuple[str, ...]]:
    found = {
        (method, dataset): pairs
        for dataset, of_it in _by_dataset(rows)
        for method, pairs in paired(of_it, OF_PAPER)
    }
    order = sorted(found, key=lambda key: METHODS.index(key[0]))
    return [
        (method, dataset, str(pairs.count), pairs.points, f"{pairs.size} times as many")
        for method, dataset in order
        for pairs in [found[method, dataset]]
    ]
