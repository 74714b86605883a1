"""The experiments: `opgrow bench speed` and `opgrow bench accuracy`."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

__all__ = ["app"]

app = typer.Typer(
    help="Measure speed and accuracy on this machine.", no_args_is_help=True, pretty_exceptions_enable=False
)

_Data = Annotated[
    str | None, typer.Option("--data", help="Folder with dataset files (default: $OPGROW_DATA).")
]
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]


@app.command()
def speed(
    data: _Data = None,
    repeats: Annotated[int, typer.Option(min=1, help="Repetitions; medians are reported.")] = 7,
    quick: Annotated[bool, typer.Option(help="Leave out the large search and the fits.")] = False,
    pop: Annotated[bool, typer.Option("--pop", help="Fit POP on pima, too, once: it takes minutes.")] = False,
    as_json: _Json = False,
) -> None:
    """Time the kernels, the search, a tuning step and whole fits beside their peers, interleaved."""
    from .speed import measure

    if quick and pop:
        raise ValueError("--pop asks for a fit, and --quick leaves the fits out: give one of the two")
    rows = []
    for row in measure(data, repeats, quick, pop):
        rows.append(row)
        if not as_json:
            typer.echo(row.text())
    if as_json:
        typer.echo(json.dumps({"measurements": [row.plain() for row in rows]}))


@app.command()
def accuracy(
    datasets: Annotated[str, typer.Option(help="Names, separated by commas.")] = "pima,cmc,yeast",
    data: _Data = None,
    splits: Annotated[int, typer.Option(min=1, help="Stratified 60/40 splits.")] = 10,
    models: Annotated[
        str,
        typer.Option(
            help="Names, separated by commas; 'all', 'methods' or 'peers'. POP and its kin take long."
        ),
    ] = "all",
    param: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="A parameter of the methods; repeatable. Methods that do not have it run without.",
        ),
    ] = None,
    inner: Annotated[
        bool, typer.Option("--inner", help="Split the training rows again and leave the test rows alone.")
    ] = False,
    as_json: _Json = False,
) -> None:
    """Compare the methods with scikit-learn's models and LightGBM on the same splits."""
    from ..assignments import parse_parameters
    from .accuracy import METHODS, PEERS, compare, summary

    groups = {"all": [*METHODS, *PEERS], "methods": [*METHODS], "peers": [*PEERS]}
    chosen = groups.get(models) or [m.strip() for m in models.split(",")]
    unknown = [m for m in chosen if m not in groups["all"]]
    if unknown:
        raise ValueError(f"unknown model {unknown[0]!r}; known are: {', '.join(groups['all'])}")
    results = []
    names = [d.strip() for d in datasets.split(",")]
    for result in compare(names, data, splits, chosen, parse_parameters(param or []), inner=inner):
        results.append(result)
        if not as_json:
            typer.echo(
                f"{result.dataset} split {result.split} {result.model}: {result.accuracy:.3f}", err=True
            )
    rows = summary(results)
    if as_json:
        typer.echo(json.dumps({"results": rows}))
    else:
        typer.echo(markdown(rows))


def markdown(rows: list[dict[str, Any]]) -> str:
    """The summary as a Markdown table, one block of lines for each dataset."""
    names = ("data", "model", "accuracy (mean ± sd)", "parameters", "FLOPs", "seconds")
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    for row in rows:
        accuracy = f"{100 * row['accuracy']:.1f} ± {100 * row['deviation']:.1f}"
        costs = [f"{row[key]:,}" if row[key] is not None else "" for key in ("parameters", "flops")]
        cells = (row["dataset"], row["model"], accuracy, *costs, f"{row['seconds']:.2f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
