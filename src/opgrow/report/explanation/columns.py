"""The columns of a model as its user has them, each with a grid of values that it may take.

A network has inputs; a user has columns, of which each becomes one input or several: a text column one for
each category, a date an elapsed time and angles. Whatever is asked of a model is asked about columns, so that
no input is ever moved alone that cannot move alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...common.places import evenly
from ...rows.preparation import as_array
from ...rows.tables import Table, TableEncoder
from ...rows.tables.categories import TextColumn
from ...rows.tables.columns import Column, NumberColumn
from ...rows.tables.date_columns import DateColumn
from ...rows.tables.frames import is_frame
from ...rows.tables.target_means import TargetColumn

__all__ = ["MISSING", "Axis", "axes_of", "crossed", "number_text", "raw_values"]

MISSING = "<missing>"
#: Values on the grid of a number, of one of many columns, and levels of a column of many categories, at most.
_GRID, _COARSE, _LEVELS = 41, 21, 20
_MANY_COLUMNS = 50
_BINS = 20
#: From so many rows on, the grid leaves out the farthest values, this part of them at each end.
_MANY, _TAIL = 200, 0.005


@dataclass(frozen=True, eq=False)
class Axis:
    """A column and the values on its grid.

    Attributes
    ----------
    name, kind : of the column; kinds are "number", "date" and "levels"
    start, stop : the inputs of the network that are made of it
    grid : numbers (G,), NaN for gaps; None for levels
    labels : texts of the G values
    encoded : array (G, stop - start), what the inputs become
    counts : rows at each level, or between ``edges``
    edges : limits of the bins, or None for levels
    whole : whether all values are whole numbers
    low, high : the range of the values, NaN for levels
    """

    name: str
    kind: str
    start: int
    stop: int
    grid: np.ndarray | None
    labels: tuple[str, ...]
    encoded: np.ndarray
    counts: np.ndarray
    edges: np.ndarray | None = None
    whole: bool = False
    low: float = np.nan
    high: float = np.nan

    @property
    def inputs(self) -> slice:
        return slice(self.start, self.stop)

    def put(self, rows: np.ndarray) -> np.ndarray:
        """Each of the rows (n, inputs) with each of the values: (n, G, inputs)."""
        moved = np.repeat(rows[:, None], len(self.encoded), axis=1)
        moved[:, :, self.inputs] = self.encoded
        return moved

    def text(self, row: np.ndarray, value: Any = None) -> str:
        """The value of the column in a row of inputs; ``value`` is that of the user's table, if known.

        Of a text column whose category is not known here, the inputs say only that.
        """
        if value is not None and not (isinstance(value, float) and np.isnan(value)):
            return number_text(value) if isinstance(value, float) else str(value)
        part = row[self.inputs]
        if self.kind == "number" and len(part) == 1:
            return number_text(float(part[0]))
        nearest = int(np.abs(self.encoded - part).sum(axis=1).argmin())
        if self.kind == "levels":
            return self.labels[nearest] if np.array_equal(self.encoded[nearest], part) else "<other>"
        if self.labels[nearest] == MISSING:
            return MISSING
        return number_text(float(part[0])) if self.kind == "number" else self.labels[nearest]


def crossed(
    axes: Sequence[Axis], columns: tuple[int, int], most: int
) -> tuple[list[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """At most so many places on the grid of each of two columns, and the places of all their pairs."""
    places = [evenly(len(axes[column].encoded), most) for column in columns]
    first, second = np.meshgrid(*places, indexing="ij")
    return places, (first.ravel(), second.ravel())


def number_text(value: float) -> str:
    """A number in as many digits as people read."""
    return f"{value:.0f}" if abs(value) < 1e15 and value == round(value) else f"{value:.5g}"


def raw_values(estimator: Any, X: Any) -> list[np.ndarray] | None:
    """The values of the user's table by column of the encoder; None where X is a matrix of numbers."""
    encoder: TableEncoder | None = estimator.table_
    if encoder is None:
        return None
    if isinstance(X, list | tuple):
        X = np.asarray(X, dtype=object)
    table = Table.from_any(as_array(X) if type(X).__module__.startswith("torch") else X)
    names = [column.name for column in encoder.columns_]
    named = isinstance(X, Table | dict) or is_frame(X)
    if not named or any(c.outputs and c.name not in table.columns for c in encoder.columns_):
        table = Table(dict(zip(names, table.columns.values(), strict=True)))
    return [table.columns[column.name] for column in encoder.columns_ if column.outputs]


