"""A column of many categories, each of which becomes the mean of the target in the rows that have it.

Means of few rows are drawn towards that of all rows, by as much as the target varies within the category and
between all rows (Micci-Barreca 2001; scikit-learn's TargetEncoder has the same with ``smooth="auto"``).
Training rows get means of other rows: those of five folds, each from the other four, so that no row tells its
own target.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from opgrow.rows.tables.categories import codes_of
from opgrow.rows.tables.checks import flag, numbers, require, texts
from opgrow.rows.tables.tasks import guess_task

__all__ = ["MAX_LISTED", "Target", "TargetColumn"]

_FOLDS = 5
#: Categories that are kept at most, the most frequent ones, and columns of the target.
MAX_LISTED, MAX_MEANS = 10_000, 10


@dataclass(frozen=True)
class Target:
    """The target of the training rows, as columns whose means are taken.

    Attributes
    ----------
    values : array of shape (n_rows, n_means): numbers, or for classes whether a row is of one
    labels : what each mean is of
    strata : array of int of shape (n_rows,), rows of equal numbers being spread over the folds
    """

    values: np.ndarray
    labels: tuple[str, ...]
    strata: np.ndarray

    @classmethod
    def of(cls, y: Any, classification: bool | None = None) -> Target | None:
        """The target, of classes if it looks like them and nothing is said; None if it has too many."""
        y = np.asarray(y)
        if classification is None:
            classification = y.ndim == 1 and guess_task(y).task == "classification"
        if not classification:
            values = y.reshape(len(y), -1).astype(np.float64)
            n = values.shape[1]
            labels = ("mean target",) if n == 1 else tuple(f"mean of target {i + 1}" for i in range(n))
            return cls(values, labels, np.zeros(len(y), np.intp)) if n <= MAX_MEANS else None
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) > MAX_MEANS:
            return None
        shown = range(1, 2) if len(classes) == 2 else range(len(classes))
        values = np.stack([codes == i for i in shown], axis=1).astype(np.float64)
        return cls(values, tuple(f"share of {classes[i]}" for i in shown), codes)

    def folds(self) -> np.ndarray:
        """The fold of each row."""
        rng, folds = np.random.default_rng(0), np.empty(len(self.strata), np.intp)
        start = 0
        for stratum in np.unique(self.strata):
            rows = rng.permutation(np.flatnonzero(self.strata == stratum))
            folds[rows] = (np.arange(len(rows)) + start) % _FOLDS
            start += len(rows)
        return folds


@dataclass(frozen=True)
class TargetColumn:
    """A text column of many categories.

    Attributes
    ----------
    categories : those that occur more than once, sorted
    means : for each of them the means (n_means,), and of missing values as the last one if ``missing``
    overall : the means over all rows, which all other categories get
    labels : what each mean is of
    """

    name: str
    categories: tuple[str, ...]
    means: tuple[tuple[float, ...], ...]
    overall: tuple[float, ...]
    labels: tuple[str, ...]
    missing: bool

    @property
    def outputs(self) -> list[str]:
        """The names of the columns of the matrix."""
        return [f"{self.name}: {label}" for label in self.labels]

    @classmethod
    def learn(
        cls, name: str, values: np.ndarray, counts: Counter[str], target: Target
    ) -> tuple[TargetColumn, np.ndarray]:
        """Take the means, and those of the training rows (n_rows, n_means) from other rows."""
        repeated = [category for category, count in counts.items() if count > 1]
        frequent = sorted(sorted(repeated), key=lambda category: -counts[category])[:MAX_LISTED]
        categories = tuple(sorted(frequent))
        missing = any(value is None for value in values.tolist())
        n = len(categories) + missing
        codes = codes_of(name, categories, values, n, n - 1)[0]
        overall, means = _shrunk(codes, target.values, n)
        folds, crossed = target.folds(), np.empty_like(target.values)
        for fold in range(_FOLDS):
            held = folds == fold
            rest = ~held if not held.all() else held
            mean, table = _shrunk(codes[rest], target.values[rest], n)
            crossed[held] = np.vstack([table, mean])[codes[held]]
        plain = tuple(tuple(row) for row in means.tolist())
        return cls(name, categories, plain, tuple(overall.tolist()), target.labels, missing), crossed

    def encode(self, values: np.ndarray, out: np.ndarray) -> list[str]:
        """Write the means into `out`, of shape (n_rows, n_means)."""
        n = len(self.categories)
        # What is new or rare is like all rows, and nothing to warn of.
        other = n + self.missing
        codes, remarks = codes_of(self.name, self.categories, values, other, n if self.missing else -2)
        table = np.array([*self.means, self.overall], dtype=np.float64).reshape(-1, len(self.overall))
        out[:] = table[np.where(codes < 0, len(table) - 1, codes)]
        return remarks

    def describe(self) -> str:
        """What is done with the column."""
        what = ", ".join(self.labels)
        return f"{len(self.categories)} categories, each as a number: {what}" + "; gaps, too" * self.missing

    def to_dict(self) -> dict[str, Any]:
        """Write the column as plain data."""
        return {
            "name": self.name,
            "kind": "target",
            "categories": list(self.categories),
            "means": [list(row) for row in self.means],
            "overall": list(self.overall),
            "labels": list(self.labels),
            "missing": self.missing,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TargetColumn:
        """Read what `to_dict` wrote."""
        what, missing = f"of column {data['name']!r}", flag(data, "missing")
        categories = texts(data.get("categories"), f"the categories {what}")
        labels = texts(data.get("labels"), f"the labels {what}")
        require(0 < len(labels) <= MAX_MEANS, f"the labels {what} are {len(labels)}")
        means = data.get("means")
        fits = isinstance(means, list) and len(means) == len(categories) + missing
        require(fits, f"the means {what} are not as many as its categories")
        rows = [tuple(numbers(row, len(labels), f"a mean {what}")) for row in means or ()]
        overall = numbers(data.get("overall"), len(labels), f"the overall means {what}")
        return cls(data["name"], tuple(categories), tuple(rows), tuple(overall), tuple(labels), missing)


def _shrunk(codes: np.ndarray, values: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The mean of all rows (n_means,), and those of the rows with each of n codes, drawn towards it."""
    counts = np.bincount(codes, minlength=n + 1)[:n].astype(np.float64)
    overall, columns = np.empty(values.shape[1]), []
    seen = np.maximum(counts, 1)
    for i, column in enumerate(values.T):
        overall[i] = np.bincount(np.zeros(len(column), np.intp), column)[0] / len(column)
        deviation = column - overall[i]
        variance = np.bincount(np.zeros(len(column), np.intp), deviation * deviation)[0] / len(column)
        shift = np.bincount(codes, deviation, minlength=n + 1)[:n] / seen
        squares = np.bincount(codes, deviation * deviation, minlength=n + 1)[:n]
        within = np.maximum(0.0, squares / seen - shift * shift)
        weight = np.divide(variance * counts, variance * counts + within, where=counts > 1, out=counts * 0)
        if variance == 0:
            weight[:] = 0.0
        columns.append(overall[i] + weight * shift)
    return overall, np.stack(columns, axis=1)
