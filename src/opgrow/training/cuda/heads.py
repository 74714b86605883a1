"""A linear head and the loss in a training step."""

from __future__ import annotations

import torch
import triton
from torch import Tensor

from ...engine.cuda import triton_heads
from ...engine.cuda.pools import group_stride
from ..scores import Loss
from ..settings import LOSS_CODES
from .model import Model

__all__ = ["HeadPass"]

#: Outputs up to which a program has all of them for its rows; cuBLAS takes ten times as long for some such
#: shapes.
_FEW_OUTPUTS = 32
#: Rows up to which a program sums over all of them.
_FEW_ROWS = 512


class HeadPass:
    """From features to losses and gradients, for a batch of training.

    Attributes
    ----------
    outputs : (K, C, n) outputs and, once there is a loss, the gradient by them
    n_loss_tiles : parts of a batch that have a loss of their own
    """

    def __init__(self, model: Model, batch: int, loss: Loss) -> None:
        self.model, self.batch, self._loss = model, batch, LOSS_CODES[loss]  # type: ignore[index]
        self._has_few = model.head is None and model.n_outputs <= _FEW_OUTPUTS
        self._columns = max(16 if self._has_few else 1, triton.next_power_of_2(model.n_outputs))
        most = 16 if self._has_few else max(1, min(128, 4096 // self._columns))
        self._rows = most if self._has_few else min(most, triton.next_power_of_2(batch))
        self.n_loss_tiles = triton.cdiv(batch, self._rows)
        self.outputs = torch.empty(model.n_candidates, model.n_outputs, batch, device=model.theta.device)

    def linear(
        self, seen: Tensor, target: Tensor, weight: Tensor, losses: Tensor, grad: Tensor, slope: Tensor
    ) -> None:
        """Losses of a linear head on features and ones, gradients by its weights and by the tuned features.

        ``losses`` (K, tiles) and ``slope`` (K, d, n) receive them, ``grad`` those by the weights at their
        place in a candidate's row.
        """
        model = self.model
        matrix, by_matrix = model.head_matrix(model.theta), model.head_matrix(grad)
        if self._has_few:
            self._forward(seen, matrix, target, weight, losses, slope)
        else:
            _product(matrix.mT, seen, self.outputs)
            self.differentiate(target, weight, losses)
            _product(matrix[:, model.n_frozen : -1], self.outputs, slope)
        if self._has_few and self.batch <= _FEW_ROWS:
            self._by_weights(seen, by_matrix)
        else:
            _product(seen, self.outputs.mT, by_matrix)

    def _forward(
        self, seen: Tensor, matrix: Tensor, target: Tensor, weight: Tensor, losses: Tensor, slope: Tensor
    ) -> None:
        triton_heads.head_loss[(self.n_loss_tiles, self.model.n_candidates)](
            seen,
            matrix,
            target,
            weight,
            losses,
            self.outputs,
            slope,
            self.batch,
            seen.shape[1],
            self.model.n_outputs,
            self.model.n_frozen,
            seen.stride(0),
            seen.stride(1),
            matrix.stride(0),
            group_stride(target),
            target.stride(1),
            group_stride(weight),
            self.outputs.stride(0),
            slope.stride(0),
            KIND=self._loss,
            FEATURES=32,
            OUTPUTS=self._columns,
            ROWS=self._rows,
            num_warps=self._columns // 8,
        )

    def _by_weights(self, seen: Tensor, out: Tensor) -> None:
        triton_heads.head_gradient[(triton.cdiv(seen.shape[1], 16), self.model.n_candidates)](
            seen,
            self.outputs,
            out,
            self.batch,
            seen.shape[1],
            self.model.n_outputs,
            seen.stride(0),
            seen.stride(1),
            self.outputs.stride(0),
            out.stride(0),
            FEATURES=16,
            OUTPUTS=self._columns,
            ROWS=32,
            num_warps=self._columns // 8,
        )

    def differentiate(self, target: Tensor, weight: Tensor, losses: Tensor) -> None:
        """Put gradients in the place of outputs, for targets (1 or K, C, n) and weights (1 or K, n)."""
        triton_heads.loss_backward[(self.n_loss_tiles, self.model.n_candidates)](
            self.outputs,
            target,
            weight,
            losses,
            self.batch,
            self.model.n_outputs,
            self.outputs.stride(0),
            group_stride(target),
            target.stride(1),
            group_stride(weight),
            KIND=self._loss,
            OUTPUTS=self._columns,
            ROWS=self._rows,
        )


def _product(a: Tensor, b: Tensor, out: Tensor) -> None:
    """Matrix products of all candidates. For a single one, the libraries choose better without a batch."""
    if len(out) == 1:
        torch.mm(a[0], b[0], out=out[0])
    else:
        torch.bmm(a, b, out=out)
