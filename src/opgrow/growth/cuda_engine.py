"""The engine of a GPU: rows, training and closed-form fits on the device."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from copy import copy
from typing import ClassVar

import numpy as np
import torch

from ..closed_form.device_matrices import DeviceMatrices
from ..common.process import full_single_precision
from ..common.team import ALONE, Alone
from ..network.scaling import Scaling
from ..rows.device.budget import free_bytes, indexed
from ..rows.device.rows import DeviceRows
from ..rows.device.source import Source, device_moments
from ..rows.preparation import moments
from ..rows.problem import Problem
from ..training.candidates import Candidates
from ..training.cuda.meeting import Meeting
from ..training.cuda.training import DeviceTrainer
from ..training.settings import TuningSettings, is_plain
from ..training.train import TrainedCandidates, Trainer, Training, train

__all__ = ["CudaEngine"]

#: Share of the free memory that the candidates which are trained together may take.
_SHARE = 0.3


class CudaEngine:
    """Rows on a torch device, or streamed through it; kernels in Triton.

    Triton compiles each kernel as it is first needed, and keeps it on disk.
    """

    name: ClassVar[str] = "cuda"
    spreads_over_workers: ClassVar[bool] = False

    def __init__(self, device: torch.device) -> None:
        self.device = indexed(device)
        # Networks grow on threads, and if two of these begin the first decomposition on a GPU, torch fails.
        torch.linalg.cholesky(torch.eye(1, device=self.device))
        self.matrices = DeviceMatrices(self.device)
        self._sources: dict[int, tuple[Problem, Source]] = {}
        self._meeting: Meeting | None = None

    def beside(self, n_networks: int, team: Alone) -> tuple[CudaEngine, int, int]:
        if not team.alone:  # the ranks take their steps together
            return self, 1, 1
        other = copy(self)
        other._meeting = Meeting(n_networks)
        return other, n_networks, 1

    def member(self) -> AbstractContextManager[None]:
        return nullcontext() if self._meeting is None else self._meeting.member()

    def running(self) -> AbstractContextManager[None]:
        return full_single_precision()

    def moments(
        self, x: np.ndarray, rows: np.ndarray | None, weight: np.ndarray, team: Alone
    ) -> tuple[np.ndarray, np.ndarray]:
        if not team.alone:
            return moments(x, weight, rows=rows, team=team)
        return device_moments(x, rows, weight, self.device)

    def prepared(self, problem: Problem, team: Alone) -> Problem:
        """As it is: inputs are scaled on the way to the device."""
        return problem

    def rows(self, problem: Problem, team: Alone = ALONE) -> DeviceRows:
        held = self._sources.get(id(problem))
        if held is None:
            scaling = problem.scaling or Scaling.nothing(problem.n_inputs)
            source = Source(problem.x, problem.target, problem.weight, problem.rows, scaling, self.device)
            held = self._sources[id(problem)] = problem, source
        return DeviceRows(held[1], team=team, place=problem.place)

    def forget(self, problem: Problem) -> None:
        for part in (problem, problem.validation, problem.sketch):
            self._sources.pop(id(part), None)

    def trainer(
        self, candidates: Candidates, rows: DeviceRows, settings: TuningSettings, criterion: str
    ) -> Trainer:
        counted = settings.epoch_score == "after"  # the kernels do not count what a batch gets right
        if rows.team.alone and candidates.compilable and is_plain(settings) and counted:
            return DeviceTrainer(candidates, rows, settings, criterion)
        from ..training.reference import ReferenceTrainer

        fused = not rows.team.alone
        return ReferenceTrainer(candidates, rows, settings, criterion, self.device, fused)

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

    def group_size(self, candidates: Candidates, rows: DeviceRows, settings: TuningSettings) -> int:
        shape = candidates.shapes[0]
        window = min(16 * settings.batch_size, rows.n_rows)
        numbers = (
            8 * shape.size + window * (shape.n_features + 1) + 24 * settings.batch_size * shape.n_neurons
        )
        return max(1, int(_SHARE * free_bytes(self.device) / (4 * numbers)))
