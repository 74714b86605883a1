"""Heads that are solved anew for an exported program.

A head that was solved in closed form can have large weights of both signs that nearly cancel (BLS: millions).
They cancel on the features that the network computes, and not on those of small integers. So the head is
solved once more by ridge regression, from the features that the exported program computes to the outputs of
the network. The rounding of the features is part of what is solved, and the penalty keeps weights small
enough to be stored. It is solved on mixtures of calibration rows and not on these themselves, which would
agree better afterwards than others do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from .c_storage import STORAGES, Storage
from .program import LINEAR, Program, Step
from .ranges import usual_largest

__all__ = ["mixtures", "solved_heads"]

#: Penalties in units of the mean square of a feature.
PENALTIES = (1e-10, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2)
#: Rows for each feature that the head sees, and rows at least.
_ROWS_PER_FEATURE, _LEAST_ROWS = 10, 2000
#: Elements of rows x inputs x neurons at most, so that an export stays a matter of seconds.
_MOST_ELEMENTS = 1 << 25


def mixtures(program: Program, rows: np.ndarray) -> np.ndarray:
    """Rows on lines through two calibration rows, without those that are far from all others."""
    usual = (np.abs(rows) <= usual_largest(rows)).all(axis=1)
    rows = rows[usual] if usual.any() else rows
    wanted = max(_LEAST_ROWS, _ROWS_PER_FEATURE * program.head.n_inputs)
    affordable = _MOST_ELEMENTS // sum(step.weight.size for step in program.steps)
    count = max(len(rows), min(wanted, affordable))
    rng = np.random.default_rng(0)
    first, second = rng.integers(len(rows), size=(2, count))
    share = rng.uniform(-0.2, 1.2, (count, 1))
    return rows[first] + share * (rows[second] - rows[first])


def solved_heads(program: Program, seen: np.ndarray, outputs: np.ndarray, weights: str) -> Iterator[Step]:
    """Linear heads for features (n, n_features) as exported to outputs (n, n_outputs) as wanted.

    Where ``weights`` are integers, those of the heads are multiples of the unit that they will be stored in.
    """
    head = program.head
    if head.operators != LINEAR:
        return
    scale = np.ones(head.n_neurons) if head.scale is None else head.scale
    wanted = (outputs - (0 if head.shift is None else head.shift)) / scale
    centre, mean = seen.mean(axis=0), wanted.mean(axis=0)
    seen, wanted = seen - centre, wanted - mean
    values, vectors = np.linalg.eigh(seen.T @ seen)
    projected = vectors.T @ (seen.T @ wanted)
    unit = max(float(values.mean()), np.finfo(float).tiny)
    for penalty in PENALTIES:
        damped = np.maximum(values, 0) + penalty * unit
        solution = vectors @ (projected / damped[:, None])
        if weights != "float32":
            solution = _rounded(solution, (vectors / damped) @ vectors.T, STORAGES[weights])
        yield replace(head, weight=solution.T, bias=mean - centre @ solution)


def _rounded(solution: np.ndarray, inverse: np.ndarray, stored: Storage) -> np.ndarray:
    """Weights (n_features, n_outputs) rounded one after the other, each error made good by those that follow.

    ``inverse`` is that of the features' second moments: features that say nearly the same can stand in for
    each other (optimal brain surgeon, Hassibi and Stork 1993).
    """
    unit = np.maximum(stored.units(solution.T), np.finfo(float).tiny)
    try:
        factor = np.linalg.cholesky((inverse + inverse.T) / 2).T
    except np.linalg.LinAlgError:  # too close to singular to tell features apart
        return stored.rounded(solution / unit) * unit
    rest, rounded = solution.copy(), np.empty_like(solution)
    for i in range(len(rest)):
        rounded[i] = stored.rounded(rest[i] / unit) * unit
        rest[i + 1 :] -= np.outer(factor[i, i + 1 :], (rest[i] - rounded[i]) / factor[i, i])
    return rounded
