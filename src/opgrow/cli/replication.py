"""``opgrow bench readings``: what the HeMLGOP paper leaves open, as a designed experiment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opgrow.cli import studies
from opgrow.cli.training_table import split_names

__all__ = ["readings"]


def readings(
    data: studies.Data = None,
    tables: Annotated[str, typer.Option(help="Tables of the paper, separated by commas.")] = "pima,cmc,yeast",
    splits: Annotated[int, typer.Option(min=1, help="Splits of each table in the design.")] = 2,
    around: Annotated[int, typer.Option(min=1, help="Splits of each table around the nearest reading.")] = 3,
    max_parameters: Annotated[
        int, typer.Option(min=100, help="Size at which a network stops to grow.")
    ] = 20_000,
    budget: studies.Budget = "60s",
    out: Annotated[
        Path, typer.Option(help="File of results; an experiment that was interrupted goes on.")
    ] = Path("results/readings.csv"),
) -> None:
    """Fit HeMLGOP under many readings of its paper: which of them give the printed sizes and accuracies."""
    from opgrow.bench.budget import parse_duration
    from opgrow.bench.replication.reading_study import ReadingStudy, results_of, run_readings
    from opgrow.bench.replication.reading_tables import tables_of
    from opgrow.bench.replication.readings import Bounds

    options = f"--tables {tables} --splits {splits} --around {around} --max-parameters {max_parameters}"
    study = ReadingStudy(
        tables=split_names(tables),
        out=out,
        command=f"opgrow bench readings --data DIR {options} --budget {budget}",
        data_home=data,
        n_splits=(splits, around),
        bounds=Bounds(max_parameters, parse_duration(budget)),
    )
    run_readings(study, lambda line: typer.echo(line, err=True))
    typer.echo("\n".join(table.markdown() for table in tables_of(results_of(out).rows())))
