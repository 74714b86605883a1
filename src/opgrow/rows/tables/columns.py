"""What an encoder learns about a column: a small object of plain facts that knows how to encode it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from opgrow.rows.tables.csv_files import as_numbers
from opgrow.rows.tables.dates import date_among, refusal
from opgrow.rows.tables.table import as_text

__all__ = ["NumberColumn", "TextColumn", "column_from_dict", "require"]

SINGLE = np.finfo(np.float32)


@dataclass(frozen=True)
class NumberColumn:
    """A numeric column: its values pass through, missing ones become the training median.

    ``text_is_missing``: text counts as missing, instead of being refused.
    """

    name: str
    median: float
    text_is_missing: bool = False

    @property
    def outputs(self) -> list[str]:
        """The name of the one column of the matrix."""
        return [self.name]

    @classmethod
    def learn(cls, name: str, values: np.ndarray, text_is_missing: bool = False) -> NumberColumn:
        """Take the median of the finite values."""
        values = as_numbers(values) if values.dtype == object else values
        finite = values[np.isfinite(values)]
        if not finite.size:
            raise ValueError(f"Column {name!r} holds no value at all: drop it (--drop).")
        largest = np.abs(finite).max()
        if 0 < largest < SINGLE.tiny:
            raise ValueError(
                f"Column {name!r} holds nothing above {largest:.3g}, which is lost in single precision: "
                "rescale it."
            )
        return cls(name, float(np.median(finite)), text_is_missing)

    def encode(self, values: np.ndarray, out: np.ndarray) -> list[str]:
        """Write the values into `out`, of shape (n_rows, 1); like `TextColumn`, but with nothing to say."""
        if values.dtype == object and self.text_is_missing:
            values = as_numbers(values)
        elif values.dtype == object:
            raise ValueError(
                f"Column {self.name!r} held numbers when the encoder was fitted, and now holds the text "
                f"{_first_text(values)!r}."
            )
        beyond = np.abs(values) > SINGLE.max
        if beyond.any():
            raise ValueError(
                f"Column {self.name!r} holds {values[beyond][0]:.3g}, which does not fit into single "
                "precision: rescale it, or leave out such rows."
            )
        out[:, 0] = np.where(np.isnan(values), self.median, values)
        return []

    def to_dict(self) -> dict[str, Any]:
        """Write the column as plain data."""
        more = {"text_is_missing": True} if self.text_is_missing else {}
        return {"name": self.name, "kind": "number", "median": self.median, **more}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> NumberColumn:
        """Read what `to_dict` wrote."""
        median: Any = data.get("median")
        finite = isinstance(median, float) and math.isfinite(median)
        require(finite, f"the median of column {data['name']!r} must be a finite number, got {median!r}")
        return cls(data["name"], median, _flag(data, "text_is_missing", False))


@dataclass(frozen=True)
class TextColumn:
    """A text column: one column of zeros and ones per category, and one for missing if that was seen.

    ``pooled``: categories that are not listed, rare ones and new ones, share one column.
    """

    name: str
    categories: tuple[str, ...]
    missing: bool
    pooled: bool = False

    @property
    def outputs(self) -> list[str]:
        """The names of the columns of the matrix."""
        labels = [*self.categories, *["<other>"] * self.pooled, *["<missing>"] * self.missing]
        return [f"{self.name}={label}" for label in labels]

    @classmethod
    def learn(cls, name: str, values: np.ndarray, max_categories: int, dates: bool = False) -> TextColumn:
        """Collect the categories; of more than `max_categories`, the frequent ones. `dates` may pass."""
        counts = Counter(as_text(values).tolist())
        missing = counts.pop(None, 0) > 0
        if not counts:
            raise ValueError(f"Column {name!r} holds no value at all: drop it (--drop).")
        if not dates and (example := date_among(counts)) is not None:
            raise refusal(name, example)
        if len(counts) <= max_categories:
            return cls(name, tuple(sorted(counts)), missing)
        # By name where they are equally frequent, so that the order of the rows does not matter.
        frequent = sorted(sorted(counts), key=lambda category: -counts[category])[:max_categories]
        # What occurs once says nothing about other rows.
        repeated = (category for category in frequent if counts[category] > 1)
        return cls(name, tuple(sorted(repeated)), missing, pooled=True)

    def encode(self, values: np.ndarray, out: np.ndarray) -> list[str]:
        """Write ones into `out`, of shape (n_rows, n_outputs) and zero before.

        Returns sentences on rows that are unlike those of the fit.
        """
        others = len(self.categories) if self.pooled else -1
        index: dict[str | None, int] = {category: i for i, category in enumerate(self.categories)}
        index[None] = len(self.categories) + self.pooled if self.missing else -2
        texts = as_text(values)
        codes = np.fromiter((index.get(value, others) for value in texts), dtype=np.intp, count=len(texts))
        places = np.flatnonzero(codes >= 0)
        out[places, codes[places]] = 1.0
        unseen, gaps = np.flatnonzero(codes == -1), np.count_nonzero(codes == -2)
        remarks = []
        if unseen.size:
            remarks.append(
                f"{unseen.size} of {len(texts)} rows have categories in {self.name!r} that were not seen in "
                f"fit, such as {texts[unseen[0]]!r}"
            )
        if gaps:
            remarks.append(f"{gaps} of {len(texts)} rows have no value in {self.name!r}, which fit never saw")
        return remarks

    def to_dict(self) -> dict[str, Any]:
        """Write the column as plain data."""
        return {
            "name": self.name,
            "kind": "text",
            "categories": list(self.categories),
            "missing": self.missing,
            **({"pooled": True} if self.pooled else {}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TextColumn:
        """Read what `to_dict` wrote."""
        name, categories, pooled = data["name"], data.get("categories"), _flag(data, "pooled", False)
        texts = isinstance(categories, list) and all(isinstance(item, str) for item in categories)
        names: list[str] = categories if texts and categories is not None else []
        distinct = texts and len(set(names)) == len(names) and (names or pooled)
        require(distinct, f"the categories of column {name!r} must be a list of distinct texts")
        return cls(name, tuple(names), _flag(data, "missing"), pooled)


def _flag(data: Mapping[str, Any], key: str, default: bool | None = None) -> bool:
    value = data.get(key, default)
    require(
        isinstance(value, bool), f"{key!r} of column {data['name']!r} must be true or false, got {value!r}"
    )
    return bool(value)


def column_from_dict(data: Any) -> NumberColumn | TextColumn:
    """Read what a column's `to_dict` wrote."""
    require(isinstance(data, dict), f"a column must be a dictionary, got {type(data).__name__}")
    require(isinstance(data.get("name"), str), f"a column's name must be text, got {data.get('name')!r}")
    kinds: dict[str, type[NumberColumn] | type[TextColumn]] = {"number": NumberColumn, "text": TextColumn}
    kind = data.get("kind")
    require(isinstance(kind, str) and kind in kinds, f"column {data['name']!r} is of unknown kind {kind!r}")
    return kinds[kind].from_dict(data)


def require(condition: Any, otherwise: str) -> None:
    """Refuse a description that was read from a file."""
    if not condition:
        raise ValueError(f"This description of a table encoder is not valid: {otherwise}.")


def _first_text(values: np.ndarray) -> Any:
    """Return the first value that is no number, the likely culprit, or else the first value."""
    present = [value for value in values if value is not None]
    for value in present:
        try:
            float(value)
        except ValueError:
            return value
    return present[0] if present else None
