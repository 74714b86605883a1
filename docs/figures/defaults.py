"""Figures of docs/results/defaults.md: trials within growth and of students, from results/defaults."""

from __future__ import annotations

import csv

import numpy as np

from opgrow.bench.peers.splits import KEPT_ASIDE

from .marks import RESULTS, Figures, markdown_table

__all__ = ["figures"]

_Rows = dict[str, dict[str, dict[str, str]]]
#: Below so many training rows, tables of classes are in a column of their own.
_FEW_ROWS = 1000
#: The columns of the table of larger ones, and its rows, with the names that trials have in the file.
_LARGE_TABLES = ("covertype_15k", "eeg_eye_state", "magic", "kin8nm", "cpu_act")
_LARGE = {
    "the default until then": "the default until then",
    "**the default of that time**": (
        "the default now: perceptrons unless others are 1 % better, batches by rows"
    ),
    "perceptrons only, batches of 64": "perceptrons only, batches of 64",
    "all operators, batches of 64": "batches of 64",
    "thresholds of 5e-3": "thresholds of 5e-3",
    "three networks": "three networks",
    "three networks, joint tuning from a head solved again": (
        "three networks; joint tuning from a head solved with a ridge of 0.1 rows"
    ),
    "three networks, fixed statistics of batch norm": (
        "three networks; joint tuning with fixed statistics of batch norm"
    ),
    "RealMLP-TD, one": "RealMLP-TD",
    "HistGradientBoosting": "HistGradientBoosting",
}


def figures() -> Figures:
    """Tables of trials."""
    return Figures(
        {
            "defaults-trials": _trials("trials.csv", "log_loss_at_best_temperature"),
            "defaults-larger": _larger(),
            "defaults-later": _trials("trials-later.csv", "log_loss"),
            "defaults-accurate": _trials_over_splits(_over_splits("trials-accurate.csv")),
            "defaults-wide": _wide(),
            "defaults-whole": _trials_over_splits(_over_splits("trials-whole.csv")),
            "defaults-whole-large": _whole_of_many_rows(),
            "defaults-mixtures": _mixtures(),
            "defaults-seeds": _trials_over_splits(_over_splits("trials-seeds.csv")),
            "defaults-students": _trials_over_splits(_over_splits("trials-students.csv", "inner")),
            "defaults-students-test": _students_on_test_rows(),
        }
    )


def _read(name: str) -> _Rows:
    """The rows of a file by trial and table."""
    found: _Rows = {}
    for row in _lines(name):
        if row.get("split", "0") == "0":
            found.setdefault(row["trial"], {})[row["table"]] = row
    return found


def _lines(name: str) -> list[dict[str, str]]:
    with (RESULTS / "defaults" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _trials(file: str, loss: str) -> str:
    """Mean differences from the first trial of a file; ``loss`` is its column of log losses."""
    trials = _read(file)
    first = next(iter(trials.values()))
    rows = []
    for name, tables in trials.items():
        if len(tables) < len(first):  # tried on a few tables only
            continue
        cells = ["", "", ""]
        if tables is not first:
            cells = [
                _difference(tables, first, "score", "classification", 1),
                _difference(tables, first, loss, "classification", 3),
                _difference(tables, first, "score", "regression", 1),
            ]
        ratios = [
            float(row["cpu_seconds"]) / float(first[table]["cpu_seconds"]) for table, row in tables.items()
        ]
        size = np.median([float(row["parameters"]) for row in tables.values()])
        rows.append((name, *cells, f"{np.median(ratios):.1f}", f"{size:,.0f}"))
    return markdown_table(("", "classes", "log loss", "numbers", "CPU time", "parameters"), rows)


def _trials_over_splits(trials: _Rows) -> str:
    """Means over the splits of each table, against the first trial."""
    first = next(iter(trials.values()))
    rows = [
        (name, *(_cells_over_splits(tables, first) if tables is not first else ("", "", "", "1")))
        for name, tables in trials.items()
    ]
    return markdown_table(("", "classes", "log loss", "numbers", "parameters"), rows)


def _students_on_test_rows() -> str:
    """The first and the chosen trial on test rows, on the tables kept aside and on others."""
    first, chosen = _over_splits("trials-students.csv", "test").values()
    groups = {
        "tables kept aside": [table for table in first if table in KEPT_ASIDE],
        "others": [table for table in first if table not in KEPT_ASIDE],
    }
    rows = []
    for name, tables in groups.items():
        old, new = ({table: trial[table] for table in tables} for trial in (first, chosen))
        n_classes = sum(row["task"] == "classification" for row in old.values())
        counts = f"{name}: {n_classes} of classes, {len(old) - n_classes} of numbers"
        rows.append((counts, *_cells_over_splits(new, old)))
    return markdown_table(("", "classes", "log loss", "numbers", "parameters"), rows)


def _over_splits(name: str, which: str | None = None) -> _Rows:
    """The rows of a file by trial and table, as means over splits; of parameters, the geometric mean."""
    runs: dict[str, dict[str, list[dict[str, str]]]] = {}
    for row in _lines(name):
        if which is None or row["rows"] == which:
            runs.setdefault(row["trial"], {}).setdefault(row["table"], []).append(row)
    found: _Rows = {}
    for trial, tables in runs.items():
        for table, rows in tables.items():
            mean = {"task": rows[0]["task"]}
            for what in ("score", "log_loss"):
                mean[what] = str(np.mean([float(row[what]) for row in rows])) if rows[0][what] else ""
            mean["parameters"] = str(np.exp(np.mean([np.log(float(row["parameters"])) for row in rows])))
            found.setdefault(trial, {})[table] = mean
    return found


def _cells_over_splits(
    tables: dict[str, dict[str, str]], first: dict[str, dict[str, str]]
) -> tuple[str, ...]:
    ratios = [float(row["parameters"]) / float(first[table]["parameters"]) for table, row in tables.items()]
    return (
        _difference(tables, first, "score", "classification", 2),
        _difference(tables, first, "log_loss", "classification", 3),
        _difference(tables, first, "score", "regression", 1),
        f"{np.exp(np.mean(np.log(ratios))):.2f}",
    )


def _difference(
    tables: dict[str, dict[str, str]], first: dict[str, dict[str, str]], what: str, task: str, digits: int
) -> str:
    values = [
        float(row[what]) - float(first[table][what]) for table, row in tables.items() if row["task"] == task
    ]
    if not values:
        return ""
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):+.{digits}f} ± {error:.{digits}f}"


