"""What becomes of a column: learned from its training values and the user's wishes, or read from a file."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from opgrow.rows.tables.categories import TextColumn
from opgrow.rows.tables.checks import require
from opgrow.rows.tables.columns import MIN_GAPS, Column, DroppedColumn, NumberColumn
from opgrow.rows.tables.csv_files import as_numbers
from opgrow.rows.tables.date_columns import DateColumn
from opgrow.rows.tables.table import as_text
from opgrow.rows.tables.target_means import Target, TargetColumn

__all__ = ["KINDS", "Wishes", "column_from_dict", "learned"]

#: Kinds of columns by the names that descriptions have, and the format in which there are such.
KINDS: dict[str, Any] = {
    "number": NumberColumn,
    "text": TextColumn,
    "date": DateColumn,
    "target": TargetColumn,
    "dropped": DroppedColumn,
}


@dataclass(frozen=True)
class Wishes:
    """What is wished of all columns, and of one: as text, as numbers, or (both False) as it comes."""

    max_categories: int
    many: str
    mark_gaps: bool
    keep_constant: bool = False
    text: bool = False
    numeric: bool = False


def learned(
    name: str, values: np.ndarray, wishes: Wishes, target: Target | None
) -> tuple[Column, np.ndarray | None]:
    """What is known of a column, and the values of the training rows where they are not what others get."""
    if wishes.text or (values.dtype == object and not wishes.numeric):
        return _learned_text(name, as_text(values), wishes, target)
    numbers = as_numbers(values) if values.dtype == object else values
    if np.isinf(numbers).any():
        raise ValueError(
            f"Column {name!r} holds infinity or a value too large for dtype('float64'): leave out such rows."
        )
    finite = numbers[np.isfinite(numbers)]
    if wishes.keep_constant and len(finite):
        return NumberColumn.learn(name, values, wishes.numeric, wishes.mark_gaps), None
    dropped = _nothing(name, finite, has_gaps=wishes.mark_gaps and len(numbers) - len(finite) >= MIN_GAPS)
    return dropped or NumberColumn.learn(name, values, wishes.numeric, wishes.mark_gaps), None


def _learned_text(
    name: str, values: np.ndarray, wishes: Wishes, target: Target | None
) -> tuple[Column, np.ndarray | None]:
    counts = Counter(values.tolist())
    missing = counts.pop(None, 0) > 0
    dropped = _nothing(name, np.array(list(counts), dtype=object), missing or wishes.keep_constant)
    if dropped is not None:
        return dropped, None
    date = None if wishes.text else DateColumn.learn(name, values)
    if date is not None:
        return date, None
    if len(counts) > wishes.max_categories:
        if max(counts.values()) == 1 and not wishes.keep_constant:
            return DroppedColumn(name, "its text is different in every row, as an identifier's"), None
        if wishes.many == "target" and target is not None:
            return TargetColumn.learn(name, values, counts, target)
    return TextColumn.learn(name, counts, missing, wishes.max_categories), None


def _nothing(name: str, values: np.ndarray, has_gaps: bool) -> DroppedColumn | None:
    """A column whose values tell no row from another."""
    if not len(values):
        return DroppedColumn(name, "it has no values")
    if has_gaps or (values[0] != values).any():
        return None
    value = values[0] if values.dtype == object else values[0].item()
    return DroppedColumn(name, f"all rows have the same value, {value!r}")


def column_from_dict(data: Any) -> Column:
    """Read what a column's `to_dict` wrote."""
    require(isinstance(data, dict), f"a column must be a dictionary, got {type(data).__name__}")
    require(isinstance(data.get("name"), str), f"a column's name must be text, got {data.get('name')!r}")
    kind = data.get("kind")
    require(isinstance(kind, str) and kind in KINDS, f"column {data['name']!r} is of unknown kind {kind!r}")
    column: Column = KINDS[str(kind)].from_dict(data)
    return column
