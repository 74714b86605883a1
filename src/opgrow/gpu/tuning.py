"""Tuning of a block or a network on a device: what `opgrow.tuning.tune` asks its session for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ..engines import Moments, ReferenceEngine, Shape, TuningSettings, fill, is_plain, single
from ..kernels import reference
from ..network import NORM_EPSILON, Head, Layer
from ..scores import Score
from .memory import shrinking
from .model import Model
from .rows import Chunk, DevicePart
from .scoring import score_rows, to_scores
from .steps import Trainer

__all__ = ["DeviceSession", "exact_moments"]


class DeviceSession:
    """The state of one tuning on a device."""

    def __init__(
        self,
        layers: Sequence[Layer],
        head: Head,
        train: DevicePart,
        validation: DevicePart | None,
        settings: TuningSettings,
        criterion: str,
    ) -> None:
        self.layers, self.head, self.train, self.settings = layers, head, train, settings
        self.scored, self.criterion = validation or train, criterion
        self.shape = Shape(layers, head, train.n_accepted)
        theta = torch.from_numpy(self.shape.flatten(layers, head)).to(train.device)
        self.theta = theta[None]
        self.plain = self.shape.compilable and is_plain(settings)
        self.model: Model | _ReferenceModel
        self.model = Model([self.shape], self.theta) if self.plain else _ReferenceModel(self.shape, theta)
        self._trainer: Trainer | None = None
        self._reference: ReferenceEngine | None = None
        self._moments: list[tuple[Tensor, Tensor]] = []
        self._best: tuple[Tensor, list[tuple[Tensor, Tensor]]] | None = None

    def epoch(self, rate: float, rng: np.random.Generator) -> tuple[float, int]:
        """Train for one epoch; the mean loss of its batches and the number of those skipped."""
        seed = int(rng.integers(1, 2**63))
        if not self.plain:
            return self._reference_epoch(rate, seed)
        rates = torch.full((1,), rate, dtype=torch.float64, device=self.train.device)

        def work() -> tuple[float, int]:
            trainer = self._trainer or Trainer(self.model, self.train, self.settings, seed)  # type: ignore[arg-type]
            self._trainer = None  # after a failure another one, with smaller chunks, goes on
            before = int(trainer.skipped[0])
            loss = float(trainer.epoch(rates)[0])
            self._trainer = trainer
            return loss, int(trainer.skipped[0]) - before

        return shrinking(self.train.budget, work, "tuning")

    def _reference_epoch(self, rate: float, seed: int) -> tuple[float, int]:
        if self._reference is None:
            self._reference = self._reference_engine()
        generator = torch.Generator(self.train.device).manual_seed(seed % 2**63)
        order = torch.randperm(self.train.n_rows, generator=generator, device=self.train.device)
        return self._reference.epoch(order, rate, seed)

    def _reference_engine(self) -> ReferenceEngine:
        return ReferenceEngine(self.shape, self.theta[0], self.train.tensors(), self.settings)

    def score(self) -> Score:
        """The score with statistics of all training rows."""
        self._moments = exact_moments(self.model, self.train)
        width = sum(int(w) for w in self.shape.widths)

        def outputs(chunk: Chunk) -> Tensor:
            return self.model.outputs(chunk.x, chunk.accepted, self._moments)

        found = score_rows(self.scored, self.criterion, self.settings.loss, outputs, 1, 16 * width)
        return to_scores(self.criterion, found)[0]

    def keep(self) -> None:
        """Remember the state that was scored last."""
        self._best = self.theta.clone(), self._moments

    def restore(self) -> None:
        """Write what is remembered into the modules."""
        assert self._best is not None
        theta, moments = self._best
        arrays = []
        for number, (mean, variance) in enumerate(moments):
            rows = self.shape.plan[self.shape.plan[:, 6] == number]
            for d, row in zip(rows[:, 4], rows[:, 7], strict=True):
                span = slice(int(row), int(row + d))
                arrays.append(Moments(mean[0, span].cpu().numpy(), variance[0, span].cpu().numpy()))
        self.shape.restore(theta[0].cpu().numpy(), arrays, self.layers, self.head)

    def kept(self) -> dict[str, np.ndarray]:
        """What is remembered, as arrays."""
        assert self._best is not None
        theta, moments = self._best
        means, variances = (torch.cat([pair[i][0] for pair in moments]) for i in range(2))
        named = {"best": theta[0], "means": means, "variances": variances}
        return {name: tensor.cpu().numpy() for name, tensor in named.items()}

    def moving(self) -> dict[str, np.ndarray] | None:
        """The state as it is, as arrays."""
        engine = self._trainer if self.plain else self._reference
        arrays = None if engine is None else engine.state()
        return None if arrays is None else {"theta": self.theta[0].cpu().numpy()} | arrays

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what another session has said."""
        device, widths = self.train.device, [int(width) for width in self.shape.widths]
        best, moments = np.empty(self.shape.size, np.float32), np.empty((2, sum(widths)), np.float32)
        for target, name in ((best, "best"), (moments[0], "means"), (moments[1], "variances")):
            fill(target, arrays, name)
        mean, variance = (torch.from_numpy(m).to(device)[None].split(widths, dim=1) for m in moments)
        self._best = torch.from_numpy(best).to(device)[None], list(zip(mean, variance, strict=True))
        if "theta" not in arrays:
            return
        theta = np.empty_like(best)
        fill(theta, arrays, "theta")
        self.theta[0].copy_(torch.from_numpy(theta))
        if self.plain:
            self._trainer = Trainer(self.model, self.train, self.settings, 0)  # type: ignore[arg-type]
            self._trainer.load(arrays)
        else:
            self._reference = self._reference_engine()
            self._reference.load(arrays)


