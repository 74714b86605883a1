"""Where the rows of a problem are, and what is done with them there.

Growth speaks to a `Backend` and to the parts it hands out. The host's is below: numpy arrays, compiled
kernels, threads. A GPU's is in `opgrow.gpu.backend`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .checkpoints import Draft
from .engine.native import native
from .engines import TuningData, TuningSettings
from .kernels.threads import single_threaded_libraries
from .matrices import HostMatrices, Matrices
from .network import Block, Head, Layer
from .population import Member, Outcome, Start, Trained, train_population
from .preparation import moments, scaled
from .scaling import Scaling
from .statistics import Rows, SearchRows
from .tuning import HostSession, Session

__all__ = ["Backend", "HostBackend", "HostPart", "Part", "Problem", "block_outputs"]


def sample_rows(n_outputs: int) -> int:
    """Rows that decide how confident a closed-form head should be."""
    return max(500, min(20_000, 200_000 // n_outputs))


@dataclass(frozen=True)
class Problem:
    """Data to grow from: inputs (N, D), targets (N, outputs), weights (N,) with mean 1; all float32.

    Inputs are scaled, unless ``scaling`` is given: then they are as the user passed them, of any float type,
    and ``rows`` says which of them are meant (None: all).
    """

    x: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    validation: Problem | None = None
    rows: np.ndarray | None = None
    scaling: Scaling | None = None

    @property
    def n_rows(self) -> int:
        return len(self.target)

    @property
    def n_inputs(self) -> int:
        return self.x.shape[1]

    @property
    def n_outputs(self) -> int:
        return self.target.shape[1]


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


class Backend(Protocol):
    """What growth needs done with rows."""

    @property
    def matrices(self) -> Matrices:
        """What the closed-form fits do with them."""
        ...

    def running(self) -> AbstractContextManager[None]:
        """What has to hold while a network grows."""
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

    def session(
        self,
        layers: Sequence[Layer],
        head: Head,
        parts: Sequence[Any],
        settings: TuningSettings,
        criterion: str,
    ) -> Session:
        """Tuning of ``layers``, on top of a part's inputs, and of ``head``; scored on the last part."""
        ...

    def train_population(
        self,
        members: Sequence[Member],
        start: Start,
        parts: Sequence[Any],
        settings: TuningSettings,
        criterion: str,
        seed: int,
        on_outcome: Callable[[Outcome], bool | None],
        on_epoch: Callable[[], bool | None],
        draft: Draft,
    ) -> tuple[Trained, list[Outcome]]:
        """As `opgrow.population.train_population` has it."""
        ...


@dataclass
class HostPart:
    """Rows in the memory of the host.

    Attributes
    ----------
    x : (N, D) inputs of the layer; accepted : (N, F) standardised features of the blocks it has so far
    target : (N, outputs); weight : (N,); all float32
    """

    x: np.ndarray
    accepted: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    n_threads: int = 1

    @property
    def n_inputs(self) -> int:
        return self.x.shape[1]

    @property
    def n_accepted(self) -> int:
        return self.accepted.shape[1]

    @property
    def n_outputs(self) -> int:
        return self.target.shape[1]

    def rows(self) -> Rows:
        return Rows(self.x, self.accepted, self.target, self.weight)

    def tuning_data(self) -> TuningData:
        return TuningData(self.x, self.accepted, self.target, self.weight)

    def accept(self, block: Block) -> None:
        self.accepted = np.concatenate([self.accepted, block_outputs(block, self.x, self.n_threads)], axis=1)

    def accept_computed(self, blocks: Sequence[Block], outputs: np.ndarray) -> None:
        self.accepted = outputs

    def next_layer(self) -> HostPart:
        return HostPart(self.accepted, self.accepted[:, :0], self.target, self.weight, self.n_threads)

    def bare(self) -> HostPart:
        nothing = np.zeros((len(self.x), 0), np.float32)
        return HostPart(self.x, nothing, self.target, self.weight, self.n_threads)

    def remember(self, blocks: Sequence[Block], before: HostPart) -> None:
        seen = [block_outputs(block, before.x, self.n_threads) for block in blocks]
        self.x = np.concatenate([self.x, *seen], axis=1)

    def sample(
        self, block: Block, weight: np.ndarray, bias: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        x, accepted, target, share = (
            a[: sample_rows(self.n_outputs)] for a in (self.x, self.accepted, self.target, self.weight)
        )
        features = np.concatenate([accepted, block_outputs(block, x, self.n_threads)], axis=1)
        outputs = native().product(features, weight.astype(np.float32, order="C")) + bias.astype(np.float32)
        return outputs, target, share


@dataclass(frozen=True)
class HostBackend:
    """Numpy arrays and the engine on some threads."""

    n_threads: int = 1

    @property
    def matrices(self) -> HostMatrices:
        return HostMatrices(self.n_threads)

    def running(self) -> AbstractContextManager[None]:
        return single_threaded_libraries()

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

    def session(
        self,
        layers: Sequence[Layer],
        head: Head,
        parts: Sequence[HostPart],
        settings: TuningSettings,
        criterion: str,
    ) -> HostSession:
        data = [part.tuning_data() for part in parts]
        validation = data[1] if len(data) > 1 else None
        return HostSession(layers, head, data[0], validation, settings, criterion)

    def train_population(
        self,
        members: Sequence[Member],
        start: Start,
        parts: Sequence[HostPart],
        settings: TuningSettings,
        criterion: str,
        seed: int,
        on_outcome: Callable[[Outcome], bool | None],
        on_epoch: Callable[[], bool | None],
        draft: Draft,
    ) -> tuple[Trained, list[Outcome]]:
        data = [part.tuning_data() for part in parts]
        validation = data[1] if len(data) > 1 else None
        return train_population(
            members, start, data[0], settings, criterion, seed, validation, on_outcome, on_epoch, draft
        )


def block_outputs(block: Block, x: np.ndarray, n_threads: int) -> np.ndarray:
    """What a block hands on for rows of its inputs: (N, D) to (N, d)."""
    return block.outputs(x, n_threads)
