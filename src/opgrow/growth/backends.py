"""Where the rows of a problem are, and what is done with them there.

Growth speaks to a `Backend` and to the parts it hands out. The host's is below: numpy arrays, compiled
kernels, threads. A GPU's is in `opgrow.growth.cuda_backend`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from ..closed_form.matrices import HostMatrices, Matrices
from ..common.threads import single_threaded_libraries
from ..network import Block
from ..network.scaling import Scaling
from ..rows.memory import HostPart
from ..rows.preparation import moments, scaled
from ..rows.problem import Problem
from ..rows.search_sums import SearchRows
from ..training.candidates import Candidates
from ..training.native import NativeTrainer
from ..training.settings import TuningSettings, is_plain
from ..training.train import TrainedCandidates, Trainer, Training, train

__all__ = ["Backend", "HostBackend", "Part"]


class Part(Protocol):
    """Training or validation rows during the growth of one layer."""

    @property
    def n_inputs(self) -> int:
        """Inputs of the layer."""
        ...

    @property
    def n_accepted(self) -> int:
        """Features of the blocks that the layer has so far."""
        ...

    @property
    def n_outputs(self) -> int: ...

    def accept(self, block: Block) -> None:
        """Add a block to the layer."""
        ...

    def accept_computed(self, blocks: Sequence[Block], outputs: Any) -> None:
        """Add blocks to a layer without any; their outputs (N, d) are one of the backend's matrices."""
        ...

    def next_layer(self) -> Any:
        """The rows as the layer on top of the accepted blocks sees them."""
        ...

    def bare(self) -> Any:
        """The rows without the accepted blocks."""
        ...

    def remember(self, blocks: Sequence[Block], before: Any) -> None:
        """Put what blocks make of ``before``, the rows as the layer before sees them, beside the inputs."""
        ...

    def rows(self) -> SearchRows:
        """The rows as the search sees them."""
        ...

    def sample(
        self, block: Block, weight: np.ndarray, bias: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Outputs of a linear head on accepted and new features, targets and weights of the first rows."""
        ...

    @property
    def total_weight(self) -> float:
        """Of all rows, wherever they are."""
        ...

    @property
    def sample_part(self) -> Any:
        """Rows by which statistics and scores are taken while parameters change: some of them, or all."""
        ...

    def sum(self, function: Callable[[Any], np.ndarray], n_candidates: int, width: int) -> np.ndarray:
        """As `opgrow.training.train.Rows` has it."""
        ...


class Backend(Protocol):
    """What growth needs done with rows."""

    @property
    def spreads_over_workers(self) -> bool:
        """Whether parts can be handed to other processes."""
        ...

    @property
    def matrices(self) -> Matrices:
        """What the closed-form fits do with them."""
        ...

    def running(self) -> AbstractContextManager[None]:
        """What has to hold while a network grows."""
        ...

    def beside(self, n_networks: int) -> tuple[Any, int, int]:
        """For networks that grow side by side: their backend, how many at once, and the threads of each."""
        ...

    def member(self) -> AbstractContextManager[None]:
        """What holds from the first to the last step of one of them."""
        ...

    def moments(
        self, x: np.ndarray, rows: np.ndarray | None, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Weighted mean and scale of each column over some rows."""
        ...

    def problem(
        self,
        x: np.ndarray,
        rows: np.ndarray | None,
        target: np.ndarray,
        weight: np.ndarray,
        scaling: Scaling,
        validation: Problem | None,
    ) -> Problem:
        """The problem that some rows of the user's inputs make."""
        ...

    def part(self, problem: Problem) -> Any:
        """A problem's own rows as those of the first layer."""
        ...

    def forget(self, problem: Problem) -> None:
        """Let go of what is held for a problem."""
        ...

    def trainer(
        self, candidates: Candidates, train: Any, settings: TuningSettings, criterion: str
    ) -> Trainer:
        """What trains candidates on the rows of a part."""
        ...

    def train(self, training: Training) -> TrainedCandidates:
        """Take candidates through their training, perhaps beside those of other networks that grow."""
        ...

    def group_size(self, candidates: Candidates, train: Any, settings: TuningSettings) -> int:
        """How many such candidates can be trained together."""
        ...


#: Bytes that the parameters and moments of candidates may take that are trained together.
_GROUP_BYTES = 1 << 28


@dataclass(frozen=True)
class HostBackend:
    """Numpy arrays and the engine on some threads."""

    n_threads: int = 1
    spreads_over_workers: ClassVar[bool] = True

    @property
    def matrices(self) -> HostMatrices:
        return HostMatrices(self.n_threads)

    def running(self) -> AbstractContextManager[None]:
        return single_threaded_libraries()

    def beside(self, n_networks: int) -> tuple[HostBackend, int, int]:
        # Networks side by side, a thread for each, are quicker than threads within one.
        return HostBackend(1), self.n_threads, 1

    def member(self) -> AbstractContextManager[None]:
        return nullcontext()

    def moments(
        self, x: np.ndarray, rows: np.ndarray | None, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        return moments(x, weight, rows=rows)

    def problem(
        self,
        x: np.ndarray,
        rows: np.ndarray | None,
        target: np.ndarray,
        weight: np.ndarray,
        scaling: Scaling,
        validation: Problem | None,
    ) -> Problem:
        return Problem(scaled(x, scaling, "X or eval_set", rows), target, weight, validation)

    def part(self, problem: Problem) -> HostPart:
        nothing = np.zeros((len(problem.x), 0), np.float32)
        return HostPart(problem.x, nothing, problem.target, problem.weight, self.n_threads)

    def forget(self, problem: Problem) -> None:
        """Nothing is held: the parts have all there is."""

    def trainer(
        self, candidates: Candidates, train: Any, settings: TuningSettings, criterion: str
    ) -> Trainer:
        if candidates.compilable and is_plain(settings):
            return NativeTrainer(candidates, train, settings, criterion)
        from ..training.reference import ReferenceTrainer

        return ReferenceTrainer(candidates, train, settings, criterion)

    def train(self, training: Training) -> TrainedCandidates:
        return train(training)

    def group_size(self, candidates: Candidates, train: Any, settings: TuningSettings) -> int:
        size = 4 * candidates.shapes[0].size * 4  # parameters, the best of them, and two moments
        return max(1, min(8 * self.n_threads, _GROUP_BYTES // size))
