"""The inputs of a model as users have them, for a page: what is known of each column, and the values of rows.

Where there is no table to show, rows that the model keeps are turned back from the network's numbers into
values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...growth.model import GrownModel
from ...rows.tables import Table
from ...rows.tables.categories import TextColumn
from ...rows.tables.columns import Column, DroppedColumn, NumberColumn
from ...rows.tables.date_columns import UNITS, DateColumn
from ...rows.tables.dates import Reading, seconds_of
from ...rows.tables.target_means import TargetColumn
from ...rows.tables.values import as_text

__all__ = ["Values", "columns_data", "values_of"]

_BINS = 28
#: Quantiles between which histograms and sliders reach: a few far values would squash everything else.
_REACH = (0.005, 0.995)
_MOST_CATEGORIES = 2000


@dataclass(frozen=True)
class Values:
    """Rows as users have them, one array for each column: float64 with NaN, or texts with None.

    ``single`` says of each column whether its numbers were in single precision.
    """

    columns: list[np.ndarray]
    single: bool = False

    @property
    def n_rows(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def rows(self, places: Sequence[int]) -> list[list[Any]]:
        """The values of some rows, ready for JSON."""
        cells = [self._cells(column[np.asarray(places, int)]) for column in self.columns]
        return [list(row) for row in zip(*cells, strict=True)]

    def _cells(self, values: np.ndarray) -> list[Any]:
        if values.dtype == object:
            return values.tolist()
        if self.single:  # the shortest text from which the same number in single precision is read
            return [None if v != v else float(str(v)) for v in values.astype(np.float32)]
        return [None if v != v else v for v in values.tolist()]


def values_of(estimator: GrownModel, X: Any, matrix: np.ndarray | None) -> Values | None:
    """Rows for a page: a user's X, whose ``matrix`` the network takes, or those kept with the model."""
    encoder = estimator.table_
    if encoder is None:
        matrix = estimator.sample_ if matrix is None else matrix
        if matrix is None:
            return None
        return Values(list(np.asarray(matrix, np.float64).T), single=matrix.dtype == np.float32)
    if X is None:
        return None if estimator.sample_ is None else Values(_decoded(encoder.columns_, estimator.sample_))
    table = Table.from_any(X)
    columns = table.columns
    if any(column.name not in columns for column in encoder.columns_ if not _is_dropped(column)):
        # An array: its columns come in the order of the fit.
        columns = dict(zip((c.name for c in encoder.columns_), table.columns.values(), strict=True))
    gaps = np.full(table.n_rows, None, dtype=object)
    return Values([_as_taken(column, columns.get(column.name, gaps)) for column in encoder.columns_])


def _is_dropped(column: Column) -> bool:
    return isinstance(column, DroppedColumn)


def _as_taken(column: Column, values: np.ndarray) -> np.ndarray:
    """Numbers where the column has numbers, else texts."""
    if isinstance(column, NumberColumn | DroppedColumn):
        return values
    return as_text(values)


def _decoded(columns: Sequence[Column], matrix: np.ndarray) -> list[np.ndarray]:
    """Values that are encoded as the rows of a matrix; of many categories, one with such a mean."""
    result, start = [], 0
    for column in columns:
        stop = start + len(column.outputs)
        result.append(_decoded_column(column, matrix[:, start:stop].astype(np.float64)))
        start = stop
    return result


def _decoded_column(column: Column, part: np.ndarray) -> np.ndarray:
    if isinstance(column, NumberColumn):
        gaps = part[:, 1] > 0.5 if column.missing else np.zeros(len(part), bool)
        return np.where(gaps, np.nan, part[:, 0])
    out = np.full(len(part), None, dtype=object)
    if isinstance(column, TextColumn):
        labels = np.array([*column.categories, *[""] * column.pooled, None], dtype=object)
        listed = part[:, : len(column.categories) + column.pooled]
        places = np.where(listed.any(axis=1), listed.argmax(axis=1), len(labels) - 1)
        out[:] = labels[places]
    elif isinstance(column, TargetColumn) and column.categories:
        means = np.array(column.means[: len(column.categories)])
        nearest = [int(np.abs(means - row).sum(axis=1).argmin()) for row in part]
        out[:] = [column.categories[i] for i in nearest]
    elif isinstance(column, DateColumn):
        gaps = part[:, -1] > 0.5 if column.missing else np.zeros(len(part), bool)
        seconds = (part[:, 0] + column.origin) * UNITS[column.form]
        out[:] = [None if gap else _text_of(s, column.form) for s, gap in zip(seconds, gaps, strict=True)]
    return out


