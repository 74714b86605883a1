"""The paper's protocol for large problems: all that a page shows of it, in one piece.

There may be no such results, which is then what the page says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opgrow.bench.models import OF_PAPER
from opgrow.bench.published import QUANTITIES
from opgrow.bench.replication.paper_tables import paper_tables
from opgrow.bench.runs import DONE

from .marks import markdown_table
from .paired import paired

__all__ = ["large_problems"]

_TITLES = {
    "accuracy": "Accuracy (%)",
    "parameters": "Parameters",
    "seconds": "Training time (s)",
    "flops": "FLOPs of a prediction",
}
_HEAD = ("HeMLGOP against", "paper's settings: points", "size ratio", "our defaults: points", "size ratio")


def large_problems(rows: Sequence[Mapping[str, str]]) -> str:
    """Where the runs are from, the paper's tables of them, and HeMLGOP against the other methods."""
    if not rows:
        return "No results of large problems are stored."
    done = [row for row in rows if row["status"] == DONE]
    machines = ", ".join(dict.fromkeys(row["machine"] for row in rows))
    parts = [f"{len(done)} of {len(rows)} runs ended. Commit {_commits(rows)}, on {machines}."]
    tables = {table.name: table for table in paper_tables(rows)}
    for name in QUANTITIES:
        parts += [f"**{_TITLES[name]}**", markdown_table(tables[name].head, tables[name].rows)]
    parts += ["**HeMLGOP on the same splits**", markdown_table(_HEAD, _against(rows))]
    return "\n\n".join(part.strip() for part in parts)


def _commits(rows: Sequence[Mapping[str, str]]) -> str:
    return ", ".join(dict.fromkeys(row["commit"] for row in rows))


def _against(rows: Sequence[Mapping[str, str]]) -> list[tuple[str, ...]]:
    by_settings = [dict(paired(rows, suffix)) for suffix in (OF_PAPER, "")]
    body = []
    for method in dict.fromkeys(name for pairs in by_settings for name in pairs):
        there = [pairs.get(method) for pairs in by_settings]
        cells = [(one.points, one.size) if one else ("", "") for one in there]
        body.append((method, *cells[0], *cells[1]))
    return body
