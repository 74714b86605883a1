"""Candidates of the search and the sums over rows that decide between them.

A candidate is an operator set with random weights. One pass over the rows gathers, for all candidates side
by side, everything that `ridge` needs; the sums add over chunks of rows, threads and machines. Features are
summed after a provisional shift and scale, so that float32 products neither cancel nor overflow; the true
standardisation is applied to the sums afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import partial

import numpy as np
import torch

from .kernels import reference
from .kernels.threads import run_all, stream
from .operators import OperatorSet

__all__ = [
    "Draw",
    "Gathered",
    "Provisional",
    "Rows",
    "Sums",
    "all_features",
    "chunks",
    "draw_weights",
    "gather",
]

#: Bytes of candidate features that may be kept between the two passes of a search.
CACHE_BYTES = 1 << 29
#: Bytes of candidate features in a chunk of rows.
CHUNK_BYTES = 1 << 25


@dataclass(frozen=True)
class Rows:
    """Data as the search sees it.

    Attributes
    ----------
    x : (N, D) float32, inputs of the layer
    accepted : (N, p) float32, standardised features of the layer's accepted blocks
    target : (N, C) float32
    weight : (N,) float32 with mean 1
    """

    x: np.ndarray
    accepted: np.ndarray
    target: np.ndarray
    weight: np.ndarray

    @property
    def n_rows(self) -> int:
        return self.x.shape[0]


@dataclass(frozen=True)
class Draw:
    """One matrix of random weights and the candidates that use it."""

    weight: np.ndarray
    weight_range: float
    sets: list[OperatorSet]
    first: int  # index of the first candidate


@dataclass
class Sums:
    """Additive statistics of all candidates; features are shifted and scaled by provisional constants."""

    total: np.ndarray  # (k, m) sums of features
    gram: np.ndarray  # (k, m, m)
    cross: np.ndarray  # (p, k, m)
    target: np.ndarray  # (k, m, C)
    accepted_total: np.ndarray
    accepted_gram: np.ndarray
    accepted_target: np.ndarray
    target_total: np.ndarray
    target_square: float
    weight: float

    def __iadd__(self, other: Sums) -> Sums:
        for entry in fields(self):
            setattr(self, entry.name, getattr(self, entry.name) + getattr(other, entry.name))
        return self


@dataclass(frozen=True)
class Provisional:
    """Shift and scale (k, m) from the first rows, so that float32 products neither cancel nor overflow."""

    shift: np.ndarray
    scale: np.ndarray


@dataclass(frozen=True)
class Gathered:
    """What the first pass leaves: sums, and the raw features of all chunks if they fit into the cache."""

    sums: Sums
    provisional: Provisional
    cache: list[np.ndarray] | None


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
    from .kernels import cpu, cpu_activation

    nodal = draw.sets[0].nodal_operator.code
    pooled = None
    for j, operator_set in enumerate(draw.sets):
        codes = operator_set.codes
        if codes is None:
            with torch.no_grad():
                bias = torch.zeros(draw.weight.shape[1])
                tensors = torch.from_numpy(x), torch.from_numpy(draw.weight), bias
                out[j] = reference.features(*tensors, operator_set).numpy().T
            continue
        if pooled is None:
            pooled = np.empty((4, draw.weight.shape[1], x.shape[0]), np.float32)
            cpu.all_pools(nodal, x, draw.weight, pooled)
        cpu_activation.activate(codes[2], pooled[codes[1]].reshape(-1), out[j].reshape(-1))


def chunks(n_rows: int, columns: int) -> list[slice]:
    """Rows to take at once: enough chunks for several threads, each within its memory."""
    size = min(CHUNK_BYTES // (4 * max(columns, 1)), 8192, max(256, -(-n_rows // 4)))
    size = max(size, 64)
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def all_features(x: np.ndarray, draws: Sequence[Draw], n_threads: int = 1) -> np.ndarray:
    """Features of all candidates for some rows: (k, m, n). Draws are spread over threads."""
    starts = np.cumsum([0, *(len(draw.sets) for draw in draws)])
    out = np.empty((starts[-1], draws[0].weight.shape[1], len(x)), np.float32)
    x = np.ascontiguousarray(x)

    def task(i: int) -> None:
        _features(x, draws[i], out[starts[i] : starts[i + 1]])

    run_all([partial(task, i) for i in range(len(draws))], n_threads)
    return out


def gather(rows: Rows, draws: Sequence[Draw], n_threads: int) -> Gathered:
    """One pass over the rows; chunks are spread over threads and added in their order."""
    k, m = sum(len(draw.sets) for draw in draws), draws[0].weight.shape[1]
    provisional = _provisional(all_features(rows.x[:64], draws, n_threads))
    cache: list[np.ndarray] | None = [] if 4 * k * m * rows.n_rows <= CACHE_BYTES else None
    spans = chunks(rows.n_rows, k * m)
    keep = cache is not None

    def task(span: slice) -> tuple[Sums, np.ndarray | None]:
        h = all_features(rows.x[span], draws)
        sums = _sum_chunk(h.copy() if keep else h, rows, span, provisional)
        return sums, h if keep else None

    total: Sums | None = None
    for part, h in stream([partial(task, span) for span in spans], n_threads):
        if total is None:
            total = part
        else:
            total += part
        if cache is not None and h is not None:
            cache.append(h)
    assert total is not None
    return Gathered(total, provisional, cache)


def _provisional(h: np.ndarray) -> Provisional:
    with np.errstate(all="ignore"):
        mean = h.mean(axis=2, dtype=np.float64)
        deviation = h.std(axis=2, dtype=np.float64)
    usable = np.isfinite(mean) & np.isfinite(deviation) & (deviation > 1e-12)
    return Provisional(
        np.where(np.isfinite(mean), mean, 0.0).astype(np.float32),
        np.where(usable, 1.0 / np.where(usable, deviation, 1.0), 1.0).astype(np.float32),
    )


def _sum_chunk(h: np.ndarray, rows: Rows, span: slice, provisional: Provisional) -> Sums:
    """Statistics of one chunk of rows; ``h`` (k, m, n) is overwritten."""
    k, m, n = h.shape
    accepted, target, weight = rows.accepted[span], rows.target[span], rows.weight[span]
    with np.errstate(all="ignore"):
        h -= provisional.shift[:, :, None]
        h *= provisional.scale[:, :, None]
        weighted = h if (weight == 1).all() else h * weight
        flat = weighted.reshape(k * m, n)
        weighted_accepted = accepted * weight[:, None]
        return Sums(
            total=weighted.sum(axis=2, dtype=np.float64),
            gram=np.matmul(weighted, h.transpose(0, 2, 1)).astype(np.float64),
            cross=(flat @ accepted).T.reshape(accepted.shape[1], k, m).astype(np.float64),
            target=(flat @ target).reshape(k, m, -1).astype(np.float64),
            accepted_total=weighted_accepted.sum(axis=0, dtype=np.float64),
            accepted_gram=(weighted_accepted.T @ accepted).astype(np.float64),
            accepted_target=(weighted_accepted.T @ target).astype(np.float64),
            target_total=(target * weight[:, None]).sum(axis=0, dtype=np.float64),
            target_square=float((weight[:, None] * target.astype(np.float64) ** 2).sum()),
            weight=float(weight.sum(dtype=np.float64)),
        )
