"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

__all__ = [
    "Decimal",
    "Drop",
    "Header",
    "Json",
    "Model",
    "Numeric",
    "ResultJson",
    "Seed",
    "TablesJson",
    "Target",
    "TargetColumn",
    "Text",
    "Threads",
    "parameter_option",
]

TargetColumn = Annotated[
    str | None, typer.Option(help="Column to predict. Default: the column named 'target'.")
]
Seed = Annotated[int, typer.Option(help="Seed of all random numbers.")]
Model = Annotated[Path, typer.Argument(help="Model file, as 'opgrow fit' writes it.")]
Target = Annotated[
    str | None,
    typer.Option(help="Column with the true values. Default: the one that the model was fitted on."),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first row of a CSV file has names; without, columns are x0, x1, ... "
        "Default: it has, and a row that looks like data is refused.",
        show_default=False,
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(help="Decimal mark of a CSV file: . or , (default: as it is written).", metavar="MARK"),
]
Drop = Annotated[
    list[str] | None, typer.Option(help="Columns to leave out, separated by commas.", metavar="NAMES")
]
Text = Annotated[
    list[str] | None,
    typer.Option(help="Columns to take as categories, although they hold numbers.", metavar="NAMES"),
]
Numeric = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns to take as numbers, although they hold text; whatever is no number is missing.",
        metavar="NAMES",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(help="Threads; -1 for all cores. Default: all cores, or as many as torch uses."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
ResultJson = Annotated[bool, typer.Option("--json", help="Print one JSON object about the result.")]
TablesJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]


def parameter_option(examples: str) -> Any:
    """The option by which an estimator gets parameters; ``examples`` are some of them."""
    about = f"A parameter of the estimator, such as {examples}; may be repeated."
    return typer.Option("--param", "-p", help=about, metavar="KEY=VALUE")
