"""``opgrow explain``: why a model says what it says of the rows of a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opgrow.cli import common, options
from opgrow.common.texts import printable

if TYPE_CHECKING:
    from opgrow.report import Explanation

__all__ = ["explain"]

#: Columns of the table of importance, and outputs with a column of their own.
_COLUMNS, _OUTPUTS = 20, 8


def explain(
    model: options.Model,
    data: Annotated[
        Path,
        typer.Argument(
            help="Table with the columns that the model was fitted on: averages are over its rows."
        ),
    ],
    row: Annotated[
        list[int] | None,
        typer.Option("--row", help="Row to explain, from 0 on; can be given several times.", metavar="N"),
    ] = None,
    formula: Annotated[bool, typer.Option("--formula", help="Print a small network as a formula.")] = False,
    target: options.Target = None,
    header: options.Header = None,
    decimal: options.Decimal = None,
    as_json: options.TablesJson = False,
) -> None:
    """Explain a model: which columns matter, and what they contribute to the predictions of rows.

    Contributions add up to the output of the network; of two classes, to the log-odds of the second one.
    """
    from opgrow.estimators.files import read
    from opgrow.report import explain as explain_model

    loaded = read(model, pipelines=True)
    with common.notes():
        table = common.read_for(loaded, data, header, decimal)
        name = target or loaded.target
        explanation = explain_model(loaded.estimator, common.inputs(loaded, table, name), target=name)
        ways = [explanation.row(number) for number in row or ()]
    if as_json:
        common.print_json({"file": str(model), "data": str(data), **explanation.data(rows=row or ())})
        return
    console = common.console()
    for way in ways:
        for sentence in way.sentences:
            console.print(sentence, soft_wrap=True)
        console.print(f"\nRow {way.number}, contributions:", style="bold")
        console.print(_contributions(explanation, way))
        console.print()
    n = len(explanation.importance_rows)
    console.print(f"Mean size of contributions, over {n} rows:", style="bold", soft_wrap=True)
    console.print(_importance(explanation))
    if formula:
        console.print()
        console.print(explanation.formula().text, soft_wrap=True)


def _contributions(explanation: Explanation, way: Any) -> Any:
    """A table whose last line is the sum of the others: the output."""
    outputs = explanation.outputs[:_OUTPUTS]
    table = _table(["column", "value"], outputs)
    attribution = way.columns
    table.add_row("mean of the data", "", *_figures(attribution.base, signed=False))
    for name, text, values in way.table()[:_COLUMNS]:
        table.add_row(_text(name), _text(text), *_figures(values))
    others = way.table()[_COLUMNS:]
    if others:
        table.add_row(f"{len(others)} others", "", *_figures(sum(values for *_, values in others)))
    table.add_row("output", "", *_figures(way.outputs, signed=False))
    return table


def _importance(explanation: Explanation) -> Any:
    outputs = explanation.outputs[:_OUTPUTS]
    table = _table(["column"], outputs)
    for j in explanation.order[:_COLUMNS]:
        table.add_row(_text(explanation.columns[j]), *_figures(explanation.importance[j], signed=False))
    return table


def _table(words: list[str], numbers: list[str]) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in words:
        table.add_column(name, overflow="fold")
    for name in numbers:
        table.add_column(_text(name), justify="right")
    return table


def _text(words: str) -> Any:
    from rich.text import Text

    return Text(printable(words))


def _figures(values: Any, signed: bool = True) -> list[str]:
    return [f"{value:+.3g}" if signed else f"{value:.3g}" for value in values[:_OUTPUTS]]
