"""The tables of a study: a row for each dataset, a column for each model, published figures beside ours.

A table is a title, a head and rows of texts; it becomes Markdown here and HTML in `opgrow.bench.page`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .models import OF_PAPER
from .protocols import PROTOCOLS, Protocol
from .published import METHODS as PUBLISHED_METHODS
from .published import QUANTITIES as PUBLISHED_QUANTITIES
from .published import printed
from .published_datasets import DATASETS as PUBLISHED_DATASETS
from .runs import DONE
from .study import Finished

__all__ = [
    "REFERENCE",
    "Table",
    "against_reference",
    "as_csv",
    "as_markdown",
    "median_run",
    "summarize",
    "tables_of",
]

#: The model that the others are compared with.
REFERENCE = "HeMLGOP"
#: Splits of which the paper takes the median.
PAPER_SPLITS = PROTOCOLS["paper"].small_splits

#: What there is a table of, with a title; all but the last are in the paper.
QUANTITIES = {
    "accuracy": "Test accuracy (%)",
    "parameters": "Parameters",
    "seconds": "Training time (s)",
    "flops": "FLOPs of a prediction",
    "calibration": "Expected calibration error (%)",
}
#: Quantities that are fractions and shown in percent.
_PERCENT = ("accuracy", "calibration")
_COLUMNS = (
    *(
        "commit",
        "machine",
        "device",
        "command",
        "protocol",
        "select",
        "dataset",
        "split",
        "seed",
        "model",
        "status",
    ),
    *("accuracy", "training_accuracy", "calibration", "parameters", "flops", "seconds"),
    *("selection_seconds", "topology", "operators", "chosen", "message"),
)


def as_csv(results: Sequence[Finished], source: Mapping[str, str]) -> str:
    """One line for every run, also for those that did not finish.

    ``source`` has what is the same for all: command, protocol and select.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for run, result in results:
        cells = {**source, "dataset": run.dataset, "split": run.split, "model": run.model, **result}
        cells["seed"] = run.split
        cells["operators"] = " ".join(f"{b['set']}:{b['neurons']}" for b in result.get("operators", ()))
        writer.writerow(["" if cells.get(name) is None else cells[name] for name in _COLUMNS])
    return text.getvalue()


def summarize(results: Sequence[Finished], summary: str) -> list[dict[str, Any]]:
    """A row for each dataset and model, of the splits that finished.

    Of a median, all figures are those of one run, the one with the median accuracy (of two, the lower one);
    of a mean, sizes and times are medians, since their means would be those of the largest network.
    """
    rows = []
    for dataset, model in dict.fromkeys((run.dataset, run.model) for run, _ in results):
        group = [result for run, result in results if (run.dataset, run.model) == (dataset, model)]
        done = [result for result in group if result["status"] == DONE]
        row: dict[str, Any] = {"dataset": dataset, "model": model, "runs": len(group), "finished": len(done)}
        chosen = done if summary == "mean" else median_run(done)
        for quantity in QUANTITIES:
            values = [r[quantity] for r in chosen if r.get(quantity) is not None]
            middle: Callable[[list[float]], Any] = np.mean if quantity == "accuracy" else np.median
            row[quantity] = float(middle(values)) if values else None
        accuracies = [result["accuracy"] for result in done]
        row["deviation"] = float(np.std(accuracies, ddof=1)) if len(accuracies) > 1 else None
        rows.append(row)
    return rows


