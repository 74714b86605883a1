"""How a network is computed: what growth asks of an engine, and the one of the host.

An engine brings a problem's rows to where it computes, trains candidates on them, and works on the matrices
of closed-form fits. `NativeEngine` is the engine in C on some threads; a GPU's is in `cuda_engine`. Both
leave to plain torch what only a user's own operators, losses or optimisers need.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from ..closed_form.matrices import HostMatrices, Matrices
from ..common.team import ALONE, Alone
from ..common.threads import Cores, single_threaded_libraries
from ..rows.chunks.chunk_rows import ChunkRows
from ..rows.interface import Rows
from ..rows.memory import MemoryRows
from ..rows.preparation import moments, scaled
from ..rows.problem import Problem
from ..training.candidates import Candidates
from ..training.native import NativeTrainer
from ..training.settings import TuningSettings, is_plain
from ..training.shared import SharedTrainer
from ..training.train import TrainedCandidates, Trainer, Training, train

__all__ = ["Engine", "NativeEngine"]

#: Bytes that the parameters and moments of candidates may take that are trained together.
_GROUP_BYTES = 1 << 28


class Engine(Protocol):
    """What growth needs computed."""

    @property
    def name(self) -> str:
        """By which checkpoints tell engines apart, whose networks differ in their last bits."""
        ...

    @property
    def matrices(self) -> Matrices:
        """What the closed-form fits do with rows."""
        ...

    def running(self) -> AbstractContextManager[None]:
        """What has to hold while a network grows."""
        ...

    def beside(self, n_networks: int, team: Alone) -> tuple[Self, int, int]:
        """For networks that grow side by side: their engine, how many at once, the most threads of each."""
        ...

    def member(self) -> AbstractContextManager[None]:
        """What holds from the first to the last step of one of them."""
        ...

    def moments(
        self, x: np.ndarray, rows: np.ndarray | None, weight: np.ndarray, team: Alone
    ) -> tuple[np.ndarray, np.ndarray]:
        """Weighted mean and scale of each column over some rows, of all ranks."""
        ...

    def prepared(self, problem: Problem, team: Alone) -> Problem:
        """A problem of the user's inputs, which have a scaling, as this engine takes it."""
        ...

    def rows(self, problem: Problem, team: Alone = ALONE) -> Rows:
        """A problem's own rows as those of the first layer."""
        ...

    def forget(self, problem: Problem) -> None:
        """Let go of what is held for a problem."""
        ...

    def trainer(self, candidates: Candidates, rows: Any, settings: TuningSettings, criterion: str) -> Trainer:
        """What trains candidates on rows."""
        ...

    def train(self, training: Training) -> TrainedCandidates:
        """Take candidates through their training, perhaps beside those of other networks that grow."""
        ...

    def group_size(self, candidates: Candidates, rows: Any, settings: TuningSettings) -> int:
        """How many such candidates can be trained together."""
        ...

    @property
    def spreads_over_workers(self) -> bool:
        """Whether rows can be handed to other processes."""
        ...


@dataclass(frozen=True)
class NativeEngine:
    """The engine in C, on some threads; ``cores`` are those of networks that grow side by side."""

    n_threads: int = 1
    cores: Cores | None = None
    name: ClassVar[str] = "cpu"
    spreads_over_workers: ClassVar[bool] = True
    train = staticmethod(train)

    @property
    def matrices(self) -> HostMatrices:
        return HostMatrices(self.n_threads)

    def running(self) -> AbstractContextManager[None]:
        return single_threaded_libraries()

    def beside(self, n_networks: int, team: Alone) -> tuple[NativeEngine, int, int]:
        if not team.alone:  # the ranks take their steps together
            return self, 1, self.n_threads
        # Networks side by side are quicker than threads within one, which get what is left.
        return NativeEngine(self.n_threads, Cores(self.n_threads)), self.n_threads, self.n_threads

    def member(self) -> AbstractContextManager[None]:
        return nullcontext() if self.cores is None else self.cores.task()

    def moments(
        self, x: np.ndarray, rows: np.ndarray | None, weight: np.ndarray, team: Alone
    ) -> tuple[np.ndarray, np.ndarray]:
        return moments(x, weight, rows=rows, team=team)

    def prepared(self, problem: Problem, team: Alone) -> Problem:
        x, rows, scaling = problem.x, problem.rows, problem.scaling
        assert scaling is not None
        inputs = team.together(lambda: scaled(x, scaling, "X or eval_set", rows))
        return replace(problem, x=inputs, rows=None, scaling=None)

    def rows(self, problem: Problem, team: Alone = ALONE) -> Rows:
        rows = MemoryRows.of(problem, self.n_threads, team)
        return rows if problem.chunks is None else ChunkRows(problem.chunks, rows, team=team)

    def forget(self, problem: Problem) -> None:
        """Nothing is held: the rows have all there is."""

    def trainer(
        self, candidates: Candidates, rows: Rows, settings: TuningSettings, criterion: str
    ) -> Trainer:
        counted = rows.team.alone or settings.epoch_score == "after"
        if not (candidates.compilable and is_plain(settings) and counted):
            from ..training.reference import ReferenceTrainer

            return ReferenceTrainer(candidates, rows, settings, criterion)
        make = NativeTrainer if rows.team.alone else SharedTrainer
        return make(candidates, rows, settings, criterion)

    def group_size(self, candidates: Candidates, rows: Rows, settings: TuningSettings) -> int:
        size = 4 * candidates.shapes[0].size * 4  # parameters, the best of them, and two moments
        return max(1, min(8 * self.n_threads, _GROUP_BYTES // size))
