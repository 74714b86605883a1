"""A population as batched tensor programs: all candidates' parameters are stacked, one step trains them all.

Slower than the compiled loop for one candidate, but it takes every operator, loss and optimiser that torch
can differentiate. A learning rate ends when no candidate of the batch has improved for ``patience`` epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import Event
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from .engines import TuningSettings, batch_bounds, make_optimizer, single
from .network import NORM_EPSILON
from .operators import OperatorSet
from .scores import Score, evaluate, row_losses

if TYPE_CHECKING:
    from .population import Member, Result, Start

__all__ = ["train_batched"]

#: Evaluations of nodal operators that are held at once. More candidates than these allow in a step are
#: trained in turns, and statistics and scores are taken in as many pieces as that needs.
_EVALUATIONS = 1 << 24


def train_batched(
    members: Sequence[Member],
    start: Start,
    train: Sequence[Tensor],
    settings: TuningSettings,
    criterion: str,
    seed: int,
    validation: Sequence[Tensor] | None,
    on_epoch: Callable[[], bool | None],
    ended: Event,
) -> Iterator[Result]:
    """Results of all candidates in their order.

    Rows are given as inputs (N, D), frozen features (N, F), targets (N, C) and weights (N,), on any device.
    Where ``on_epoch`` answers True, the candidates of that epoch are done; once ``ended`` is set, no further
    ones are begun.
    """
    largest = int(np.diff(batch_bounds(len(train[0]), settings.batch_size)).max())
    size = max(1, _EVALUATIONS // (largest * _evaluations(start)))
    for first in range(0, len(members), size):
        if ended.is_set():
            return
        batch = _Batch(members[first : first + size], start, train, settings, criterion, seed, validation)
        yield from batch.run(on_epoch)


def _evaluations(start: Start) -> int:
    """Evaluations that one row of one candidate needs at once, in the hidden layer or in the head."""
    return max(start.hidden.size, start.head.size)


class _Batch:
    def __init__(
        self,
        members: Sequence[Member],
        start: Start,
        train: Sequence[Tensor],
        settings: TuningSettings,
        criterion: str,
        seed: int,
        validation: Sequence[Tensor] | None,
    ) -> None:
        self.members, self.settings, self.criterion, self.seed = members, settings, criterion, seed
        self.device = train[0].device
        k, d, n_outputs = len(members), start.hidden.shape[1], start.head.shape[1]

        def stacked(values: np.ndarray) -> Tensor:
            repeated = torch.from_numpy(values).to(self.device).repeat(k, *([1] * values.ndim))
            return repeated.requires_grad_()

        zeros, ones = np.zeros(d, np.float32), np.ones(d, np.float32)
        self.hidden = [stacked(a) for a in (start.hidden, zeros, ones, zeros)]
        self.head = [stacked(a) for a in (start.head, np.zeros(n_outputs, np.float32))]
        self.parameters = [*self.hidden, *self.head]
        self.train = list(train)
        self.scored = list(train if validation is None else validation)
        self.validates = validation is not None
        self.bounds = batch_bounds(len(train[0]), settings.batch_size)
        self.piece = max(1, _EVALUATIONS // (k * _evaluations(start)))
        self.optimizer = self._optimizer()

    def _optimizer(self) -> torch.optim.Optimizer:
        decayed = [self.hidden[0], self.head[0]]
        plain = [*self.hidden[1:], self.head[1]]
        groups = [
            {"params": decayed, "weight_decay": self.settings.weight_decay},
            {"params": plain, "weight_decay": 0.0},
        ]
        return make_optimizer(self.settings, groups)

    def run(self, on_epoch: Callable[[], bool | None]) -> list[Result]:
        settings, k = self.settings, len(self.members)
        rng = np.random.default_rng(self.seed)
        generator = torch.Generator(self.device).manual_seed(self.seed)
        best = self._scores(self._moments())
        kept, epoch_of = self._flat(), np.zeros(k, int)
        skipped, done, ended = np.zeros(k, int), 0, False
        for rate, count in zip(settings.learning_rates, settings.epochs, strict=True):
            waited = 0
            for group in self.optimizer.param_groups:
                group["lr"] = rate
            for _ in range(count):
                if ended or (settings.patience is not None and waited >= settings.patience):
                    break
                order = torch.from_numpy(rng.permutation(len(self.train[0]))).to(self.device)
                moments, skips = self._epoch(order, generator)
                skipped += skips
                done, waited = done + 1, waited + 1
                now = self._scores(moments if self.validates else self._moments())
                flat = self._flat()
                for i in range(k):
                    if now[i].better_than(best[i]):
                        best[i], kept[i], epoch_of[i], waited = now[i], flat[i], done, 0
                ended = bool(on_epoch())
        return [(best[i], int(epoch_of[i]), done, int(skipped[i]), kept[i]) for i in range(k)]

    def _epoch(self, order: Tensor, generator: torch.Generator) -> tuple[tuple[Tensor, Tensor], np.ndarray]:
        """Train for one epoch; the mean statistics of its batches, and the batches each candidate skipped."""
        means, variances = [], []
        skipped = np.zeros(len(self.members), int)
        for first, last in zip(self.bounds[:-1], self.bounds[1:], strict=True):
            x, frozen, target, weight = (tensor[order[first:last]] for tensor in self.train)
            self.optimizer.zero_grad()
            outputs, mean, variance = self._forward(x, frozen, None, generator)
            k, n, c = outputs.shape
            losses = row_losses(self.settings.loss, outputs.reshape(k * n, c), target.repeat(k, 1))
            (losses.reshape(k, n) * weight).mean(dim=1).sum().backward()
            means.append(mean.detach())
            variances.append(variance.detach())
            skipped += self._step()
        every = torch.stack(means)
        spread = every.var(dim=0, correction=0)
        return (every.mean(dim=0), single(torch.stack(variances).mean(dim=0) + spread)), skipped

    @torch.no_grad()
    def _step(self) -> np.ndarray:
        """A step of the optimiser; which candidates skip it, because their gradient is not finite."""
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        bad = torch.zeros(len(self.members), dtype=torch.bool, device=self.device)
        for gradient in gradients:
            bad |= ~gradient.reshape(len(bad), -1).isfinite().all(dim=1)
        if bad.all():
            return bad.cpu().numpy().astype(int)
        before = {tensor.data_ptr(): tensor[bad] for tensor in self._state()} if bad.any() else {}
        for gradient in gradients:
            gradient[bad] = 0.0
        self.optimizer.step()
        self._limit_norms()
        if before:  # decay and momentum move without a gradient, too
            for tensor in self._state():
                tensor[bad] = before.get(tensor.data_ptr(), torch.zeros((), device=self.device))
        return bad.cpu().numpy().astype(int)

    def _state(self) -> list[Tensor]:
        """All that a step changes: parameters, and what the optimiser remembers of each of them."""
        remembered = [
            value
            for p in self.parameters
            for value in self.optimizer.state.get(p, {}).values()
            if isinstance(value, Tensor) and value.shape == p.shape
        ]
        return [*(p.detach() for p in self.parameters), *remembered]

    def _limit_norms(self) -> None:
        if self.settings.max_norm:
            norms = self.hidden[0].norm(dim=1, keepdim=True).clamp_min(1e-30)
            self.hidden[0].mul_((self.settings.max_norm / norms).clamp_max(1.0))

    def _forward(
        self,
        x: Tensor,
        frozen: Tensor,
        moments: tuple[Tensor, Tensor] | None,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Outputs (k, n, C), and the statistics (k, d) that the features were normalised with."""
        settings = self.settings
        weight, bias, scale, shift = self.hidden
        x = _dropout(x, settings.input_dropout, generator)
        raw = _features(x[None], weight, bias, [m.hidden for m in self.members])
        mean, variance = (raw.mean(dim=1), raw.var(dim=1, correction=0)) if moments is None else moments
        normal = (raw - mean[:, None]) / torch.sqrt(variance[:, None] + NORM_EPSILON)
        out = normal * scale[:, None] + shift[:, None]
        out = torch.cat([frozen.expand(len(out), *frozen.shape), out], dim=2)
        out = _dropout(out, settings.dropout, generator)
        head, head_bias = self.head
        operators = [m.head for m in self.members if m.head is not None]
        if not operators:
            return out @ head + head_bias[:, None], mean, variance
        return _features(out, head, head_bias, operators), mean, variance

    def _pieces(self, n_rows: int) -> list[slice]:
        return [slice(at, at + self.piece) for at in range(0, n_rows, self.piece)]

    @torch.no_grad()
    def _moments(self) -> tuple[Tensor, Tensor]:
        """Weighted statistics of the features over all training rows."""
        weight, bias, *_ = self.hidden
        sums = torch.zeros(2, *bias.shape, dtype=torch.float64, device=self.device)
        for rows in self._pieces(len(self.train[0])):
            x, share = self.train[0][rows], self.train[3][rows].double()
            raw = _features(x[None], weight, bias, [m.hidden for m in self.members]).double()
            sums += torch.stack([torch.einsum("n,knd->kd", share, v) for v in (raw, raw.square())])
        mean, square = sums / self.train[3].double().sum()
        return mean.float(), single((square - mean.square()).clamp_min(0.0))

    @torch.no_grad()
    def _scores(self, moments: tuple[Tensor, Tensor]) -> list[Score]:
        x, frozen, target, weight = self.scored
        pieces = [self._forward(x[rows], frozen[rows], moments)[0] for rows in self._pieces(len(x))]
        wanted, share = target.cpu().numpy(), weight.cpu().numpy()
        return [
            evaluate(self.criterion, self.settings.loss, out, wanted, share)
            for out in torch.cat(pieces, dim=1).cpu().numpy()
        ]

    def _flat(self) -> list[np.ndarray]:
        """Each candidate's parameters as one vector, in the order of `engines.Shape`."""
        parts = [p.detach().reshape(len(self.members), -1) for p in self.parameters]
        return list(torch.cat(parts, dim=1).cpu().numpy().copy())