def median_run(done: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The run with the median accuracy, if there is one."""
    return sorted(done, key=lambda result: float(result["accuracy"]))[(len(done) - 1) // 2 :][:1]


@dataclass(frozen=True)
class Table:
    """What a reader sees: texts only, the first column being names."""

    name: str
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def markdown(self, level: int = 2) -> str:
        """The table below a heading of the level."""
        lines = [f"{'#' * level} {self.title}", "", *([self.note, ""] if self.note else [])]
        lines += [f"| {' | '.join(self.head)} |", "|---" * len(self.head) + "|"]
        lines += [f"| {' | '.join(row)} |" for row in self.rows]
        return "\n".join(lines) + "\n"


def tables_of(results: Sequence[Finished], protocol: Protocol, inner: bool = False) -> list[Table]:
    """All tables of a study; one of inner splits says so, and no published figure stands beside its own."""
    titles = QUANTITIES | ({"accuracy": "Accuracy on training rows held back (%)"} if inner else {})
    tables = _by_quantity(summarize(results, protocol.summary), titles, published=not inner)
    if protocol.summary == "mean" and any(run.split >= PAPER_SPLITS for run, _ in results):
        first = [(run, result) for run, result in results if run.split < PAPER_SPLITS]
        title = f"{titles['accuracy']}, median of the first {PAPER_SPLITS} splits"
        accuracy = _by_quantity(summarize(first, "median"), titles, published=not inner)[0]
        tables.insert(1, replace(accuracy, name="accuracy-paper", title=title))
    differences = against_reference(results)
    return [*tables, _difference_table(differences)] if differences else tables


def as_markdown(tables: Sequence[Table]) -> str:
    """All tables, one after the other."""
    return "\n".join(table.markdown() for table in tables)


def _by_quantity(rows: Sequence[dict[str, Any]], titles: Mapping[str, str], published: bool) -> list[Table]:
    """A table for each quantity, in the layout of the paper, whose figures may stand in brackets."""
    models = list(dict.fromkeys(row["model"] for row in rows))
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    by_name = {(row["dataset"], row["model"]): row for row in rows}
    tables = []
    for quantity, title in titles.items():
        body = [
            (name, *(_cell(by_name.get((name, model)), quantity, published) for model in models))
            for name in datasets
        ]
        if len(datasets) > 1:
            means = (_mean([by_name[name, model] for name in datasets], quantity) for model in models)
            body.append(("mean", *means))
        tables.append(Table(quantity, title, ("", *models), tuple(body)))
    return tables


def _mean(rows: Sequence[dict[str, Any]], quantity: str) -> str:
    """The mean over datasets, of a model that has finished all of them."""
    values = [row[quantity] for row in rows if row["finished"] == row["runs"]]
    if len(values) < len(rows) or any(value is None for value in values):
        return ""
    return _number(float(np.mean(values)), quantity)


def against_reference(results: Sequence[Finished]) -> list[dict[str, Any]]:
    """Each model against HeMLGOP (or the first one) on the same splits of all datasets.

    The difference of accuracies in points with its standard error, and geometric means of the ratios of
    parameters and of seconds.
    """
    models = list(dict.fromkeys(run.model for run, _ in results))
    reference = REFERENCE if REFERENCE in models else models[0]
    base = {(run.dataset, run.split): r for run, r in results if run.model == reference}
    rows = []
    for model in models:
        pairs = [
            (result, base[run.dataset, run.split])
            for run, result in results
            if run.model == model and result["status"] == base[run.dataset, run.split]["status"] == DONE
        ]
        if model == reference or not pairs:
            continue
        differences = [100 * (ours["accuracy"] - other["accuracy"]) for ours, other in pairs]
        rows.append(
            {
                "model": model,
                "reference": reference,
                "pairs": len(pairs),
                "difference": float(np.mean(differences)),
                "error": float(np.std(differences, ddof=1) / np.sqrt(len(pairs))) if len(pairs) > 1 else None,
                "size": _ratio(pairs, "parameters"),
                "time": _ratio(pairs, "seconds"),
            }
        )
    return rows


def _ratio(pairs: Sequence[tuple[dict[str, Any], dict[str, Any]]], quantity: str) -> float | None:
    if any(not result.get(quantity) for pair in pairs for result in pair):
        return None
    return float(np.exp(np.mean([np.log(ours[quantity] / other[quantity]) for ours, other in pairs])))


def _difference_table(rows: Sequence[dict[str, Any]]) -> Table:
    body = []
    for row in rows:
        error = "" if row["error"] is None else f" ± {row['error']:.1f}"
        ratios = ["" if row[name] is None else f"{row[name]:.2g}" for name in ("size", "time")]
        body.append((row["model"], f"{row['difference']:+.1f}{error}", *ratios, str(row["pairs"])))
    head = ("", "accuracy (points)", "parameters (ratio)", "time (ratio)", "splits")
    title = f"Against {rows[0]['reference']}, all datasets"
    note = (
        "Differences on the same splits, mean ± standard error (splits share rows, so it is too small); "
        "ratios are geometric means."
    )
    return Table("differences", title, head, tuple(body), note)


def _cell(row: dict[str, Any] | None, quantity: str, published: bool) -> str:
    """What a table shows: our figure, what did not finish, and the paper's figure in brackets."""
    if row is None:
        return ""
    ours = _shown(row, quantity)
    missing = row["runs"] - row["finished"]
    if missing:
        ours = f"{ours}, {missing} of {row['runs']} not finished" if row["finished"] else "not finished"
    theirs = _published(row["dataset"], row["model"], quantity) if published else None
    return f"{ours} [{theirs}]" if theirs else ours


def _shown(row: dict[str, Any], quantity: str) -> str:
    value = row[quantity]
    if value is None:
        return ""
    spread = quantity == "accuracy" and row["deviation"] is not None
    return _number(value, quantity) + (f" ± {100 * row['deviation']:.1f}" if spread else "")


def _number(value: float, quantity: str) -> str:
    if quantity in _PERCENT:
        return f"{100 * value:.1f}"
    return f"{value:.3g}" if quantity == "seconds" else f"{value:,.0f}"


def _published(dataset: str, model: str, quantity: str) -> str | None:
    """The paper's figure, where it is of the same data."""
    names = [name for name, one in PUBLISHED_DATASETS.items() if one.local == dataset and one.comparable]
    method = model.removesuffix(OF_PAPER)
    if (
        not names
        or method == model
        or method not in PUBLISHED_METHODS
        or quantity not in PUBLISHED_QUANTITIES
    ):
        return None
    return printed(names[0], method, quantity)
