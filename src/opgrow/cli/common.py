"""What the commands share: printing, targets, inputs and scores."""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from opgrow.common.texts import printable

if TYPE_CHECKING:
    import numpy as np
    from rich.console import Console

    from opgrow.estimators.files import ModelFile
    from opgrow.rows.tables import Table

__all__ = [
    "class_codes",
    "console",
    "feature_names",
    "inputs",
    "label_text",
    "labels",
    "notes",
    "print_json",
    "read_for",
    "refuse_to_replace",
    "require_suffix",
    "scores",
    "scores_text",
    "target_column",
]

#: Width of tables that are not printed to a terminal.
WIDE = 120


def console() -> Console:
    """Standard output for tables; wide where no terminal limits it."""
    from opgrow.common.texts import plain_console

    return plain_console(highlight=False, markup=False, width=None if sys.stdout.isatty() else WIDE)


def print_json(data: dict[str, Any]) -> None:
    """Print one JSON object; numbers that JSON does not have become null."""
    typer.echo(json.dumps(_finite(data)))


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {str(key): _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


# --- targets ---


def target_column(table: Table, name: str | None, source: str, option: str = "--target") -> tuple[str, Any]:
    """Name and values of the target; by default the column ``target``. Refuses missing values."""
    import numpy as np

    from opgrow.rows.tables.table import listed

    chosen = "target" if name is None else name
    if chosen not in table.columns:
        what = f"no column {chosen!r}" + ("" if name else f", so name the target with {option}")
        raise ValueError(f"{source} has {what}: it has {listed(table.names, 20)}.")
    values = table.columns[chosen]
    if values.dtype == object:
        missing = sum(value is None for value in values)
    else:
        missing = int(np.isnan(values).sum())
        if np.isinf(values).any():
            raise ValueError(f"The target {chosen!r} of {source} holds infinite values.")
    if missing:
        raise ValueError(
            f"The target {chosen!r} of {source} is missing in {missing} of {table.n_rows} rows: "
            "fill it in or leave them out."
        )
    return chosen, values


def labels(values: np.ndarray, name: str) -> np.ndarray:
    """A column as class labels: whole numbers as integers, text as text; refuses fractions."""
    import numpy as np

    if values.dtype != object:
        broken = values[values != np.round(values)]
        if broken.size:
            raise ValueError(
                f"The target {name!r} holds numbers that are not whole, such as {broken[0]:g}, and classes "
                f"are whole numbers or text: say --task regression, or --text {name} if they are labels."
            )
        if np.abs(values).max() < 2**53:  # from there on, numbers of a table are not exact
            return values.astype(np.int64)
    return np.array([label_text(value) for value in values.tolist()], dtype=str)


def label_text(value: Any) -> str:
    """A label as it stands in a file."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    return str(value)


def class_codes(values: np.ndarray, classes: np.ndarray, target: str) -> np.ndarray:
    """Positions of labels among the classes of a model, whichever way the file writes them."""
    import numpy as np

    codes = {label_text(label): i for i, label in enumerate(classes.tolist())}
    if classes.dtype.kind == "b":
        codes |= {str(int(label)): i for i, label in enumerate(classes.tolist())}
    texts = [label_text(value) for value in values.tolist()]
    unknown = next((text for text in texts if text not in codes), None)
    if unknown is not None:
        raise ValueError(
            f"The target {target!r} holds the class {unknown!r}, which the model does not know: "
            f"its classes are {', '.join(map(label_text, classes.tolist()[:20]))}."
        )
    return np.array([codes[text] for text in texts])


# --- models ---


def read_for(model: ModelFile, path: Path, header: bool | None, decimal: str | None) -> Table:
    """A table for a model: text where the model expects text, even if the file has digits only there."""
    from opgrow.cli.pipelines import first_encoder
    from opgrow.rows.tables import read_table

    encoder = model.encoder if model.pipeline is None else first_encoder(model.pipeline)
    text = [] if encoder is None else encoder.text_columns
    return read_table(path, header=header, decimal=decimal, text=text)


@contextmanager
def notes(quiet: bool = False) -> Iterator[list[str]]:
    """Print warnings about rows as notes, if what is done with these succeeds; yields a list of the notes."""
    from opgrow.common.errors import RangeWarning, TableWarning

    lines: list[str] = []
    with warnings.catch_warnings(record=True) as heard:
        for category in (RangeWarning, TableWarning):
            warnings.simplefilter("always", category)
        yield lines
    for warning in heard:
        if issubclass(warning.category, RangeWarning | TableWarning):
            lines += [str(warning.message)] * (str(warning.message) not in lines)
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    for line in [] if quiet else lines:
        typer.echo(f"note: {printable(line)}", err=True)


def inputs(model: ModelFile, table: Table, target: str | None = None) -> np.ndarray | Table:
    """What a model takes of a table: its columns, or a matrix where it was fitted on one."""
    import numpy as np

    target = target or model.target or "target"
    if model.pipeline is not None:
        from opgrow.cli.pipelines import pipeline_columns, pipeline_inputs

        if (names := pipeline_columns(model.pipeline)) is not None:
            _warn_of_others(table, names, target)
        elif len(table.names) == model.pipeline.n_features_in_ + 1 and target in table.columns:
            table = table.drop(target)
        return pipeline_inputs(model.pipeline, table)
    if model.encoder is not None and hasattr(model.estimator, "feature_names_in_"):
        _warn_of_others(table, model.encoder.feature_names_in_.tolist(), target)
        return table
    # A model that was saved in Python: columns by name if it knows names, and otherwise in their order.
    estimator = model.estimator
    if hasattr(estimator, "feature_names_in_"):
        _warn_of_others(table, estimator.feature_names_in_.tolist(), target)
        table = table.select(estimator.feature_names_in_.tolist())
    elif len(table.names) == estimator.n_features_in_ + 1 and target in table.columns:
        table = table.drop(target)
    if len(table.names) != estimator.n_features_in_:
        raise ValueError(
            f"The table has {len(table.names)} columns, and the model takes {estimator.n_features_in_}."
        )
    for name, values in table.columns.items():
        if values.dtype == object and model.encoder is None:
            raise ValueError(f"Column {name!r} holds text, and this model was fitted on numbers.")
    if model.encoder is not None or hasattr(estimator, "feature_names_in_"):
        return table
    return np.column_stack(list(table.columns.values()))


def _warn_of_others(table: Table, used: list[str], target: str) -> None:
    """Name the columns that a model has no use for."""
    from opgrow.common.errors import TableWarning
    from opgrow.rows.tables.table import listed

    others = [name for name in table.names if name not in {*used, target}]
    if others:
        are = (
            "1 column that fit did not use is"
            if len(others) == 1
            else f"{len(others)} columns that fit did not use are"
        )
        warnings.warn(f"{are} ignored: {listed(others)}", TableWarning, 3)


def feature_names(model: ModelFile) -> list[str] | None:
    """Names of the columns that the network sees, as far as the model file knows them."""
    return model.estimator.input_names


def refuse_to_replace(source: Path, target: Path, what: str, option: str = "--output") -> None:
    """Say so if a result would be written over what it is made from."""
    if target.exists() and source.exists() and target.samefile(source):
        raise ValueError(f"{str(target)!r} is {what} itself: name another with {option}.")


def require_suffix(path: Path, suffix: str, what: str, option: str = "--output") -> None:
    """Refuse a file whose name promises something else than what it would hold."""
    if path.suffix.lower() != suffix:
        raise ValueError(f"{what} is written to a {suffix} file, got {option} {str(path)!r}.")


def scores(estimator: Any, x: np.ndarray | Table, values: np.ndarray, target: str) -> dict[str, float]:
    """How well a fitted estimator predicts a target column."""
    from sklearn.base import is_classifier

    from opgrow.report.quality import class_scores, number_scores

    with warnings.catch_warnings():
        # A matrix has no names that could be compared.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        predicted = estimator.predict(x)
        if is_classifier(estimator):
            codes = class_codes(values, estimator.classes_, target)
            chosen = class_codes(predicted, estimator.classes_, target)
            return class_scores(codes, estimator.predict_proba(x), chosen)
    if values.dtype == object:
        raise ValueError(f"The target {target!r} holds text: regression needs numbers.")
    return number_scores(values, predicted)


def scores_text(values: dict[str, float]) -> str:
    """Scores in a line."""
    names = {"r2": "R2", "mae": "MAE", "rmse": "RMSE", "macro_f1": "macro F1"}
    return ", ".join(
        f"{names.get(name, name.replace('_', ' '))} {value:.4g}" for name, value in values.items()
    )