class _ReferenceModel:
    """One candidate of any operators, as plain torch."""

    n_candidates = 1

    def __init__(self, shape: Shape, theta: Tensor) -> None:
        self.shape, self.theta = shape, theta
        self.layers = list(shape.widths)

    @torch.no_grad()
    def raw(self, number: int, x: Tensor) -> Tensor:
        views = self.shape.blocks(self.theta)[number]
        parts = [reference.features(x[0].T, v.weight, v.bias, v.operator_set).T for v in views]
        return torch.cat(parts)[None]

    def normalised(self, number: int, raw: Tensor, moments: tuple[Tensor, Tensor]) -> Tensor:
        views = self.shape.blocks(self.theta)[number]
        scale, shift = (torch.cat([getattr(v, name) for v in views]) for name in ("scale", "shift"))
        factor = scale / torch.sqrt(moments[1][0] + NORM_EPSILON)
        return raw * factor[:, None] + (shift - moments[0][0] * factor)[:, None]

    @torch.no_grad()
    def outputs(self, x: Tensor, frozen: Tensor, moments: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
        x = x[None]
        for number in range(len(self.layers)):
            x = self.normalised(number, self.raw(number, x), moments[number])
        features = torch.cat([frozen, x[0]])
        weight, bias = self.shape.head(self.theta)
        if self.shape.head_set is None:
            return (weight.T @ features + bias[:, None])[None]
        return reference.features(features.T, weight, bias, self.shape.head_set).T[None]


def exact_moments(model: Model | _ReferenceModel, part: DevicePart) -> list[tuple[Tensor, Tensor]]:
    """Weighted mean and variance (K, width) of each layer's features over all rows, a pass for each."""
    found: list[tuple[Tensor, Tensor]] = []
    for number, _ in enumerate(model.layers):
        width = int(model.shapes[0].widths[number] if isinstance(model, Model) else model.layers[number])

        def work(number: int = number, width: int = width) -> Tensor:
            sums = torch.zeros(2, model.n_candidates, width, dtype=torch.float64, device=part.device)
            size = part.chunk_rows(32 * model.n_candidates * width)
            for chunk in part.chunks(size, accepted=False):
                x = chunk.x[None]
                for below in range(number):
                    x = model.normalised(below, model.raw(below, x), found[below])
                raw = model.raw(number, x).double()
                sums[0] += raw @ chunk.weight.double()
                sums[1] += raw.square_() @ chunk.weight.double()
            return sums / part.total_weight

        mean, square = shrinking(part.budget, work, "taking statistics")
        found.append((mean.float(), single((square - mean.square()).clamp_min(0.0))))
    return found
