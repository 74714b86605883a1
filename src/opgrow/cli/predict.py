"""``opgrow predict`` and ``opgrow evaluate``: a model file is applied to a table file."""

from __future__ import annotations

import csv
import io
import sys
import warnings
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opgrow.cli import common, options
from opgrow.cli.folders import model_inputs, of_rows, prediction_lines, targets
from opgrow.common.texts import printable

if TYPE_CHECKING:
    import numpy as np

    from opgrow.estimators.files import ModelFile
    from opgrow.rows.tables import Table

__all__ = ["evaluate", "predict"]

_Data = Annotated[
    Path,
    typer.Argument(
        help="Table with the columns that the model was fitted on, or a folder of .parquet, .npz or .npy "
        "files."
    ),
]


def predict(
    model: options.Model,
    data: _Data,
    output: Annotated[
        str, typer.Option("--output", "-o", help="CSV file to write; - is standard output.")
    ] = "-",
    proba: Annotated[
        bool, typer.Option("--proba", help="Add a column p_<class> with the probability of each class.")
    ] = False,
    interval: Annotated[
        float | None,
        typer.Option(
            "--interval",
            help="Add columns 'low' and 'high', between which this share of the true numbers should lie, "
            "such as 0.9.",
        ),
    ] = None,
    header: options.Header = None,
    decimal: options.Decimal = None,
) -> None:
    """Predict every row of a table.

    Writes CSV with a column 'prediction', in the order of the rows. Further columns of the table are ignored;
    these, and rows with categories that the model does not know, are counted on standard error.
    """
    from opgrow.common.atomic import check_writable, write_atomically
    from opgrow.estimators.files import read

    if output != "-":
        check_writable(output)
        common.refuse_to_replace(data, Path(output), "the table")
        common.refuse_to_replace(model, Path(output), "the model file")
        common.require_suffix(Path(output), ".csv", "The table of predictions")
    loaded = read(model, pipelines=True)
    as_csv = partial(_csv, proba=proba, interval=interval)
    content: Iterable[bytes]
    with common.notes():
        if data.is_dir():
            _refuse_for_folders(header, decimal)
            content = prediction_lines(loaded, data, as_csv)
        else:
            table = common.read_for(loaded, data, header, decimal)
            content = [as_csv(loaded, common.inputs(loaded, table)).encode()]
        if output == "-":
            for part in content:
                # A file or another program gets the labels as they are.
                typer.echo(printable(part.decode()) if sys.stdout.isatty() else part, nl=False)
        else:
            write_atomically(output, content)


def evaluate(
    model: options.Model,
    data: _Data,
    target: options.Target = None,
    header: options.Header = None,
    decimal: options.Decimal = None,
    as_json: options.Json = False,
) -> None:
    """Score a model on a table that holds the true values.

    Classes: accuracy, balanced accuracy, macro F1 and log loss. Numbers: R2, MAE and RMSE.
    """
    from opgrow.estimators.files import read

    loaded = read(model, pipelines=True)
    if data.is_dir():
        _refuse_for_folders(header, decimal)
        name, values = targets(data, target or loaded.target)
        x: Any = model_inputs(loaded, data)
        scores = common.scores(of_rows(loaded).estimator, x, values, name)
        _show(model, data, name, x.n_rows, scores, as_json)
        return
    with common.notes():
        table = common.read_for(loaded, data, header, decimal)
        name, values = common.target_column(table, target or loaded.target, repr(str(data)))
        x = common.inputs(loaded, table, name)
        scores = common.scores(loaded.estimator, x, values, name)
    _show(model, data, name, len(x), scores, as_json)


def _refuse_for_folders(header: bool | None, decimal: str | None) -> None:
    if header is not None or decimal is not None:
        raise ValueError("--header and --decimal concern CSV files, and a folder has none.")


def _show(model: Path, data: Path, name: str, n_rows: int, scores: dict[str, float], as_json: bool) -> None:
    if as_json:
        common.print_json(
            {"model": str(model), "data": str(data), "target": name, "rows": n_rows, "scores": scores}
        )
    else:
        common.console().print(f"{n_rows} rows: {common.scores_text(scores)}", soft_wrap=True)


def _rows(model: ModelFile, x: np.ndarray | Table, proba: bool, interval: float | None) -> list[list[Any]]:
    """Header and rows of the predictions."""
    from sklearn.base import is_classifier

    estimator = model.estimator
    if proba and not is_classifier(estimator):
        raise ValueError(f"--proba needs a classifier, and this model is a {type(estimator).__name__}.")
    if interval is not None and is_classifier(estimator):
        raise ValueError(f"--interval needs a regressor, and this model is a {type(estimator).__name__}.")
    with warnings.catch_warnings():
        # The columns were selected by name, and a matrix has none that could be compared.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        predicted = estimator.predict(x)
        probabilities = estimator.predict_proba(x) if proba else None
        bounds = None if interval is None else estimator.predict_interval(x, interval)
    if not is_classifier(estimator):
        return _number_rows(predicted, bounds)
    header, rows = ["prediction"], [[value] for value in predicted.tolist()]
    if probabilities is not None:
        header += [f"p_{common.label_text(label)}" for label in estimator.classes_.tolist()]
        rows = [[*row, *shares] for row, shares in zip(rows, probabilities.tolist(), strict=True)]
    return [header, *rows]


def _number_rows(predicted: np.ndarray, bounds: tuple[np.ndarray, np.ndarray] | None) -> list[list[Any]]:
    """Header and rows of predicted numbers (n,) or (n, targets), with the bounds of their intervals."""
    ends = [""] if predicted.ndim == 1 else [f"_{i}" for i in range(predicted.shape[1])]
    kinds = {"prediction": predicted}
    if bounds is not None:
        kinds |= dict(zip(("low", "high"), bounds, strict=True))
    header = [f"{kind}{end}" for kind in kinds for end in ends]
    columns = [
        list(column) for values in kinds.values() for column in values.reshape(len(values), -1).T.tolist()
    ]
    return [header, *map(list, zip(*columns, strict=True))]


def _csv(
    model: ModelFile, x: np.ndarray | Table, proba: bool, interval: float | None, header: bool = True
) -> str:
    """The predictions as CSV, with or without the header."""
    rows = _rows(model, x, proba, interval)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows if header else rows[1:])
    return text.getvalue()
