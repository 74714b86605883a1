"""The summary of a study as a Markdown page with pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...network.drawing.svg import counted
from ...report.charts import Point, scatter
from ..rank_diagram import draw_critical_difference
from ..tables import Table
from .metrics import METRICS
from .models import DEFAULT, PEERS, PERCEPTRONS
from .pictures import difference_picture, structure_picture
from .results import Line
from .summary import Summary, summarize

__all__ = ["page"]

_SHOWN = {
    "accuracy": "accuracy (%)",
    "log_loss": "log loss",
    "roc_auc": "ROC AUC",
    "brier": "Brier score",
    "rmse": "RMSE",
    "mae": "MAE",
    "r2": "R²",
    "nrmse": "RMSE / deviation",
}
_COSTS = {
    "fit_seconds": "fit (s)",
    "fit_cpu_seconds": "fit, CPU (s)",
    "predict_seconds": "predict (s)",
    "parameters": "parameters",
}
_STRUCTURE = {
    "networks": "networks",
    "layers": "layers",
    "blocks": "blocks",
    "operator_sets": "distinct operator sets",
}


def page(lines: Sequence[Line], aside: Sequence[str] = ()) -> dict[str, str]:
    """The texts of all files, by name: ``summary.md`` and its pictures.

    Parameters
    ----------
    lines : the lines of the study
    aside : tables that are also summarised by themselves, if there are lines of them
    """
    parts = ["# Peers\n", f"```console\n$ {_command(lines)}\n```\n"]
    files: dict[str, str] = {}
    scopes = {"All tables": ("", summarize(lines))}
    aside = [table for table in aside if any(line["table"] == table for line in lines)]
    if aside:
        scopes["Tables kept aside"] = ("-aside", summarize(lines, aside))
    for title, (suffix, summary) in scopes.items():
        texts, pictures = _section(title, suffix, summary)
        parts += texts
        files |= pictures
    return {"summary.md": "\n".join(parts), **files}


def _command(lines: Sequence[Line]) -> str:
    """What runs all of the lines."""
    n_splits, max_rows = max(line["split"] for line in lines) + 1, lines[0].get("max_rows")
    limit = "" if max_rows is None else f" --max-rows {max_rows}"
    return f"opgrow bench peers --data DIR --splits {n_splits}{limit}"


def _section(title: str, suffix: str, summary: Summary) -> tuple[list[str], dict[str, str]]:
    parts = [f"## {title}\n", _about(summary)]
    if not summary.tables:
        return parts, {}
    pictures: dict[str, str] = {}
    for task in METRICS:
        if summary.tables_of(task):
            parts.append(_metric_table(summary, task).markdown(3))
            picture = _size_picture(summary, task)
            if picture:
                pictures[f"{task}-sizes{suffix}.svg"] = picture
                parts.append(f"![{task}: quality against parameters]({task}-sizes{suffix}.svg)\n")
    ranking = summary.ranks()
    if ranking is not None:
        pictures[f"ranks{suffix}.svg"] = draw_critical_difference(ranking)
        rows = tuple((model, f"{rank:.2f}") for model, rank in ranking.ranks)
        note = (
            f"Accuracy or RMSE on {ranking.n_datasets} tables; runs that did not finish are last. "
            f"Ranks that differ by less than {ranking.cd:.2f} cannot be told apart (Nemenyi, 5 %). "
            f"Friedman's test: p = {ranking.friedman_p:.2g}."
        )
        parts.append(Table("ranks", "Mean ranks", ("", "mean rank"), rows, note).markdown(3))
        parts.append(f"![Mean ranks and critical difference](ranks{suffix}.svg)\n")
    makers: tuple[Callable[[Summary], Table | None], ...] = (_duel_table, _cost_table, _worst_table)
    made = [maker(summary) for maker in (*makers, _structure_table)]
    parts += [table.markdown(3) for table in made if table is not None]
    grown, differences = structure_picture(summary), difference_picture(summary)
    if grown:
        pictures[f"structure{suffix}.svg"] = grown
        parts.append(f"![What {DEFAULT} grew on each table](structure{suffix}.svg)\n")
    parts.append(_operators_help(summary))
    if differences:
        pictures[f"operators{suffix}.svg"] = differences
        parts.append(f"![The whole operator library less perceptrons](operators{suffix}.svg)\n")
    return [part for part in parts if part], pictures


def _about(summary: Summary) -> str:
    counts = [f"{len(summary.tables_of(task))} of {task}" for task in METRICS if summary.tables_of(task)]
    tables, splits = counted(len(summary.tables), "table"), counted(len(summary.splits), "split")
    text = f"{tables} ({', '.join(counts) or 'none'}), {splits} in all."
    failed = sum(
        summary.lines[table, split, model]["status"] != "done"
        for table, split in summary.splits
        for model in summary.models
    )
    if failed:
        text += f" {counted(failed, 'run')} failed or took too long."
    if summary.begun:
        text += f" Left out, with lines on fewer than half of the tables: {', '.join(summary.begun)}."
    return text + "\n"


def _metric_table(summary: Summary, task: str) -> Table:
    rows = []
    for model in summary.models:
        values = [_metric(metric, summary.mean(model, metric)) for metric in METRICS[task]]
        done = int((~np.isnan(summary.scores(model, task))).sum())
        rows.append((model, *values, f"{done} of {len(summary.tables_of(task))}"))
    n = len(summary.common(task))
    note = f"Means over {counted(n, 'table')} on which every model finished."
    if task == "classification":
        note += " A model without probabilities, like the SVM, has an accuracy only."
    head = ("", *(_SHOWN[metric] for metric in METRICS[task]), "tables finished")
    return Table(task, f"Means: {task}", head, tuple(rows), note)


def _metric(name: str, value: float) -> str:
    if np.isnan(value):
        return ""
    return f"{100 * value:.2f}" if name == "accuracy" else f"{value:.4g}"


def _size_picture(summary: Summary, task: str) -> str | None:
    metric, label = ("accuracy", "mean accuracy (%)") if task == "classification" else ("r2", "mean R²")
    factor = 100 if task == "classification" else 1
    points = [
        Point(
            summary.median(model, "parameters", task),
            factor * summary.mean(model, metric),
            model,
            "peers" if model in PEERS else "opgrow",
        )
        for model in summary.models
    ]
    points = [point for point in points if np.isfinite([point.x, point.y]).all()]
    x_label = "parameters, median over tables"
    return scatter(points, x_label, label, log_x=True, labelled=True) if points else None


def _duel_table(summary: Summary) -> Table | None:
    duels = summary.duels()
    rows = tuple(
        (
            one.model,
            f"{one.ahead}/{one.behind}",
            f"{one.wins}/{one.ties}/{one.losses}",
            "" if np.isnan(one.difference) else f"{100 * one.difference:+.2f}",
            *(f"{p:.2g}" for p in (one.p, one.p_holm)),
        )
        for one in duels
    )
    note = (
        "Ahead and behind count tables by mean score. Wins and losses are those that a paired t-test over "
        "splits finds (5 %, corrected for the rows that splits share); few splits leave many ties. "
        "Differences are in hundredths of accuracy or of RMSE / deviation; p is of Wilcoxon's test "
        "over tables, with Holm's correction beside it."
    )
    head = ("against", "ahead/behind", "win/tie/loss", "mean difference", "p", "p (Holm)")
    return Table("duels", f"{DEFAULT} against each model", head, rows, note) if rows else None


def _cost_table(summary: Summary) -> Table:
    rows = []
    for model in summary.models:
        values = [summary.median(model, cost) for cost in _COSTS]
        shown = ["" if np.isnan(v) else f"{v:,.0f}" if v >= 100 else f"{v:.3g}" for v in values]
        rows.append((model, *shown))
    note = "Medians over tables, one core."
    return Table("costs", "Seconds and parameters", ("", *_COSTS.values()), tuple(rows), note)


def _worst_table(summary: Summary) -> Table | None:
    rows = tuple(
        (
            one.table,
            f"{100 * one.ours:.2f}",
            f"{100 * one.best:.2f}",
            one.peer,
            f"{100 * (one.ours - one.best):+.2f}",
        )
        for one in summary.worst()
    )
    head = ("", DEFAULT, "best peer", "which", "difference")
    title = (
        f"Where {DEFAULT} is farthest behind the best of logistic or ridge regression, SVM, forest and MLP"
    )
    note = "Accuracy in percent, or 100 (1 - RMSE / deviation)."
    return Table("worst", title, head, rows, note) if rows else None


def _structure_table(summary: Summary) -> Table | None:
    rows = []
    for model in summary.models:
        if model in PEERS:
            continue
        cells = []
        for what in _STRUCTURE:
            values = np.concatenate([summary.values(model, table, what) for table in summary.tables])
            values = values[~np.isnan(values)]
            cells.append(
                f"{np.median(values):g} ({values.min():g} to {values.max():g})" if len(values) else ""
            )
        rows.append((model, *cells))
    note = "Median over runs, with the range. Networks are those that were grown, a student included."
    head = ("", *_STRUCTURE.values())
    return Table("structure", "What was grown", head, tuple(rows), note) if rows else None


def _operators_help(summary: Summary) -> str:
    if not {DEFAULT, PERCEPTRONS} <= set(summary.models):
        return ""
    duel = next(one for one in summary.duels() if one.model == PERCEPTRONS)
    return (
        "### The whole operator library against perceptrons alone\n\n"
        f"The mean score is higher on {duel.ahead} of {counted(len(summary.tables), 'table')} and lower on "
        f"{duel.behind}; the paired test over splits finds {duel.wins} better and {duel.losses} worse. "
        f"The mean difference is {100 * duel.difference:+.2f} points (Wilcoxon's test: p = {duel.p:.2g}).\n"
    )
