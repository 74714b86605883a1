"""The nearest changes of one or two columns that change the predicted class, within the range of the data.

How far a change goes is counted in rows: the part of the data between the old and the new value of a number,
and the part that has another level than the new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ...network.scaling import spread_rows
from .columns import Axis, crossed, number_text
from .subject import Subject

__all__ = ["Change", "nearest_changes"]

#: Columns of which pairs are tried, values of each of a pair, and changes that are told.
_PAIRED, _COARSE, _TOLD = 8, 15, 3
_HALVINGS = 30
#: Rows that are predicted at once, and rows among which values are ranked.
_ROWS, _RANKED = 1 << 15, 1 << 12


@dataclass(frozen=True, eq=False)
class Change:
    """A change of one or two columns after which another class is predicted.

    Attributes
    ----------
    columns : numbers of the columns
    labels : texts of the new values
    encoded : for each column, what the network's inputs become
    code : place of the class that is then predicted
    distance : part of the data between the old and the new values, summed over the columns
    """

    columns: tuple[int, ...]
    labels: tuple[str, ...]
    encoded: tuple[np.ndarray, ...]
    code: int
    distance: float


def nearest_changes(
    subject: Subject, axes: Sequence[Axis], row: np.ndarray, background: np.ndarray, order: Sequence[int]
) -> list[Change]:
    """The nearest changes, one for each column or pair; ``order`` has the most important columns first.

    A pair is told only if it is nearer than each of its columns alone.
    """
    background = background[spread_rows(len(background), 0, len(background), _RANKED)]
    code = int(subject.codes(row[None])[0])
    distances = [_distances(axis, row, background) for axis in axes]
    alone = {}
    for column in order:
        change = _alone(subject, axes, column, row, code, distances[column])
        if change is not None:
            alone[column] = change
    together = []
    for pair in combinations(sorted(order[:_PAIRED]), 2):
        change = _together(subject, axes, pair, row, code, [distances[column] for column in pair])
        if change is not None and all(change.distance < alone[c].distance for c in pair if c in alone):
            together.append(change)
    singles = sorted(alone.values(), key=lambda change: change.distance)
    pairs = sorted(together, key=lambda change: change.distance)
    return [*singles[:_TOLD], *pairs[:_TOLD]]


def _distances(axis: Axis, row: np.ndarray, background: np.ndarray) -> np.ndarray:
    """The part of the data between the row and each value on the grid of a column."""
    here = row[axis.inputs]
    if axis.kind == "levels":
        seen = axis.counts / max(1, axis.counts.sum())
        return np.where((axis.encoded == here).all(axis=1), 0.0, 1 - seen[: len(axis.encoded)])
    values = np.sort(background[:, axis.start])
    points = np.append(axis.encoded[:, 0], here[0])
    below, up_to = np.searchsorted(values, points, "left"), np.searchsorted(values, points, "right")
    rank = (below + up_to) / (2 * len(values))
    distance = np.abs(rank[:-1] - rank[-1])
    width = max(axis.high - axis.low, np.finfo(np.float64).tiny)
    distance = distance + 1e-3 * np.abs(axis.encoded[:, 0] - here[0]) / width  # where no rows are between
    if len(here) > 1:
        assert axis.grid is not None
        gaps = np.isnan(axis.grid)
        is_gap = bool(gaps.any()) and np.array_equal(here, axis.encoded[gaps][0])
        distance = np.where(gaps, float(not is_gap), distance if not is_gap else 1.0)
    return distance


def _codes(subject: Subject, rows: np.ndarray) -> np.ndarray:
    parts = [subject.codes(rows[start : start + _ROWS]) for start in range(0, len(rows), _ROWS)]
    return np.concatenate(parts)


def _alone(
    subject: Subject, axes: Sequence[Axis], column: int, row: np.ndarray, code: int, distance: np.ndarray
) -> Change | None:
    axis = axes[column]
    codes = subject.codes(axis.put(row[None])[0])
    flips = np.flatnonzero((codes != code) & (distance > 0))
    if not len(flips):
        return None
    place = int(flips[distance[flips].argmin()])
    encoded, label, gone = axis.encoded[place], axis.labels[place], float(distance[place])
    if axis.kind == "number" and len(encoded) == 1:
        value = _first_flip(subject, axis, row, code, float(encoded[0]))
        start = float(row[axis.start])
        if encoded[0] != start:
            gone *= abs(value - start) / abs(float(encoded[0]) - start)
        encoded, label = np.array([value]), number_text(value)
    moved = row.copy()
    moved[axis.inputs] = encoded
    return Change((column,), (label,), (encoded,), int(subject.codes(moved[None])[0]), gone)


def _first_flip(subject: Subject, axis: Axis, row: np.ndarray, code: int, far: float) -> float:
    """A value between the row's and one that changes the class, as near as possible, in few digits."""
    near = float(row[axis.start])

    def flips(value: float) -> bool:
        moved = row.copy()
        moved[axis.start] = value
        return int(subject.codes(moved[None])[0]) != code

    start, end = near, far
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        near, far = (near, middle) if flips(middle) else (middle, far)
    outwards = np.ceil if end > start else np.floor
    rounder = [float(f"{far:.{digits}g}") for digits in range(2, 8)]
    for rounded in [float(outwards(far))] if axis.whole else rounder:
        between = min(start, end) <= rounded <= max(start, end) and rounded != start
        near_enough = axis.whole or abs(rounded - far) <= 0.02 * abs(end - start)
        if between and near_enough and flips(rounded):
            return rounded
    return end if axis.whole else far


def _together(
    subject: Subject,
    axes: Sequence[Axis],
    pair: tuple[int, int],
    row: np.ndarray,
    code: int,
    distances: Sequence[np.ndarray],
) -> Change | None:
    _, (first, second) = crossed(axes, pair, _COARSE)
    rows = np.repeat(row[None], len(first), axis=0)
    for column, chosen in zip(pair, (first, second), strict=True):
        rows[:, axes[column].inputs] = axes[column].encoded[chosen]
    both = (distances[0][first] > 0) & (distances[1][second] > 0)
    codes = _codes(subject, rows)
    flips = np.flatnonzero((codes != code) & both)
    if not len(flips):
        return None
    distance = distances[0][first] + distances[1][second]
    best = int(flips[distance[flips].argmin()])
    places = int(first[best]), int(second[best])
    return Change(
        pair,
        tuple(axes[column].labels[place] for column, place in zip(pair, places, strict=True)),
        tuple(axes[column].encoded[place] for column, place in zip(pair, places, strict=True)),
        int(codes[best]),
        float(distance[best]),
    )
