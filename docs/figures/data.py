"""Figures of docs/memory.md and docs/large-data.md: what `opgrow bench memory` and `stream` measured."""

from __future__ import annotations

import json
from typing import Any

from opgrow.bench.chunked_growth import StreamRow, figure
from opgrow.bench.fit_memory import Measured

from .marks import RESULTS, Figures, markdown_table

__all__ = ["figures"]


def figures() -> Figures:
    """Tables of memory and of rates, and the picture of time a row."""
    memory, (large, rows) = _runs("memory"), _runs("stream")
    return Figures(
        {"memory": _memory(memory), "stream-large": _large(large), "stream-rows": _rows(rows)},
        {
            "memory-commit": memory[-1]["commit"],
            "stream-large-commit": large["commit"],
            "stream-rows-commit": rows["commit"],
        },
        {"docs/images/time-a-row.svg": _picture(rows)},
    )


def _runs(name: str) -> list[dict[str, Any]]:
    """One command a line."""
    return [json.loads(line) for line in (RESULTS / name / "runs.jsonl").read_text().splitlines()]


def _memory(runs: list[dict[str, Any]]) -> str:
    rows = [Measured(**one, topology="") for run in runs for one in run["measurements"]]
    order = list(dict.fromkeys((row.rows, row.inputs, row.classes) for row in rows))
    ordered = sorted(rows, key=lambda row: order.index((row.rows, row.inputs, row.classes)))
    return "\n".join([Measured.HEAD, *(row.text() for row in ordered)])


def _large(run: dict[str, Any]) -> str:
    head = (
        "10,000,000 x 512 (20.5 GB), blocks of 2 from 144 sets",
        "rows/s",
        "in memory",
        "",
        "seconds",
        "resident",
    )
    rows = [
        (
            one["name"],
            f"{one['rows_per_second']:,}",
            f"{one['in_memory']:,}",
            f"{one['rows_per_second'] / one['in_memory']:.2f}",
            str(one["seconds"]),
            f"{one['resident_gb']:.2f} GB",
        )
        for one in run["measurements"]
    ]
    return markdown_table(head, rows)


def _rows(run: dict[str, Any]) -> str:
    found: dict[int, list[dict[str, Any]]] = {}
    for one in run["measurements"]:
        found.setdefault(one["rows"], []).append(one)
    rows = [
        (f"{n:,}", *(f"{one['cpu_us_a_row']:.1f}" for one in pair), f"{pair[-1]['resident_gb']:.2f} GB")
        for n, pair in found.items()
    ]
    head = ("rows of 16 inputs", "HeMLRN, us of CPU time a row", "HeMLGOP", "resident")
    return markdown_table(head, rows)


def _picture(run: dict[str, Any]) -> str:
    return figure(
        [
            StreamRow(one["name"], 0.0, "", n_rows=one["rows"], busy=one["cpu_us_a_row"])
            for one in run["measurements"]
        ]
    )
