"""PLN: each layer carries the prediction before it on and adds random neurons (Chatterjee et al. 2017).

Two relu neurons for every output, with the weights [O, -O] of the head before, keep its prediction g, for
[I, -I] relu([I; -I] g) = g: a layer need never be worse than what is below it. Beside these structured
neurons stand random ones, whose pooled values are scaled to unit norm for each sample; their number grows.
The head is the least-squares fit of bounded norm. Targets are centred by their weighted mean, which becomes
the head's bias and is neither penalised nor bounded. Nothing is tuned by back-propagation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count
from typing import Any

import numpy as np

from ...closed_form.admm import bounded_least_squares
from ...closed_form.matrices import Matrix, weighted_mean
from ...closed_form.ridge import factor_base
from ...common.errors import NotFiniteError
from ...engine.native import native
from ...network import Block, Layer, Linear, Network
from ...operators import OperatorSet
from ...rows.interface import WholeRows
from ...training.scores import Score
from ..events import GrowthStep, PhaseStarted
from ..footprints.pln import PLNFootprint
from ..loop import GrownLayer, Growth, Method
from ..settings import GrowthSettings
from .registry import declared

__all__ = ["PLN", "PLNGrowth", "PLNSettings"]

OPERATORS = OperatorSet("multiplication", "sum", "relu")


@dataclass(frozen=True, kw_only=True)
class PLNSettings(GrowthSettings):
    """Widths and thresholds, and the two closed-form fits.

    Attributes
    ----------
    n_min, n_step, max_neurons : width that a layer starts with, random neurons of each step, and the bound;
        all count the structured neurons
    ridge : of the least squares that the first layer carries on
    alpha : the head's norm is at most alpha sqrt(2 outputs)
    mu, admm_iterations : as `opgrow.closed_form.admm.bounded_least_squares` takes them
    """

    n_min: int = 40
    n_step: int = 20
    max_neurons: int = 300
    block_threshold: float = 1e-4
    ridge: float = 1.0
    alpha: float = 1.0
    mu: float = 1.0
    admm_iterations: int = 500


@dataclass(frozen=True)
class _Trial:
    """A layer of some width with its head, and what they are worth.

    ``pooled`` (N, r) are the values of the random neurons before their norm, ``features`` (N, 2C + r) those
    of the whole layer; each for the training rows and, where there are some, validation rows.
    """

    structured: Block
    random: Block
    head: Linear
    pooled: list[Matrix]
    features: list[Matrix]
    score: Score
    train_loss: float

    def layer(self) -> Layer:
        return Layer([self.structured, self.random])


@dataclass(frozen=True)
class _Solution:
    """Weights of a head (features, outputs), in double precision, and its mean squared error."""

    weight: np.ndarray
    loss: float


class PLNGrowth(Growth):
    """Growth of layers by random neurons beside the structured ones."""

    footprint = PLNFootprint
    settings: PLNSettings
    head: Linear | None

    @cached_property
    def _labels(self) -> tuple[Matrix, Matrix]:
        """Targets and weights of the training rows."""
        return self.engine.matrices.labels(self.engine.rows(self.problem))

    @cached_property
    def _means(self) -> tuple[np.ndarray, float]:
        """The weighted mean of the targets, which is the head's bias, and the sum of the weights."""
        mean, total = weighted_mean(*self._labels, self.engine.matrices)
        return mean.astype(np.float32), total

    def grow_layer(self, number: int, parts: list[WholeRows]) -> GrownLayer | None:
        output = self._first_output(parts[0]) if self.head is None else self.head.weight
        structured = _block(np.concatenate([output, -output], axis=1), norm=None)
        carried = [self._values(part, structured, "relu") for part in parts]
        current: _Trial | None = None
        for step_number in count(1):
            size = self._n_random(current)
            if size <= 0 or (current is not None and self.enough(current.score)):
                break
            n_parameters = partial(self._n_parameters, structured, current)
            if number == 1 and current is None:
                size = self.first_size(size, n_parameters)
            elif self.stopped is not None or not self.room_for(n_parameters(size)):
                break
            self.emit(PhaseStarted("search", number, step_number, 1))
            clock = self.journal.clock()
            random = self._draw(number, step_number, size, structured.n_inputs)
            trial = self._widen(structured, random, carried, parts, current)
            step = self._step(number, step_number, trial, current, self.journal.clock() - clock)
            self._record(step)
            if not step.accepted:
                break
            current = trial
        if current is None:
            return None
        for part, features in zip(parts, current.features, strict=True):
            part.accept_computed(list(current.layer()), features)
        return GrownLayer(current.layer(), current.head, current.score)

    def _n_parameters(self, structured: Block, current: _Trial | None, size: int) -> int:
        """Parameters of the network with so many more random neurons."""
        size += 0 if current is None else current.random.n_neurons
        new, width = size * structured.n_inputs, structured.n_neurons + size
        return self.n_parameters_with([*self.layers, [structured]], new, width)

    def _n_random(self, current: _Trial | None) -> int:
        """How many random neurons the next step adds."""
        settings, structured = self.settings, 2 * self.problem.n_outputs
        if current is not None:
            return min(settings.n_step, settings.max_neurons - structured - current.random.n_neurons)
        width = min(max(settings.n_min, structured + settings.n_step), settings.max_neurons)
        return width - structured if width > structured else settings.n_step

    def _draw(self, layer: int, number: int, size: int, n_inputs: int) -> Block:
        rng = np.random.default_rng([self.seed, layer, number, 0])
        return _block(rng.uniform(-1.0, 1.0, size=(n_inputs, size)), norm="unit")

    def _widen(
        self,
        structured: Block,
        random: Block,
        carried: list[Matrix],
        parts: list[WholeRows],
        current: _Trial | None,
    ) -> _Trial:
        """Add random neurons to what was kept, and fit the head; ``carried`` are the structured features."""
        matrices = self.engine.matrices
        pooled = [self._values(part, random, "identity") for part in parts]
        if current is not None:
            pooled = [matrices.beside(pair) for pair in zip(current.pooled, pooled, strict=True)]
            random = _block(np.concatenate([current.random.weight, random.weight], axis=1), norm="unit")
        features = [matrices.unit_beside(*pair) for pair in zip(carried, pooled, strict=True)]
        fitted = self._fit_head(features[0])
        head = Linear(*fitted.weight.shape)
        head.weight, head.bias = fitted.weight.astype(np.float32), self._means[0].astype(np.float32)
        score = matrices.score(parts[-1], features[-1], head.weight, head.bias, self.settings.criterion)
        return _Trial(structured, random, head, pooled, features, score, fitted.loss)

    def _step(
        self, layer: int, number: int, trial: _Trial, current: _Trial | None, seconds: float
    ) -> GrowthStep:
        """The record of a step, and so its decision."""
        improvement = None if current is None else trial.score.improvement_over(current.score)
        sizes = self.problem.n_inputs, self.problem.n_outputs
        return GrowthStep(
            "block",
            layer,
            number,
            improvement is None or improvement >= self.settings.block_threshold,
            trial.score,
            improvement,
            Network(*sizes, [*self.layers, trial.layer()]).n_parameters(),
            operator_set=OPERATORS,
            n_neurons=trial.layer().n_neurons - (0 if current is None else current.layer().n_neurons),
            search_seconds=seconds,
            train_loss=trial.train_loss,
        )

    def _fit_head(self, features: Matrix) -> _Solution:
        """The head for features (N, 2C + r) of the training rows."""
        shape = features.shape[1], self.problem.n_outputs

        def check(solution: _Solution) -> None:
            if solution.weight.shape != shape:
                raise ValueError(f"a head has shape {solution.weight.shape}, expected {shape}")

        draft = self.journal.draft(f"head on {shape[0]} features of layer {len(self.layers) + 1}")
        solution = draft.recall(_Solution, check)
        if solution is None:
            solution = self._solve_head(features)
            draft.finish(lambda: solution)
        return solution

    def _solve_head(self, features: Matrix) -> _Solution:
        settings, n_outputs = self.settings, self.problem.n_outputs
        gram, cross, total = self._sums(features)

        def cost(output: np.ndarray) -> float:
            return float(total + (output * (native().multiply(gram, output) - 2 * cross)).sum())

        radius = settings.alpha * float(np.sqrt(2 * n_outputs))
        output = bounded_least_squares(gram, cross, radius, settings.mu, settings.admm_iterations)
        output = output.astype(np.float32).astype(np.float64)
        if settings.alpha >= 1:
            # ADMM may stop short of the optimum; the prediction before is within the bound and always there.
            same = np.eye(len(gram), n_outputs) - np.eye(len(gram), n_outputs, -n_outputs)
            output = min(output, same, key=cost)
        return _Solution(output, max(cost(output), 0.0) / (self._means[1] * n_outputs))

    def _first_output(self, train: WholeRows) -> np.ndarray:
        """Ridge regression from the inputs to the centred targets: (D, C)."""
        problem, matrices, ridge = self.problem, self.engine.matrices, self.settings.ridge
        x = matrices.inputs(train)
        if problem.n_inputs <= problem.n_rows:
            gram, cross, _ = self._sums(x)
            return _ridge_solution(gram, cross, ridge).astype(np.float32)
        # The same from the products of rows, which are fewer.
        weight = self._labels[1]
        gram = matrices.row_products(x, weight)
        _require_finite(gram)
        root = np.sqrt(problem.weight.astype(np.float64))[:, None]
        solution = _ridge_solution(gram, (problem.target.astype(np.float64) - self._means[0]) * root, ridge)

        def lifted(x: Any, weight: Any, solution: Any) -> tuple[Any]:
            return (matrices.product((x * matrices.double(weight)[:, None] ** 0.5).T, solution),)

        rows = x, weight, matrices.constant(solution)
        return matrices.sums(lifted, *rows, columns=2 * problem.n_inputs)[0].astype(np.float32)

    def _sums(self, features: Matrix) -> list[np.ndarray]:
        """Weighted products of features (N, n) with each other, with the centred targets, and of those."""
        matrices, n = self.engine.matrices, features.shape[1]
        bias = matrices.constant(self._means[0])

        def sums(features: Any, target: Any, weight: Any) -> tuple[Any, Any, Any]:
            # Rows times the roots of their weights, so that plain products of them are weighted sums.
            root = matrices.double(weight)[:, None] ** 0.5
            weighted, centred = features * root, (matrices.double(target) - bias) * root
            product = matrices.product
            return product(weighted.T, weighted), product(weighted.T, centred), (centred**2).sum()

        totals = matrices.sums(sums, features, *self._labels, columns=2 * n)
        _require_finite(totals[0])
        return totals

    def _values(self, part: WholeRows, block: Block, activation: str) -> Matrix:
        matrices = self.engine.matrices
        return matrices.perceptrons(matrices.inputs(part), block.weight, block.bias, activation)


def _block(weight: np.ndarray, norm: str | None) -> Block:
    n_inputs, n_neurons = weight.shape
    block = Block(n_inputs, n_neurons, OPERATORS, norm=norm, bias=False)
    block.weight[:] = weight
    return block


def _ridge_solution(gram: np.ndarray, cross: np.ndarray, ridge: float) -> np.ndarray:
    # What rounding may call for in addition to the ridge is measured by the trace, for inputs of any scale.
    return factor_base(gram, cross, 0.0, float(np.trace(gram)), ridge).head


def _require_finite(gram: np.ndarray) -> None:
    if not np.isfinite(gram).all():
        raise NotFiniteError("the features are not finite or overflow; check the scale of the inputs")


#: Progressive learning network: structured and random relu neurons, heads in closed form.
PLN = declared(Method("PLN", PLNGrowth))
