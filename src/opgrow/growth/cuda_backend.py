"""The backend of a GPU: parts and training on the device."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from copy import copy
from typing import Any, ClassVar

import numpy as np
import torch

from ..closed_form.device_matrices import DeviceMatrices
from ..common.process import full_single_precision
from ..network.scaling import Scaling
from ..rows.device.memory import free_bytes, indexed
from ..rows.device.rows import DevicePart, Source, device_moments
from ..rows.problem import Problem
from ..training.candidates import Candidates
from ..training.cuda.meeting import Meeting
from ..training.cuda.training import DeviceTrainer
from ..training.settings import TuningSettings, is_plain
from ..training.train import TrainedCandidates, Trainer, Training, train

__all__ = ["DeviceBackend"]

#: Share of the free memory that the candidates which are trained together may take.
_SHARE = 0.3


class DeviceBackend:
    """Rows on a torch device, or streamed through it; kernels in Triton.

    Triton compiles each kernel as it is first needed, and keeps it on disk.
    """

    spreads_over_workers: ClassVar[bool] = False

    def __init__(self, device: torch.device) -> None:
        self.device = indexed(device)
        self.matrices = DeviceMatrices(self.device)
        self._sources: dict[int, tuple[Problem, Source]] = {}
        self._meeting: Meeting | None = None

    def beside(self, n_networks: int) -> tuple[DeviceBackend, int, int]:
        other = copy(self)
        other._meeting = Meeting(n_networks)
        return other, n_networks, 1

    def member(self) -> AbstractContextManager[None]:
        return nullcontext() if self._meeting is None else self._meeting.member()

    def running(self) -> AbstractContextManager[None]:
        return full_single_precision()

    def moments(
        self, x: np.ndarray, rows: np.ndarray | None, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        return device_moments(x, rows, weight, self.device)

    def problem(
        self,
        x: np.ndarray,
        rows: np.ndarray | None,
        target: np.ndarray,
        weight: np.ndarray,
        scaling: Scaling,
        validation: Problem | None,
    ) -> Problem:
        return Problem(x, target, weight, validation, rows, scaling)

    def part(self, problem: Problem) -> DevicePart:
        known = self._sources.get(id(problem))
        if known is None:
            scaling = problem.scaling or Scaling.nothing(problem.n_inputs)
            source = Source(problem.x, problem.target, problem.weight, problem.rows, scaling, self.device)
            known = self._sources[id(problem)] = problem, source
        return DevicePart(known[1])

    def forget(self, problem: Problem) -> None:
        for known in (problem, problem.validation):
            self._sources.pop(id(known), None)

    def trainer(
        self, candidates: Candidates, train: Any, settings: TuningSettings, criterion: str
    ) -> Trainer:
        if candidates.compilable and is_plain(settings):
            return DeviceTrainer(candidates, train, settings, criterion)
        from ..training.reference import ReferenceTrainer

        return ReferenceTrainer(candidates, train, settings, criterion, self.device)

    def train(self, training: Training) -> TrainedCandidates:
        try:
            return train(training) if self._meeting is None else self._meeting.train(training)
        except torch.cuda.OutOfMemoryError:
            pass
        # Outside of the handler, so that the failed work's tensors are gone.
        torch.cuda.empty_cache()
        raise MemoryError(
            f"the GPU ran out of memory while it trained {len(training.candidates)} candidates; free some, "
            "lower widths, n_min, n_step or batch_size, or use device='cpu'"
        )

    def group_size(self, candidates: Candidates, train: DevicePart, settings: TuningSettings) -> int:
        shape = candidates.shapes[0]
        window = min(16 * settings.batch_size, train.n_rows)
        numbers = (
            8 * shape.size + window * (shape.n_features + 1) + 24 * settings.batch_size * shape.n_neurons
        )
        return max(1, int(_SHARE * free_bytes(self.device) / (4 * numbers)))
