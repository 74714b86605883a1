"""``opgrow update``: a model file learns from the rows of another table."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opgrow.cli import common, options

if TYPE_CHECKING:
    import numpy as np

__all__ = ["update"]


def update(
    model: options.Model,
    data: Annotated[Path, typer.Argument(help="Table with the columns that the model was fitted on.")],
    target: options.Target = None,
    grow: Annotated[
        bool, typer.Option("--grow", help="Also grow a further network beside what there is.")
    ] = False,
    header: options.Header = None,
    decimal: options.Decimal = None,
) -> None:
    """Learn from the rows of a table, and replace the model file.

    The file then holds the sums that further updates need. Killed at any moment, it is the old or the new
    model.
    """
    from sklearn.base import is_classifier

    from opgrow.estimators.files import read, save

    loaded = read(model)
    estimator: Any = loaded.estimator
    exact = estimator.running_ is not None
    with common.notes() as lines:
        table = common.read_for(loaded, data, header, decimal)
        name, values = common.target_column(table, target or loaded.target, repr(str(data)))
        x = common.inputs(loaded, table, name)
        if is_classifier(estimator):
            values = _labels(values, estimator.classes_, name)
        elif values.dtype == object:
            raise ValueError(f"The target {name!r} holds text: regression needs numbers.")
        with warnings.catch_warnings():
            # The columns were selected by name, and a matrix has none that could be compared.
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            (estimator.grow if grow else estimator.partial_fit)(x, values)
        if not exact:
            lines.append("the file had no sums: what the model says of its sample of rows takes their place")
        save(estimator, model, target=loaded.target or name, sums=True)
    grown = f", grown to {estimator.network_.topology()}" if grow and estimator.history_[-1].accepted else ""
    common.console().print(
        f"{model}: learned from {table.n_rows} rows{grown}; {model.stat().st_size:,} bytes, of which "
        f"{estimator.running_.n_bytes:,} are sums and rows for further updates",
        soft_wrap=True,
    )


def _labels(values: np.ndarray, classes: np.ndarray, name: str) -> np.ndarray:
    """A column as labels of the kind that the classes of a model are; there may be new ones."""
    import numpy as np

    if classes.dtype.kind in "iu":
        return common.labels(values, name)
    if classes.dtype.kind in "fb":
        return classes[common.class_codes(values, classes, name)]
    return np.array([common.label_text(value) for value in values.tolist()], dtype=str)