def _features(x: Tensor, weight: Tensor, bias: Tensor, sets: Sequence[OperatorSet]) -> Tensor:
    """f(rho(psi(x, w)) + b) of all candidates: x (k or 1, n, D), weight (k, D, d) to (k, n, d)."""
    k, n = len(sets), x.shape[1]
    pooled: dict[int, Tensor] = {}
    for pair in dict.fromkeys((s.nodal, s.pool) for s in sets):
        chosen = [i for i, s in enumerate(sets) if (s.nodal, s.pool) == pair]
        inputs = x if x.shape[0] == 1 else x[chosen]
        z = sets[chosen[0]].nodal_operator.function(inputs[..., None], weight[chosen][:, None])
        flat = sets[chosen[0]].pool_operator.function(z.reshape(len(chosen) * n, *z.shape[2:]))
        pooled |= dict(zip(chosen, flat.reshape(len(chosen), n, -1), strict=True))
    shifted = [pooled[i] + bias[i] for i in range(k)]
    return torch.stack([s.activation_operator.function(v) for s, v in zip(sets, shifted, strict=True)])


def _dropout(x: Tensor, rate: float, generator: torch.Generator | None) -> Tensor:
    """Dropout with the same mask for all candidates; none without a generator."""
    if generator is None or rate <= 0:
        return x
    keep = torch.rand(x.shape[-2:], generator=generator, device=x.device) >= rate
    return x * keep / (1 - rate)