def axes_of(estimator: Any, rows: np.ndarray, values: Sequence[np.ndarray] | None) -> list[Axis]:
    """The columns of an estimator, with grids over the range of rows (n, inputs)."""
    encoder: TableEncoder | None = estimator.table_
    if encoder is None:
        names = estimator.input_names or [f"x{i}" for i in range(rows.shape[1])]
        n = _COARSE if len(names) > _MANY_COLUMNS else _GRID
        return [_number_axis(NumberColumn(name, 0.0), i, rows[:, i], n=n) for i, name in enumerate(names)]
    axes: list[Axis] = []
    start = 0
    for column in encoder.columns_:
        if not column.outputs:
            continue
        stop = start + len(column.outputs)
        part, raw = rows[:, start:stop], None if values is None else values[len(axes)]
        axes.append(_axis(column, start, part, raw))
        start = stop
    return axes


def _axis(column: Column, start: int, part: np.ndarray, raw: np.ndarray | None) -> Axis:
    if isinstance(column, TextColumn):
        return _text_axis(column, start, part)
    if isinstance(column, TargetColumn):
        return _mean_axis(column, start, part, raw)
    if isinstance(column, DateColumn):
        return _date_axis(column, start, part)
    assert isinstance(column, NumberColumn)
    present = part[part[:, 1] == 0, 0] if column.missing else part[:, 0]
    gaps = len(part) - len(present)
    return _number_axis(column, start, present if len(present) else np.array([column.median]), gaps)


def _number_axis(
    column: NumberColumn, start: int, present: np.ndarray, gaps: int = 0, n: int = _GRID
) -> Axis:
    present = np.asarray(present, np.float64)
    whole = bool((present == np.round(present)).all())
    grid = _spread(present, whole, n)
    encoded = grid[:, None]
    labels = [number_text(value) for value in grid.tolist()]
    if column.missing:
        encoded = np.column_stack([np.append(grid, column.median), [0.0] * len(grid) + [1.0]])
        grid, labels = np.append(grid, np.nan), [*labels, MISSING]
    low, high = float(present.min()), float(present.max())
    return Axis(
        column.name, "number", start, start + encoded.shape[1], grid, tuple(labels), encoded,
        *_histogram(present, gaps if column.missing else None), whole, low, high,
    )  # fmt: skip


def _spread(present: np.ndarray, whole: bool, n: int) -> np.ndarray:
    """Values over the range of the data: those that there are, if they are few, else at equal distances."""
    different = np.unique(present)
    if len(different) <= n:
        return different
    low, high = np.quantile(present, [_TAIL, 1 - _TAIL]) if len(present) >= _MANY else different[[0, -1]]
    if not low < high:
        low, high = different[[0, -1]]
    return np.unique(np.round(np.linspace(low, high, n))) if whole else _even(float(low), float(high), n)


def _even(low: float, high: float, n: int) -> np.ndarray:
    """Values at equal distances in as few digits as tell them apart, none of them outside."""
    grid = np.linspace(low, high, n)
    digits = 2 - int(np.floor(np.log10(high / (n - 1) - low / (n - 1))))
    if not -300 < digits < 15:
        return grid
    rounded = np.round(grid, digits)
    unit = 10.0**digits
    rounded[0], rounded[-1] = np.ceil(low * unit) / unit, np.floor(high * unit) / unit
    return np.unique(rounded) if low <= rounded[0] < rounded[-1] <= high else grid


