"""Experiments with many factors in few runs: the design, and what each factor does.

A design is a matrix of signs, a row for each run and a column for each factor with two levels. Columns are
products of an odd number of base columns, so that no factor's effect is mixed up with the interaction of two
others (resolution IV).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

__all__ = ["Effect", "main_effects", "resolution_four"]


def resolution_four(n_factors: int) -> np.ndarray:
    """The smallest fractional factorial of resolution IV: signs (runs, factors), runs a power of 2.

    Examples
    --------
    >>> resolution_four(4).shape, resolution_four(13).shape
    ((8, 4), (32, 13))
    """
    if n_factors < 1:
        raise ValueError(f"n_factors must be at least 1, got {n_factors}")
    n_base = 1
    while 2 ** (n_base - 1) < n_factors:
        n_base += 1
    base = np.array(list(product((-1, 1), repeat=n_base)))
    chosen = [columns for size in range(1, n_base + 1, 2) for columns in combinations(range(n_base), size)]
    return np.stack([base[:, list(columns)].prod(axis=1) for columns in chosen[:n_factors]], axis=1)


@dataclass(frozen=True)
class Effect:
    """What a level changes against the first level of its factor, with the standard error of that."""

    factor: str
    level: str
    effect: float
    error: float


def main_effects(
    runs: Sequence[Mapping[str, str]], response: Sequence[float], levels: Mapping[str, Sequence[str]]
) -> list[Effect]:
    """Least squares of a response on the levels of all factors, each against its factor's first level.

    Parameters
    ----------
    runs : the level of each factor, for each run
    response : a figure of each run
    levels : of each factor, the first one being the reference

    Returns
    -------
    effects : of every level but the first ones; errors are NaN where runs are no more than coefficients
    """
    names = [(factor, level) for factor, some in levels.items() for level in some[1:]]
    columns = [[float(run[factor] == level) for run in runs] for factor, level in names]
    design = np.array([[1.0] * len(runs), *columns]).T
    values = np.asarray(response, float)
    if design.shape[0] < design.shape[1] or np.linalg.matrix_rank(design) < design.shape[1]:
        raise ValueError(
            f"{design.shape[0]} runs do not tell the effects of {len(names)} levels apart; "
            "run more of the design"
        )
    coefficients = np.linalg.lstsq(design, values, rcond=None)[0]
    free = design.shape[0] - design.shape[1]
    residual = float(((values - design @ coefficients) ** 2).sum())
    variance = residual / free if free else float("nan")
    errors = np.sqrt(variance * np.diag(np.linalg.inv(design.T @ design)))
    return [
        Effect(*name, float(effect), float(error))
        for name, effect, error in zip(names, coefficients[1:], errors[1:], strict=True)
    ]