def _wide() -> str:
    """Scores of averages with and without wide networks, by the rows that they learned from."""
    runs: dict[tuple[int, str], dict[str, dict[str, str]]] = {}
    for row in _lines("trials-wide.csv"):
        runs.setdefault((-int(row["training_rows"]), row["table"]), {})[row["trial"]] = row
    trials = list(next(iter(runs.values())))
    rows = []
    for (minus_rows, table), run in sorted(runs.items()):
        scores = [f"{float(run[trial]['score']):.1f}" if trial in run else "" for trial in trials]
        seconds = [run[trial]["cpu_seconds"] for trial in trials[:2]]
        rows.append((table, f"{-minus_rows:,}", *scores, *seconds))
    heads = (*trials, "CPU seconds, small blocks", "CPU seconds, two wide")
    return markdown_table(("", "rows", *heads), rows)


def _whole_of_many_rows() -> str:
    """Scores and log losses of networks that are tuned as a whole, by their width."""
    trials = _read("trials-whole-large.csv")
    tables = next(iter(trials.values()))
    rows = [
        (name, *(_score(runs[table]) if table in runs else "" for table in tables))
        for name, runs in trials.items()
    ]
    heads = (f"{table}, {int(row['training_rows']):,} rows" for table, row in tables.items())
    return markdown_table(("", *heads), rows)


def _mixtures() -> str:
    """Averages of what was grown, on tables of classes with few and with more rows, and of numbers."""
    trials = _over_splits("trials-mixtures.csv")
    few = {row["table"] for row in _lines("trials-mixtures.csv") if int(row["training_rows"]) < _FEW_ROWS}
    first = next(iter(trials.values()))
    rows = []
    for name, tables in trials.items():
        small, large = ({t: row for t, row in tables.items() if (t in few) == part} for part in (True, False))
        cells = [
            _difference(part, first, what, "classification", digits)
            for part in (small, large)
            for what, digits in (("score", 2), ("log_loss", 3))
        ]
        numbers = _difference(tables, first, "score", "regression", 1)
        rows.append((name, *(("",) * 5 if tables is first else (*cells, numbers))))
    heads = ("fewer than 1,000 rows", "log loss", "1,000 or more", "log loss", "numbers")
    return markdown_table(("", *heads), rows)


def _larger() -> str:
    """Scores, and log losses in brackets."""
    trials = _read("trials-large.csv")
    rows = []
    for shown, name in _LARGE.items():
        tables = trials[name]
        cells = [_score(tables[table]) if table in tables else "" for table in _LARGE_TABLES]
        seconds = [float(tables[table]["cpu_seconds"]) for table in _LARGE_TABLES if table in tables]
        rows.append((shown, *cells, f"{sum(seconds):.0f} s" if len(seconds) == len(_LARGE_TABLES) else ""))
    heads = (
        f"{table}, {int(trials['HistGradientBoosting'][table]['training_rows']):,} rows"
        for table in _LARGE_TABLES
    )
    return markdown_table(("", *heads, "CPU time, sum"), rows)


def _score(row: dict[str, str]) -> str:
    loss = f" ({float(row['log_loss']):.3f})" if row["log_loss"] else ""
    return f"{float(row['score']):.1f}{loss}"