def _histogram(present: np.ndarray, gaps: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Counts, with that of gaps as the last one where it is known, and the edges of the bins."""
    low, high = present.min(), present.max()
    if len(present) >= _MANY:
        low, high = np.quantile(present, [_TAIL, 1 - _TAIL])
    if not (high - low) / 2 > np.finfo(np.float64).eps * max(abs(low), abs(high)):
        low, high = low - max(0.5, abs(low) / 2), high + max(0.5, abs(high) / 2)
    counts, edges = np.histogram(present, bins=_BINS, range=(low, high))
    return counts if gaps is None else np.append(counts, gaps), edges


def _text_axis(column: TextColumn, start: int, part: np.ndarray) -> Axis:
    n = len(column.outputs)
    labels = [*column.categories, *["<other>"] * column.pooled, *[MISSING] * column.missing]
    counts = (part != 0).sum(axis=0)
    return Axis(column.name, "levels", start, start + n, None, tuple(labels), np.eye(n), counts)


def _mean_axis(column: TargetColumn, start: int, part: np.ndarray, raw: np.ndarray | None) -> Axis:
    """The most frequent categories, by their means, and all others together."""
    known = [*column.categories, *[MISSING] * column.missing]
    means = np.array([*column.means, column.overall], np.float64)
    if raw is None:
        order = np.argsort(means[:-1, 0], kind="stable")
        shown = order[np.linspace(0, len(order) - 1, min(_LEVELS, len(order))).astype(int)].tolist()
        counts = np.array([int((part == means[i].astype(part.dtype)).all(axis=1).sum()) for i in shown])
        others = max(0, len(part) - int(counts.sum()))
    else:
        places = {label: i for i, label in enumerate(known)}
        frequent = Counter(places.get(MISSING if v is None else str(v), -1) for v in raw.tolist())
        others = frequent.pop(-1, 0)
        shown = sorted((i for i, _ in frequent.most_common(_LEVELS)), key=lambda i: (means[i, 0], i))
        counts = np.array([frequent[i] for i in shown], dtype=int)
        others += sum(frequent.values()) - int(counts.sum())
    labels = (*(known[i] for i in shown), "<other>")
    encoded = means[[*shown, len(means) - 1]]
    counts = np.append(counts, others)
    return Axis(column.name, "levels", start, start + encoded.shape[1], None, labels, encoded, counts)


def _date_axis(column: DateColumn, start: int, part: np.ndarray) -> Axis:
    """Dates that there are, evenly chosen: their angles are known."""
    there = part[part[:, -1] == 0] if column.missing else part
    if not len(there):
        there = np.zeros((1, part.shape[1]))
        there[0, 0] = column.median
    _, first = np.unique(there[:, 0], return_index=True)
    chosen = first[evenly(len(first), _GRID)]
    encoded = np.asarray(there[chosen], np.float64)
    grid = column.origin + encoded[:, 0]
    labels = [_date_text(column, value) for value in grid.tolist()]
    if column.missing:
        gap = np.zeros((1, part.shape[1]))
        gap[0, 0], gap[0, -1] = column.median, 1.0
        encoded, grid, labels = np.concatenate([encoded, gap]), np.append(grid, np.nan), [*labels, MISSING]
    present = np.asarray(there[:, 0], np.float64) + column.origin
    gaps = len(part) - len(there) if column.missing else None
    return Axis(
        column.name, "date", start, start + encoded.shape[1], grid, tuple(labels), encoded,
        *_histogram(present, gaps), low=float(present.min()), high=float(present.max()),
    )  # fmt: skip


def _date_text(column: DateColumn, value: float) -> str:
    """A day since 1970 as a date, hours as a time of day or a duration."""
    if column.form != "date":
        minutes = round(value * 60)
        return f"{minutes // 60:02}:{minutes % 60:02}" if column.form == "time" else f"{value:.4g} h"
    days, clock = divmod(round(min(max(value, -700_000), 2_900_000) * 86400), 86400)
    text = str(np.datetime64("1970-01-01") + np.timedelta64(days, "D"))
    return f"{text} {clock // 3600:02}:{clock % 3600 // 60:02}" if "day" in column.parts else text
