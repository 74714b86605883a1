"""Figures of docs/streams.md: what `opgrow bench prequential` measured."""

from __future__ import annotations

import json
from typing import Any

from .marks import RESULTS, Figures, markdown_table

__all__ = ["figures"]


def figures() -> Figures:
    """Accuracy and time of models on streams, and of digits whose classes come two at a time."""
    text = (RESULTS / "prequential" / "runs.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    streams = [line for line in lines if "first" in line]
    digits = [line for line in lines if "way" in line]
    tables = {"prequential-digits": _digits(digits)}
    for chunk in (500, 50):
        tables[f"prequential-{chunk}"] = _streams([line for line in streams if line["chunk"] == chunk])
    commits = dict.fromkeys(line["commit"] for line in streams)
    return Figures(tables, {"prequential-commits": ", ".join(commits)}, {})


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
