"""``opgrow bench operators``: what operators, heterogeneity and tuning add, on all tables of a folder."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opgrow.cli import options, studies, table_studies
from opgrow.cli.training_table import split_names
from opgrow.common.texts import printable

if TYPE_CHECKING:
    from opgrow.bench.peers.results import Line

__all__ = ["operators"]

_Out = Annotated[Path, typer.Option(help="Folder for runs.jsonl and the summary.")]


def operators(
    data: studies.Data = None,
    tables: table_studies.Tables = "",
    models: Annotated[
        str,
        typer.Option(
            help="'operators' and 'ablations' for groups, or names like 'HeMLGOP preset=null n_draws=1'; "
            "separated by commas. All are compared with one network of the whole library."
        ),
    ] = "operators",
    splits: table_studies.Splits = 1,
    max_rows: table_studies.MaxRows = 1500,
    out: _Out = Path("results-operators"),
    summary: table_studies.Summary = False,
    as_json: options.TablesJson = False,
) -> None:
    """Ask what operators, heterogeneous layers and tuning add to single networks: paired tests over tables.

    The same command continues where it was interrupted.
    """
    from opgrow.bench.operators.answers import answers
    from opgrow.bench.operators.page import page
    from opgrow.bench.operators.study import run_study
    from opgrow.bench.operators.variants import chosen, questions_of
    from opgrow.bench.peers.splits import table_names
    from opgrow.bench.peers.table_study import TableStudy
    from opgrow.common.atomic import write_atomically

    names, file = chosen(models), out / "runs.jsonl"
    if not summary:
        there = table_names(split_names(tables) if tables else [], data)
        run_study(TableStudy(there, names, file, splits, data, max_rows), _tell)
    lines = table_studies.lines_of(file)
    text = page(lines)
    write_atomically(out / "summary.md", text.encode())
    if as_json:
        found = answers(lines, questions_of(list(dict.fromkeys(line["model"] for line in lines))))
        typer.echo(json.dumps([asdict(one) for one in found]))
    else:
        typer.echo(printable(text))


def _tell(line: Line, number: int, total: int) -> None:
    """One line of progress."""
    if "message" in line:
        what = line["message"]
    else:
        size = f"{line['parameters']:,} parameters"
        what = f"{table_studies.score_text(line)}, {size}, {line['fit_seconds']:.1f} s"
    table_studies.tell(line, number, total, what)
