"""Candidates of the search and the sums over rows that decide between them.

A candidate is an operator set with random weights. One pass over the rows gathers, for all candidates side
by side, everything that `ridge` needs; the sums add over chunks of rows, threads and machines. Features are
summed after a provisional shift and scale, so that float32 products neither cancel nor overflow; the true
standardisation is applied to the sums afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from ..common.reservations import Reservation, reserve
from ..common.threads import run_all, stream
from ..engine.dispatch import Array, algebra_of
from ..engine.features import compiled_features
from ..engine.native import native
from ..operators import OperatorSet

__all__ = [
    "Draw",
    "Gathered",
    "Provisional",
    "Rows",
    "ScoreChunk",
    "SearchRows",
    "Share",
    "Sums",
    "all_features",
    "as_they_are",
    "chunks",
    "constants_of",
    "draw_weights",
    "provisional",
]

#: Bytes of candidate features that one search may keep between its two passes.
CACHE_BYTES = 1 << 29
#: Bytes of candidate features in a chunk of rows.
CHUNK_BYTES = 1 << 25


@dataclass(frozen=True)
class Draw:
    """One matrix of random weights and the candidates that use it."""

    weight: np.ndarray
    weight_range: float
    sets: list[OperatorSet]
    first: int  # index of the first candidate

    @cached_property
    def codes(self) -> list[tuple[int, int, int] | None]:
        """The engine's codes of the sets, None for those it does not have."""
        return [operator_set.codes for operator_set in self.sets]


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


#: From raw features (k, m, n), accepted features (n, p), targets (n, C) and weights (n,) to summed scores
#: (k,).
ScoreChunk = Callable[[Array, Array, Array, Array], Array]


#: From the constants that some rows suggest to those that are used.
Share = Callable[[Provisional], Provisional]


def as_they_are(constants: Provisional) -> Provisional:
    """No other process has a say in the constants."""
    return constants


class SearchRows(Protocol):
    """Data as the search sees it, wherever it is: what can be done with candidates on it."""

    @property
    def total_weight(self) -> float: ...

    @property
    def n_inputs(self) -> int: ...

    @property
    def n_rows(self) -> int: ...

    def gather(self, draws: Sequence[Draw], n_threads: int, share: Share = ...) -> Gathered:
        """One pass over the rows that sums what the candidates' fits need.

        ``share`` returns the constants that are used instead of those found here.
        """
        ...

    def score(
        self,
        draws: Sequence[Draw],
        chosen: np.ndarray,
        cache: list[Array] | None,
        function: ScoreChunk,
        n_threads: int,
    ) -> Array:
        """The sum of a function of the chosen candidates' features over chunks of rows."""
        ...


def draw_weights(
    n_inputs: int,
    n_neurons: int,
    sets: Sequence[OperatorSet],
    weight_ranges: Sequence[float],
    n_draws: int,
    share_draws: bool,
    rng: np.random.Generator,
) -> list[Draw]:
    """Random weights for every operator set, or once for all sets with the same nodal operator."""
    groups: list[list[OperatorSet]]
    if share_draws:
        by_nodal: dict[str, list[OperatorSet]] = {}
        for s in sets:
            by_nodal.setdefault(s.nodal, []).append(s)
        groups = list(by_nodal.values())
    else:
        groups = [[s] for s in sets]
    draws, first = [], 0
    for _ in range(n_draws):
        for group in groups:
            unit = rng.uniform(-1.0, 1.0, size=(n_inputs, n_neurons))
            for weight_range in weight_ranges:
                draws.append(Draw((unit * weight_range).astype(np.float32), weight_range, group, first))
                first += len(group)
    return draws


def _features(x: np.ndarray, draw: Draw, out: np.ndarray) -> None:
    """Raw features of a draw's candidates for some rows: out (sets, m, n)."""
    built_in = [codes for codes in draw.codes if codes is not None]
    if built_in:
        whole = out if len(built_in) == len(draw.sets) else None
        nodals, pools, activations = zip(*built_in, strict=True)
        found = native().search_features(nodals[0], pools, activations, x, draw.weight, whole)
        if whole is not None:
            return
        out[[codes is not None for codes in draw.codes]] = found
    nothing = np.zeros(draw.weight.shape[1], np.float32)
    for j, operator_set in enumerate(draw.sets):
        if draw.codes[j] is None:
            out[j] = compiled_features(x, draw.weight, nothing, operator_set).T


