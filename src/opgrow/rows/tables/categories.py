"""A column of categories, with a column of zeros and ones for each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from opgrow.rows.tables.checks import flag, require, texts
from opgrow.rows.tables.table import as_text

__all__ = ["TextColumn", "codes_of"]

_SHOWN = 6


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
    def learn(cls, name: str, counts: Counter[str], missing: bool, max_categories: int) -> TextColumn:
        """Take the categories from their counts; of more than `max_categories`, the frequent ones."""
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
        gap = len(self.categories) + self.pooled if self.missing else -2
        codes, remarks = codes_of(self.name, self.categories, values, others, gap)
        places = np.flatnonzero(codes >= 0)
        out[places, codes[places]] = 1.0
        return remarks

    def describe(self) -> str:
        """What is done with the column."""
        shown = ", ".join(map(repr, self.categories[:_SHOWN]))
        more = f" and {len(self.categories) - _SHOWN} more" if len(self.categories) > _SHOWN else ""
        words = f"{len(self.categories)} categories, a column for each: {shown}{more}"
        return words + "; one for all others" * self.pooled + "; one for gaps" * self.missing

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
        name, pooled = data["name"], flag(data, "pooled", False)
        what = f"the categories of column {name!r}"
        categories = texts(data.get("categories"), what)
        require(categories or pooled, f"{what} must be a list of distinct texts, and some")
        return cls(name, tuple(categories), flag(data, "missing"), pooled)


def codes_of(
    name: str, categories: tuple[str, ...], values: np.ndarray, other: int, gap: int
) -> tuple[np.ndarray, list[str]]:
    """The place of each value among the categories, and sentences on those that have none.

    ``other`` is the code of a value that is no category, and ``gap`` that of a missing one. Sentences tell of
    -1 and -2.
    """
    index: dict[str | None, int] = {category: i for i, category in enumerate(categories)}
    index[None] = gap
    held = as_text(values)
    codes = np.fromiter((index.get(value, other) for value in held), dtype=np.intp, count=len(held))
    unseen, gaps = np.flatnonzero(codes == -1), np.count_nonzero(codes == -2)
    remarks = []
    if unseen.size:
        remarks.append(
            f"{unseen.size} of {len(held)} rows have categories in {name!r} that were not seen in "
            f"fit, such as {held[unseen[0]]!r}"
        )
    if gaps:
        remarks.append(f"{gaps} of {len(held)} rows have no value in {name!r}, which fit never saw")
    return codes, remarks
