"""The randomised operator search: which operator set should a new block have?

Every candidate is an operator set with random weights. One pass over the rows gathers, for all
candidates side by side, the sums that `ridge` needs; standardisation is applied to those sums
afterwards. Training loss and generalised cross-validation follow from the sums alone. Leave-one-out and
accuracy need predictions, so a second pass computes them; for leave-one-out only the candidates that
generalised cross-validation finds best take part.

Candidates that share a nodal operator may share a draw of weights: then one pass over the inputs serves
all of its pools and activations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from . import ridge as ridge_module
from .kernels import reference
from .kernels.threads import run_all, stream
from .network import NORM_EPSILON
from .operators import OperatorSet

__all__ = ["Candidate", "Rows", "SearchResult", "SearchSettings", "Winner", "search"]

#: Bytes of candidate features that a search may keep between its two passes.
CACHE_BYTES = 1 << 29
#: Bytes of candidate features in a chunk of rows.
CHUNK_BYTES = 1 << 25
#: Candidates that leave-one-out looks at, in multiples of the number of ridges.
SHORTLIST = 32
SCORES = ("loo", "gcv", "loss", "accuracy")


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
class SearchSettings:
    """How candidates are drawn and scored.

    Attributes
    ----------
    weight_ranges : draws are uniform in [-range, range], once for each range
    n_draws : draws for each range
    share_draws : sets with the same nodal operator use the same draw
    ridges : values of the ridge to try
    score : "loo", "gcv", "loss" (all squared errors) or "accuracy"
    """

    weight_ranges: tuple[float, ...] = (1.0,)
    n_draws: int = 1
    share_draws: bool = True
    ridges: tuple[float, ...] = (1.0,)
    score: str = "loo"
    n_threads: int = 1


@dataclass(frozen=True)
class Candidate:
    """One tried operator set and how it did: lower ``loss`` and higher ``score`` are better."""

    operator_set: OperatorSet
    weight_range: float
    ridge: float
    score: float
    loss: float


@dataclass(frozen=True)
class Winner:
    """The chosen candidate with everything that a new block and head need.

    Attributes
    ----------
    weight : (D, m); mean, variance : (m,) of the raw features
    head : (p + m, C) for the standardised features; intercept : (C,)
    """

    candidate: Candidate
    weight: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    head: np.ndarray
    intercept: np.ndarray


@dataclass(frozen=True)
class SearchResult:
    winner: Winner
    candidates: list[Candidate]
    n_invalid: int


@dataclass(frozen=True)
class _Draw:
    """One matrix of random weights and the candidates that use it."""

    weight: np.ndarray
    weight_range: float
    sets: list[OperatorSet]
    first: int  # index of the first candidate


@dataclass
class _Sums:
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

    def __iadd__(self, other: _Sums) -> _Sums:
        for entry in fields(self):
            setattr(self, entry.name, getattr(self, entry.name) + getattr(other, entry.name))
        return self


@dataclass(frozen=True)
class _Provisional:
    """Shift and scale (k, m) from the first rows, so that float32 products neither cancel nor overflow."""

    shift: np.ndarray
    scale: np.ndarray


@dataclass(frozen=True)
class _Gathered:
    """What the first pass leaves: sums, and the raw features of all chunks if they fit into the cache."""

    sums: _Sums
    provisional: _Provisional
    cache: list[np.ndarray] | None


def search(
    rows: Rows,
    sets: Sequence[OperatorSet],
    n_neurons: int,
    settings: SearchSettings,
    rng: np.random.Generator,
    validation: Rows | None = None,
) -> SearchResult:
    """Find the operator set, weights and head of a new block of ``n_neurons``.

    ``validation`` is where accuracy is measured; the other scores use the training rows.
    """
    draws = _draw_weights(rows.x.shape[1], sets, n_neurons, settings, rng)
    gathered = _gather(rows, draws, settings.n_threads)
    sums = gathered.sums
    bases, updates, mean, variance = _solve(sums, gathered.provisional, settings)
    pairs = [(r, c) for r in range(len(bases)) for c in range(mean.shape[0])]
    loss = np.stack([(u.squared_error / sums.weight).numpy() for u in updates])
    valid = np.stack([u.valid.numpy() for u in updates])
    loss[~valid] = np.inf
    if not valid.any():
        raise FloatingPointError(
            f"none of the {valid.size} candidate operator sets gave finite features; "
            "check the scale of the inputs or narrow weight_range"
        )
    if settings.score == "loss":
        score = -loss
    else:
        gcv = np.stack([u.generalized_cross_validation(sums.weight).numpy() for u in updates])
        score = -gcv
        if settings.score in ("loo", "accuracy"):
            keep = _shortlist(gcv, valid, SHORTLIST if settings.score == "loo" else gcv.size)
            score = np.full_like(gcv, -np.inf)
            where = rows if validation is None or settings.score == "loo" else validation
            cache = gathered.cache if where is rows else None
            for r, (base, solved) in enumerate(zip(bases, updates, strict=True)):
                chosen = np.flatnonzero(keep[r])
                if chosen.size:
                    score[r, chosen] = _predictive_scores(
                        where, draws, cache, chosen, base, solved, mean, variance, sums, settings
                    )
    best = max(pairs, key=lambda pair: (score[pair], -loss[pair]))
    names = [(draw.weight_range, s) for draw in draws for s in draw.sets]
    listed = [
        Candidate(names[c][1], names[c][0], bases[r].ridge, float(score[r, c]), float(loss[r, c]))
        for r, c in pairs
        if np.isfinite(score[r, c])
    ]
    winner = _winner(best, draws, listed, names, bases, updates, mean, variance, sums, score, loss)
    return SearchResult(winner, sorted(listed, key=lambda c: (-c.score, c.loss)), int((~valid).sum()))


def _draw_weights(
    n_inputs: int,
    sets: Sequence[OperatorSet],
    n_neurons: int,
    settings: SearchSettings,
    rng: np.random.Generator,
) -> list[_Draw]:
    groups: list[list[OperatorSet]]
    if settings.share_draws:
        by_nodal: dict[str, list[OperatorSet]] = {}
        for s in sets:
            by_nodal.setdefault(s.nodal, []).append(s)
        groups = list(by_nodal.values())
    else:
        groups = [[s] for s in sets]
    draws, first = [], 0
    for _ in range(settings.n_draws):
        for group in groups:
            unit = rng.uniform(-1.0, 1.0, size=(n_inputs, n_neurons))
            for weight_range in settings.weight_ranges:
                draws.append(_Draw((unit * weight_range).astype(np.float32), weight_range, group, first))
                first += len(group)
    return draws


def _features(x: np.ndarray, draw: _Draw, out: np.ndarray) -> None:
    """Raw features of a draw's candidates for some rows: out (sets, m, n)."""
    from .kernels import cpu

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
        cpu.activate(codes[2], pooled[codes[1]].reshape(-1), out[j].reshape(-1))


