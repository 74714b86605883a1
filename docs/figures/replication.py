"""Figures of docs/replication.md: readings of the paper, and its tables as they come out here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from opgrow.bench.figures import growth_curves, steps_of
from opgrow.bench.models import OF_PAPER
from opgrow.bench.published import METHODS, published
from opgrow.bench.published_datasets import DATASETS
from opgrow.bench.replication.paper_tables import operator_counts, paper_tables, rows_of
from opgrow.bench.replication.reading_results import effects_of, measured
from opgrow.bench.replication.reading_study import AROUND, DESIGN, results_of
from opgrow.bench.replication.reading_tables import tables_of
from opgrow.bench.replication.readings import TEST_ROWS
from opgrow.bench.runs import DONE
from opgrow.bench.tables import Table, median_run
from opgrow.report.charts import bars

from .marks import RESULTS, Figures, markdown_table

__all__ = ["figures"]

_KINDS = ("nodal", "pool", "activation")


def figures() -> Figures:
    """Tables, numbers and pictures of the replication."""
    readings = results_of(RESULTS / "readings.csv").rows()
    paper = rows_of((RESULTS / "paper.csv").read_text(encoding="utf-8"))
    tables = {f"readings-{table.name}": _markdown(table) for table in tables_of(readings)}
    tables |= {f"paper-{table.name}": _markdown(table) for table in paper_tables(paper)}
    tables["paper-claims"] = _claims(paper)
    return Figures(tables, _values(readings, paper), _histograms(paper) | _curves())


def _markdown(table: Table) -> str:
    return markdown_table(table.head, table.rows)


def _values(readings: Sequence[Mapping[str, str]], paper: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Numbers that sentences quote."""
    design = measured(readings, DESIGN)
    sizes, accuracies = ({e.level: e for e in effects} for effects in effects_of(design))
    seconds = sum(float(row["cpu_seconds"]) for row in readings)
    others = [abs(np.log2(1) - e.effect) for level, e in sizes.items() if level not in _ROWS]
    done = [row for row in paper if row["status"] == DONE]
    return {
        "readings-runs": f"{len(readings)}",
        "readings-minutes": f"{seconds / 60:.0f}",
        "readings-held-size": f"{2 ** -sizes['a fifth held out'].effect:.1f}",
        "readings-held-points": _points(accuracies["a fifth held out"]),
        "readings-test-points": _points(accuracies[TEST_ROWS]),
        "readings-test-size": f"{2 ** -sizes[TEST_ROWS].effect:.1f}",
        "readings-other-size": f"{2 ** max(others):.2f}",
        "readings-around": f"{len(measured(readings, AROUND))}",
        "paper-runs": f"{len(paper)}",
        "paper-done": f"{len(done)}",
    }


_ROWS = ("training rows, during an epoch", "a fifth held out", TEST_ROWS)


def _points(effect: object) -> str:
    return f"{effect.effect:+.1f} ± {effect.error:.1f}"  # type: ignore[attr-defined]


def _claims(paper: Sequence[Mapping[str, str]]) -> str:
    """For each method: how far its accuracies and sizes are from the printed ones, over the small tables."""
    rows = []
    for method in METHODS:
        points, ratios = [], []
        for name, facts in DATASETS.items():
            runs = [
                row
                for row in paper
                if (row["dataset"], row["model"], row["status"]) == (facts.local, method + OF_PAPER, DONE)
            ]
            theirs = published(name, method)
            if not facts.comparable or theirs.accuracy is None or theirs.parameters is None:
                continue
            for middle in median_run(runs):
                points.append(100 * (float(middle["accuracy"]) - theirs.accuracy))
                ratios.append(float(middle["parameters"]) / theirs.parameters)
        if points:
            shown = ", ".join(f"{p:+.1f}" for p in points), ", ".join(f"{r:.2g}" for r in ratios)
            rows.append((method, *shown))
    return markdown_table(("", "accuracy, points from the printed one", "size, times the printed one"), rows)


def _histograms(paper: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Histograms of the operators, as shares of the neurons of each method."""
    counts: dict[str, dict[str, dict[str, float]]] = {kind: {} for kind in _KINDS}
    totals: dict[str, int] = defaultdict(int)
    for method, operators, neurons in operator_counts(paper):
        if method in METHODS[:4]:
            totals[method] += neurons
            for kind, name in zip(_KINDS, operators.split("/"), strict=True):
                shares = counts[kind].setdefault(method, {})
                shares[name] = shares.get(name, 0) + neurons
    files = {}
    for kind, methods in counts.items():
        percent = {
            m: {name: 100 * n / totals[m] for name, n in sorted(shares.items())}
            for m, shares in methods.items()
        }
        files[f"docs/images/paper-{kind}.svg"] = bars(percent, "neurons (%)")
    return files


def _curves() -> dict[str, str]:
    """Loss and accuracy over the epochs of the median run of HeMLGOP on a table, as the paper shows them."""
    rows = rows_of((RESULTS / "paper-curves.csv").read_text(encoding="utf-8"))
    run = steps_of([row for row in rows if (row["dataset"], row["model"]) == ("pima", f"HeMLGOP{OF_PAPER}")])
    loss, accuracy = growth_curves(run), growth_curves(run, 1, "accuracy on the rows that decide")
    assert loss is not None
    assert accuracy is not None
    return {"docs/images/paper-loss.svg": loss, "docs/images/paper-accuracy.svg": accuracy}
