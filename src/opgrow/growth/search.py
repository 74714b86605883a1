"""The randomised operator search: which operator set should a new block have?

Every candidate is an operator set with random weights; `statistics` gathers their sums in one pass over
the rows. Training loss and generalised cross-validation follow from the sums alone. Leave-one-out and
accuracy need predictions, so a second pass computes them; for leave-one-out only the candidates that
generalised cross-validation finds best take part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ..closed_form import ridge as ridge_module
from ..common.errors import NotFiniteError
from ..common.threads import run_all
from ..engine.batch_norm import deviation
from ..engine.dispatch import Array, algebra_of
from ..engine.native import native
from ..engine.search import SolvedCandidates
from ..network import Block
from ..operators import OperatorSet
from ..rows.draws import Draw, DrawSettings, draw_weights
from ..rows.interface import Rows
from ..rows.search_sums import Gathered, Shortlist

__all__ = [
    "SCORES",
    "Candidate",
    "SearchResult",
    "SearchSettings",
    "Winner",
    "check_result",
    "search",
    "solved_again",
    "stages",
]

SCORES = ("loo", "gcv", "loss", "accuracy")
#: Evaluations of nodal operators below which threads cost more than they bring.
SMALL = 1 << 24
#: Candidates that leave-one-out looks at.
SHORTLIST = 32
#: Operator sets that are searched with all neurons of a block after all were with a few, and their rivals.
_FINALISTS, _RIVALS = 8, 2


@dataclass(frozen=True)
class SearchSettings(DrawSettings):
    """How candidates are drawn and scored.

    Attributes
    ----------
    ridges : values of the ridge to try
    score : "loo", "gcv", "loss" (all squared errors) or "accuracy"
    rivals : operator sets of which the best is returned too, beside the winner over all
    few : neurons by which all sets are compared for a larger block, of which the best are then searched with
        all neurons; None: all sets are
    """

    ridges: tuple[float, ...] = (1.0,)
    score: str = "loo"
    rivals: frozenset[OperatorSet] = frozenset()
    few: int | None = None
    n_threads: int = 1


@dataclass(frozen=True)
class Candidate:
    """One tried operator set and how it did: lower ``loss`` and higher ``score`` are better.

    POP tries pairs: ``head_operators`` are those of the output layer, and ``ridge`` is 0.
    """

    operator_set: OperatorSet
    weight_range: float
    ridge: float
    score: float
    loss: float
    head_operators: OperatorSet | None = None


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
    """The winner, the best rival if that is another one, and all scored candidates, best first."""

    winner: Winner
    rival: Winner | None
    candidates: list[Candidate]
    n_invalid: int


@dataclass(frozen=True)
class _Problem:
    """All candidates, standardised and solved for every ridge.

    Attributes
    ----------
    bases, updates : for each ridge, the accepted part and all candidates added to it
    mean, variance : (k, m) of the candidates' raw features
    accepted_mean, target_mean : (p,) and (C,); all in float64 where the rows are
    """

    draws: list[Draw]
    gathered: Gathered
    bases: list[ridge_module.Base]
    updates: list[ridge_module.Schur]
    mean: Array
    variance: Array
    accepted_mean: Array
    target_mean: Array

    @property
    def operator_sets(self) -> list[OperatorSet]:
        return [operator_set for draw in self.draws for operator_set in draw.sets]


def search(
    rows: Rows,
    sets: Sequence[OperatorSet],
    n_neurons: int,
    settings: SearchSettings,
    rng: np.random.Generator,
    validation: Rows | None = None,
) -> SearchResult:
    """Find the operator set, weights and head of a new block of ``n_neurons``.

    ``validation`` is where accuracy is measured; the other scores use the training rows. The candidates of
    sets that did not come so far as to be searched with all neurons are the last ones.
    """
    first = None
    for _, size in stages(n_neurons, len(sets), settings):
        finalists = sets if first is None else _finalists(first, settings)
        draws = draw_weights(rows.n_inputs, size, finalists, settings, rng)
        small = rows.n_rows * rows.n_inputs * size * len(draws) < SMALL
        here = replace(settings, n_threads=1) if small else settings
        problem = _solve(draws, rows.gather(draws, here.n_threads), here)
        result = _ranked(problem, rows, validation, here)
        if first is not None:
            return _joined(first, result)
        first = result
    assert first is not None
    return first


def solved_again(rows: Rows, block: Block, ridge: float, n_threads: int) -> Winner | None:
    """A block with statistics of these rows, and the least squares head of it and the accepted blocks.

    None where the block's features are not finite.
    """
    draw = Draw(block.weight, float(np.abs(block.weight).max()), [block.operator_set], 0)
    settings = SearchSettings(ridges=(ridge,), n_threads=n_threads)
    problem = _solve([draw], rows.gather([draw], n_threads), settings)
    [update] = problem.updates
    if not algebra_of(update.valid).host(update.valid).all():
        return None
    loss = float(algebra_of(update.squared_error).host(update.squared_error)[0])
    candidate = Candidate(block.operator_set, draw.weight_range, ridge, -loss, loss)
    return _winner(problem, 0, 0, candidate)


def stages(n_neurons: int, n_sets: int, settings: SearchSettings) -> list[tuple[int, int]]:
    """How many operator sets at most are compared by how many neurons, stage by stage."""
    few, most = settings.few, _FINALISTS + _RIVALS
    if few is None or n_neurons <= few or n_sets <= most:
        return [(n_sets, n_neurons)]
    return [(n_sets, few), (most, n_neurons)]


def _finalists(first: SearchResult, settings: SearchSettings) -> list[OperatorSet]:
    """The best sets of a search with few neurons, and the best rivals among all."""
    ranked = list(dict.fromkeys(candidate.operator_set for candidate in first.candidates))
    rivals = [operator_set for operator_set in ranked if operator_set in settings.rivals]
    return list(dict.fromkeys([*ranked[:_FINALISTS], *rivals[:_RIVALS]]))


def _joined(first: SearchResult, last: SearchResult) -> SearchResult:
    """A search of finalists, with what came of the other sets before."""
    finalists = {candidate.operator_set for candidate in last.candidates}
    rest = [candidate for candidate in first.candidates if candidate.operator_set not in finalists]
    n_invalid = first.n_invalid + last.n_invalid
    return replace(last, candidates=[*last.candidates, *rest], n_invalid=n_invalid)


def _ranked(problem: _Problem, rows: Rows, validation: Rows | None, settings: SearchSettings) -> SearchResult:
    """Score all candidates, and return them with the winner and the best rival."""
    draws = problem.draws
    valid = _stacked([u.valid for u in problem.updates])
    if not valid.any():
        raise NotFiniteError(
            f"none of the {valid.size} candidate operator sets gave finite features; "
            "check the scale of the inputs or narrow weight_range"
        )
    weight = float(problem.gathered.sums.weight)
    loss = _stacked([u.squared_error / weight for u in problem.updates])
    loss[~valid] = np.inf
    rival = np.array([s in settings.rivals for s in problem.operator_sets])
    score = _scores(problem, loss, valid, rival, rows, validation, settings)
    order = np.lexsort((loss.ravel(), -score.ravel()))
    ranking = [divmod(int(i), score.shape[1]) for i in order if np.isfinite(score.flat[i])]

    def candidate(r: int, c: int) -> Candidate:
        draw = _draw_of(draws, c)
        operator_set = draw.sets[c - draw.first]
        return Candidate(
            operator_set, draw.weight_range, problem.bases[r].ridge, float(score[r, c]), float(loss[r, c])
        )

    def winner(r: int, c: int) -> Winner:
        return _winner(problem, r, c, candidate(r, c))

    second = next((pair for pair in ranking if rival[pair[1]]), None)
    if rival[ranking[0][1]]:  # the winner itself is one
        second = None
    return SearchResult(
        winner(*ranking[0]),
        None if second is None else winner(*second),
        [candidate(*pair) for pair in ranking],
        int((~valid).sum()),
    )


def check_result(
    result: SearchResult, n_inputs: int, n_accepted: int, n_neurons: int, n_outputs: int
) -> None:
    """Complain about a result, read from a file, that is not one for a block of this shape."""
    shapes = {
        "weight": (n_inputs, n_neurons),
        "mean": (n_neurons,),
        "variance": (n_neurons,),
        "head": (n_accepted + n_neurons, n_outputs),
        "intercept": (n_outputs,),
    }
    for winner in (result.winner, result.rival):
        for name, shape in shapes.items() if winner is not None else ():
            array = getattr(winner, name)
            if array.shape != shape or array.dtype.kind != "f":
                raise ValueError(f"{name!r} has shape {array.shape} and type {array.dtype}, expected {shape}")


def _solve(draws: list[Draw], gathered: Gathered, settings: SearchSettings) -> _Problem:
    """Standardise the sums and solve every candidate for every ridge."""
    sums, constants = gathered.sums, gathered.provisional
    algebra, n = algebra_of(sums.gram), float(sums.weight)
    with np.errstate(all="ignore"):  # candidates that are not finite are not valid
        target_mean, accepted_mean = sums.target_total / n, sums.accepted_total / n
        centre = sums.total / n
        spread = (sums.gram.diagonal(0, 1, 2) / n - centre * centre).clip(min=0.0)
        scale = algebra.double(constants.scale)
        mean = constants.shift + centre / scale
        variance = spread / (scale * scale)
        # What turns a shifted, scaled feature into a standardised one.
        factor = 1.0 / (deviation(variance) * scale)
        # A block has its variances in single precision: a candidate of larger ones is not valid.
        factor = algebra.where(variance <= float(np.finfo(np.float32).max), factor, np.nan)
        gram = sums.gram - n * centre[:, :, None] * centre[:, None, :]
        gram *= factor[:, :, None] * factor[:, None]
        cross = (sums.cross - sums.accepted_total[:, None, None] * centre) * factor
        target = (sums.target - n * centre[:, :, None] * target_mean) * factor[:, :, None]
        accepted_gram = sums.accepted_gram - n * accepted_mean[:, None] * accepted_mean
        accepted_target = sums.accepted_target - n * accepted_mean[:, None] * target_mean
        total = float(sums.target_square - n * algebra.squares(target_mean[None])[0])

        def solve(ridge: float) -> tuple[ridge_module.Base, ridge_module.Schur]:
            with np.errstate(all="ignore"):
                base = ridge_module.factor_base(accepted_gram, accepted_target, total, n, ridge)
                return base, ridge_module.update(base, cross, gram, target)

        solved = run_all([partial(solve, ridge) for ridge in settings.ridges], settings.n_threads)
    bases, updates = (list(parts) for parts in zip(*solved, strict=True))
    return _Problem(draws, gathered, bases, updates, mean, variance, accepted_mean, target_mean)


def _stacked(arrays: Sequence[Array]) -> np.ndarray:
    return np.stack([algebra_of(array).host(array) for array in arrays])


def _scores(
    problem: _Problem,
    loss: np.ndarray,
    valid: np.ndarray,
    rival: np.ndarray,
    rows: Rows,
    validation: Rows | None,
    settings: SearchSettings,
) -> np.ndarray:
    """Scores (ridges, candidates), higher is better; -inf for what was not looked at."""
    if settings.score == "loss":
        return -loss
    weight = float(problem.gathered.sums.weight)
    gcv = _stacked([u.generalized_cross_validation(weight) for u in problem.updates])
    if settings.score == "gcv":
        return -gcv
    keep, where, cache = valid, rows, problem.gathered.cache
    if settings.score == "loo":
        keep = _best(gcv, SHORTLIST) | (_best(np.where(rival, gcv, np.inf), SHORTLIST // 8))
    elif validation is not None:
        where, cache = validation, None
    score = np.full_like(gcv, -np.inf)
    for r in range(len(problem.bases)):
        chosen = np.flatnonzero(keep[r])
        if chosen.size:
            score[r, chosen] = _predictive_scores(
                problem, r, Shortlist(problem.draws, chosen, cache), where, settings
            )
    return np.where(np.isfinite(score), score, -np.inf)


def _best(cost: np.ndarray, size: int) -> np.ndarray:
    """Mask of the ``size`` least finite costs."""
    keep = np.zeros(cost.size, dtype=bool)
    keep[np.argsort(cost, axis=None)[:size]] = True
    return keep.reshape(cost.shape) & np.isfinite(cost)


def _predictive_scores(
    problem: _Problem,
    r: int,
    shortlist: Shortlist,
    where: Rows,
    settings: SearchSettings,
) -> np.ndarray:
    """Leave-one-out error (negative) or accuracy of candidates, by a pass over ``where``."""
    base, solved, algebra = problem.bases[r], problem.updates[r], algebra_of(problem.mean)
    single, chosen = algebra.single, shortlist.chosen
    candidates = SolvedCandidates(
        single(problem.mean[chosen]),
        single(1.0 / deviation(problem.variance[chosen])),
        single(solved.projection[:, chosen]),
        single(solved.whiten[chosen]),
        single(solved.reduced[chosen]),
        single(problem.accepted_mean),
        single(problem.target_mean),
        single(base.head),
        base.whiten,
        base.weight,
    )
    score = partial(algebra.scores, candidates, settings.score == "loo")
    total = where.score(shortlist, score, settings.n_threads)
    return algebra.host(total / where.sample.total_weight)


def _draw_of(draws: Sequence[Draw], candidate: int) -> Draw:
    return next(d for d in draws if d.first <= candidate < d.first + len(d.sets))


def _winner(problem: _Problem, r: int, c: int, candidate: Candidate) -> Winner:
    solved, host = problem.updates[r], algebra_of(problem.mean).host
    old, new = host(solved.old_head[c]), host(solved.new_head[c])
    # Accepted features have mean zero only up to rounding; their means belong to the intercept.
    shift = native().multiply(host(problem.accepted_mean)[None], old)[0]
    return Winner(
        candidate,
        _draw_of(problem.draws, c).weight,
        host(problem.mean[c]),
        host(problem.variance[c]),
        np.concatenate([old, new]),
        host(problem.target_mean) - shift,
    )