def _chunks(n_rows: int, columns: int) -> list[slice]:
    """Rows to take at once: enough chunks for several threads, each within its memory."""
    size = min(CHUNK_BYTES // (4 * max(columns, 1)), 8192, max(256, -(-n_rows // 4)))
    size = max(size, 64)
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def _all_features(x: np.ndarray, draws: Sequence[_Draw], n_threads: int = 1) -> np.ndarray:
    """Features of all candidates for some rows: (k, m, n). Draws are spread over threads."""
    starts = np.cumsum([0, *(len(draw.sets) for draw in draws)])
    out = np.empty((starts[-1], draws[0].weight.shape[1], len(x)), np.float32)
    x = np.ascontiguousarray(x)

    def task(i: int) -> None:
        _features(x, draws[i], out[starts[i] : starts[i + 1]])

    run_all([lambda i=i: task(i) for i in range(len(draws))], n_threads)
    return out


def _gather(rows: Rows, draws: Sequence[_Draw], n_threads: int) -> _Gathered:
    """One pass over the rows; chunks are spread over threads and added in their order."""
    k, m = sum(len(draw.sets) for draw in draws), draws[0].weight.shape[1]
    provisional = _provisional(_all_features(rows.x[:256], draws, n_threads))
    cache: list[np.ndarray] | None = [] if 4 * k * m * rows.n_rows <= CACHE_BYTES else None
    spans = _chunks(rows.n_rows, k * m)
    keep = cache is not None

    def task(span: slice) -> tuple[_Sums, np.ndarray | None]:
        h = _all_features(rows.x[span], draws)
        sums = _sum_chunk(h.copy() if keep else h, rows, span, provisional)
        return sums, h if keep else None

    total: _Sums | None = None
    for part, h in stream([lambda span=span: task(span) for span in spans], n_threads):
        if total is None:
            total = part
        else:
            total += part
        if cache is not None and h is not None:
            cache.append(h)
    assert total is not None
    return _Gathered(total, provisional, cache)


def _provisional(h: np.ndarray) -> _Provisional:
    with np.errstate(all="ignore"):
        mean = h.mean(axis=2, dtype=np.float64)
        deviation = h.std(axis=2, dtype=np.float64)
    usable = np.isfinite(mean) & np.isfinite(deviation) & (deviation > 1e-12)
    return _Provisional(
        np.where(np.isfinite(mean), mean, 0.0).astype(np.float32),
        np.where(usable, 1.0 / np.where(usable, deviation, 1.0), 1.0).astype(np.float32),
    )


def _sum_chunk(h: np.ndarray, rows: Rows, span: slice, provisional: _Provisional) -> _Sums:
    """Statistics of one chunk of rows; ``h`` (k, m, n) is overwritten."""
    k, m, n = h.shape
    accepted, target, weight = rows.accepted[span], rows.target[span], rows.weight[span]
    with np.errstate(all="ignore"):
        h -= provisional.shift[:, :, None]
        h *= provisional.scale[:, :, None]
        weighted = h if (weight == 1).all() else h * weight
        flat = weighted.reshape(k * m, n)
        weighted_accepted = accepted * weight[:, None]
        return _Sums(
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


def _solve(
    sums: _Sums, provisional: _Provisional, settings: SearchSettings
) -> tuple[list[ridge_module.Base], list[ridge_module.Schur], np.ndarray, np.ndarray]:
    """Standardise the sums and solve every candidate for every ridge."""
    n = sums.weight
    with np.errstate(all="ignore"):
        centre = sums.total / n
        spread = np.maximum(np.einsum("kmm->km", sums.gram) / n - centre**2, 0.0)
        scale = provisional.scale.astype(np.float64)
        mean = provisional.shift + centre / scale
        variance = spread / scale**2
        # What turns a shifted, scaled feature into a standardised one.
        factor = 1.0 / (np.sqrt(variance + NORM_EPSILON) * scale)
        target_mean = sums.target_total / n
        gram = (sums.gram - n * centre[:, :, None] * centre[:, None, :]) * factor[:, :, None] * factor[:, None]
        accepted_mean = sums.accepted_total / n
        cross = sums.cross - sums.accepted_total[:, None, None] * centre
        cross = (cross * factor).transpose(1, 0, 2)
        target = (sums.target - n * centre[:, :, None] * target_mean) * factor[:, :, None]
    accepted_gram = sums.accepted_gram - n * np.outer(accepted_mean, accepted_mean)
    accepted_target = sums.accepted_target - n * np.outer(accepted_mean, target_mean)
    total = sums.target_square - n * float((target_mean**2).sum())
    tensors = [torch.from_numpy(np.ascontiguousarray(a)) for a in (cross, gram, target)]
    bases, updates = [], []
    for value in settings.ridges:
        base = ridge_module.factor_base(
            torch.from_numpy(accepted_gram), torch.from_numpy(accepted_target), total, n, value
        )
        bases.append(base)
        updates.append(ridge_module.update(base, *tensors))
    return bases, updates, mean, variance


def _shortlist(gcv: np.ndarray, valid: np.ndarray, size: int) -> np.ndarray:
    """Mask of the ``size`` best finite candidates over all ridges."""
    order = np.argsort(np.where(valid, gcv, np.inf), axis=None)[:size]
    keep = np.zeros(gcv.size, dtype=bool)
    keep[order] = True
    return keep.reshape(gcv.shape) & valid


def _predictive_scores(
    where: Rows,
    draws: Sequence[_Draw],
    cache: list[np.ndarray] | None,
    chosen: np.ndarray,
    base: ridge_module.Base,
    solved: ridge_module.Schur,
    mean: np.ndarray,
    variance: np.ndarray,
    sums: _Sums,
    settings: SearchSettings,
) -> np.ndarray:
    """Leave-one-out error (negative) or accuracy of the chosen candidates, by a pass over ``where``."""
    # Gathering all features again would be a waste where few candidates are left.
    needed = [
        _Draw(d.weight, d.weight_range, [d.sets[i - d.first] for i in picked], d.first)
        for d in draws
        if (picked := chosen[(chosen >= d.first) & (chosen < d.first + len(d.sets))]).size
    ]
    deviation = np.sqrt(variance[chosen] + NORM_EPSILON)[:, :, None]
    centre = mean[chosen][:, :, None]
    projection = solved.projection[chosen].to(torch.float32)
    whiten = solved.whiten[chosen].to(torch.float32)
    reduced = solved.reduced[chosen].to(torch.float32)
    target_mean = torch.from_numpy(sums.target_total / sums.weight).to(torch.float32)
    accepted_mean = (sums.accepted_total / sums.weight).astype(np.float32)
    spans = _chunks(where.n_rows, sum(len(d.sets) for d in draws) * mean.shape[1])

    def task(number: int, span: slice) -> Tensor:
        h = cache[number][chosen] if cache is not None else _all_features(where.x[span], needed)
        standard = torch.from_numpy(((h - centre) / deviation).astype(np.float32, copy=False))
        accepted = torch.from_numpy(where.accepted[span] - accepted_mean)
        target, weight = torch.from_numpy(where.target[span]), torch.from_numpy(where.weight[span])
        return _score_chunk(
            standard, accepted, target, weight, base, projection, whiten, reduced, target_mean, settings.score
        )

    total = torch.zeros(len(chosen), dtype=torch.float64)
    for part in stream([lambda n=n, s=s: task(n, s) for n, s in enumerate(spans)], settings.n_threads):
        total += part
    return (total / float(where.weight.sum(dtype=np.float64))).numpy()


def _score_chunk(
    standard: Tensor,
    accepted: Tensor,
    target: Tensor,
    weight: Tensor,
    base: ridge_module.Base,
    projection: Tensor,
    whiten: Tensor,
    reduced: Tensor,
    target_mean: Tensor,
    score: str,
) -> Tensor:
    """Summed scores of the candidates over some rows: ``standard`` is (k, m, n), accepted (n, p)."""
    k = standard.shape[0]
    known = accepted @ base.head.to(torch.float32) + target_mean
    if accepted.shape[1]:
        standard = standard - projection.mT @ accepted.T
    reach = whiten @ standard  # (k, m, n): the new directions, uncorrelated
    total = torch.empty(k, dtype=torch.float64)
    if score == "loo":
        leverage = torch.full((len(target),), 1.0 / base.weight)
        if accepted.shape[1]:
            old = torch.linalg.solve_triangular(base.factor, accepted.T.to(torch.float64), upper=False)
            leverage += old.square().sum(dim=0).to(torch.float32)
        left = (1 - weight * (leverage + reach.square().sum(dim=1))).clamp_min(1e-2)  # (k, n)
    for i in range(k):  # one candidate at a time: all predictions at once would be k x n x C
        outputs = torch.addmm(known, reach[i].T, reduced[i])
        if score == "loo":
            error = (target - outputs).square().sum(dim=1) / left[i].square()
            total[i] = -(weight * error).sum(dtype=torch.float64)
        else:
            hit = outputs.argmax(dim=1) == target.argmax(dim=1)
            total[i] = (weight * hit).sum(dtype=torch.float64)
    return total


def _winner(
    best: tuple[int, int],
    draws: Sequence[_Draw],
    listed: Sequence[Candidate],
    names: Sequence[tuple[float, OperatorSet]],
    bases: Sequence[ridge_module.Base],
    updates: Sequence[ridge_module.Schur],
    mean: np.ndarray,
    variance: np.ndarray,
    sums: _Sums,
    score: np.ndarray,
    loss: np.ndarray,
) -> Winner:
    r, c = best
    draw = next(d for d in draws if d.first <= c < d.first + len(d.sets))
    candidate = Candidate(
        names[c][1], names[c][0], bases[r].ridge, float(score[r, c]), float(loss[r, c])
    )
    head = torch.cat([updates[r].old_head[c], updates[r].new_head[c]]).numpy()
    # Accepted features have mean zero only up to rounding; their means belong to the intercept.
    accepted_mean = sums.accepted_total / sums.weight
    intercept = sums.target_total / sums.weight - accepted_mean @ head[: len(accepted_mean)]
    return Winner(candidate, draw.weight, mean[c], variance[c], head, intercept)
