"""``opgrow report``: a model file becomes a page for a browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opgrow.cli import common, options

if TYPE_CHECKING:
    import numpy as np

__all__ = ["report"]


def report(
    model: options.Model,
    data: Annotated[
        Path | None,
        typer.Argument(
            help="Table with the true values of rows that were not learned from, to say how good it is."
        ),
    ] = None,
    target: options.Target = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "--out", "-o", help="HTML file to write. Default: beside the model file."),
    ] = None,
    header: options.Header = None,
    decimal: options.Decimal = None,
    with_rows: Annotated[
        bool,
        typer.Option(
            "--rows/--no-rows",
            help="Whether the page contains rows to pick from: of the table or, without one, of those that "
            "the model keeps.",
        ),
    ] = True,
    as_json: options.ResultJson = False,
) -> None:
    """Write a page on a model: what it computes, what was grown and how, how good it is and what it costs.

    The network itself computes in the page, which is one file that needs nothing else. A model file keeps no
    curves of tuning; 'opgrow fit --report' shows them.
    """
    from opgrow.common.atomic import check_writable
    from opgrow.estimators.files import read
    from opgrow.report import write_report

    page = model.with_suffix(".html") if output is None else output
    check_writable(page)
    common.refuse_to_replace(model, page, "the model file")
    if data is not None:
        common.refuse_to_replace(data, page, "the table")
    common.require_suffix(page, ".html", "A report")
    loaded = read(model)
    x, y, scores, name = None, None, None, target or loaded.target
    if data is not None:
        with common.notes():
            table = common.read_for(loaded, data, header, decimal)
            name, values = common.target_column(table, name, repr(str(data)))
            x = common.inputs(loaded, table, name)
            scores = common.scores(loaded.estimator, x, values, name)
        y = true_values(loaded.estimator, values, name)
    elif target is not None:
        raise ValueError("--target names a column of a table, and no table was given.")
    write_report(
        loaded.estimator,
        page,
        x,
        y,
        feature_names=common.feature_names(loaded),
        target=name,
        rows="rows" if data is None else f"rows of {data.name}",
        file_bytes=model.stat().st_size,
        with_rows=with_rows,
    )
    if as_json:
        common.print_json(
            {
                "model": str(model),
                "data": None if data is None else str(data),
                "output": str(page),
                "bytes": page.stat().st_size,
                "rows": None if x is None else len(x),
                "scores": scores,
            }
        )
    else:
        about = "" if scores is None else f": {common.scores_text(scores)}"
        common.console().print(f"report written to {page}{about}", soft_wrap=True)


def true_values(estimator: Any, values: np.ndarray, target: str) -> np.ndarray:
    """A target column in the terms of a model: its own labels, or numbers."""
    from sklearn.base import is_classifier

    if not is_classifier(estimator):
        return values
    return estimator.classes_[common.class_codes(values, estimator.classes_, target)]
