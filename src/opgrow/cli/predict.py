"""``opgrow predict`` and ``opgrow evaluate``: a model file meets a table file."""

from __future__ import annotations

import csv
import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opgrow.cli import common

if TYPE_CHECKING:
    from opgrow.persistence import ModelFile

__all__ = ["evaluate", "predict"]

_Model = Annotated[Path, typer.Argument(help="Model file, as 'opgrow fit' writes it.")]
_Data = Annotated[Path, typer.Argument(help="Table with the columns that the model was fitted on.")]


def predict(
    model: _Model,
    data: _Data,
    output: Annotated[
        str, typer.Option("--output", "-o", help="CSV file to write; - is standard output.")
    ] = "-",
    proba: Annotated[
        bool, typer.Option("--proba", help="Add a column p_<class> with the probability of each class.")
    ] = False,
) -> None:
    """Predict every row of a table.

    Writes CSV with a column 'prediction', in the order of the rows. Further columns of the table are ignored.
    """
    from opgrow.data import read_table
    from opgrow.persistence import check_writable, read, write_atomically

    if output != "-":
        check_writable(output)
        common.refuse_to_replace(model, Path(output), "the model file")
        common.refuse_to_replace(data, Path(output), "the table")
    content = _csv(_rows(read(model), read_table(data), proba))
    if output == "-":
        typer.echo(content, nl=False)
    else:
        write_atomically(output, content.encode())


def evaluate(
    model: _Model,
    data: _Data,
    target: Annotated[
        str | None,
        typer.Option(help="Column with the true values. Default: the one that the model was fitted on."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Score a model on a table that holds the true values.

    Classes: accuracy, balanced accuracy, macro F1 and log loss. Numbers: R2, MAE and RMSE.
    """
    from opgrow.data import read_table
    from opgrow.persistence import read

    loaded, table = read(model), read_table(data)
    name, values = common.target_column(table, target or loaded.target, repr(str(data)))
    x = common.inputs(loaded, table, name)
    found = common.scores(loaded.estimator, x, values, name)
    if as_json:
        common.print_json(
            {"model": str(model), "data": str(data), "target": name, "rows": len(x), "scores": found}
        )
    else:
        common.console().print(f"{len(x)} rows: {common.scores_text(found)}", soft_wrap=True)


def _rows(model: ModelFile, table: Any, proba: bool) -> list[list[Any]]:
    """Header and rows of the predictions."""
    from sklearn.base import is_classifier

    estimator = model.estimator
    if proba and not is_classifier(estimator):
        raise ValueError(f"--proba needs a classifier, and this model is a {type(estimator).__name__}.")
    x = common.inputs(model, table)
    with warnings.catch_warnings():
        # The columns were selected by name, and a matrix has none that could be compared.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        predicted = estimator.predict(x)
        probabilities = estimator.predict_proba(x) if proba else None
    if predicted.ndim == 2:
        names = [f"prediction_{i}" for i in range(predicted.shape[1])]
        return [names, *predicted.tolist()]
    header, rows = ["prediction"], [[value] for value in predicted.tolist()]
    if probabilities is not None:
        header += [f"p_{common.label_text(label)}" for label in estimator.classes_.tolist()]
        rows = [[*row, *shares] for row, shares in zip(rows, probabilities.tolist(), strict=True)]
    return [header, *rows]


def _csv(rows: list[list[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()
