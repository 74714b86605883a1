"""The backend of sources: training rows in chunks, validation rows in memory, kernels on the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..rows.chunks.limits import Plan
from ..rows.chunks.part import StreamPart
from ..rows.chunks.rows import TrainingRows
from ..rows.chunks.windows import Windows
from ..rows.problem import Problem
from ..training.candidates import Candidates
from ..training.settings import TuningSettings
from ..training.train import Trainer
from .backends import HostBackend

__all__ = ["StreamBackend", "StreamProblem"]


@dataclass(frozen=True)
class StreamProblem(Problem):
    """Data to grow from that is read in chunks; the arrays are a sample of it, or all if it is small."""

    training: TrainingRows | None = None

    @property
    def n_rows(self) -> int:
        assert self.training is not None
        return self.training.n_rows


@dataclass(frozen=True, kw_only=True)
class StreamBackend(HostBackend):
    """Rows that pass through in chunks, by a plan of what may be in memory."""

    spreads_over_workers: ClassVar[bool] = False
    plan: Plan

    def part(self, problem: Problem) -> Any:
        whole = super().part(problem)
        if isinstance(problem, StreamProblem):
            assert problem.training is not None
            return StreamPart(problem.training, whole)
        return whole

    def trainer(
        self, candidates: Candidates, train: Any, settings: TuningSettings, criterion: str
    ) -> Trainer:
        return super().trainer(candidates, self.windows(train), settings, criterion)

    def windows(self, train: StreamPart) -> Windows:
        """The windows in which rows are shuffled, as large as the plan allows."""
        columns = train.n_inputs + train.n_accepted + train.n_outputs + 1
        return Windows(train, self.plan.window_rows(columns))

    def moments(
        self, x: np.ndarray, rows: np.ndarray | None, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        raise NotImplementedError("the moments of a source come from its survey")
