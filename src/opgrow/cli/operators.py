"""``opgrow bench operators``: what operators, heterogeneity and tuning add, on all tables of a folder."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opgrow.cli import options, studies
from opgrow.cli.training_table import split_names
from opgrow.common.texts import printable

if TYPE_CHECKING:
    from opgrow.bench.peers.results import Line

__all__ = ["operators"]

_Tables = Annotated[
    str, typer.Option(help="Names of tables or of folders in --data, separated by commas. Default: all.")
]
_Models = Annotated[
    str,
    typer.Option(
        help="'operators' and 'ablations' for groups, or names like 'HeMLGOP preset=null n_draws=1'; "
        "separated by commas. All are compared with one network of the whole library."
    ),
]
_MaxRows = Annotated[int | None, typer.Option(min=10, help="Training rows at most, drawn by the split.")]
_Out = Annotated[Path, typer.Option(help="Folder for runs.jsonl and the summary.")]


def operators(
    data: studies.Data = None,
    tables: _Tables = "",
    models: _Models = "operators",
    splits: Annotated[int, typer.Option(min=1, help="Splits of each table.")] = 1,
    max_rows: _MaxRows = 1500,
    out: _Out = Path("results-operators"),
    summary: Annotated[
        bool, typer.Option("--summary", help="Run nothing: summarise the runs that are in OUT/runs.jsonl.")
    ] = False,
    as_json: options.TablesJson = False,
) -> None:
    """Ask what operators, heterogeneous layers and tuning add to single networks: paired tests over tables.

    The same command continues where it was interrupted.
    """
    from opgrow.bench.operators.answers import answers
    from opgrow.bench.operators.page import page
    from opgrow.bench.operators.study import OperatorStudy, run_study
    from opgrow.bench.operators.variants import chosen, questions_of
    from opgrow.bench.peers.results import Results
    from opgrow.bench.peers.splits import table_names
    from opgrow.common.atomic import write_atomically

    names, file = chosen(models), out / "runs.jsonl"
    if not summary:
        there = table_names(split_names(tables) if tables else [], data)
        run_study(OperatorStudy(there, names, file, splits, data, max_rows), _tell)
    lines = list(Results(file).lines().values())
    if not lines:
        raise ValueError(f"there is no run in {str(file)!r}")
    text = page(lines)
    write_atomically(out / "summary.md", text.encode())
    if as_json:
        found = answers(lines, questions_of(list(dict.fromkeys(line["model"] for line in lines))))
        typer.echo(json.dumps([asdict(one) for one in found]))
    else:
        typer.echo(printable(text))


def _tell(line: Line, number: int, total: int) -> None:
    """One line of progress."""
    name = f"{line['table']}/{line['split']}/{line['model']}"
    if "message" in line:
        what = line["message"]
    else:
        good = f"{100 * line['accuracy']:.1f} %" if "accuracy" in line else f"R² {line.get('r2', 0):.3f}"
        what = f"{good}, {line['parameters']:,} parameters, {line['fit_seconds']:.1f} s"
    typer.echo(printable(f"[{number}/{total}] {name}: {what}"), err=True)
