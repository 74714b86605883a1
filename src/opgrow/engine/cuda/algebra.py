"""Operations on matrices on a device, by torch; see `opgrow.engine.dispatch`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ..search import SolvedCandidates

__all__ = ["DeviceAlgebra"]


class DeviceAlgebra:
    """Torch tensors on any device."""

    def product(self, left: Tensor, right: Tensor) -> Tensor:
        return left @ right

    def whiten(self, matrices: Tensor, ridge: float) -> tuple[Tensor, Tensor]:
        identity = torch.eye(matrices.shape[-1], dtype=matrices.dtype, device=matrices.device)
        if not len(identity):
            return matrices, torch.ones(len(matrices), dtype=torch.bool, device=matrices.device)
        factor, info = torch.linalg.cholesky_ex(matrices + ridge * identity)
        exists = (info == 0) & factor.diagonal(dim1=-2, dim2=-1).sum(dim=-1).isfinite()
        if not exists.all():
            factor = torch.where(exists[:, None, None], factor, identity)
        return torch.linalg.solve_triangular(factor, identity, upper=False), exists

    def sums(self, values: Tensor) -> Tensor:
        return values.flatten(1).sum(dim=1)

    def squares(self, values: Tensor) -> Tensor:
        return values.square().flatten(1).sum(dim=1)

    def finite(self, values: Tensor) -> Tensor:
        return values.isfinite()

    def where(self, condition: Tensor, values: Tensor, otherwise: float) -> Tensor:
        return torch.where(condition, values, otherwise)

    def single(self, values: Tensor) -> Tensor:
        return values.to(torch.float32)

    def double(self, values: Tensor) -> Tensor:
        return values.double()

    def host(self, values: Tensor) -> np.ndarray:
        return values.cpu().numpy()

    def joined(self, arrays: Sequence[Tensor]) -> Tensor:
        return torch.cat(list(arrays))

    def scores(
        self, solved: SolvedCandidates, loo: bool, h: Tensor, accepted: Tensor, target: Tensor, weight: Tensor
    ) -> Tensor:
        s = solved
        standard = (h - s.centre[:, :, None]) * s.factor[:, :, None]
        accepted = accepted - s.accepted_mean
        explained = accepted @ s.head + s.target_mean
        if accepted.shape[1]:
            standard -= s.projection.permute(1, 2, 0) @ accepted.T
        reach = s.whiten @ standard  # (k, m, n): the new directions, uncorrelated
        if loo:
            leverage = torch.full((len(target),), 1.0 / s.total_weight, device=h.device)
            if accepted.shape[1]:
                old = s.base_whiten @ accepted.T.to(torch.float64)
                leverage += old.square().sum(dim=0).to(torch.float32)
            left = (1 - weight * (leverage + reach.square().sum(dim=1))).clamp_min(1e-2)  # (k, n)
        total = torch.empty(len(h), dtype=torch.float64, device=h.device)
        for i in range(len(h)):  # one candidate at a time: all predictions at once would be k x n x C
            outputs = torch.addmm(explained, reach[i].T, s.reduced[i])
            if loo:
                error = (target - outputs).square().sum(dim=1) / left[i].square()
                total[i] = -(weight * error).sum(dtype=torch.float64)
            else:
                hit = (outputs.argmax(dim=1) == target.argmax(dim=1)) & outputs.sum(dim=1).isfinite()
                total[i] = (weight * hit).sum(dtype=torch.float64)
        return total
