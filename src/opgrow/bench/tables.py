"""The tables of a study: a row for each dataset, a column for each model, published figures beside ours."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .published import DATASETS as PUBLISHED_DATASETS
from .published import METHODS as PUBLISHED_METHODS
from .published import printed
from .runs import DONE
from .study import Finished

__all__ = ["QUANTITIES", "as_csv", "as_markdown", "cell", "summarize"]

#: What the paper has a table of, with a title.
QUANTITIES = {
    "accuracy": "Test accuracy (%)",
    "parameters": "Parameters",
    "seconds": "Training time (s)",
    "flops": "FLOPs of a prediction",
}
_COLUMNS = (
    *("dataset", "split", "model", "status", "accuracy", "training_accuracy", "parameters", "flops"),
    *("seconds", "selection_seconds", "topology", "chosen", "message"),
)


def as_csv(results: Sequence[Finished]) -> str:
    """One line for every run, also for those that did not finish."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for run, result in results:
        known = {"dataset": run.dataset, "split": run.split, "model": run.model, **result}
        writer.writerow(["" if known.get(name) is None else known[name] for name in _COLUMNS])
    return text.getvalue()


def summarize(results: Sequence[Finished], summary: str) -> list[dict[str, Any]]:
    """A row for each dataset and model: medians, or means with deviations, over the splits that finished."""
    rows = []
    for dataset, model in dict.fromkeys((run.dataset, run.model) for run, _ in results):
        group = [result for run, result in results if (run.dataset, run.model) == (dataset, model)]
        done = [result for result in group if result["status"] == DONE]
        row: dict[str, Any] = {"dataset": dataset, "model": model, "runs": len(group), "finished": len(done)}
        middle: Callable[[list[float]], Any] = np.mean if summary == "mean" else np.median
        for quantity in QUANTITIES:
            values = [r[quantity] for r in done if r.get(quantity) is not None]
            # Sizes and times are skewed; their means would be those of the largest network.
            row[quantity] = (
                float((middle if quantity == "accuracy" else np.median)(values)) if values else None
            )
        accuracies = [result["accuracy"] for result in done]
        row["deviation"] = float(np.std(accuracies, ddof=1)) if len(accuracies) > 1 else None
        rows.append(row)
    return rows


def as_markdown(rows: Sequence[dict[str, Any]]) -> str:
    """A table for each quantity, in the layout of the paper; its figures are in brackets."""
    parts = []
    models = list(dict.fromkeys(row["model"] for row in rows))
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    found = {(row["dataset"], row["model"]): row for row in rows}
    for quantity, title in QUANTITIES.items():
        lines = [f"## {title}", "", f"| | {' | '.join(models)} |", "|---" * (len(models) + 1) + "|"]
        for dataset in datasets:
            cells = [cell(found.get((dataset, model)), quantity) for model in models]
            lines.append(f"| {dataset} | {' | '.join(cells)} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def cell(row: dict[str, Any] | None, quantity: str) -> str:
    """What a table shows: our figure, what did not finish, and the paper's figure in brackets."""
    if row is None:
        return ""
    ours = _shown(row, quantity)
    missing = row["runs"] - row["finished"]
    if missing:
        ours = f"{ours}, {missing} of {row['runs']} not finished" if row["finished"] else "not finished"
    theirs = _published(row["dataset"], row["model"], quantity)
    return f"{ours} [{theirs}]" if theirs else ours


def _shown(row: dict[str, Any], quantity: str) -> str:
    value = row[quantity]
    if value is None:
        return ""
    if quantity == "accuracy":
        spread = f" ± {100 * row['deviation']:.1f}" if row["deviation"] is not None else ""
        return f"{100 * value:.1f}{spread}"
    return f"{value:.3g}" if quantity == "seconds" else f"{value:,.0f}"


def _published(dataset: str, model: str, quantity: str) -> str | None:
    """The paper's figure, where it is of the same data."""
    names = [
        name for name, known in PUBLISHED_DATASETS.items() if known.local == dataset and known.comparable
    ]
    if not names or model not in PUBLISHED_METHODS:
        return None
    return printed(names[0], model, quantity)
