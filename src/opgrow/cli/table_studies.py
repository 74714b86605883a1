"""What ``opgrow bench operators`` and ``opgrow bench peers`` share: options, progress, and their lines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opgrow.common.texts import printable

if TYPE_CHECKING:
    from opgrow.bench.peers.results import Line

__all__ = ["MaxRows", "Splits", "Summary", "Tables", "lines_of", "score_text", "tell"]

Tables = Annotated[
    str, typer.Option(help="Names of tables or of folders in --data, separated by commas. Default: all.")
]
Splits = Annotated[int, typer.Option(min=1, help="Splits of each table.")]
MaxRows = Annotated[int | None, typer.Option(min=10, help="Training rows at most, drawn by the split.")]
Summary = Annotated[
    bool, typer.Option("--summary", help="Run nothing: summarise the runs that are in OUT/runs.jsonl.")
]


def score_text(line: Line) -> str:
    """How good a model of a finished run is."""
    return f"{100 * line['accuracy']:.1f} %" if "accuracy" in line else f"R² {line.get('r2', 0):.3f}"


def tell(line: Line, number: int, total: int, what: str) -> None:
    """Print one line of progress: which run has ended, and what came of it."""
    name = f"{line['table']}/{line['split']}/{line['model']}"
    typer.echo(printable(f"[{number}/{total}] {name}: {what}"), err=True)


def lines_of(file: Path) -> list[Line]:
    """The lines of a study, of which there must be some."""
    from opgrow.bench.peers.results import Results

    lines = list(Results(file).lines().values())
    if not lines:
        raise ValueError(f"there is no run in {str(file)!r}")
    return lines
