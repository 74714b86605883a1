"""Closed-form heads: ridge regression from sufficient statistics that add over rows.

All features are standardised (weighted mean 0, variance 1), so the intercept is the weighted target mean
and is not penalised. For accepted features ``H`` and the new features ``h`` of a candidate,

    (H'WH + c I)  is factored once,
    S = h'Wh + c I - h'WH (H'WH + c I)^-1 H'Wh  is the candidate's Schur complement,

and everything that the search needs (head, losses, degrees of freedom, leverages) follows from S. Instead of
Cholesky factors their inverses are held, so that what is left to do are products of matrices. The functions
work on batches of candidates in float64, on numpy arrays and on torch tensors (`opgrow.engine.dispatch`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..common.errors import NotFiniteError
from ..engine.dispatch import Array, algebra_of

__all__ = ["Base", "Schur", "factor_base", "update"]


@dataclass(frozen=True)
class Base:
    """The accepted part of the problem, factored for one ridge.

    Attributes
    ----------
    whiten : (p, p) inverse of the lower Cholesky factor of H'WH + ridge I
    target : (p, C) H'W(Y - mean)
    reduced : (p, C) whiten times target
    head : (p, C) ridge solution with the accepted features alone
    total : float, weighted squared norm of the centred targets
    weight : float, sum of the row weights
    """

    whiten: Array
    target: Array
    reduced: Array
    head: Array
    total: float
    weight: float
    ridge: float

    @property
    def squared_error(self) -> float:
        """Squared error of the accepted features' own solution."""
        penalty = float(algebra_of(self.head).squares(self.head[None])[0])
        return max(self.objective - self.ridge * penalty, 0.0)

    @property
    def objective(self) -> float:
        """Squared error plus penalty at the optimum."""
        return self.total - float(algebra_of(self.head).sums((self.head * self.target)[None])[0])


@dataclass(frozen=True)
class Schur:
    """Candidates added to a base, each with m new features; k candidates.

    Attributes
    ----------
    projection : (p, k, m) what the accepted features explain of the new ones
    whiten : (k, m, m) inverse of the lower Cholesky factor of the Schur complement
    reduced : (k, m, C) whiten times the new features' residual targets
    new_head, old_head : (k, m, C) and (k, p, C)
    squared_error, objective, freedom : (k,) errors, errors plus penalty, effective parameters
    valid : (k,) False where the numbers were not finite or S not positive definite
    """

    projection: Array
    whiten: Array
    reduced: Array
    new_head: Array
    old_head: Array
    squared_error: Array
    objective: Array
    freedom: Array
    valid: Array

    def generalized_cross_validation(self, weight: float) -> Array:
        """Mean squared error, corrected for the effective number of parameters: (k,)."""
        left = (1 - self.freedom / weight).clip(min=1e-3)
        score = self.squared_error / weight / (left * left)
        return algebra_of(score).where(self.valid, score, np.inf)


def factor_base(gram: Array, target: Array, total: float, weight: float, ridge: float) -> Base:
    """Factor the accepted features' Gram matrix (p, p); p may be 0."""
    algebra = algebra_of(gram)
    for extra in (0.0, 1e-10, 1e-8, 1e-6):  # rounding can make a nearly singular matrix indefinite
        [whiten], exists = algebra.whiten(gram[None], ridge + extra * weight)
        if exists.all():
            break
    else:
        raise NotFiniteError("the Gram matrix of the accepted features has no Cholesky factor")
    reduced = algebra.product(whiten, target)
    head = algebra.product(whiten.T, reduced)
    return Base(whiten, target, reduced, head, total, weight, ridge)


def update(base: Base, cross: Array, gram: Array, target: Array) -> Schur:
    """Add each candidate's features to the base.

    Parameters
    ----------
    base : Base
    cross : (p, k, m) H'Wh
    gram : (k, m, m) h'Wh
    target : (k, m, C) h'W(Y - mean)
    """
    algebra, (p, k, m) = algebra_of(gram), cross.shape
    # A sum is finite only if all of its terms are; far cheaper than looking at every one.
    valid = algebra.finite(algebra.sums(cross.sum(0)) + algebra.sums(gram) + algebra.sums(target))
    if not valid.all():
        cross = algebra.where(valid[:, None], cross, 0.0)
        gram, target = (algebra.where(valid[:, None, None], array, 0.0) for array in (gram, target))
    projection = cross
    if p:
        reach = algebra.product(base.whiten, cross.reshape(p, k * m))
        projection = algebra.product(base.whiten.T, reach).reshape(p, k, m)
        reach = reach.reshape(p, k, m).swapaxes(0, 1)
        gram = gram - algebra.product(reach.swapaxes(1, 2), reach)
        target = target - algebra.product(reach.swapaxes(1, 2), base.reduced)
    whiten, exists = algebra.whiten(gram, base.ridge)
    turned = whiten.swapaxes(1, 2)
    reduced = algebra.product(whiten, target)
    new_head = algebra.product(turned, reduced)
    explained = projection.swapaxes(0, 1)
    old_head = base.head - algebra.product(explained, new_head)
    objective = base.objective - algebra.squares(reduced)
    penalty = algebra.squares(new_head) + algebra.squares(old_head)
    squared_error = (objective - base.ridge * penalty).clip(min=0.0)
    # Trace of (G + c I)^-1, by blocks: tr A^-1 + tr S^-1 (I + K'K).
    trace = algebra.squares(whiten)
    if p:
        trace = trace + algebra.squares(algebra.product(explained, turned))
        trace = trace + algebra.squares(base.whiten[None])
    freedom = 1 + p + m - base.ridge * trace
    valid = valid & exists & algebra.finite(squared_error)
    return Schur(projection, whiten, reduced, new_head, old_head, squared_error, objective, freedom, valid)