def _text_of(seconds: float, form: str) -> str:
    days, clock = divmod(round(min(max(seconds, -6e10), 2.5e11)), 86400)
    text = f"{clock // 3600:02}:{clock % 3600 // 60:02}:{clock % 60:02}"
    if form == "date":
        return f"{np.datetime64('1970-01-01') + np.timedelta64(days, 'D')} {text}"
    return text if form == "time" else f"{days} days, {text}"


def columns_data(estimator: GrownModel, names: Sequence[str], values: Values | None) -> list[dict[str, Any]]:
    """What `columns.js` encodes by, with the distribution of each column for its slider or menu.

    ``names`` are those of the network's inputs, for models without a table.
    """
    network = estimator.network_
    if estimator.table_ is None:
        columns: list[Column] = [
            NumberColumn(name, float(mean)) for name, mean in zip(names, network.input_mean, strict=True)
        ]
    else:
        columns = list(estimator.table_.columns_)
    result = []
    for i, column in enumerate(columns):
        data = {"missing": False, "pooled": False, "parts": [], **column.to_dict()}
        present = None if values is None else values.columns[i]
        data |= _distribution(column, present)
        if estimator.table_ is None:
            data["single"] = values is not None and values.single
            data["gaps"] = False
            if "low" not in data:
                center, scale = float(network.input_mean[i]), float(network.input_scale[i])
                data |= {"low": center - 2 * scale, "high": center + 2 * scale}
        result.append(data)
    return result


def _distribution(column: Column, values: np.ndarray | None) -> dict[str, Any]:
    if values is None or isinstance(column, DroppedColumn):
        return {}
    if isinstance(column, TextColumn | TargetColumn):
        return _counts(column, values)
    if isinstance(column, DateColumn):
        values = seconds_of(values, Reading(column.form, column.day_first))[0]
    elif values.dtype == object:
        values = np.array([_number(value) for value in values])
    finite = values[np.isfinite(values)]
    gaps = {"gaps": True}
    if not len(finite):
        return gaps
    whole = bool((finite == np.round(finite)).all())
    low, high = (float(edge) for edge in np.quantile(finite, _REACH, method="nearest"))
    if low == high:
        low, high = float(finite.min()), float(finite.max())
    bins = min(_BINS, int(high - low) + 1) if whole and high - low < _BINS else _BINS
    edges = (low - 0.5, high + 0.5) if whole and bins < _BINS else (low, high)
    counts = np.histogram(finite, bins=bins, range=edges)[0]
    reach = {"low": low, "high": high, "least": float(finite.min()), "most": float(finite.max())}
    return gaps | reach | {"whole": whole, "bins": counts.tolist(), "edges": list(edges)}


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return np.nan


def _counts(column: TextColumn | TargetColumn, values: np.ndarray) -> dict[str, Any]:
    """How often each category is there; the rarest of very many are left out of the page."""
    held: dict[Any, int] = {}
    for value in values.tolist():
        held[value] = held.get(value, 0) + 1
    changes: dict[str, Any] = {}
    if isinstance(column, TargetColumn) and len(column.categories) > _MOST_CATEGORIES:
        order = sorted(range(len(column.categories)), key=lambda i: -held.get(column.categories[i], 0))
        places = sorted(order[:_MOST_CATEGORIES])
        gap = [column.means[-1]] if column.missing else []
        changes = {
            "categories": [column.categories[i] for i in places],
            "means": [list(column.means[i]) for i in places] + [list(row) for row in gap],
            "left_out": len(column.categories) - len(places),
        }
    categories = changes.get("categories", column.categories)
    return changes | {"counts": [held.get(c, 0) for c in categories], "gaps": True}
