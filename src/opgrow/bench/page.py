"""A study as one HTML page that needs nothing else: tables, figures, tests, and how it was made."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import Any

from ..common.version import __version__
from ..report import html
from ..report.html import document, escape, figure
from .comparison import average_ranks, wilcoxon_holm
from .figures import accuracy_against_parameters, growth_curves, operator_shares
from .models import OF_PAPER, methods
from .published import METHODS as PUBLISHED_METHODS
from .rank_diagram import draw_critical_difference
from .runs import DONE
from .study import Finished, Study
from .tables import REFERENCE, Table, median_run, summarize, tables_of

__all__ = ["page"]

#: The methods whose operators the paper shows.
_SEARCHING = PUBLISHED_METHODS[:4]


def page(study: Study, results: Sequence[Finished], command: str) -> str:
    """The whole page; whatever comes from data is escaped."""
    rows = summarize(results, study.rules.summary)
    tables = [_table(table) for table in tables_of(results, study.rules, study.inner)]
    parts = [_intro(study, command), *tables, *_tests(study, results, rows), *_figures(results, rows)]
    return document(f"opgrow: {', '.join(study.datasets)}", parts)


def _intro(study: Study, command: str) -> str:
    import sklearn

    rules = study.rules
    versions = (
        f"opgrow {__version__}, Python {platform.python_version()}, "
        f"scikit-learn {sklearn.__version__}, {platform.machine()}, "
        f"{platform.system()}"
    )
    chosen = {
        "inner": "Parameters were chosen on rows split off the training rows, or on validation rows.",
        "none": "All models have their default parameters.",
        "test": "",
    }[study.select]
    warning = (
        '<p class="warning">Optimistic: parameters were chosen on the test rows, so these accuracies say '
        "more than they should.</p>"
        if study.select == "test"
        else ""
    )
    if study.inner:
        chosen += " Everything happened within the training rows; no test row was used."
    else:
        chosen += " Figures of the HeMLGOP paper are in brackets where its data is the same."
    return (
        f"<h1>{escape(', '.join(study.datasets))}</h1>\n{warning}"
        f"<p>Splits of a small dataset: {study.n_splits or rules.small_splits}; "
        f"accuracies are {rules.summary}s over splits, sizes and times medians. {chosen}</p>\n"
        f"<p><code>{escape(command)}</code><br>{escape(versions)}</p>"
    )


def _table(table: Table) -> str:
    note = f"<p>{escape(table.note)}</p>\n" if table.note else ""
    return f"<h2>{escape(table.title)}</h2>\n{note}{html.table(table.name, table.head, table.rows)}"


def _tests(study: Study, results: Sequence[Finished], rows: Sequence[dict[str, Any]]) -> list[str]:
    """Paired tests against HeMLGOP over the splits of each dataset, and ranks over datasets."""
    parts = []
    if REFERENCE in study.models and len(study.models) > 1:
        for name in study.datasets:
            scores = {
                model: [
                    result["accuracy"] if result["status"] == DONE else float("nan")
                    for run, result in results
                    if (run.dataset, run.model) == (name, model)
                ]
                for model in study.models
            }
            if len(scores[REFERENCE]) >= 5:
                parts.append(_table(_test_table(name, scores)))
    if len(study.datasets) >= 3 and len(study.models) >= 3:
        table = {
            name: {row["model"]: row["accuracy"] for row in rows if row["dataset"] == name}
            for name in study.datasets
        }
        filled = {
            model: [
                float("nan") if table[name][model] is None else table[name][model] for name in study.datasets
            ]
            for model in study.models
        }
        ranking = average_ranks(filled)
        parts.append(
            figure(
                "ranks",
                draw_critical_difference(ranking),
                "Average ranks over datasets; bars join models that do not differ significantly (Nemenyi).",
            )
        )
    return parts


def _test_table(dataset: str, scores: dict[str, list[float]]) -> Table:
    body = tuple(
        (
            c.model,
            f"{100 * c.mean_difference:+.2f}",
            f"{c.wins}/{c.ties}/{c.losses}",
            *(f"{p:.3g}" for p in (c.p, c.p_holm)),
        )
        for c in wilcoxon_holm(scores, REFERENCE)
    )
    head = ("", "difference (points)", "wins/ties/losses", "p (Wilcoxon)", "p (Holm)")
    title = f"{dataset}: paired tests against {REFERENCE}"
    note = "Splits share rows, so these p-values are smaller than they should be."
    return Table(f"tests-{dataset}", title, head, body, note)


def _figures(results: Sequence[Finished], rows: Sequence[dict[str, Any]]) -> list[str]:
    parts = []
    there = dict.fromkeys(run.model for run, _ in results)
    searching = [m for m in there if m.removesuffix(OF_PAPER) in _SEARCHING]
    for kind, chart in operator_shares(results, searching).items():
        parts.append(figure(f"operators-{kind.split()[0]}", chart, f"Chosen {kind}, all datasets."))
    for name in dict.fromkeys(run.dataset for run, _ in results):
        sizes = accuracy_against_parameters([row for row in rows if row["dataset"] == name], list(methods()))
        if sizes:
            parts.append(figure(f"sizes-{name}", sizes, f"{name}: accuracy against parameters."))
        parts += _curves(name, results)
    return ["<h2>Figures</h2>", *parts] if parts else []


def _curves(dataset: str, results: Sequence[Finished]) -> list[str]:
    """Loss and score over the epochs of the median run of HeMLGOP, with the settings of the paper first."""
    for model in (f"{REFERENCE}{OF_PAPER}", REFERENCE):
        done = [
            r for run, r in results if (run.dataset, run.model) == (dataset, model) and r["status"] == DONE
        ]
        for run in median_run(done):
            score = "score that decides" if model == REFERENCE else "accuracy that decides"
            named = {"loss": growth_curves(run), "score": growth_curves(run, 1, score)}
            return [
                figure(f"curves-{dataset}-{kind}", chart, f"{dataset}: how a {model} grew, {kind}.")
                for kind, chart in named.items()
                if chart
            ]
    return []
