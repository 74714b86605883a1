"""BLS, the broad learning system (Chen and Liu 2018), as the paper compares with it.

Two hidden layers, both of which the head sees: feature nodes, random maps of the input of which the first
windows are fine-tuned as sparse autoencoders, and enhancement nodes, random sigmoids of all the feature nodes
there are. Only the head is fitted, by ridge regression, and what a growth step adds extends it exactly. A map
with bias is an array whose last row is the bias, as in the method's formulas [X 1] W.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

import numpy as np

from ...closed_form.admm import sparse_code
from ...closed_form.incremental_ridge import IncrementalRidge, feature_moments
from ...closed_form.matrices import HOST, Matrices, Matrix
from ...engine.native import native
from ...network import Block, Layer, Linear
from ...operators import PERCEPTRON, OperatorSet
from ...rows.interface import WholeRows
from ...training.scores import Score
from ..events import GrowthStep, PhaseStarted
from ..footprints.bls import BroadFootprint
from ..loop import GrownLayer, Growth, Method
from ..settings import GrowthSettings
from .registry import declared

__all__ = ["BLS", "BroadGrowth", "BroadSettings", "orthonormal", "sparse_map"]

#: Deviation of an enhancement node's argument over the training rows; the original, too, shrinks it to 0.8.
SHRINK = 0.8


@dataclass(frozen=True, kw_only=True)
class BroadSettings(GrowthSettings):
    """Sizes, threshold and regularisation.

    Attributes
    ----------
    n_min, n_step, max_neurons : nodes of the first step, of every further one and at most, in each layer
    window_size : feature nodes that are drawn, and at first fine-tuned, together
    ridges : penalties of the head on standardised features; the first step chooses from several
    mu, admm_iterations : of the sparse autoencoders, as `opgrow.closed_form.admm.sparse_code` takes them
    feature_activation : "sigmoid", the paper's, or "identity", the original's
    """

    n_min: int = 40
    n_step: int = 20
    max_neurons: int = 300
    window_size: int = 10
    block_threshold: float = 1e-4
    ridges: tuple[float, ...] = (1.0,)
    mu: float = 1e-3
    admm_iterations: int = 500
    feature_activation: str = "sigmoid"


@dataclass(frozen=True)
class _Trial:
    """Nodes with their head; a step makes another one, which is kept or thrown away as a whole.

    Attributes
    ----------
    windows, enhancements : blocks of the two layers
    enhancing : (p,) which of all nodes, in the order in which they were added, are enhancement nodes
    columns : (N, p) values of all nodes in that order, of the training and then the validation rows
    regression : on the training rows
    weight, intercept : (p, C) and (C,) its solution in single precision, in that order
    """

    windows: list[Block]
    enhancements: list[Block]
    enhancing: np.ndarray
    columns: list[Matrix]
    regression: IncrementalRidge
    weight: np.ndarray
    intercept: np.ndarray

    @property
    def width(self) -> int:
        return sum(block.n_neurons for block in self.windows)

    def head(self) -> Linear:
        """The head of the network, which sees the first layer's nodes before those of the second."""
        head = Linear(*self.weight.shape)
        order = np.argsort(self.enhancing, kind="stable")
        head.weight, head.bias = self.weight[order].astype(np.float32), self.intercept.astype(np.float32)
        return head

    def n_parameters(self) -> int:
        hidden = sum(block.n_parameters() for block in [*self.windows, *self.enhancements])
        return hidden + self.weight.size + self.intercept.size


@dataclass(frozen=True)
class _GrownBroad(GrownLayer):
    """Feature nodes as the layer, and the enhancement nodes on top of them."""

    enhancements: Layer

    @property
    def n_neurons(self) -> int:
        return self.layer.n_neurons + self.enhancements.n_neurons


@dataclass(frozen=True)
class _Maps:
    """Maps (D + 1, window) of the windows of a step."""

    maps: list[np.ndarray]


