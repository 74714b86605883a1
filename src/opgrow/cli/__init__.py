"""The command ``opgrow``.

This file and the signatures of the commands import nothing heavy: torch and scikit-learn are imported when a
command runs, so that help and completion are immediate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from opgrow.cli.bench import app as bench_app
from opgrow.cli.compare import compare
from opgrow.cli.demo import demo
from opgrow.cli.errors import OneLineErrors
from opgrow.cli.explain import explain
from opgrow.cli.export import export
from opgrow.cli.fit import fit
from opgrow.cli.inspect import inspect
from opgrow.cli.playground import playground
from opgrow.cli.predict import evaluate, predict
from opgrow.cli.report import report
from opgrow.cli.serve import serve
from opgrow.cli.update import update
from opgrow.common.version import __version__

__all__ = ["app", "main"]

app = typer.Typer(
    cls=OneLineErrors,
    help="Grow compact neural networks from tables of data.\n\n"
    "Start with **opgrow demo**, or with your own file: "
    "**opgrow fit data.csv --target price**.",
    rich_markup_mode="markdown",
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _opgrow(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        typer.echo(f"opgrow {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())
    else:
        return
    raise typer.Exit


#: In the order in which --help lists them.
_COMMANDS: list[Callable[..., None]] = [
    demo,
    fit,
    predict,
    evaluate,
    update,
    compare,
    inspect,
    explain,
    export,
    report,
    serve,
    playground,
]
for _command in _COMMANDS:
    app.command()(_command)
app.add_typer(bench_app, name="bench")


def main() -> None:
    """Run the command line."""
    app(prog_name="opgrow")
