"""The sums over rows that decide between the candidates of a search.

One pass over the rows gathers, for all candidates side by side, everything that the closed form needs; the
sums add over chunks of rows, threads and ranks. Features are summed after a provisional shift and scale, so
that float32 products neither cancel nor overflow; the true standardisation is applied to the sums afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..common.reservations import Reservation
from ..common.team import Alone
from ..engine.dispatch import Array, algebra_of
from ..engine.native import native
from .draws import Draw

__all__ = [
    "CellTotals",
    "Gathered",
    "Provisional",
    "ScoreChunk",
    "Shortlist",
    "Sums",
    "chunks",
    "constants_of",
    "provisional",
    "shared_constants",
    "shared_sums",
    "sums_of",
]

#: Bytes of candidate features that one search may keep between its two passes.
CACHE_BYTES = 1 << 29
#: Bytes of candidate features in a chunk of rows.
CHUNK_BYTES = 1 << 25


@dataclass
class Sums:
    """Additive statistics of all candidates, in float64: arrays, or tensors on a device.

    Features of candidates are shifted and scaled by provisional constants.
    """

    total: Array  # (k, m) sums of features
    gram: Array  # (k, m, m)
    cross: Array  # (p, k, m)
    target: Array  # (k, m, C)
    accepted_total: Array
    accepted_gram: Array
    accepted_target: Array
    target_total: Array
    target_square: Array
    weight: Array

    def __iadd__(self, other: Sums) -> Sums:
        for entry in fields(self):
            total = getattr(self, entry.name)
            total += getattr(other, entry.name)
        return self


@dataclass(frozen=True)
class Provisional:
    """Shift and scale (k, m) from the first rows, so that float32 products neither cancel nor overflow."""

    shift: Array
    scale: Array


@dataclass(frozen=True)
class Gathered:
    """What the first pass leaves: sums, and the raw features of all chunks if there is room for them."""

    sums: Sums
    provisional: Provisional
    cache: list[Array] | None
    reservation: Reservation | None = None


@dataclass(frozen=True)
class Shortlist:
    """Candidates that a second pass scores.

    Attributes
    ----------
    draws : those of all candidates; chosen : the numbers of the candidates
    cache : raw features of all candidates by chunk, if the first pass over the same rows kept them
    """

    draws: Sequence[Draw]
    chosen: np.ndarray
    cache: list[Array] | None


#: From raw features (k, m, n), accepted features (n, p), targets (n, C) and weights (n,) to summed scores
#: (k,).
ScoreChunk = Callable[[Array, Array, Array, Array], Array]


class CellTotals:
    """Sums of cells, added to each other in pairs, pairs of pairs and so on."""

    def __init__(self, n_cells: int) -> None:
        self._cells: list[Any] = [None] * n_cells

    def add(self, cell: int, part: Any) -> None:
        """Add the next chunk of a cell; the first one may change."""
        self._cells[cell] = _added(self._cells[cell], part)

    def total(self) -> Any:
        """The sum over all cells, of which at least one has some."""
        cells = self._cells
        while len(cells) > 1:
            cells = [_added(*cells[i : i + 2]) for i in range(0, len(cells), 2)]
        assert cells[0] is not None
        return cells[0]


def _added(one: Any, other: Any = None) -> Any:
    """The sum of two parts, of which either may be missing; the first one may change."""
    if one is None or other is None:
        return other if one is None else one
    one += other
    return one


def sums_of(
    features: np.ndarray, constants: Provisional, accepted: np.ndarray, target: np.ndarray, weight: np.ndarray
) -> Sums:
    """Sums of one chunk of rows with raw features (k, m, n)."""
    weights = None if (weight == 1).all() else weight
    engine = native()
    squares = engine.column_sums(target, weights, power=2)
    return Sums(
        *engine.search_sums(features, constants.shift, constants.scale, weights, accepted, target),
        accepted_total=engine.column_sums(accepted, weights),
        accepted_gram=engine.gram(accepted, accepted, weights),
        accepted_target=engine.gram(accepted, target, weights),
        target_total=engine.column_sums(target, weights),
        target_square=engine.row_sums(squares[None]).reshape(()),
        weight=engine.column_sums(weight[:, None]).reshape(()),
    )


def shared_sums(sums: Sums, team: Alone) -> Sums:
    """Sums over all ranks, sent as one vector."""
    if team.alone:
        return sums
    parts = [getattr(sums, entry.name) for entry in fields(sums)]
    flat = team.add_(algebra_of(sums.gram).joined([part.reshape(-1) for part in parts]), "sums of the search")
    totals, start = [], 0
    for part in parts:
        size = int(np.prod(part.shape))
        totals.append(flat[start : start + size].reshape(part.shape))
        start += size
    return Sums(*totals)


def shared_constants(constants: Provisional, team: Alone) -> Provisional:
    """Those of rank 0, for sums can only be added after the same shift and scale."""
    if team.alone:
        return constants
    both = algebra_of(constants.shift).joined([constants.shift, constants.scale])
    team.first_(both, "constants of the search")
    return Provisional(both[: len(constants.shift)], both[len(constants.shift) :])


def chunks(n_rows: int, columns: int) -> list[slice]:
    """Rows to take at once: enough chunks for several threads, each within its memory."""
    size = min(CHUNK_BYTES // (4 * max(columns, 1)), 8192, max(256, -(-n_rows // 4)))
    size = max(size, 64)
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def provisional(h: np.ndarray) -> Provisional:
    """Constants from the features (k, m, n) of some rows."""
    k, m, n = h.shape
    mean, variance = native().moments(np.ascontiguousarray(h.reshape(k * m, n).T))
    return constants_of(mean.reshape(k, m), variance.reshape(k, m))


def constants_of(mean: Array, variance: Array) -> Provisional:
    """Shift and scale that suit features of these moments (k, m); 0 and 1 where these are not finite."""
    algebra = algebra_of(mean)
    usable = algebra.finite(mean) & algebra.finite(variance) & (variance > 1e-24)
    shift = algebra.where(algebra.finite(mean), mean, 0.0)
    scale = 1.0 / algebra.where(usable, variance, 1.0) ** 0.5
    return Provisional(algebra.single(shift), algebra.single(scale))