class BroadGrowth(Growth):
    """Growth of feature and enhancement nodes at the same time."""

    broad = True
    footprint = BroadFootprint
    settings: BroadSettings

    def grow_layer(self, number: int, parts: list[WholeRows]) -> GrownLayer:
        settings = self.settings
        current: _Trial | None = None
        score: Score | None = None
        for step_number in count(1):
            width = 0 if current is None else current.width
            size = min(settings.n_step if width else settings.n_min, settings.max_neurons - width)
            if size <= 0 or (score is not None and self.enough(score)):
                break
            n_parameters = partial(self._n_parameters, current)
            if current is None:
                size = self.first_size(size, n_parameters)
            elif self.stopped is not None or not self.room_for(n_parameters(size)):
                break
            self.emit(PhaseStarted("search", number, step_number, 1))
            clock = self.journal.clock()
            trial = self._widen(current, step_number, size, parts)
            step = self._step(step_number, trial, parts, score, 2 * size, clock)
            self._record(step)
            if not step.accepted:
                break
            current, score = trial, step.score
        assert current is not None
        assert score is not None
        return _GrownBroad(Layer(current.windows), current.head(), score, Layer(current.enhancements))

    def layers_with(self, grown: GrownLayer) -> list[Layer]:
        assert isinstance(grown, _GrownBroad)
        return [grown.layer, grown.enhancements]

    def _n_parameters(self, current: _Trial | None, size: int) -> int:
        """Parameters of the network with so many more nodes of each kind."""
        width = size + (0 if current is None else current.width)
        new = size * (self.problem.n_inputs + 1) + size * (width + 1)
        layers = [] if current is None else [current.windows, current.enhancements]
        return self.n_parameters_with(layers, new, 2 * width)

    def _step(
        self,
        number: int,
        trial: _Trial,
        parts: list[WholeRows],
        before: Score | None,
        n_neurons: int,
        clock: float,
    ) -> GrowthStep:
        """The record of a step, and so its decision."""
        head, criterion = (trial.weight, trial.intercept), self.settings.criterion
        scores = [
            self.engine.matrices.score(part, columns, *head, criterion)
            for part, columns in zip(parts, trial.columns, strict=True)
        ]
        score = scores[-1]
        improvement = None if before is None else score.improvement_over(before)
        return GrowthStep(
            "block",
            1,
            number,
            improvement is None or improvement >= self.settings.block_threshold,
            score,
            improvement,
            trial.n_parameters(),
            operator_set=PERCEPTRON,
            n_neurons=n_neurons,
            search_seconds=self.journal.clock() - clock,
            train_loss=scores[0].loss,
        )

    def _widen(self, current: _Trial | None, number: int, size: int, parts: list[WholeRows]) -> _Trial:
        """Add feature nodes and then, on top of all of these, enhancement nodes; extend the regression."""
        matrices = self.engine.matrices
        windows = self._windows(number, size, parts[0])
        new = [self._values(windows, matrices.inputs(part)) for part in parts]
        features = new
        if current is not None:
            before = [matrices.columns(columns, ~current.enhancing) for columns in current.columns]
            features = [matrices.beside(pair) for pair in zip(before, new, strict=True)]
        target, weight = matrices.labels(parts[0])
        enhancement = self._enhancement(number, size, features[0], weight)
        enhanced = [self._values([enhancement], columns) for columns in features]
        new = [matrices.beside(pair) for pair in zip(new, enhanced, strict=True)]
        if current is None:
            regression, held = self._regression(new[0], target, weight), new[1:]
        else:
            regression = current.regression.extend(new[0])
            held = [matrices.beside(pair) for pair in zip(current.columns[1:], new[1:], strict=True)]
        solution, intercept = regression.head()
        added = np.repeat([False, True], size)
        return _Trial(
            [*([] if current is None else current.windows), *windows],
            [*([] if current is None else current.enhancements), enhancement],
            added if current is None else np.concatenate([current.enhancing, added]),
            [regression.features, *held],
            regression,
            solution.astype(np.float32),
            intercept.astype(np.float32),
        )

    def _windows(self, number: int, size: int, train: WholeRows) -> list[Block]:
        """Feature nodes with deviation 1 before the activation; those of the first step have sparse maps."""
        most = self.settings.window_size
        windows = [min(most, size - start) for start in range(0, size, most)]

        def check(maps: _Maps) -> None:
            shapes = [tuple(weights.shape) for weights in maps.maps]
            if shapes != [(train.n_inputs + 1, window) for window in windows]:
                raise ValueError(
                    f"the windows have shapes {shapes}, expected {train.n_inputs + 1} x {windows}"
                )

        draft = self.journal.draft(f"windows of {size} nodes, step {number}")
        maps = draft.recall(_Maps, check)
        if maps is None:
            maps = self._draw_maps(number, windows, train)
            draft.finish(lambda: maps)
        operators = replace(PERCEPTRON, activation=self.settings.feature_activation)
        return [_block(weights, operators) for weights in maps.maps]

    def _draw_maps(self, number: int, windows: Sequence[int], train: WholeRows) -> _Maps:
        settings, matrices = self.settings, self.engine.matrices
        x, (_, row_weights) = matrices.inputs(train), matrices.labels(train)
        rng = np.random.default_rng([self.seed, 1, number, 0])
        maps = []
        for window in windows:
            weights = rng.uniform(-1.0, 1.0, size=(train.n_inputs + 1, window))
            if number == 1:
                weights = sparse_map(x, row_weights, weights, settings.mu, settings.admm_iterations, matrices)
            mean, scale = feature_moments(_linear(x, weights, matrices), row_weights, matrices)
            weights[-1] -= mean
            maps.append(weights / scale)
        return _Maps(maps)

    def _enhancement(self, number: int, size: int, features: Matrix, weight: Matrix) -> Block:
        """Enhancement nodes; their arguments are scaled but not shifted, so that the sigmoids differ."""
        matrices = self.engine.matrices
        rng = np.random.default_rng([self.seed, 1, number, 1])
        weights = orthonormal(rng.uniform(-1.0, 1.0, size=(features.shape[1] + 1, size)))
        _, scale = feature_moments(_linear(features, weights, matrices), weight, matrices)
        return _block(weights * (SHRINK / scale), PERCEPTRON)

    def _regression(self, features: Matrix, target: Matrix, weight: Matrix) -> IncrementalRidge:
        """The first regression; of several ridges, with the one of the least leave-one-out error."""
        tried = [
            IncrementalRidge.start(target, weight, ridge, self.engine.matrices).extend(features)
            for ridge in self.settings.ridges
        ]
        return min(tried, key=IncrementalRidge.leave_one_out) if len(tried) > 1 else tried[0]

    def _values(self, blocks: Sequence[Block], x: Matrix) -> Matrix:
        """What the blocks compute, side by side."""
        matrices = self.engine.matrices
        parts = [
            matrices.perceptrons(x, block.weight, block.bias, block.operator_set.activation)
            for block in blocks
        ]
        return parts[0] if len(parts) == 1 else matrices.beside(parts)


