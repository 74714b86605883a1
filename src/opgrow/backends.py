"""Where the rows of a problem are, and what is done with them there.

Growth speaks to a `Backend` and to the parts it hands out. The host's is below: numpy arrays, compiled
kernels, threads. A GPU's is in `opgrow.gpu.backend`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np

from .engine import training
from .engine.native import native
from .kernels.threads import single_threaded_libraries, stream
from .matrices import HostMatrices, Matrices
from .network import Block
from .preparation import moments, scaled
from .scaling import Scaling
from .statistics import Rows, SearchRows
from .training.candidates import Candidates
from .training.native import NativeTrainer
from .training.settings import TuningSettings, is_plain
from .training.train import TrainedCandidates, Trainer, Training, train

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


#: Rows that are summed at once, whatever the number of threads.
_PIECE_ROWS = 4096
#: Bytes that the parameters and moments of candidates may take that are trained together.
_GROUP_BYTES = 1 << 28


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
    _window: training.Rows | None = field(default=None, init=False, repr=False, compare=False)
    _pieces: list[training.Rows] | None = field(default=None, init=False, repr=False, compare=False)

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

    @property
    def total_weight(self) -> float:
        return float(self.weight.sum(dtype=np.float64))

    @property
    def sample_part(self) -> HostPart:
        return self

    def training_rows(self, rows: slice = slice(None)) -> training.Rows:
        """Some rows as the engine trains on them."""
        arrays = (self.x, self.accepted, self.target, self.weight)
        return training.Rows(*(np.ascontiguousarray(array[rows]) for array in arrays))

    def windows(self, rng: np.random.Generator) -> Iterator[training.Rows]:
        """All rows, as one window: the same one until a block is accepted."""
        if self._window is None:
            self._window = self.training_rows()
        yield self._window

    def spans(self) -> list[slice]:
        """The rows in pieces that are summed by themselves."""
        n = len(self.x)
        return [slice(start, min(start + _PIECE_ROWS, n)) for start in range(0, n, _PIECE_ROWS)]

    def sum(
        self, function: Callable[[training.Rows], np.ndarray], n_candidates: int, width: int
    ) -> np.ndarray:
        return sum(self._sums(function, n_candidates))  # type: ignore[return-value]

    def _sums(
        self, function: Callable[[training.Rows], np.ndarray], n_candidates: int
    ) -> Iterator[np.ndarray]:
        """A function of each piece, in their order."""
        if self._pieces is None:
            self._pieces = [self.training_rows(span) for span in self.spans()]
        tasks = [partial(function, piece) for piece in self._pieces]
        return stream(tasks, self.n_threads if n_candidates == 1 and len(tasks) > 1 else 1)

    def accept(self, block: Block) -> None:
        self._add(block_outputs(block, self.x, self.n_threads))

    def _add(self, outputs: np.ndarray) -> None:
        self._change(self.x, np.concatenate([self.accepted, outputs], axis=1))

    def _change(self, x: np.ndarray, accepted: np.ndarray) -> None:
        self.x, self.accepted, self._window, self._pieces = x, accepted, None, None

    def accept_computed(self, blocks: Sequence[Block], outputs: np.ndarray) -> None:
        self._change(self.x, outputs)

    def next_layer(self) -> HostPart:
        return HostPart(self.accepted, self.accepted[:, :0], self.target, self.weight, self.n_threads)

    def bare(self) -> HostPart:
        nothing = np.zeros((len(self.x), 0), np.float32)
        return HostPart(self.x, nothing, self.target, self.weight, self.n_threads)

    def remember(self, blocks: Sequence[Block], before: HostPart) -> None:
        seen = [block_outputs(block, before.x, self.n_threads) for block in blocks]
        self._change(np.concatenate([self.x, *seen], axis=1), self.accepted)

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
        from .training.reference import ReferenceTrainer

        return ReferenceTrainer(candidates, train, settings, criterion)

    def train(self, training: Training) -> TrainedCandidates:
        return train(training)

    def group_size(self, candidates: Candidates, train: Any, settings: TuningSettings) -> int:
        size = 4 * candidates.shapes[0].size * 4  # parameters, the best of them, and two moments
        return max(1, min(8 * self.n_threads, _GROUP_BYTES // size))


def block_outputs(block: Block, x: np.ndarray, n_threads: int) -> np.ndarray:
    """What a block hands on for rows of its inputs: (N, D) to (N, d)."""
    return block.outputs(x, n_threads)
