"""The parts of a training table: inputs, target, and the columns that ``opgrow fit`` is to drop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opgrow.cli import common

if TYPE_CHECKING:
    from opgrow.rows.tables import Table

__all__ = ["column_names", "features", "same_labels", "split_names", "target_values"]


def split_names(item: str) -> list[str]:
    """Names that are separated by commas."""
    return [part.strip() for part in item.split(",") if part.strip()]


def column_names(table: Table, items: list[str]) -> list[str]:
    """Names of columns, separated by commas; a name may also contain a comma itself."""
    names = [name for item in items for name in ([item] if item in table.columns else split_names(item))]
    table.select(names)  # which says what it does not know
    return list(dict.fromkeys(names))


def features(table: Table, target: str, drop: list[str]) -> Table:
    """The table without its target and the columns to drop."""
    names = column_names(table, drop)
    if target in names:
        raise ValueError(f"The target {target!r} cannot be dropped.")
    table = table.select(name for name in table.names if name not in (*names, target))
    if not table.columns:
        raise ValueError(f"There is no column left to predict {target!r} from.")
    return table


def target_values(values: Any, task: str, name: str, as_text: bool = False) -> Any:
    """The target as an estimator takes it; dates are classes only if they are said to be text."""
    from opgrow.rows.tables.dates import date_among

    if task == "classification":
        date = date_among(values) if values.dtype == object and not as_text else None
        if date is not None:
            raise ValueError(
                f"The target {name!r} holds dates or times, such as {date!r}: turn it into numbers for a "
                f"regression, or say --text {name} if these are classes."
            )
        labels = common.labels(values, name)
        if (labels == labels[0]).all():
            only = labels.tolist()[0]
            raise ValueError(f"The target {name!r} needs at least 2 classes, got 1 class: {only!r}.")
        return labels
    if values.dtype == object:
        raise ValueError(f"The target {name!r} holds text, such as {values[0]!r}: regression needs numbers.")
    return values


def same_labels(values: Any, y: Any, task: str, name: str) -> Any:
    """The validation target in the terms of the training target."""
    if task == "regression":
        return target_values(values, task, name)
    import numpy as np

    classes = np.unique(y)
    return classes[common.class_codes(values, classes, name)]
