"""Dates, times of day and durations: recognised in every form in which tables hold them, and read as numbers.

A table keeps them as text, because files do, and because such a column can then still be taken as categories.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

import numpy as np

__all__ = ["DAY", "Form", "Reading", "date_among", "is_date", "reading_of", "seconds_of"]

Form = Literal["date", "time", "duration"]

#: Seconds.
DAY = 86400
_EPOCH = date(1970, 1, 1).toordinal()
_TIME = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?"
_DATE = r"\d{4}-\d{1,2}-\d{1,2}|\d{4}/\d{1,2}/\d{1,2}|\d{1,2}([./-])\d{1,2}\1(?:\d{4}|\d{2})"
_ZONE = r" ?(?:Z|UTC|[+-]\d{2}:?\d{2})"
#: 2024-05-31, 31.05.2024, 5/31/24, each perhaps with a time; a time; "3 days, 4:00:00", as Python writes it.
_PATTERN = re.compile(
    rf"(?:{_DATE})(?:[T ]{_TIME}(?:{_ZONE})?)?|{_TIME}|-?\d+ (?:day|second)s?(?:,? \+?{_TIME})?"
)
#: The same in parts.
_PARTS = re.compile(
    r"(?:(?P<year>\d{4})[-/](?P<month>\d{1,2})[-/](?P<day>\d{1,2})"
    r"|(?P<one>\d{1,2})(?P<mark>[./-])(?P<two>\d{1,2})[./-](?P<last>\d{4}|\d{2})"
    r"|(?P<count>-?\d+) (?P<unit>day|second)s?,?)?"
    r"(?:(?:[T ]\+?)?(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}(?:[.,]\d+)?))?"
    r"(?: ?(?P<zone>Z|UTC|[+-]\d{2}:?\d{2}))?)?"
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


@dataclass(frozen=True)
class Reading:
    """How the texts of a column are read.

    Attributes
    ----------
    form : what they are
    day_first : whether 1/2/2024 is in February, for dates that do not begin with the year
    """

    form: Form
    day_first: bool = True

    def seconds(self, text: str) -> float | None:
        """Seconds since 1970 in UTC, since midnight, or that have passed; None for all other texts."""
        match = _PARTS.fullmatch(text.strip()) if _PATTERN.fullmatch(text.strip()) else None
        if match is None or _form_of(match) not in ((self.form,), ("time", "duration"))[self.form != "date"]:
            return None
        clock = _clock(match)
        if clock is None or (self.form != "duration" and clock >= DAY):
            return None
        if self.form != "date":
            unit = {"day": DAY, "second": 1, None: 0}[match["unit"]]
            return int(match["count"] or 0) * unit + clock
        day = self._day(match)
        if day is None:
            return None
        return (day - _EPOCH) * float(DAY) + clock - _offset(match["zone"])

    def _day(self, match: re.Match[str]) -> int | None:
        if match["year"]:
            year, month, day = int(match["year"]), int(match["month"]), int(match["day"])
        else:
            one, two, year = int(match["one"]), int(match["two"]), int(match["last"])
            day, month = (one, two) if self.day_first else (two, one)
            if len(match["last"]) == 2:  # as POSIX has it
                year += 2000 if year < 69 else 1900
        try:
            return date(year, month, day).toordinal()
        except ValueError:
            return None


def reading_of(texts: Collection[str]) -> Reading | None:
    """How texts are read that all are dates, all times of day, or all durations; None where they are not."""
    matches = [_PARTS.fullmatch(text.strip()) if _PATTERN.fullmatch(text.strip()) else None for text in texts]
    found = [match for match in matches if match is not None]
    if not found or len(found) < len(matches):
        return None
    forms = {_form_of(match) for match in found}
    if forms == {"time"} and any((_clock(match) or 0) >= DAY for match in found):
        forms = {"duration"}  # 36:30
    form: Form = "date" if "date" in forms else "time" if forms == {"time"} else "duration"
    day_first = any(match["one"] and (match["mark"] != "/" or int(match["one"]) > 12) for match in found)
    if any(match["one"] and int(match["two"]) > 12 for match in found):
        day_first = False
    reading = Reading(form, day_first)
    return reading if all(reading.seconds(text) is not None for text in texts) else None


def _form_of(match: re.Match[str]) -> Form:
    if match["year"] or match["one"]:
        return "date"
    return "duration" if match["unit"] else "time"


def _clock(match: re.Match[str]) -> float | None:
    """Seconds since midnight; None for a clock that does not exist."""
    if match["hour"] is None:
        return 0.0
    minute, second = int(match["minute"]), float((match["second"] or "0").replace(",", "."))
    return int(match["hour"]) * 3600 + minute * 60 + second if minute < 60 and second < 61 else None


def _offset(zone: str | None) -> float:
    if zone in (None, "Z", "UTC"):
        return 0.0
    digits = zone[1:].replace(":", "")
    return (int(digits[:2]) * 3600 + int(digits[2:]) * 60) * (-1.0 if zone[0] == "-" else 1.0)


def seconds_of(values: np.ndarray, reading: Reading) -> tuple[np.ndarray, str | None]:
    """Seconds (n,), NaN for gaps and strays; and the first stray text, or None."""
    known: dict[str | None, float] = {None: np.nan}
    stray = None
    for text in dict.fromkeys(values.tolist()):
        if text is None:
            continue
        read = reading.seconds(text)
        if read is None and stray is None:
            stray = text
        known[text] = np.nan if read is None else read
    return np.array([known[text] for text in values], dtype=np.float64), stray
