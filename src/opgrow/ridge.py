"""Closed-form heads: ridge regression from sufficient statistics that add over rows.

All features are standardised (weighted mean 0, variance 1), so the intercept is the weighted target mean
and is not penalised. For accepted features ``H`` and the new features ``h`` of a candidate,

    (H'WH + c I)  is factored once,
    S = h'Wh + c I - h'WH (H'WH + c I)^-1 H'Wh  is the candidate's Schur complement,

and everything that the search needs (head, losses, degrees of freedom, leverages) follows from S. The
functions work on batches of candidates in float64.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .errors import NotFiniteError

__all__ = ["Base", "Schur", "factor_base", "update"]


@dataclass(frozen=True)
class Base:
    """The accepted part of the problem, factored for one ridge.

    Attributes
    ----------
    factor : (p, p) lower Cholesky factor of H'WH + ridge I
    target : (p, C) H'W(Y - mean)
    head : (p, C) ridge solution with the accepted features alone
    total : float, weighted squared norm of the centred targets
    weight : float, sum of the row weights
    """

    factor: Tensor
    target: Tensor
    head: Tensor
    total: float
    weight: float
    ridge: float

    @property
    def squared_error(self) -> float:
        """Squared error of the accepted features' own solution."""
        explained = (self.head * self.target).sum() + self.ridge * self.head.square().sum()
        return max(self.total - float(explained), 0.0)

    @property
    def objective(self) -> float:
        """Squared error plus penalty at the optimum."""
        return self.total - float((self.head * self.target).sum())


@dataclass(frozen=True)
class Schur:
    """Candidates added to a base, each with m new features; the leading dimension counts candidates.

    Attributes
    ----------
    projection : (k, p, m) what the accepted features explain of the new ones
    whiten : (k, m, m) inverse of the lower Cholesky factor of the Schur complement
    reduced : (k, m, C) whiten times the new features' residual targets
    new_head, old_head : (k, m, C) and (k, p, C)
    squared_error, objective, freedom : (k,) errors, errors plus penalty, effective parameters
    valid : (k,) False where the numbers were not finite or S not positive definite
    """

    projection: Tensor
    whiten: Tensor
    reduced: Tensor
    new_head: Tensor
    old_head: Tensor
    squared_error: Tensor
    objective: Tensor
    freedom: Tensor
    valid: Tensor

    def generalized_cross_validation(self, weight: float) -> Tensor:
        """Mean squared error, corrected for the effective number of parameters: (k,)."""
        left = (1 - self.freedom / weight).clamp_min(1e-3)
        score = self.squared_error / weight / left.square()
        return torch.where(self.valid, score, torch.inf)


def factor_base(gram: Tensor, target: Tensor, total: float, weight: float, ridge: float) -> Base:
    """Factor the accepted features' Gram matrix (p, p); p may be 0."""
    identity = torch.eye(gram.shape[0], dtype=gram.dtype, device=gram.device)
    for extra in (0.0, 1e-10, 1e-8, 1e-6):  # rounding can make a nearly singular matrix indefinite
        factor, good = _cholesky(gram + (ridge + extra * weight) * identity)
        if good:
            break
    else:
        raise NotFiniteError("the Gram matrix of the accepted features has no Cholesky factor")
    head = torch.cholesky_solve(target, factor) if gram.shape[0] else target
    return Base(factor, target, head, total, weight, ridge)


def update(base: Base, cross: Tensor, gram: Tensor, target: Tensor) -> Schur:
    """Add each candidate's features to the base.

    Parameters
    ----------
    base : Base
    cross : (k, p, m) H'Wh
    gram : (k, m, m) h'Wh
    target : (k, m, C) h'W(Y - mean)
    """
    k, p, m = cross.shape
    # A sum is finite only if all of its terms are; far cheaper than looking at every one.
    valid = sum(tensor.sum(dim=(1, 2)) for tensor in (cross, gram, target)).isfinite()  # type: ignore[union-attr]
    if not valid.all():
        cross, gram, target = (torch.where(valid[:, None, None], t, 0.0) for t in (cross, gram, target))
    identity = torch.eye(m, dtype=gram.dtype, device=gram.device)
    schur = gram + base.ridge * identity
    projection = cross
    if p:
        flat = cross.permute(1, 0, 2).reshape(p, k * m)
        projection = torch.cholesky_solve(flat, base.factor).reshape(p, k, m).permute(1, 0, 2)
        schur -= cross.mT @ projection
        target = target - projection.mT @ base.target
    factor, positive = _cholesky(schur)
    whiten = torch.linalg.solve_triangular(factor, identity, upper=False)
    reduced = whiten @ target
    new_head = whiten.mT @ reduced
    old_head = base.head - projection @ new_head
    objective = base.objective - reduced.square().sum(dim=(1, 2))
    penalty = new_head.square().sum(dim=(1, 2)) + old_head.square().sum(dim=(1, 2))
    squared_error = (objective - base.ridge * penalty).clamp_min(0.0)
    # Trace of (G + c I)^-1, by blocks: tr A^-1 + tr S^-1 (I + K'K).
    trace = whiten.square().sum(dim=(1, 2))
    if p:
        trace += (projection @ whiten.mT).square().sum(dim=(1, 2))
        trace += torch.cholesky_inverse(base.factor).diagonal().sum()
    freedom = 1 + p + m - base.ridge * trace
    valid = valid & positive & squared_error.isfinite()
    return Schur(projection, whiten, reduced, new_head, old_head, squared_error, objective, freedom, valid)


def _cholesky(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Cholesky factors of a batch, and which of them exist; the others are replaced by the identity."""
    if matrix.shape[-1] == 0:
        return matrix, torch.ones(matrix.shape[:-2], dtype=torch.bool, device=matrix.device)
    factor, info = torch.linalg.cholesky_ex(matrix)
    good = (info == 0) & factor.diagonal(dim1=-2, dim2=-1).sum(dim=-1).isfinite()
    if not good.all():
        identity = torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
        factor = torch.where(good[..., None, None], factor, identity)
    return factor, good
