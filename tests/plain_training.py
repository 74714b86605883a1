"""One candidate trained in double precision, slowly and by no code of the library but its operators.

The batches are those that trainers draw: an order of all rows and a seed for dropout, for each epoch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch

from opgrow.engine.native import native
from opgrow.network import NORM_EPSILON
from opgrow.training.scores import row_losses
from tests.networks import as_modules

INPUTS, FROZEN, HIDDEN = range(3)


@dataclass
class PlainTraining:
    """What came of it: the curves, the best parameters, and which of them have a clear gradient.

    Adam makes whole steps of gradients that are 0 but for rounding; such parameters cannot be compared.
    """

    losses: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    best_epoch: int = 0
    theta: np.ndarray = field(default_factory=lambda: np.zeros(0))
    clear: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))
    skipped: int = 0


class _Candidate:
    def __init__(self, layers, head, settings, dropout):
        layers, head = as_modules(layers, head)
        self.layers, self.head = [layer.double() for layer in layers], head.double()
        self.settings, self.dropout = settings, dropout
        blocks = [block for layer in self.layers for block in layer.blocks]
        self.groups = [part for b in blocks for part in (b.weight, b.bias, b.norm.weight, b.norm.bias)] + [
            head.weight,
            head.bias,
        ]
        decayed = [*(b.weight for b in blocks), head.weight]
        others = [p for p in self.groups if all(p is not d for d in decayed)]
        groups = [{"params": decayed, "weight_decay": settings.weight_decay}, {"params": others}]
        self.optimizer = torch.optim.Adam(groups, eps=1e-7)

    def flat(self, of=lambda parameter: parameter):
        parts = [of(p).detach() for p in self.groups]
        if isinstance(self.head, torch.nn.Linear):
            parts[-2] = parts[-2].T
        return np.concatenate([part.reshape(-1).numpy() for part in parts])

    def outputs(self, x, frozen, norm, dropped=lambda values, side, first: values):
        """``norm`` says mean and variance of a layer's features."""
        x, frozen, done = dropped(x, INPUTS, 0), dropped(frozen, FROZEN, 0), 0
        for number, layer in enumerate(self.layers):
            raw = torch.cat([block.features(x) for block in layer.blocks], dim=1)
            mean, variance = norm(number, raw)
            scale, shift = (
                torch.cat([getattr(b.norm, name) for b in layer.blocks]) for name in ("weight", "bias")
            )
            x = dropped((raw - mean) / torch.sqrt(variance + NORM_EPSILON) * scale + shift, HIDDEN, done)
            done += x.shape[1]
        return self.head(torch.cat([frozen, x], dim=1))

    def train_epoch(self, tensors, rng, rate):
        """Mean loss, skipped batches, and the statistics of each layer's batches."""
        n, size = len(tensors[0]), self.settings.batch_size
        order, n_batches = rng.permutation(n), -(-n // size)
        seed, losses, skipped = int(rng.integers(1, 2**63)), [], 0
        moments = [[] for _ in self.layers]
        for b in range(n_batches):
            numbers = order[b * n // n_batches : (b + 1) * n // n_batches]
            x, frozen, target, weight = (tensor[torch.from_numpy(numbers)] for tensor in tensors)

            def norm(layer, raw):
                statistics = raw.mean(dim=0), raw.var(dim=0, correction=0)
                moments[layer].append([part.detach() for part in statistics])
                return statistics

            def dropped(values, side, first, numbers=numbers):
                drop = self.settings.input_dropout if side == INPUTS else self.dropout
                if drop == 0 or not values.shape[1]:
                    return values
                keep = native().keep(seed, side, numbers, (first, values.shape[1]), drop)
                return values * torch.from_numpy(keep).double()

            outputs = self.outputs(x, frozen, norm, dropped)
            loss = (row_losses(self.settings.loss, outputs, target) * weight).mean()
            losses.append(loss.item())
            self.optimizer.zero_grad()
            loss.backward()
            if not all(torch.isfinite(p.grad).all() for p in self.groups):
                skipped += 1
                continue
            for group in self.optimizer.param_groups:
                group["lr"] = rate
            self.optimizer.step()
            self._limit_norms()
        return float(np.mean(losses)), skipped, moments

    @torch.no_grad()
    def _limit_norms(self):
        most = self.settings.max_norm
        for block in (block for layer in self.layers for block in layer.blocks):
            norms = block.weight.norm(dim=0)
            if most:
                block.weight.mul_(torch.where(norms > most, most / norms, 1.0))

    @torch.no_grad()
    def score(self, train, scored, moments=None):
        """Mean loss with statistics of all training rows, or of batches."""
        known = []
        for layer in moments or ():
            means, variances = (torch.stack([pair[i] for pair in layer]) for i in range(2))
            known.append((means.mean(dim=0), variances.mean(dim=0) + means.var(dim=0, correction=0)))

        def norm(layer, raw):
            share = train[3][:, None] / train[3].sum()
            mean = (raw * share).sum(dim=0)
            return mean, ((raw - mean).square() * share).sum(dim=0)

        def note(layer, raw):
            known.append(norm(layer, raw))
            return known[-1]

        if moments is None:
            self.outputs(*train[:2], note)
        outputs = self.outputs(*scored[:2], lambda layer, raw: known[layer])
        losses = row_losses(self.settings.loss, outputs, scored[2])
        return float((losses * scored[3]).sum() / scored[3].sum())


def plain_training(layers, head, rows, settings, scored=None, seed=0, dropout=None, exact=True):
    """The whole schedule; the criterion is the loss."""
    candidate = _Candidate(layers, head, settings, settings.dropout if dropout is None else dropout)
    train, judged = (
        [torch.from_numpy(a).double() for a in (r.x, r.accepted, r.target, r.weight)]
        for r in (rows, scored or rows)
    )
    rng, result = np.random.default_rng(seed), PlainTraining()
    result.scores.append(candidate.score(train, judged))
    result.theta = candidate.flat()
    for rate, epochs in zip(settings.learning_rates, settings.epochs, strict=True):
        waited = 0
        for _ in range(epochs):
            if waited == settings.patience:
                break
            loss, skipped, moments = candidate.train_epoch(train, rng, rate)
            score = candidate.score(train, judged, None if exact else moments)
            waited += 1
            if score < min(result.scores):
                result.best_epoch, result.theta, waited = len(result.scores), candidate.flat(), 0
            result.losses.append(loss)
            result.scores.append(score)
            result.skipped += skipped
    state = candidate.optimizer.state
    if state:
        second = candidate.flat(lambda p: state[p]["exp_avg_sq"].sqrt())
        largest = candidate.flat(lambda p: state[p]["exp_avg_sq"].sqrt().max().expand_as(p))
        result.clear = second > np.maximum(1e-2 * largest, 1e-5)
    return result
