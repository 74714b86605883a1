"""Dates and times: recognised in every form in which tables hold them.

A table keeps them as text, so that such a column can still be dropped or taken as categories; the encoder
refuses to guess what they mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

__all__ = ["date_among", "is_date", "refusal"]

_TIME = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?"
_DATE = r"\d{4}-\d{1,2}-\d{1,2}|\d{4}/\d{1,2}/\d{1,2}|\d{1,2}([./-])\d{1,2}\1(?:\d{4}|\d{2})"
_ZONE = r" ?(?:Z|UTC|[+-]\d{2}:?\d{2})"
#: 2024-05-31, 31.05.2024, 5/31/24, each perhaps with a time; a time; "3 days, 4:00:00", as Python writes it.
_PATTERN = re.compile(
    rf"(?:{_DATE})(?:[T ]{_TIME}(?:{_ZONE})?)?|{_TIME}|-?\d+ (?:day|second)s?(?:,? {_TIME})?"
)


def is_date(value: Any) -> bool:
    """Whether a value of a column is a date, a time or a duration of Python, NumPy or pandas."""
    return type(value).__module__ == "datetime" or hasattr(value, "isoformat")


def date_among(values: Iterable[str | None]) -> str | None:
    """The first text, if all texts are dates or times; else None."""
    first = None
    for value in values:
        if value is None:
            continue
        if _PATTERN.fullmatch(value) is None:
            return None
        first = first or value
    return first


def refusal(name: str, example: str) -> ValueError:
    """What to say of a column of dates or times."""
    return ValueError(
        f"Column {name!r} holds dates or times, such as {example!r}: leave it out with --drop, turn it into "
        "numbers, such as days since a fixed date, or take it as categories with --text (in Python "
        "TableEncoder(text=[...]))."
    )
