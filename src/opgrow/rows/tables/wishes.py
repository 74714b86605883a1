"""What users wish of an encoder, checked, and how it warns them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection
from typing import Any

import numpy as np

from opgrow.common.errors import TableWarning
from opgrow.rows.tables.columns import SINGLE
from opgrow.rows.tables.table import Table

__all__ = ["GAPS", "MANY", "check_choices", "check_names_of", "check_single", "is_new", "warn"]

#: Choices of what becomes of many categories and of gaps, the defaults first.
MANY, GAPS = ("target", "pool"), ("mark", "fill")


def warn(message: str) -> None:
    """Warn of a table, where the user called us or scikit-learn."""
    level, frame, ours = 1, sys._getframe(1), ("opgrow.", "sklearn.")
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(ours):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, TableWarning, stacklevel=level + 1)


def check_single(encoder: Any) -> None:
    """Refuse columns of which single precision would leave nothing."""
    for fact in encoder.facts_:
        if 0 < fact.largest < SINGLE.tiny:
            raise ValueError(
                f"Column {fact.column.name!r} holds nothing above {fact.largest:.3g}, which is lost in "
                "single precision: rescale it."
            )


def is_new(column: dict[str, Any]) -> bool:
    """Whether format 1 did not know of such columns."""
    return column["kind"] not in ("number", "text") or (column["kind"] == "number" and "missing" in column)


def check_choices(encoder: Any) -> None:
    value = encoder.max_categories
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
        raise ValueError(f"max_categories must be a whole number of at least 1, got {value!r}.")
    for name, choices in (("many", MANY), ("gaps", GAPS)):
        chosen = getattr(encoder, name)
        if not isinstance(chosen, str) or chosen not in choices:
            raise ValueError(f"{name} must be {choices[0]!r} or {choices[1]!r}, got {chosen!r}.")
    for key in ("text", "numeric"):
        names = getattr(encoder, key)
        if isinstance(names, str) or not isinstance(names, Collection):
            raise ValueError(f"{key} must be a collection of names of columns, got {names!r}.")


def check_names_of(text: Collection[str], numeric: Collection[str], table: Table) -> None:
    for names in (text, numeric):
        table.select(names)  # which says what it does not know
    both = [name for name in text if name in numeric]
    if both:
        raise ValueError(f"Column {both[0]!r} cannot be both text and numeric.")
