"""Which differences between models are more than chance: ranks and tests.

The tests follow J. Demšar, Statistical Comparisons of Classifiers over Multiple Data Sets, JMLR 7 (2006):
Wilcoxon's signed-rank test for a pair of models, with Holm's correction where one reference meets several
models; Friedman's test with Nemenyi's for all pairs. They ask for independent pairs. Datasets are; splits of
one dataset share rows, so that a p-value over splits is smaller than it should be.

A run that did not finish has the score NaN. It says nothing about a paired difference and leaves its pair
out; where models are ranked, not finishing is the worst that a model can do.

Accuracies are ratios of small integers, and many of their differences are equal but for the last bits.
Ranks would tell those apart, so what differs by no more than rounding counts as equal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

__all__ = [
    "Comparison",
    "CriticalDifference",
    "average_ranks",
    "critical_difference",
    "holm",
    "wilcoxon_holm",
]

#: Scores by model, one for each split or dataset, in the same order for every model.
Scores = Mapping[str, Sequence[float] | np.ndarray]

#: Scores closer than this, relative to their size, are equal.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Comparison:
    """One model against the reference on the same splits or datasets."""

    model: str
    mean_difference: float  # the model's score less the reference's; NaN if no pair is left
    wins: int  # pairs in which the model is better than the reference
    ties: int
    losses: int
    p: float
    p_holm: float
    significant: bool
    left_out: int = 0  # pairs with a run that did not finish


@dataclass(frozen=True)
class CriticalDifference:
    """Average ranks of models, and which of them Nemenyi's test cannot tell apart."""

    ranks: tuple[tuple[str, float], ...]  # models with their average ranks, the best first
    cd: float  # average ranks that differ by this much are significantly different
    groups: tuple[tuple[str, ...], ...]  # maximal sets of two or more models without significant differences
    friedman: float  # chi-squared statistic, corrected for ties
    friedman_p: float
    iman_davenport: float  # F statistic
    iman_davenport_p: float
    n_datasets: int
    alpha: float
    unfinished: int = 0  # runs that did not finish and took the worst rank


def wilcoxon_holm(
    scores: Scores, reference: str, alpha: float = 0.05, higher_is_better: bool = True
) -> list[Comparison]:
    """Test every other model against a reference, two-sided, with Holm's correction.

    Zero differences are ranked and then dropped (Pratt). P-values are exact where scipy computes them so.
    Without any difference, or without any pair, p is 1.

    Parameters
    ----------
    scores
        One score for each split or dataset, by model; NaN where a run did not finish.
    reference
        The model that all others are compared with.
    alpha
        The chance of any false alarm among all comparisons.
    higher_is_better
        Whether a win is a higher score.

    Returns
    -------
    list of Comparison
        One for each other model, in the order of ``scores``.

    Examples
    --------
    >>> scores = {"old": [0.70, 0.61, 0.83, 0.55, 0.90, 0.77], "new": [0.72, 0.66, 0.84, 0.58, 0.94, 0.83]}
    >>> (found,) = wilcoxon_holm(scores, reference="old")
    >>> found.wins, found.losses, found.p, found.significant
    (6, 0, 0.03125, True)
    """
    table = _table(scores)
    _check_alpha(alpha)
    if reference not in scores:
        raise ValueError(f"unknown reference {reference!r}; known are: {', '.join(scores)}")
    rows = dict(zip(scores, table, strict=True))
    base = rows.pop(reference)
    paired = [_differences(row, base) for row in rows.values()]
    p = np.array([_wilcoxon(d) for d in paired])
    comparisons = []
    for (model, row), d, p_one, p_holm in zip(rows.items(), paired, p, holm(p), strict=True):
        above, below = int((d > 0).sum()), int((d < 0).sum())
        wins, losses = (above, below) if higher_is_better else (below, above)
        both = ~np.isnan(row - base)
        comparisons.append(
            Comparison(
                model,
                float((row - base)[both].mean()) if both.any() else float("nan"),
                wins,
                len(d) - above - below,
                losses,
                float(p_one),
                float(p_holm),
                bool(p_holm <= alpha),
                int((~both).sum()),
            )
        )
    return comparisons


