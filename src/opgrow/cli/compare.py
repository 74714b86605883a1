"""``opgrow compare``: our networks and the usual peers on the same folds of a table."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opgrow.cli import common, options
from opgrow.cli.fit import Task
from opgrow.cli.peers import duration
from opgrow.cli.training_table import column_names, features, split_names, target_values
from opgrow.common.texts import printable

if TYPE_CHECKING:
    from opgrow.bench.peers.folds import FoldedTable
    from opgrow.bench.peers.results import Line
    from opgrow.bench.peers.standings import Standing
    from opgrow.bench.peers.study import TimeLeft

__all__ = ["compare"]


def compare(
    data: Annotated[Path, typer.Argument(help="Table with a target: .csv, .csv.gz, .parquet or .npz.")],
    target: options.TargetColumn = None,
    task: Annotated[
        Task, typer.Option(help="What to predict; auto decides as 'opgrow fit' does, and says so.")
    ] = Task.auto,
    models: Annotated[
        str,
        typer.Option(
            help="Models, separated by commas: default, compact, accurate (ours); linear, forest, svm, mlp, "
            "boosting, lightgbm, catboost, realmlp, tabm; or a method with parameters, like "
            "'HeMLGOP n_min=20'. Default: ours, linear, boosting, lightgbm if it is installed, forest, mlp."
        ),
    ] = "",
    folds: Annotated[
        int, typer.Option(min=2, max=50, help="Parts of the table, each of which is predicted once.")
    ] = 5,
    seconds: Annotated[
        float | None,
        typer.Option(min=1, help="Time for everything; models that need longer have fewer folds, or none."),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Fits at a time, each on one core; -1 for all cores.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the folds.")] = 0,
    drop: options.Drop = None,
    text: options.Text = None,
    numeric: options.Numeric = None,
    header: options.Header = None,
    decimal: options.Decimal = None,
    as_json: options.TablesJson = False,
) -> None:
    """Compare our networks with other models on your table, before you choose one.

    Every model predicts the same held-out rows. The table shows how good each is and how far that is certain,
    how long it takes to fit and to predict, and how many numbers it has learned.
    """
    from opgrow.bench.peers.folds import FoldedTable, write_folds
    from opgrow.bench.peers.standings import standings, verdict
    from opgrow.estimators.parameters import n_threads

    chosen = _models(models)
    source = _Source(data, target, task.value, tuple(drop or ()), tuple(text or ()), tuple(numeric or ()))
    name, facts, said = source.read(header, decimal)
    table = FoldedTable(**facts, n_folds=folds, seed=seed)
    if table.x.n_rows < 2 * folds:
        raise ValueError(f"{str(data)!r} has {table.x.n_rows} rows, too few for {folds} folds.")
    if not as_json:
        for label, line in said:
            typer.echo(printable(f"{label:<10} {line}"), err=True)
    with tempfile.TemporaryDirectory(prefix="opgrow-") as folder:
        write_folds(table, Path(folder))
        lines = _run(folder, chosen, table, n_threads(jobs), seconds)
    found = standings(lines, chosen, table.task)
    if not any(one.folds for one in found):
        raise ValueError(f"no model has finished; {found[0].model}: {found[0].message}")
    if as_json:
        _print_json(data, name, table, found)
    else:
        common.console().print(_shown(found, table))
        typer.echo(f"\n{printable(verdict(found, table.task))}")
        for one in found:
            if one.message is not None:
                typer.echo(printable(f"{one.model}, {folds - one.folds} of {folds} folds: {one.message}."))


def _models(text: str) -> list[str]:
    """The models to compare; what is not installed is left out, unless somebody has asked for it."""
    from opgrow.bench.peers import models as known
    from opgrow.bench.peers.standings import default_models, full_name

    if not text.strip():
        return known.installed(default_models())[0]
    names = [full for name in known.split_names(text) for full in known.chosen(full_name(name))]
    for name in names:
        known.check(name)
    there, sentences = known.installed(names)
    for sentence in sentences:
        typer.echo(sentence, err=True)
    if not there:
        raise ValueError("none of the models is installed")
    return list(dict.fromkeys(there))


class _Source:
    """The table file and the options that say what its columns are, as ``opgrow fit`` has them."""

    def __init__(self, path: Path, target: str | None, task: str, drop: Any, text: Any, numeric: Any) -> None:
        self.path, self.target, self.task = path, target, task
        self.drop, self.text, self.numeric = list(drop), list(text), list(numeric)

    def read(self, header: bool | None, decimal: str | None) -> tuple[str, dict[str, Any], list[Any]]:
        """Name of the target; inputs, targets, task and columns of text; and what was decided."""
        from opgrow.cli import decisions
        from opgrow.rows.tables import Table, TableEncoder, guess_task, read_table
        from opgrow.rows.tables.csv_files import as_numbers
        from opgrow.rows.tables.table import as_text
        from opgrow.rows.tables.target_means import Target
        from opgrow.rows.tables.wishes import check_single

        if self.path.is_dir():
            raise ValueError(f"{str(self.path)!r} is a folder: 'opgrow compare' takes a single file.")
        given = [name for item in self.text for name in (item, *split_names(item))]
        table = read_table(self.path, header=header, decimal=decimal, text=given)
        name, column = common.target_column(table, self.target, repr(str(self.path)))
        guess = guess_task(column) if self.task == "auto" else None
        task = self.task if guess is None else guess.task
        inputs = features(table, name, self.drop)
        as_categories, numbers = column_names(table, self.text), column_names(table, self.numeric)
        y = target_values(column, task, name, name in as_categories)
        text = tuple(one for one in as_categories if one in inputs.columns)
        encoder = TableEncoder(text=text, numeric=numbers)
        encoder.learn(inputs, Target.of(y, task == "classification"))
        check_single(encoder)  # complains of columns no model takes, as learning does
        changes = dict.fromkeys(numbers, as_numbers) | dict.fromkeys(text, as_text)
        columns = {
            one: changes[one](values) if one in changes else values for one, values in inputs.columns.items()
        }
        said = [
            decisions.file_decision(table),
            *decisions.target_decisions(name, column, task, None if guess is None else guess.reason),
            *decisions.column_decisions(encoder, [n for n in table.names if n not in (*inputs.names, name)]),
        ]
        said = [one for one in said if "--max-categories" not in one[1]]  # an option of other commands
        facts = {"x": Table(columns), "y": y, "task": task, "text": text}
        return name, facts, sorted(said, key=lambda one: one[0] == "note")


def _run(
    folder: str, models: list[str], table: FoldedTable, n_jobs: int, seconds: float | None
) -> list[Line]:
    """The lines of all runs: all models on the first fold, then on the next."""
    from opgrow.bench.peers.processes import Request, run_all
    from opgrow.bench.peers.study import TimeLeft, line_of

    requests = [
        Request("table", fold, model, folds=folder) for fold in range(table.n_folds) for model in models
    ]
    left = TimeLeft((), [request.model for request in requests], n_jobs)
    lines = []
    for request, result in run_all(requests, n_jobs, None, seconds):
        line = line_of(request, result, seconds)
        lines.append(line)
        typer.echo(printable(_progress(line, len(lines), len(requests), left)), err=True)
    return lines


def _progress(line: Line, number: int, total: int, left: TimeLeft) -> str:
    from opgrow.bench.runs import DONE

    rest = left.after(line)
    what = f"{line['status']}: {line.get('message', '')}"
    if line["status"] == DONE:
        good = f"accuracy {line['accuracy']:.3f}" if "accuracy" in line else f"R² {line['r2']:.3f}"
        what = f"{good} in {line['fit_seconds']:.1f} s"
    more = f"; about {duration(rest)} left" if number < total else ""
    return f"[{number}/{total}] fold {line['split'] + 1}, {line['model']}: {what}{more}"


def _shown(found: list[Standing], table: FoldedTable) -> Any:
    from rich.table import Table

    classes = table.task == "classification"
    shown = Table(box=None, pad_edge=False)
    shown.add_column("model", overflow="fold")
    score, loss = ("accuracy", "log loss") if classes else ("R²", "RMSE")
    for heading in (score, loss, "fit s", "µs a row", "parameters"):
        shown.add_column(heading, justify="right")
    shown.add_column("")
    for number, one in enumerate(found):
        note = (
            "" if one.score is None else "best" if number == 0 else "worse" if one.behind else "within noise"
        )
        if one.folds < table.n_folds:
            note += f"{', ' if note else ''}{one.folds} of {table.n_folds} folds"
        error = "" if one.error is None else f" ± {one.error:.3f}"
        shown.add_row(
            one.model,
            "" if one.score is None else f"{one.score:.3f}{error}",
            _number(one.loss),
            _number(one.fit_seconds),
            _number(one.row_microseconds),
            "" if one.parameters is None else f"{one.parameters:,}",
            note,
        )
    return shown


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _print_json(data: Path, name: str, table: FoldedTable, found: list[Standing]) -> None:
    from opgrow.bench.peers.standings import verdict

    common.print_json(
        {
            "data": str(data),
            "target": name,
            "task": table.task,
            "rows": table.x.n_rows,
            "columns": len(table.x.names),
            "folds": table.n_folds,
            "seed": table.seed,
            "models": [vars(one) for one in found],
            "verdict": verdict(found, table.task),
        }
    )
