"""The forms in which models take a table: what they do with text and gaps, and what is done for them.

- "table": as it is.
- "matrix": numbers only, by a `TableEncoder` that has seen the training rows alone.
- "codes": text as numbers of categories, gaps as NaN; the model is told which columns are categories.
- "text frame": a data frame whose text stays text, gaps in it being one more category.
- "category frame": a data frame with categories; gaps in numbers are medians of the training rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from ...common.extras import require
from ...rows.tables import Table, TableEncoder
from ...rows.tables.table import as_text
from .splits import TableSplit

__all__ = ["FORMS", "Inputs", "inputs_of"]

#: Training inputs, test inputs, and the positions (or names, for frames) of the categories.
Inputs = tuple[Any, Any, list[Any]]
_GAP = "<missing>"


def inputs_of(form: str, split: TableSplit) -> Inputs:
    """The rows of a split in the form that a model takes."""
    return FORMS[form](split)


def _table(split: TableSplit) -> Inputs:
    if not isinstance(split.x_train, Table):
        return split.x_train, split.x_test, []
    return _with_text(split.x_train, split.text), _with_text(split.x_test, split.text), []


def _with_text(table: Table, names: Collection[str]) -> Table:
    columns = table.columns.items()
    return Table({name: as_text(values) if name in names else values for name, values in columns})


def _matrix(split: TableSplit) -> Inputs:
    if not isinstance(split.x_train, Table):
        return split.x_train, split.x_test, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # categories that only test rows have
        encoder = TableEncoder(max_categories=100, text=split.text, many="pool", gaps="fill")
        encoder.learn(split.x_train, keep_constant=True)
        return encoder.transform(split.x_train), encoder.transform(split.x_test), []


def _codes(split: TableSplit) -> Inputs:
    if not isinstance(split.x_train, Table):
        return split.x_train, split.x_test, []
    train, test, categories = [], [], []
    for place, (name, values) in enumerate(split.x_train.columns.items()):
        others = split.x_test.columns[name]
        if values.dtype == object:
            known = {value: code for code, value in enumerate(_categories(values))}
            values, others = (np.array([known.get(v, np.nan) for v in part]) for part in (values, others))
            categories.append(place)
        train.append(values)
        test.append(others)
    return np.column_stack(train), np.column_stack(test), categories


def _categories(values: np.ndarray) -> list[str]:
    return sorted({value for value in values if value is not None})


def _frames(split: TableSplit) -> tuple[Any, Any, list[str]]:
    """Data frames of the rows, and the names of the columns of text, whose gaps are a word."""
    pandas = require("pandas", "a data frame", "tables")
    parts = []
    for x in (split.x_train, split.x_test):
        columns = x.columns if isinstance(x, Table) else {f"x{i}": x[:, i] for i in range(x.shape[1])}
        filled = {
            name: np.array([_GAP if v is None else v for v in values], dtype=object)
            if values.dtype == object
            else values.astype(np.float64)
            for name, values in columns.items()
        }
        parts.append(pandas.DataFrame(filled))
    columns = split.x_train.columns if isinstance(split.x_train, Table) else {}
    return *parts, [name for name, values in columns.items() if values.dtype == object]


def _category_frames(split: TableSplit) -> Inputs:
    pandas = require("pandas", "a data frame", "tables")
    train, test, text = _frames(split)
    for name in train.columns:
        if name in text:
            known = pandas.CategoricalDtype(sorted(train[name].unique()))
            train[name] = train[name].astype(known)
            test[name] = test[name].where(test[name].isin(known.categories)).astype(known)
        else:
            median = train[name].median()
            median = 0.0 if np.isnan(median) else median
            train[name], test[name] = train[name].fillna(median), test[name].fillna(median)
    return train, test, text


FORMS: dict[str, Callable[[TableSplit], Inputs]] = {
    "table": _table,
    "matrix": _matrix,
    "codes": _codes,
    "text frame": _frames,
    "category frame": _category_frames,
}
