"""Figures of docs/streams.md: what `opgrow bench prequential` measured."""

from __future__ import annotations

import json
from typing import Any

from .marks import RESULTS, Figures, markdown_table

__all__ = ["figures"]


def figures() -> Figures:
    """Models on streams, digits whose classes come two at a time, and very many rows."""
    lines, long = _lines("runs"), _lines("long")
    streams = [line for line in lines if "first" in line]
    digits = [line for line in lines if "way" in line]
    tables = {"prequential-digits": _digits(digits), "prequential-long": _long(long)}
    for chunk in (500, 50):
        tables[f"prequential-{chunk}"] = _streams([line for line in streams if line["chunk"] == chunk])
    commits = {
        "prequential-commits": ",".join(dict.fromkeys(line["commit"] for line in streams)),
        "prequential-long-commit": long[-1]["commit"],
    }
    return Figures(tables, commits, {})


def _lines(name: str) -> list[dict[str, Any]]:
    text = (RESULTS / "prequential" / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def _streams(lines: list[dict[str, Any]]) -> str:
    names = list(dict.fromkeys(line["stream"] for line in lines))
    found = {(line["stream"], line["model"]): line for line in lines}
    rows = []
    for model in dict.fromkeys(line["model"] for line in lines):
        own = [found[name, model] for name in names]
        cells = [f"{100 * line['accuracy']:.1f} / {100 * line['last_tenth']:.1f}" for line in own]
        means = (sum(line[name] for line in own) / len(own) for name in ("kilobytes", "microseconds_a_row"))
        rows.append((model, *cells, *(f"{mean:,.0f}" for mean in means)))
    return markdown_table(("accuracy (%): all / last tenth", *names, "kB", "µs a row"), rows)


def _digits(lines: list[dict[str, Any]]) -> str:
    ways = list(dict.fromkeys(line["way"] for line in lines))
    found = {(line["model"], line["way"]): f"{100 * line['accuracy']:.1f}" for line in lines}
    models = dict.fromkeys(line["model"] for line in lines)
    return markdown_table(
        ("accuracy (%)", *ways), [(model, *(found[model, way] for way in ways)) for model in models]
    )


def _long(lines: list[dict[str, Any]]) -> str:
    found = {line["model"]: line for line in lines}
    counts = [rows for rows, _ in lines[-1]["resident_mib"]]
    memory = (f"MiB, {n:,} rows" for n in counts)
    head = ("", "µs a row", "million rows/s", "first call (s)", *memory, "accuracy (%)")
    rows = []
    for model, line in found.items():
        cost = line["microseconds_a_row"]
        resident = [str(mib) for _, mib in line["resident_mib"]]
        cells = (f"{cost:.2f}", f"{1 / cost:.2f}", f"{line['first_seconds']:.1f}", *resident)
        rows.append((model, *cells, f"{100 * line['accuracy']:.1f}"))
    return markdown_table(head, rows)
