"""Figures of docs/signals.md: what `opgrow bench signals` measured."""

from __future__ import annotations

import json
from typing import Any

from .marks import RESULTS, Figures, markdown_table

__all__ = ["figures"]


def figures() -> Figures:
    """Accuracy by blocks of time and at random, and what the exported program takes."""
    text = (RESULTS / "signals" / "runs.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    exported = [line for line in lines if "exported" in line][-1]
    values = {
        f"signals-{name}": f"{exported[name]:,}" for name in ("parameters", "windows", "code", "constants")
    }
    values |= {
        "signals-stack": f"{exported['stack']:,}",
        "signals-agreement": f"{100 * exported['agreement']:.3g}",
        "signals-difference": f"{exported['largest_difference']:.1g}",
        "signals-commit": exported["commit"],
        "signals-peers": f"{100 * _shuffled():.1f}",
    }
    return Figures({"signals": _table([line for line in lines if "split" in line])}, values, {})


def _shuffled() -> float:
    """The accuracy of HeMLGOP on single samples after a stratified split, from the comparison with peers."""
    text = (RESULTS / "peers" / "runs.jsonl").read_text(encoding="utf-8")
    runs = [json.loads(line) for line in text.splitlines()]
    own = [run for run in runs if (run["table"], run["model"]) == ("eeg_eye_state", "HeMLGOP")]
    return float(own[-1]["accuracy"])


def _table(lines: list[dict[str, Any]]) -> str:
    found = {(line["model"], line["split"]): line for line in lines}
    splits = list(dict.fromkeys(line["split"] for line in lines))
    rows = []
    for model in dict.fromkeys(line["model"] for line in lines):
        own = [found[model, split] for split in splits]
        cells = [f"{100 * line['accuracy']:.1f} / {100 * line['balanced']:.1f}" for line in own]
        rows.append((model, f"{own[0]['rows']:,}", f"{100 * own[0]['majority']:.1f}", *cells))
    return markdown_table(("accuracy / balanced (%)", "rows", "always eyes open", *splits), rows)