def holm(p: Sequence[float] | np.ndarray) -> np.ndarray:
    """Holm's adjusted p-values, in the order given: at most ``alpha`` where the step-down test rejects.

    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1)
    return adjusted


def average_ranks(table: Scores, alpha: float = 0.05, higher_is_better: bool = True) -> CriticalDifference:
    """Rank the models on every dataset, and find out which average ranks differ.

    Rank 1 is the best, equal scores share their ranks, and runs that did not finish share the worst ones.
    The groups stand for Nemenyi's test alone; if Friedman's test finds nothing, neither should the reader.

    Parameters
    ----------
    table
        One score for each dataset, by model; NaN where a run did not finish.
    alpha
        The level of Nemenyi's test.
    higher_is_better
        Whether the best score is the highest.

    Examples
    --------
    >>> found = average_ranks({"a": [0.9, 0.8, 0.7], "b": [0.8, 0.9, 0.6], "c": [0.1, 0.2, 0.3]})
    >>> [(model, round(rank, 2)) for model, rank in found.ranks]
    [('a', 1.33), ('b', 1.67), ('c', 3.0)]
    >>> found.groups
    (('a', 'b', 'c'),)
    """
    scores = _table(table)
    n_models, n_datasets = scores.shape
    if n_datasets < 2:
        raise ValueError(f"ranks need at least 2 datasets, got {n_datasets}")
    cd = critical_difference(n_models, n_datasets, alpha)
    ranks = np.array([_ranks(column if higher_is_better else -column) for column in scores.T])
    averages = zip(table, ranks.mean(axis=0).tolist(), strict=True)
    ordered = tuple(sorted(averages, key=lambda pair: (pair[1], pair[0])))
    friedman, iman_davenport = _friedman(ranks)
    freedom = n_models - 1
    return CriticalDifference(
        ordered,
        cd,
        _groups(ordered, cd),
        friedman,
        float(stats.chi2.sf(friedman, freedom)),
        iman_davenport,
        float(stats.f.sf(iman_davenport, freedom, freedom * (n_datasets - 1))),
        n_datasets,
        alpha,
        int(np.isnan(scores).sum()),
    )


def critical_difference(n_models: int, n_datasets: int, alpha: float = 0.05) -> float:
    """Nemenyi's critical difference of average ranks: q √(k (k + 1) / 6N) for k models on N datasets.

    The q of Demšar's Table 5 is the studentized range over infinitely many samples, divided by √2.

    >>> round(critical_difference(4, 14), 2)
    1.25
    """
    if n_models < 2 or n_datasets < 1:
        raise ValueError(
            "a critical difference needs at least 2 models and 1 dataset, "
            f"got n_models={n_models} and n_datasets={n_datasets}"
        )
    _check_alpha(alpha)
    q = stats.studentized_range.ppf(1 - alpha, n_models, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_models * (n_models + 1) / (6 * n_datasets)))


def _table(scores: Scores) -> np.ndarray:
    """The scores as an array (models, splits or datasets), after all checks."""
    if len(scores) < 2:
        raise ValueError(f"a comparison needs at least 2 models, got {len(scores)}")
    rows = {model: np.asarray(values, dtype=np.float64) for model, values in scores.items()}
    first = next(iter(rows))
    for model, row in rows.items():
        if row.ndim != 1 or not len(row):
            raise ValueError(f"scores are a sequence of numbers, got an array {row.shape} for {model!r}")
        if len(row) != len(rows[first]):
            raise ValueError(
                "every model needs one score for each split or dataset, "
                f"got {len(rows[first])} for {first!r} and {len(row)} for {model!r}"
            )
        if np.isinf(row).any():
            raise ValueError(f"scores are finite, or NaN where a run did not finish, got inf for {model!r}")
    return np.array(list(rows.values()))


def _check_alpha(alpha: float) -> None:
    if not 0 < alpha < 1:
        raise ValueError(f"alpha lies between 0 and 1, got {alpha}")


def _merged(values: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Values (n,), those equal that differ by no more than the rounding of numbers as large as ``scale``."""
    order = np.argsort(values, kind="stable")
    ordered, scale = values[order], scale[order]
    new = np.diff(ordered, prepend=-np.inf) > _ROUNDING * np.maximum(scale, np.roll(scale, 1))
    merged = np.empty_like(values)
    merged[order] = ordered[new][np.cumsum(new) - 1]
    return merged


def _differences(scores: np.ndarray, base: np.ndarray) -> np.ndarray:
    """Differences of the pairs that both finished, freed of rounding."""
    both = ~np.isnan(scores - base)
    d = (scores - base)[both]
    scale = np.maximum(np.abs(scores), np.abs(base))[both]
    d[np.abs(d) <= _ROUNDING * scale] = 0
    return np.sign(d) * _merged(np.abs(d), np.where(d == 0, 0, scale))


def _wilcoxon(d: np.ndarray) -> float:
    return float(stats.wilcoxon(d, zero_method="pratt").pvalue) if d.any() else 1.0


def _ranks(scores: np.ndarray) -> np.ndarray:
    """Ranks (models,) on one dataset, 1 for the highest score."""
    finished = ~np.isnan(scores)
    ranks = np.full(len(scores), (finished.sum() + 1 + len(scores)) / 2)
    there = scores[finished]
    ranks[finished] = stats.rankdata(-_merged(there, np.abs(there)))
    return ranks


def _friedman(ranks: np.ndarray) -> tuple[float, float]:
    """Friedman's chi-squared, corrected for ties, and Iman and Davenport's F, of ranks (datasets, models)."""
    n_datasets, n_models = ranks.shape
    centred = ranks - (n_models + 1) / 2
    if not centred.any():
        return 0.0, 0.0
    largest = n_datasets * (n_models - 1)
    statistic = float((n_models - 1) * (centred.sum(axis=0) ** 2).sum() / (centred**2).sum())
    rest = largest - statistic
    return statistic, (n_datasets - 1) * statistic / rest if rest > _ROUNDING * largest else float("inf")


def _groups(ranks: Sequence[tuple[str, float]], cd: float) -> tuple[tuple[str, ...], ...]:
    """Maximal runs of at least two models whose ends differ by less than the critical difference."""
    groups: list[tuple[str, ...]] = []
    reached = 1
    for start, (_, rank) in enumerate(ranks):
        end = start + sum(other - rank < cd for _, other in ranks[start:])
        if end > reached and end - start > 1:
            groups.append(tuple(name for name, _ in ranks[start:end]))
            reached = end
    return tuple(groups)
