"""A column of dates, times of day or durations, as numbers.

Time that has passed is one number. What comes round again is an angle: the day within the year and within the
week, and the time within the day, each as a sine and a cosine, so that December is beside January.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from opgrow.rows.tables.checks import flag, number, require
from opgrow.rows.tables.dates import DAY, Form, Reading, reading_of, seconds_of
from opgrow.rows.tables.table import as_text

__all__ = ["PERIODS", "DateColumn"]

#: Digits of sines and cosines that are kept: the last ones differ between processors.
_DIGITS = 9
#: Days after which something comes round again.
PERIODS = {"year": 365.2425, "week": 7.0, "day": 1.0}
#: Seconds of the unit in which time is counted.
UNITS: dict[Form, int] = {"date": DAY, "time": 3600, "duration": 3600}
_UNIT_NAMES: dict[Form, str] = {"date": "days", "time": "hours", "duration": "hours"}


@dataclass(frozen=True)
class DateColumn:
    """A column of dates, times or durations.

    Attributes
    ----------
    form : which of them
    day_first : whether 1/2/2024 is in February
    origin : what time is counted from, in units (days, or hours for times and durations)
    median : of the training rows, counted from there; gaps become this
    parts : the periods in which training rows vary, of `PERIODS`
    missing : whether training rows had gaps, which have a column
    """

    name: str
    form: Form
    day_first: bool
    origin: float
    median: float
    parts: tuple[str, ...]
    missing: bool

    @property
    def outputs(self) -> list[str]:
        """The names of the columns of the matrix."""
        angles = [f"{self.name}: {part}, {wave}" for part in self.parts for wave in ("sine", "cosine")]
        return [
            f"{self.name}: {_UNIT_NAMES[self.form]}",
            *angles,
            *[f"{self.name}=<missing>"] * self.missing,
        ]

    @classmethod
    def learn(cls, name: str, values: np.ndarray) -> DateColumn | None:
        """Read the texts; None if they are no dates, no times and no durations."""
        texts = {text for text in values.tolist() if text is not None}
        reading = reading_of(texts)
        if reading is None:
            return None
        seconds = seconds_of(values, reading)[0]
        present = seconds[~np.isnan(seconds)]
        elapsed, unit = present / UNITS[reading.form], UNITS[reading.form]
        origin = float(np.floor(elapsed.min())) if reading.form == "date" else 0.0
        parts = []
        if reading.form == "date":
            days = np.floor(present / DAY)
            parts += ["year"] if days.max() - days.min() >= 28 else []
            parts += ["week"] if len(np.unique(days % 7)) > 1 else []
        if reading.form != "duration":
            parts += ["day"] if len(np.unique(present % DAY)) > 1 else []
        median = float(np.median(present / unit)) - origin
        gaps = len(present) < len(values)
        return cls(name, reading.form, reading.day_first, origin, median, tuple(parts), gaps)

    def encode(self, values: np.ndarray, out: np.ndarray) -> list[str]:
        """Write the numbers into `out`, of shape (n_rows, n_outputs) and zero before."""
        values = as_text(values)
        seconds, stray = seconds_of(values, Reading(self.form, self.day_first))
        gaps = np.isnan(seconds)
        out[:, 0] = np.where(gaps, self.median, seconds / UNITS[self.form] - self.origin)
        days = seconds[~gaps] / DAY
        for i, part in enumerate(self.parts):
            angle = 2 * np.pi * turns(days, part)
            out[~gaps, 1 + 2 * i] = np.round(np.sin(angle), _DIGITS)
            out[~gaps, 2 + 2 * i] = np.round(np.cos(angle), _DIGITS)
        if self.missing:
            out[gaps, -1] = 1.0
        remarks = []
        strays = int(gaps.sum()) - sum(value is None for value in values)
        if strays:
            remarks.append(
                f"{strays} of {len(values)} rows have text in {self.name!r} that is no {self.form} as those "
                f"in fit, such as {stray!r}, and counts as missing"
            )
        elif gaps.any() and not self.missing:
            remarks.append(
                f"{gaps.sum()} of {len(values)} rows have no value in {self.name!r}, which fit never saw"
            )
        return remarks

    def example(self) -> str:
        """A text in the middle of those of the fit, in a form that every such column is read from."""
        seconds = (self.origin + self.median) * UNITS[self.form]
        # A file may say anything; these are years 68 to 9892.
        days, clock = divmod(round(min(max(seconds, -6e10), 2.5e11)), DAY)
        text = f"{clock // 3600:02}:{clock % 3600 // 60:02}:{clock % 60:02}"
        if self.form == "time":
            return text
        if self.form == "duration":
            return f"{days} days, {text}"
        date = str(np.datetime64("1970-01-01") + np.timedelta64(days, "D"))
        return f"{date} {text}" if "day" in self.parts else date

    def describe(self) -> str:
        """What is done with the column."""
        words = [f"{self.form}: {_UNIT_NAMES[self.form]} as a number"]
        if self.parts:
            within = {"year": "the year", "week": "the week", "day": "the day"}
            words.append(f"its place in {' and '.join(within[part] for part in self.parts)} as angles")
        if self.missing:
            words.append("gaps are marked")
        return ", ".join(words)

    def to_dict(self) -> dict[str, Any]:
        """Write the column as plain data."""
        return {
            "name": self.name,
            "kind": "date",
            "form": self.form,
            "day_first": self.day_first,
            "origin": self.origin,
            "median": self.median,
            "parts": list(self.parts),
            "missing": self.missing,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DateColumn:
        """Read what `to_dict` wrote."""
        form: Any = data.get("form")
        parts: Any = data.get("parts")
        require(isinstance(form, str) and form in UNITS, f"column {data['name']!r} has the form {form!r}")
        known = isinstance(parts, list) and all(isinstance(part, str) and part in PERIODS for part in parts)
        require(
            known and len(set(parts)) == len(parts), f"the parts of column {data['name']!r} are {parts!r}"
        )
        return cls(
            data["name"],
            form,
            flag(data, "day_first"),
            number(data, "origin"),
            number(data, "median"),
            tuple(parts or ()),
            flag(data, "missing"),
        )


def turns(days: np.ndarray, part: str) -> np.ndarray:
    """How much of a period has passed, by days since 1970; a week goes by in whole days."""
    turned = (np.floor(days) if part == "week" else days) / PERIODS[part]
    return turned - np.floor(turned)