def sparse_map(
    x: Matrix, weight: Matrix, start: np.ndarray, mu: float, iterations: int, matrices: Matrices = HOST
) -> np.ndarray:
    """Fine-tune a window's random map (D + 1, window) as a sparse autoencoder.

    Returns W' for the W with the least 1/2 ||A W - [X 1]||² + mu ||W||_1, where A = [X 1] start.
    """
    a, seen = _linear(x, start, matrices), matrices.with_ones(x)
    return sparse_code(a, seen, mu, iterations, weight=weight, matrices=matrices).T


def orthonormal(weights: np.ndarray) -> np.ndarray:
    """Orthonormal columns that span the same; orthonormal rows where there are more columns than rows."""
    if weights.shape[1] > weights.shape[0]:
        return orthonormal(weights.T).T
    return native().orthonormal(np.ascontiguousarray(weights))


def _linear(x: Matrix, weights: np.ndarray, matrices: Matrices) -> Matrix:
    """[X 1] weights, as a block computes it."""
    with np.errstate(over="ignore"):  # the moments of the result tell
        weight, bias = weights[:-1].astype(np.float32), weights[-1].astype(np.float32)
    return matrices.perceptrons(x, weight, bias, "identity")


def _block(weights: np.ndarray, operators: OperatorSet) -> Block:
    block = Block(len(weights) - 1, weights.shape[1], operators, norm=None)
    block.weight, block.bias = weights[:-1].astype(np.float32), weights[-1].astype(np.float32)
    return block


#: Broad learning system: feature nodes, enhancement nodes, and a head in closed form that sees both.
BLS = declared(Method("BLS", BroadGrowth))
