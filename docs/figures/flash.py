"""Figures of docs/deployment-c.md: what `opgrow bench flash` measured."""

from __future__ import annotations

import json
from typing import Any

from opgrow.bench.flash import NETWORKS, VARIANTS
from opgrow.report.charts import Point, scatter

from .marks import RESULTS, Figures, markdown_table

__all__ = ["figures"]

Line = dict[str, Any]


def figures() -> Figures:
    """Accuracy against flash: a picture for each table, and what the smallest good programs take."""
    text = (RESULTS / "flash" / "runs.jsonl").read_text(encoding="utf-8")
    found: dict[tuple[str, str, str], Line] = {}
    for line in map(json.loads, text.splitlines()):
        found[line["table"], line["series"], line["model"]] = line
    lines = list(found.values())
    tables = list(dict.fromkeys(line["table"] for line in lines))
    return Figures(
        {"flash-variants": _variants(lines, tables), "flash-smallest": _smallest(lines, tables)},
        {"flash-commit": lines[-1]["commit"]},
        {
            f"docs/images/flash-{table}.svg": _picture([own for own in lines if own["table"] == table])
            for table in tables
        },
    )


def _picture(lines: list[Line]) -> str:
    points = [Point(own["flash"], 100 * own["accuracy"], own["model"], own["series"], 4.0) for own in lines]
    return scatter(points, "flash (bytes)", "test accuracy (%)", log_x=True)


def _variants(lines: list[Line], tables: list[str]) -> str:
    """Flash and accuracy of each variant of the compact networks."""
    compact = next(iter(NETWORKS))
    rows = []
    for variant in VARIANTS:
        own = {
            line["table"]: f"{line['flash']:,} / {100 * line['accuracy']:.1f}"
            for line in lines
            if line["series"] == f"ours, {variant}" and line["model"].startswith(compact)
        }
        rows.append((variant, *(own.get(table, "") for table in tables)))
    return markdown_table(("compact: bytes / accuracy (%)", *tables), rows)


def _smallest(lines: list[Line], tables: list[str]) -> str:
    """Of each series, the bytes of the smallest program within a point of the best of all."""
    best = {table: max(own["accuracy"] for own in lines if own["table"] == table) for table in tables}
    rows = []
    for series in dict.fromkeys(line["series"] for line in lines):
        cells = []
        for table in tables:
            good = [
                own["flash"]
                for own in lines
                if (own["table"], own["series"]) == (table, series) and own["accuracy"] >= best[table] - 0.01
            ]
            cells.append(f"{min(good):,}" if good else "")
        rows.append((series, *cells))
    return markdown_table(("bytes of the smallest within a point of the best", *tables), rows)
