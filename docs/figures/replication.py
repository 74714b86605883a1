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
from opgrow.bench.replication.reading_results import Measured, distance, effects_of, measured
from opgrow.bench.replication.reading_study import AROUND, DESIGN, results_of
from opgrow.bench.replication.reading_tables import tables_of
from opgrow.bench.replication.readings import TEST_ROWS, keeps_to_the_text
from opgrow.bench.runs import DONE
from opgrow.bench.tables import Table, median_run
from opgrow.report.charts import bars

from .large_problems import large_problems, large_values
from .marks import RESULTS, Figures, markdown_table
from .paired import paired

__all__ = ["figures"]

_KINDS = ("nodal", "pool", "activation")
#: Tables of which the printed figures are, too.
_COMPARABLE = {one.local for one in DATASETS.values() if one.comparable}


def figures() -> Figures:
    """Tables, numbers and pictures of the replication."""
    readings = results_of(RESULTS / "readings.csv").rows()
    on_gpu = _rows("paper-gpu.csv")
    small = [row for row in on_gpu if row["dataset"] in _COMPARABLE]
    chosen, plain = _rows("paper.csv"), [*_rows("paper-none.csv"), *small]
    tables = {f"readings-{table.name}": _markdown(table) for table in tables_of(readings)}
    tables |= {f"paper-{table.name}": _markdown(table) for table in paper_tables(plain)}
    tables |= {f"paper-chosen-{table.name}": _markdown(table) for table in paper_tables(chosen)}
    tables["paper-claims"] = _claims(plain)
    large = [row for row in on_gpu if row["dataset"] not in _COMPARABLE]
    tables["paper-large"] = large_problems(large)
    values = _values(readings) | {"paper-runs": f"{len(plain)}", "paper-chosen-runs": f"{len(chosen)}"}
    values |= large_values(large) | _populations(small)
    return Figures(tables, values | _comparisons(plain) | _shares(plain), _histograms(plain) | _curves())


def _rows(name: str) -> list[dict[str, str]]:
    return rows_of((RESULTS / name).read_text(encoding="utf-8"))


def _markdown(table: Table) -> str:
    return markdown_table(table.head, table.rows)


def _values(readings: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Numbers that sentences quote."""
    design = measured(readings, DESIGN)
    sizes, accuracies = ({e.level: e for e in effects} for effects in effects_of(design))
    seconds = sum(float(row["cpu_seconds"]) for row in readings)
    others = [abs(np.log2(1) - e.effect) for level, e in sizes.items() if level not in _ROWS]
    return {
        "readings-runs": f"{len(readings)}",
        "readings-minutes": f"{seconds / 60:.0f}",
        "readings-held-size": f"{2 ** -sizes['a fifth held out'].effect:.1f}",
        "readings-held-points": _points(accuracies["a fifth held out"]),
        "readings-test-points": _points(accuracies[TEST_ROWS]),
        "readings-test-size": f"{2 ** -sizes[TEST_ROWS].effect:.1f}",
        "readings-other-size": f"{2 ** max(others):.2f}",
        **_values_around(measured(readings, AROUND)),
        **_gaps(measured(readings)),
    }


def _values_around(around: Sequence[Measured]) -> dict[str, str]:
    """The nearest reading's sizes, and what keeping the best state does, on the same tables and splits."""
    centre = around[0]
    nearest = min(
        (one for one in around if keeps_to_the_text(one.reading)),
        key=lambda one: distance(one.log_sizes(), one.accuracies()),
    )
    sizes = {table: f"{np.exp(size):,.0f}" for table, size in nearest.log_sizes().items()}
    [best] = [one for one in around if one.reading == centre.reading | {"state kept": "best"}]
    logs = [
        np.log2(theirs / ours)
        for table in centre.parameters
        for ours, theirs in zip(centre.parameters[table], best.parameters[table], strict=True)
    ]
    error = np.std(logs, ddof=1) / np.sqrt(len(logs))
    low, high = 2 ** (np.mean(logs) - error), 2 ** (np.mean(logs) + error)
    return {
        **{f"readings-nearest-{table}": size for table, size in sizes.items()},
        "readings-best-size": f"{2 ** np.mean(logs):.1f}",
        "readings-best-low": f"{low:.1f}",
        "readings-best-high": f"{high:.1f}",
    }


def _gaps(results: Sequence[Measured]) -> dict[str, str]:
    """How far the best mean accuracies stay behind the printed ones, with and without the test rows."""
    values = {}
    for table in results[0].accuracy:
        theirs = published(table, METHODS[0]).accuracy
        assert theirs is not None
        for name, on_test in (("gap", False), ("test-gap", True)):
            best = max(one.accuracies()[table] for one in results if one.decides_on_test == on_test)
            values[f"readings-{name}-{table}"] = f"{100 * theirs - best:.1f}"
    return values


def _comparisons(paper: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """HeMLGOP against the other methods on the same splits: points, and the geometric mean of size ratios."""
    values = {}
    for suffix, kind in ((OF_PAPER, "paper"), ("", "ours")):
        for method, pairs in paired(paper, suffix):
            values[f"{kind}-{method.lower()}-points"] = pairs.points
            values[f"{kind}-{method.lower()}-size"] = pairs.size
    return values


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


def _populations(rows: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The shortest and the longest run of POP on the small tables."""
    seconds = [float(row["seconds"]) for row in rows if row["model"] == f"POP{OF_PAPER}"]
    return {"paper-pop-least": f"{min(seconds):.0f}", "paper-pop-most": f"{max(seconds):.0f}"}


def _counts(
    paper: Sequence[Mapping[str, str]],
) -> tuple[dict[str, dict[str, dict[str, float]]], dict[str, int]]:
    """Neurons with each operator, by kind and method, and all neurons of each method."""
    counts: dict[str, dict[str, dict[str, float]]] = {kind: {} for kind in _KINDS}
    totals: dict[str, int] = defaultdict(int)
    for method, operators, neurons in operator_counts(paper):
        if method in METHODS[:4]:
            totals[method] += neurons
            for kind, name in zip(_KINDS, operators.split("/"), strict=True):
                shares = counts[kind].setdefault(method, {})
                shares[name] = shares.get(name, 0) + neurons
    return counts, totals


def _shares(paper: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The share of each operator among the neurons of all four methods, in percent."""
    counts, totals = _counts(paper)
    total = sum(totals.values())
    return {
        f"paper-share-{name}": f"{100 * sum(of.get(name, 0) for of in methods.values()) / total:.0f}"
        for methods in counts.values()
        for name in {name for of in methods.values() for name in of}
    }


def _histograms(paper: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Histograms of the operators, as shares of the neurons of each method."""
    counts, totals = _counts(paper)
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
    rows = _rows("paper-curves.csv")
    run = steps_of([row for row in rows if (row["dataset"], row["model"]) == ("pima", f"HeMLGOP{OF_PAPER}")])
    loss, accuracy = growth_curves(run), growth_curves(run, 1, "accuracy on the rows that decide")
    assert loss is not None
    assert accuracy is not None
    return {"docs/images/paper-loss.svg": loss, "docs/images/paper-accuracy.svg": accuracy}
