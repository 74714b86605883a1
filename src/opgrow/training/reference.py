"""The same training as plain torch: for operators, losses and optimisers of users, and the tests' oracle.

All candidates go through a step as one batched tensor program, on any device. The gradient by all parameters
is one matrix (K, size), and Adam is written on it; an optimiser of the user's own gets each candidate's
parameters by themselves. On several ranks, the sums over a batch are sums over all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from ..common.team import Alone
from ..engine import differentiable
from ..engine.batch_norm import deviation
from ..engine.native import native
from ..engine.shards import FROZEN, HIDDEN, INPUTS
from ..operators import OperatorSet
from ..rows.interface import Rows
from .batches import BACKWARD, FORWARD, GRADIENT, Batch, batches_of
from .candidates import BlockParameters, Candidates
from .scores import evaluate, row_losses
from .settings import TuningSettings
from .updates import Adam, UsersOptimizer, load_parameters

__all__ = ["ReferenceTrainer", "tensors_of"]

#: Evaluations of nodal operators that are held at once; scores are taken in as many pieces as that needs.
_EVALUATIONS = 1 << 24


def tensors_of(rows: Any) -> list[Tensor]:
    """Inputs (n, D), frozen features (n, F), targets (n, C) and weights (n,) of rows on host or device."""
    parts = [torch.as_tensor(a) for a in (rows.x, rows.frozen, rows.target, rows.weight)]
    return [part.T for part in parts[:3]] + parts[3:] if rows.rows_last else parts


class ReferenceTrainer:
    """Candidates as tensors on the device of their rows.

    Parameters
    ----------
    fused : compute features by the compiled kernels where a candidate is alone, and not by plain torch
    """

    joins: ClassVar[bool] = False

    def __init__(
        self,
        candidates: Candidates,
        rows: Rows,
        settings: TuningSettings,
        criterion: str,
        device: torch.device | str = "cpu",
        fused: bool = False,
    ) -> None:
        self.candidates, self.settings, self.criterion, self.fused = candidates, settings, criterion, fused
        self.team, self.windows = rows.team, rows.windows()
        self.shape, self.device = candidates.shapes[0], torch.device(device)
        self.batches = batches_of(settings.batch_size, self.team)
        self.theta = torch.from_numpy(candidates.theta.copy()).to(self.device)
        self._best = self.theta.clone()
        self._moments = np.zeros((2, *self.theta.shape), np.float32)
        self._accuracy = np.zeros(len(self.theta))
        self.update: Adam | UsersOptimizer
        kind = UsersOptimizer if callable(settings.optimizer) else Adam
        self.update = kind(candidates, self.theta, settings)

    # --- training ---

    def epoch(self, rates: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        active = np.flatnonzero(rates)
        losses, skipped, n_batches = np.zeros(len(rates)), np.zeros(len(rates), int), 0
        self._accuracy = np.full(len(rates), np.nan)
        self._accuracy[active] = 0.0
        sums: list[Tensor] = []
        for window in self.windows(rng):
            tensors = tensors_of(window.rows)
            seed, batches = self.batches(window, rng)
            for batch in batches:
                gradient, loss, right, moments = self._gradient(active, tensors, batch, seed)
                finite = gradient.isfinite().all(dim=1)
                self.update(active, gradient, rates, finite)
                self._limit_norms(active, finite)
                losses[active] += loss
                self._accuracy[active] += right
                skipped[active] += ~finite.cpu().numpy()
                sums.append(moments)
                n_batches += 1
        self._accuracy /= n_batches
        self._note_moments(active, torch.stack(sums))
        return losses / n_batches, skipped

    def _note_moments(self, active: np.ndarray, batches: Tensor) -> None:
        """Statistics of the epoch: (batches, 2, active, neurons) to means and variances over all of them."""
        mean, variance = batches.mean(dim=0)
        variance = variance + batches[:, 0].var(dim=0, correction=0)
        moments = np.full((2, len(self.theta), self.shape.n_neurons), np.nan, np.float32)
        moments[:, active] = torch.stack([mean, variance]).cpu().numpy()
        self._moments = moments

    def batch_accuracy(self) -> np.ndarray:
        return self._accuracy

    def batch_moments(self) -> np.ndarray:
        return self._moments

    def _gradient(
        self, active: np.ndarray, tensors: Sequence[Tensor], batch: Batch, seed: int
    ) -> tuple[Tensor, np.ndarray, np.ndarray, Tensor]:
        """Gradients (active, size), losses and accuracies (active,), and moments (2, active, neurons)."""
        index = torch.from_numpy(batch.rows).to(self.device)
        x, frozen, target, weight = (tensor[index] for tensor in tensors)
        theta = self.theta[torch.from_numpy(active).to(self.device)].detach().requires_grad_()
        dropped = _Dropout(seed, batch.numbers, self._dropouts(active), self.device)
        moments: list[Tensor] = []

        def normalised(raw: Tensor, layer: int) -> Tensor:
            """Batch norm with the batch's own statistics, of all ranks."""
            values = raw.double()
            sums = torch.stack([values.sum(dim=1), values.square().sum(dim=1)])
            mean, square = (sums if self.team.alone else _Added.apply(sums, self.team)) / batch.count
            variance = (square - mean.square()).clamp_min(0.0)
            moments.append(torch.stack([mean, variance]).detach().float())
            return (raw - mean.float()[:, None]) / deviation(variance.float()[:, None])

        x = dropped(x[None], INPUTS, 0, [self.settings.input_dropout] * len(active))
        frozen = dropped(frozen[None], FROZEN, 0)
        outputs = self._outputs(active.tolist(), theta, x, frozen, normalised, dropped)
        k, n, c = outputs.shape
        losses = row_losses(self.settings.loss, outputs.reshape(k * n, c), target.repeat(k, 1)).reshape(k, n)
        shares = (losses * weight).sum(dim=1) / batch.count
        (gradient,) = torch.autograd.grad(shares.sum(), theta)
        told = [shares.detach()]
        if self.settings.epoch_score == "during":
            right = (outputs.detach().argmax(dim=2) == target.argmax(dim=1)) * weight
            told.append((right.sum(dim=1) / batch.count).to(gradient.dtype))
        sent = torch.cat([gradient, torch.stack(told, dim=1)], dim=1)
        if not self.team.alone:
            sent = self.team.add_(sent.double(), GRADIENT).to(sent.dtype)
        size = gradient.shape[1]
        loss, *counted = sent[:, size:].double().cpu().numpy().T
        accuracy = counted[0] if counted else np.full(len(loss), np.nan)
        return sent[:, :size], loss, accuracy, torch.cat(moments, dim=-1)

    def _dropouts(self, active: np.ndarray) -> list[float]:
        return [self.candidates.dropouts[k] for k in active]

    def _limit_norms(self, active: np.ndarray, finite: Tensor) -> None:
        """Bound the weights of candidates that have taken a step."""
        most = self.settings.max_norm
        if most:
            moved = torch.from_numpy(active).to(self.device)[finite]
            theta = self.theta[moved]
            for layer in self.shape.blocks(theta):
                for block in layer:
                    norms = block.weight.norm(dim=-2, keepdim=True).clamp_min(1e-30)
                    block.weight.mul_((most / norms).clamp_max(1.0))
            self.theta[moved] = theta

    # --- features and outputs ---

    def _outputs(
        self,
        which: Sequence[int],
        theta: Tensor,
        x: Tensor,
        frozen: Tensor,
        normalised: Callable[[Tensor, int], Tensor],
        dropped: Callable[..., Tensor] | None = None,
    ) -> Tensor:
        """Outputs (k, n, C) of some candidates for inputs and frozen features (1 or k, n, ...)."""
        n_done = 0
        for number, layer in enumerate(self.shape.blocks(theta)):
            x = self._layer(which, number, layer, x, normalised)
            x = x if dropped is None else dropped(x, HIDDEN, n_done)
            n_done += x.shape[2]
        x = torch.cat([frozen.expand(len(theta), *frozen.shape[1:]), x], dim=2)
        weight, bias = self.shape.head(theta)
        if self.shape.head_set is None:
            return x @ weight + bias[:, None]
        heads = [self.candidates.shapes[k].head_set for k in which]
        return self._features(x, weight, bias, [head for head in heads if head is not None])

    def _layer(
        self,
        which: Sequence[int],
        number: int,
        blocks: Sequence[BlockParameters],
        x: Tensor,
        normalised: Callable[[Tensor, int], Tensor],
    ) -> Tensor:
        """Normalised, scaled and shifted features (k, n, width) of a layer."""
        raw = self._raw(which, number, blocks, x)
        scale, shift = (torch.cat([getattr(b, name) for b in blocks], dim=1) for name in ("scale", "shift"))
        return normalised(raw, number) * scale[:, None] + shift[:, None]

    def _raw(self, which: Sequence[int], number: int, blocks: Sequence[BlockParameters], x: Tensor) -> Tensor:
        first = sum(len(layer) for layer in self.shape.blocks(self.theta)[:number])
        parts = [
            self._features(x, b.weight, b.bias, [self.candidates.shapes[k].sets[first + i] for k in which])
            for i, b in enumerate(blocks)
        ]
        return torch.cat(parts, dim=2)

    def _features(self, x: Tensor, weight: Tensor, bias: Tensor, sets: Sequence[OperatorSet]) -> Tensor:
        """f(rho(psi(x, w)) + b) of all candidates: x (1 or k, n, D), weight (k, D, d) to (k, n, d)."""
        if self.fused and len(sets) == 1:
            return differentiable.features(x[0], weight[0], bias[0], sets[0])[None]
        n = x.shape[1]
        pooled: dict[int, Tensor] = {}
        for pair in dict.fromkeys((s.nodal, s.pool) for s in sets):
            chosen = [i for i, s in enumerate(sets) if (s.nodal, s.pool) == pair]
            inputs = x if x.shape[0] == 1 else x[chosen]
            z = sets[chosen[0]].nodal_operator.function(inputs[..., None], weight[chosen][:, None])
            flat = sets[chosen[0]].pool_operator.function(z.reshape(len(chosen) * n, *z.shape[2:]))
            pooled |= dict(zip(chosen, flat.reshape(len(chosen), n, flat.shape[-1]), strict=True))
        shifted = [pooled[i] + bias[i] for i in range(len(sets))]
        return torch.stack([s.activation_operator.function(v) for s, v in zip(sets, shifted, strict=True)])

    # --- statistics and scores ---

    def _pieces(self, rows: Any) -> Iterator[list[Tensor]]:
        tensors = tensors_of(rows)
        widest = max([self.shape.n_features * self.shape.n_outputs, *(self.shape.plan[:, 3:5].prod(axis=1))])
        size = max(1, _EVALUATIONS // (len(self.theta) * int(widest)))
        for start in range(0, max(len(tensors[0]), 1), size):
            yield [tensor[start : start + size] for tensor in tensors]

    def _normalised_by(self, moments: np.ndarray) -> Callable[[Tensor, int], Tensor]:
        mean, variance = torch.from_numpy(np.ascontiguousarray(moments)).to(self.device)
        ends = np.cumsum(self.shape.widths).tolist()

        def normalised(raw: Tensor, layer: int) -> Tensor:
            span = slice(ends[layer] - raw.shape[2], ends[layer])
            return (raw - mean[:, None, span]) / deviation(variance[:, None, span])

        return normalised

    @torch.no_grad()
    def feature_sums(self, rows: Any, moments: np.ndarray, layer: int) -> np.ndarray:
        everyone, normalised = range(len(self.theta)), self._normalised_by(moments)
        blocks = self.shape.blocks(self.theta)
        width = int(self.shape.widths[layer])
        total = torch.zeros(2, len(self.theta), width, dtype=torch.float64, device=self.device)
        for x, _, _, weight in self._pieces(rows):
            x = x[None]
            for below in range(layer):
                x = self._layer(everyone, below, blocks[below], x, normalised)
            raw = self._raw(everyone, layer, blocks[layer], x).double()
            weights = weight.double()[:, None]
            total += torch.stack([(raw * weights).sum(dim=1), (raw.square() * weights).sum(dim=1)])
        return total.cpu().numpy()

    @torch.no_grad()
    def score_sums(self, rows: Any, moments: np.ndarray) -> np.ndarray:
        everyone, normalised = range(len(self.theta)), self._normalised_by(moments)
        total = np.zeros((4, len(self.theta)))
        for x, frozen, target, weight in self._pieces(rows):
            if not len(x):
                continue
            outputs = self._outputs(everyone, self.theta, x[None], frozen[None], normalised).cpu().numpy()
            wanted, weights = target.cpu().numpy(), weight.cpu().numpy()
            for k, out in enumerate(outputs):
                total[:, k] += self._sums(np.ascontiguousarray(out), np.ascontiguousarray(wanted), weights)
        return total

    def _sums(self, outputs: np.ndarray, target: np.ndarray, weight: np.ndarray) -> np.ndarray:
        result, total = (
            evaluate(self.criterion, self.settings.loss, outputs, target, weight),
            weight.sum(dtype=np.float64),
        )
        invalid = float(not np.isfinite(outputs).all())
        return np.array([result.value * total, result.loss * total, total, invalid])

    # --- the best state, and where training stands ---

    def keep(self, which: np.ndarray) -> None:
        mask = torch.from_numpy(which).to(self.device)
        self._best[mask] = self.theta[mask]

    def best(self) -> np.ndarray:
        return self._best.cpu().numpy().copy()

    def use_best(self) -> None:
        self.theta.copy_(self._best)

    def state(self) -> dict[str, np.ndarray] | None:
        arrays = self.update.state()
        return None if arrays is None else {"theta": self.theta.cpu().numpy()} | arrays

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        if load_parameters(self._best, self.theta, arrays):
            self.update.load(arrays)


class _Added(torch.autograd.Function):
    """The sum over ranks, of values forward and of their gradients backward."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, team: Alone) -> Tensor:
        ctx.team = team
        return team.add_(values.clone(), FORWARD)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return ctx.team.add_(grad.contiguous().clone(), BACKWARD), None


@dataclass(frozen=True)
class _Dropout:
    """Dropout as the engine has it: what is dropped follows from the numbers of rows and a seed."""

    seed: int
    numbers: np.ndarray
    rates: Sequence[float]
    device: torch.device

    def __call__(self, values: Tensor, side: int, first: int, rates: Sequence[float] | None = None) -> Tensor:
        """Values (1 or k, n, columns) times the factors of each candidate."""
        rates = self.rates if rates is None else rates
        if max(rates, default=0.0) <= 0 or not values.numel():
            return values
        columns, numbers = (first, values.shape[2]), np.ascontiguousarray(self.numbers, np.int64)
        made: dict[float, Tensor] = {}
        for rate in dict.fromkeys(rates):
            keep = native().keep(self.seed, side, numbers, columns, rate) if rate > 0 else None
            factors = torch.ones(values.shape[1:]) if keep is None else torch.from_numpy(keep)
            made[rate] = factors.to(self.device)
        if len(made) == 1:
            return values * made[rates[0]]
        return values * torch.stack([made[rate] for rate in rates])
