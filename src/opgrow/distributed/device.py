"""Tuning on the rows of all ranks, where each has them on a GPU.

The steps are plain torch over the Triton kernels; batches are large, so launches cost little beside them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ..engines import Moments, Shape, TuningSettings, fill, single
from ..kernels.differentiable import features
from ..network import NORM_EPSILON, Layer, Linear
from ..scores import CRITERIA, Score, evaluate
from ..tuning import pack_best, unpack_best
from .backend import ShardPart
from .reference import ShardReference

__all__ = ["ShardDeviceSession"]


class ShardDeviceSession:
    """As `ShardSession`; the rows of this rank have to fit on its GPU."""

    def __init__(
        self,
        layers: Sequence[Layer],
        head: Linear,
        parts: Sequence[ShardPart],
        settings: TuningSettings,
        criterion: str,
    ) -> None:
        self.layers, self.head, self.settings, self.criterion = layers, head, settings, criterion
        self.parts, self.group, train = parts, parts[0].group, parts[0]
        self.shape = Shape(layers, head, train.n_accepted)
        self.data = [part.inner.tensors() for part in parts]
        self.theta = torch.from_numpy(self.shape.flatten(layers, head)).to(self.data[0][0].device)
        self.engine = ShardReference(
            self.shape, self.theta, self.data[0], settings, self.group, train.numbers, train.total_rows, ()
        )
        self._moments: list[Moments] = []
        self._best: tuple[Tensor, list[Moments]] | None = None

    def epoch(self, rate: float, rng: np.random.Generator) -> tuple[float, int]:
        """Train for one epoch; the mean loss of its batches and the number of those skipped."""
        return self.engine.epoch(rate, int(rng.integers(1, 2**63)))

    @torch.no_grad()
    def score(self) -> Score:
        """The score with statistics of all training rows."""
        _, frozen, target, weight = self.data[-1]
        matrix, bias = self.shape.head(self.theta)
        outputs = torch.cat([frozen, self._features()], dim=1) @ matrix + bias
        arrays = (t.cpu().numpy() for t in (outputs, target, weight))
        here = evaluate(self.criterion, self.settings.loss, *arrays)
        share = float(weight.sum(dtype=torch.float64))
        sums = self.group.sum([here.value * share, here.loss * share], "scores of epochs")
        value, loss = sums / self.parts[-1].total_weight
        return Score(float(value), float(loss), CRITERIA[self.criterion])

    def _features(self) -> Tensor:
        """The last layer's features of the rows that are scored; notes the statistics on the way."""
        self._moments = []
        inputs, weight = [data[0] for data in self.data], self.data[0][3].double()
        for layer in self.shape.blocks(self.theta):
            raws = [
                torch.cat([features(x, b.weight, b.bias, b.operator_set) for b in layer], dim=1)
                for x in inputs
            ]
            values = raws[0].double()
            sums = torch.stack([weight @ values, weight @ values.square()])
            mean, square = self.group.sum_(sums, "statistics of features") / self.parts[0].total_weight
            variance = single((square - mean.square()).clamp_min(0.0))
            scale, shift = (torch.cat([getattr(b, name) for b in layer]) for name in ("scale", "shift"))
            factor = scale / torch.sqrt(variance + NORM_EPSILON)
            offset = shift - mean.float() * factor
            inputs = [raw * factor + offset for raw in raws]
            self._moments += _of_blocks(mean.float(), variance, [len(b.bias) for b in layer])
        return inputs[-1]

    def keep(self) -> None:
        """Remember the state that was scored last."""
        self._best = self.theta.clone(), self._moments

    def restore(self) -> None:
        """Write what rank 0 remembers into the modules."""
        assert self._best is not None
        theta, moments = self._best
        self.group.broadcast_(theta, "parameters")
        self.shape.restore(theta.cpu().numpy(), moments, self.layers, self.head)

    def kept(self) -> dict[str, np.ndarray]:
        """What is remembered, as arrays."""
        assert self._best is not None
        theta, moments = self._best
        return pack_best(theta.cpu().numpy(), moments)

    def moving(self) -> dict[str, np.ndarray] | None:
        """The state as it is, as arrays; None where an optimiser has more than those."""
        arrays = self.engine.state()
        return None if arrays is None else {"theta": self.theta.detach().cpu().numpy()} | arrays

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what another session of the same shape has said, on any number of ranks."""
        theta, moments = unpack_best(self.shape, arrays)
        self._best = torch.from_numpy(theta).to(self.theta.device), moments
        if "theta" in arrays:
            values = np.empty(self.shape.size, np.float32)
            fill(values, arrays, "theta")
            self.theta.data.copy_(torch.from_numpy(values))
            self.engine.load(arrays)


def _of_blocks(mean: Tensor, variance: Tensor, sizes: list[int]) -> list[Moments]:
    pairs = zip(mean.split(sizes), variance.split(sizes), strict=True)
    return [Moments(m.cpu().numpy(), v.cpu().numpy()) for m, v in pairs]