def chunks(n_rows: int, columns: int) -> list[slice]:
    """Rows to take at once: enough chunks for several threads, each within its memory."""
    size = min(CHUNK_BYTES // (4 * max(columns, 1)), 8192, max(256, -(-n_rows // 4)))
    size = max(size, 64)
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


@dataclass(frozen=True)
class Rows:
    """Rows in the memory of the host.

    Attributes
    ----------
    x : (N, D) float32, inputs of the layer
    accepted : (N, p) float32, standardised features of the layer's accepted blocks
    target : (N, C) float32
    weight : (N,) float32 with mean 1
    cuts : rows, in order, at which a chunk has to end
    """

    x: np.ndarray
    accepted: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    cuts: tuple[int, ...] = ()

    @property
    def n_rows(self) -> int:
        return self.x.shape[0]

    @property
    def n_inputs(self) -> int:
        return self.x.shape[1]

    @property
    def total_weight(self) -> float:
        return float(self.weight.sum(dtype=np.float64))

    def gather(self, draws: Sequence[Draw], n_threads: int, share: Share = as_they_are) -> Gathered:
        """Chunks are spread over threads; their sums are added in order, and those of cells in pairs."""
        k, m = sum(len(draw.sets) for draw in draws), draws[0].weight.shape[1]
        constants = share(provisional(all_features(self.x[:64], draws, n_threads)))
        size = 4 * k * m * self.n_rows
        reservation = reserve(size) if size <= CACHE_BYTES else None
        cache: list[Array] | None = None if reservation is None else []

        def task(span: slice) -> tuple[Sums, np.ndarray | None]:
            h = all_features(self.x[span], draws)
            return self._sum_chunk(h, span, constants), None if cache is None else h

        def parts() -> Iterator[Sums]:
            for part, h in stream([partial(task, span) for _, span in self._spans(k * m)], n_threads):
                if cache is not None:
                    cache.append(h)
                yield part

        total = self._added(parts(), k * m)
        assert total is not None
        return Gathered(total, constants, cache, reservation)

    def summing(self, draws: Sequence[Draw], constants: Provisional) -> Iterator[Callable[[], Sums]]:
        """Tasks that sum the rows span by span."""
        k, m = sum(len(draw.sets) for draw in draws), draws[0].weight.shape[1]

        def task(span: slice) -> Sums:
            return self._sum_chunk(all_features(self.x[span], draws), span, constants)

        return (partial(task, span) for span in chunks(self.n_rows, k * m))

    def score(
        self,
        draws: Sequence[Draw],
        chosen: np.ndarray,
        cache: list[Array] | None,
        function: ScoreChunk,
        n_threads: int,
    ) -> Array:
        """Without a cache, only the features of the chosen candidates are computed again."""
        size = sum(len(draw.sets) for draw in draws) * draws[0].weight.shape[1]
        needed = picked(draws, chosen)

        def task(number: int, span: slice) -> np.ndarray:
            h = all_features(self.x[span], needed) if cache is None else cache[number][chosen]
            arrays = (np.ascontiguousarray(a[span]) for a in (self.accepted, self.target, self.weight))
            return function(h, *arrays)

        tasks = [partial(task, number, span) for number, (_, span) in enumerate(self._spans(size))]
        total = self._added(stream(tasks, n_threads), size)
        return np.zeros(len(chosen)) if total is None else total

    def _spans(self, columns: int) -> list[tuple[int, slice]]:
        """Rows to take at once, and the number of the cell that they are in."""
        return [
            (cell, slice(start + span.start, start + span.stop))
            for cell, (start, stop) in enumerate(pairwise([0, *self.cuts, self.n_rows]))
            for span in chunks(stop - start, columns)
        ]

    def _added(self, parts: Iterable[Any], columns: int) -> Any:
        """The sum of what belongs to each of the spans; None if there are none."""
        cells: list[Any] = [None] * (len(self.cuts) + 1)
        for part, (cell, _) in zip(parts, self._spans(columns), strict=True):
            cells[cell] = _sum_of(cells[cell], part)
        while len(cells) > 1:
            cells = [_sum_of(*cells[i : i + 2]) for i in range(0, len(cells), 2)]
        return cells[0]

    def _sum_chunk(self, h: np.ndarray, span: slice, constants: Provisional) -> Sums:
        """Statistics of one chunk of rows with features ``h`` (k, m, n)."""
        accepted, target, weight = (
            np.ascontiguousarray(a[span]) for a in (self.accepted, self.target, self.weight)
        )
        weights = None if (weight == 1).all() else weight
        engine = native()
        squares = engine.column_sums(target, weights, power=2)
        return Sums(
            *engine.search_sums(h, constants.shift, constants.scale, weights, accepted, target),
            accepted_total=engine.column_sums(accepted, weights),
            accepted_gram=engine.gram(accepted, accepted, weights),
            accepted_target=engine.gram(accepted, target, weights),
            target_total=engine.column_sums(target, weights),
            target_square=engine.row_sums(squares[None]).reshape(()),
            weight=engine.column_sums(weight[:, None]).reshape(()),
        )


def _sum_of(one: Any, other: Any = None) -> Any:
    """The sum of two parts, of which either may be missing; the first one may change."""
    if one is None or other is None:
        return other if one is None else one
    one += other
    return one


def picked(draws: Sequence[Draw], chosen: np.ndarray) -> list[Draw]:
    """The draws of the chosen candidates, each with no more of its sets than these."""
    return [
        Draw(d.weight, d.weight_range, [d.sets[i - d.first] for i in wanted], d.first)
        for d in draws
        if (wanted := chosen[(chosen >= d.first) & (chosen < d.first + len(d.sets))]).size
    ]


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


def all_features(x: np.ndarray, draws: Sequence[Draw], n_threads: int = 1) -> np.ndarray:
    """Features of all candidates for some rows: (k, m, n). Draws are spread over threads."""
    starts = np.cumsum([0, *(len(draw.sets) for draw in draws)])
    out = np.empty((starts[-1], draws[0].weight.shape[1], len(x)), np.float32)
    x = np.ascontiguousarray(x)

    def task(i: int) -> None:
        _features(x, draws[i], out[starts[i] : starts[i + 1]])

    run_all([partial(task, i) for i in range(len(draws))], n_threads)
    return out
