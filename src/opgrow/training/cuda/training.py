"""Candidates trained on a device: what `opgrow.training.train` asks a trainer for."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from ...rows.device.budget import shrinking
from ...rows.device.rows import Chunk, DeviceRows
from ...rows.device.scoring import score_sums
from ..candidates import Candidates, fill
from ..settings import TuningSettings
from ..updates import load_parameters
from .model import Model
from .steps import DeviceSteps

__all__ = ["DeviceTrainer", "JointSteps"]


class DeviceTrainer:
    """Candidates of equal sizes on a device, with built-in operators and losses, and Adam."""

    joins: ClassVar[bool] = True

    def __init__(
        self, candidates: Candidates, train: DeviceRows, settings: TuningSettings, criterion: str
    ) -> None:
        self.candidates, self.train, self.settings, self.criterion = candidates, train, settings, criterion
        self.model = Model(candidates.shapes, torch.from_numpy(candidates.theta).to(train.device))
        self._best = self.theta.clone()
        self._steps: DeviceSteps | None = None

    @property
    def theta(self) -> Tensor:
        return self.model.theta

    def epoch(self, rates: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        seed = int(rng.integers(1, 2**63))
        device_rates = torch.from_numpy(rates).to(self.train.device)

        def work() -> tuple[np.ndarray, np.ndarray]:
            steps = self._steps or self._new_steps(seed)
            self._steps = None  # after a failure another one, with smaller chunks, goes on
            before = steps.skipped.clone()
            losses = steps.epoch(device_rates, seed)
            self._steps = steps
            return losses.cpu().numpy(), (steps.skipped - before).cpu().numpy()

        return shrinking(self.train.budget, work, "training")

    def _new_steps(self, seed: int) -> DeviceSteps:
        return DeviceSteps(self.model, self.train, self.settings, seed, self.candidates.dropouts)

    def batch_accuracy(self) -> np.ndarray:
        """Not counted by the kernels: plain torch trains where epochs are scored during training."""
        return np.full(len(self.theta), np.nan)

    def batch_moments(self) -> np.ndarray:
        assert self._steps is not None
        layers = self._steps.batch_moments()
        return np.stack([torch.cat([pair[i] for pair in layers], dim=1).cpu().numpy() for i in range(2)])

    def _layers(self, moments: np.ndarray) -> list[tuple[Tensor, Tensor]]:
        """Statistics (2, K, neurons) as those of each layer."""
        on_device = torch.from_numpy(np.ascontiguousarray(moments)).to(self.train.device)
        widths = self.candidates.shapes[0].widths.tolist()
        return [(mean, variance) for mean, variance in on_device.split(widths, dim=2)]

    @torch.no_grad()
    def feature_sums(self, rows: Chunk, moments: np.ndarray, layer: int) -> np.ndarray:
        below, x = self._layers(moments), rows.x[None]
        for number in range(layer):
            x = self.model.normalised(number, self.model.raw(number, x), below[number])
        raw, weight = self.model.raw(layer, x).double(), rows.weight.double()
        total = raw @ weight
        return torch.stack([total, raw.square_() @ weight]).cpu().numpy()

    @torch.no_grad()
    def score_sums(self, rows: Chunk, moments: np.ndarray) -> np.ndarray:
        outputs = self.model.outputs(rows.x, rows.frozen, self._layers(moments))
        return score_sums(self.criterion, str(self.settings.loss), outputs, rows).cpu().numpy()

    def keep(self, which: np.ndarray) -> None:
        mask = torch.from_numpy(which).to(self.train.device)
        self._best = torch.where(mask[:, None], self.theta, self._best)

    def best(self) -> np.ndarray:
        return self._best.cpu().numpy()

    def use_best(self) -> None:
        self.theta.copy_(self._best)

    def state(self) -> dict[str, np.ndarray] | None:
        if self._steps is None:
            return None
        salt = {"salt": np.array([self._steps.seed])}
        return {"theta": self.theta.cpu().numpy()} | salt | self._steps.state()

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        if not load_parameters(self._best, self.theta, arrays):
            return
        salt = np.zeros(1, np.int64)
        fill(salt, arrays, "salt")
        self._steps = self._new_steps(int(salt[0]))
        self._steps.load(arrays)


class JointSteps:
    """Steps of several trainers as one batch: each keeps its rows, and all share one matrix of parameters."""

    def __init__(self, trainers: Sequence[DeviceTrainer], seed: int) -> None:
        self.trainers = list(trainers)
        theta = torch.cat([trainer.theta for trainer in trainers])
        self._share(theta)
        shapes = [shape for trainer in trainers for shape in trainer.candidates.shapes]
        dropouts = [dropout for trainer in trainers for dropout in trainer.candidates.dropouts]
        rows = [trainer.train for trainer in trainers for _ in trainer.candidates.shapes]
        self.steps = DeviceSteps(Model(shapes, theta), rows, trainers[0].settings, seed, dropouts)

    def _share(self, theta: Tensor) -> None:
        """Let the trainers see their rows of the common matrix."""
        for trainer, part in zip(self.trainers, theta.split(self.sizes), strict=True):
            trainer.model.theta = part

    @property
    def sizes(self) -> list[int]:
        return [len(trainer.candidates) for trainer in self.trainers]

    def only(self, places: Sequence[int]) -> JointSteps:
        """The steps of some of the trainers, which go on without the others."""
        bounds = np.cumsum([0, *self.sizes])
        chosen = np.concatenate([np.arange(bounds[i], bounds[i + 1]) for i in places])
        rows = torch.from_numpy(chosen).to(self.steps.model.theta.device)
        other = copy(self)
        other.trainers = [self.trainers[i] for i in places]
        model = Model([self.steps.model.shapes[i] for i in chosen], self.steps.model.theta[rows])
        other._share(model.theta)
        other.steps = self.steps.with_candidates(model, rows)
        return other

    def epoch(self, rates: Sequence[np.ndarray], seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Train all of them for one epoch: losses and skipped batches of each."""
        before = self.steps.skipped.clone()
        losses = self.steps.epoch(torch.from_numpy(np.concatenate(rates)).to(before.device), seed)
        skipped = (self.steps.skipped - before).cpu().numpy()
        ends = np.cumsum(self.sizes)[:-1]
        return list(zip(np.split(losses.cpu().numpy(), ends), np.split(skipped, ends), strict=True))
