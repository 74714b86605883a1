"""What an encoder learns about a column: a small object of plain facts that knows how to encode it.

Here are columns of numbers and those that are left out; `categories`, `target_means` and `date_columns` have
the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from opgrow.rows.tables.checks import flag, number, require
from opgrow.rows.tables.csv_files import as_numbers

__all__ = ["MIN_GAPS", "SINGLE", "Column", "DroppedColumn", "NumberColumn"]

SINGLE = np.finfo(np.float32)
#: Gaps from which on they have a column: fewer say nothing about other rows.
MIN_GAPS = 10


class Column(Protocol):
    """What is known of a column."""

    @property
    def name(self) -> str:
        """The name of the column of the table."""

    @property
    def outputs(self) -> list[str]:
        """The names of the columns of the matrix."""

    def encode(self, values: np.ndarray, out: np.ndarray) -> list[str]:
        """Write values into `out`, of shape (n_rows, n_outputs) and zero before.

        Returns sentences on rows that are unlike those of the fit.
        """

    def describe(self) -> str:
        """What is done with the column."""

    def to_dict(self) -> dict[str, Any]:
        """Write the column as plain data."""


@dataclass(frozen=True)
class NumberColumn:
    """A numeric column: its values pass through, missing ones become the training median.

    ``text_is_missing``: text counts as missing, instead of being refused. ``missing``: training rows had
    gaps, which are marked in a column of their own.
    """

    name: str
    median: float
    text_is_missing: bool = False
    missing: bool = False

    @property
    def outputs(self) -> list[str]:
        """The name of the column of values, and that of gaps if there is one."""
        return [self.name, *[f"{self.name}=<missing>"] * self.missing]

    @classmethod
    def learn(
        cls, name: str, values: np.ndarray, text_is_missing: bool = False, mark_gaps: bool = False
    ) -> NumberColumn:
        """Take the median of the finite values, of which there are some."""
        values = as_numbers(values) if values.dtype == object else values
        finite = values[np.isfinite(values)]
        with np.errstate(over="ignore"):
            median = np.median(finite)
        if not np.isfinite(median):  # the sum of two values in the middle
            median = np.median(finite / 2) * 2
        missing = mark_gaps and np.count_nonzero(np.isnan(values)) >= MIN_GAPS
        return cls(name, float(median), text_is_missing, bool(missing))

    def encode(self, values: np.ndarray, out: np.ndarray) -> list[str]:
        """Write the values into `out`; like `TextColumn`, but with nothing to say."""
        if values.dtype == object and self.text_is_missing:
            values = as_numbers(values)
        elif values.dtype == object:
            values = self._all_missing(values)
        if np.isinf(values).any() and out.dtype == np.float64:
            raise ValueError(
                f"Column {self.name!r} holds infinity or a value too large for dtype('float64'): leave out "
                "such rows."
            )
        if out.dtype == np.float32:
            self._check_single(values)
        gaps = np.isnan(values)
        out[:, 0] = np.where(gaps, self.median, values)
        if self.missing:
            out[:, 1] = gaps
        return []

    def _all_missing(self, values: np.ndarray) -> np.ndarray:
        """A column that holds nothing is not told from one of text."""
        text = first_text(values)
        if text is not None:
            raise ValueError(
                f"Column {self.name!r} held numbers when the encoder was fitted, and now holds the text "
                f"{text!r}."
            )
        return np.full(len(values), np.nan)

    def _check_single(self, values: np.ndarray) -> None:
        beyond = np.abs(values) > SINGLE.max
        if beyond.any():
            raise ValueError(
                f"Column {self.name!r} holds {values[beyond][0]:.3g}, which does not fit into single "
                "precision: rescale it, or leave out such rows."
            )

    def describe(self) -> str:
        """What is done with the column."""
        gap = "gaps and text become" if self.text_is_missing else "gaps become"
        return f"number, {gap} {self.median:.6g}" + ", and are marked" * self.missing

    def to_dict(self) -> dict[str, Any]:
        """Write the column as plain data."""
        flags = {"text_is_missing": self.text_is_missing, "missing": self.missing}
        given = {key: True for key, value in flags.items() if value}
        return {"name": self.name, "kind": "number", "median": self.median, **given}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> NumberColumn:
        """Read what `to_dict` wrote."""
        median = number(data, "median")
        return cls(data["name"], median, flag(data, "text_is_missing", False), flag(data, "missing", False))


@dataclass(frozen=True)
class DroppedColumn:
    """A column that says nothing about the target, and why."""

    name: str
    reason: str

    @property
    def outputs(self) -> list[str]:
        """There are none."""
        return []

    def encode(self, values: np.ndarray, out: np.ndarray) -> list[str]:
        """Do nothing: whatever it holds was never learned from."""
        return []

    def describe(self) -> str:
        """Why it is left out."""
        return f"left out: {self.reason}"

    def to_dict(self) -> dict[str, Any]:
        """Write the column as plain data."""
        return {"name": self.name, "kind": "dropped", "reason": self.reason}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DroppedColumn:
        """Read what `to_dict` wrote."""
        reason = data.get("reason")
        require(isinstance(reason, str), f"the reason of column {data['name']!r} must be text")
        return cls(data["name"], str(reason))


def first_text(values: np.ndarray) -> Any:
    """The first value that is no number, the likely culprit, or else the first value; None for gaps alone."""
    present = [value for value in values if value is not None]
    for value in present:
        try:
            float(value)
        except ValueError:
            return value
    return present[0] if present else None
