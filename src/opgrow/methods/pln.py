"""PLN: each layer carries the prediction before it on and adds random neurons (Chatterjee et al. 2017).

Two relu neurons for every output, with the weights [O, -O] of the head before, keep its prediction g, for
[I, -I] relu([I; -I] g) = g: a layer need never be worse than what is below it. Beside these structured
neurons stand random ones, whose pooled values are scaled to unit norm for each sample; their number grows.
The head is the least-squares fit of bounded norm. Targets are centred by their weighted mean, which becomes
the head's bias and is neither penalised nor bounded. Nothing is tuned by back-propagation.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

import numpy as np
import torch
from torch import nn

from ..admm import bounded_least_squares
from ..engines import assign_head
from ..events import Event, GrowthStep, PhaseStarted
from ..growth import GrownLayer, Growth, GrowthSettings, Method, Part, Problem
from ..kernels import compiled_features
from ..kernels.threads import stream
from ..network import Block, Layer, Network, unit_rows
from ..operators import OperatorSet
from ..ridge import factor_base
from ..scores import Score, evaluate
from ..search import SMALL
from ..statistics import chunks

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
    mu, admm_iterations : as `opgrow.admm.bounded_least_squares` takes them
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
    head: nn.Linear
    pooled: list[np.ndarray]
    features: list[np.ndarray]
    score: Score
    train_loss: float

    def layer(self) -> Layer:
        return Layer([self.structured, self.random])


class PLNGrowth(Growth):
    """Growth of layers by random neurons beside the structured ones."""

    settings: PLNSettings
    head: nn.Linear | None

    def __init__(
        self,
        problem: Problem,
        method: Method,
        settings: PLNSettings,
        seed: int,
        emit: Callable[[Event], None] = lambda event: None,
    ) -> None:
        super().__init__(problem, method, settings, seed, emit)
        weight = problem.weight.astype(np.float64)
        self.bias = (weight @ problem.target.astype(np.float64) / weight.sum()).astype(np.float32)
        # Rows times the roots of their weights, so that plain products of them are weighted sums.
        self.root = np.sqrt(weight)[:, None]
        self.centred = (problem.target.astype(np.float64) - self.bias) * self.root

    def grow_layer(self, number: int, parts: list[Part]) -> GrownLayer:
        output = self._first_output() if self.head is None else self.head.weight.detach().numpy().T
        structured = _block(np.concatenate([output, -output], axis=1), norm=None)
        carried = [self._values(part, structured, OPERATORS) for part in parts]
        kept: _Trial | None = None
        for step_number in count(1):
            size = self._n_random(kept)
            if size <= 0 or (kept is not None and self.enough(kept.score)):
                break
            self.emit(PhaseStarted("search", number, step_number, 1))
            clock = time.perf_counter()
            random = self._draw(number, step_number, size, structured.n_inputs)
            trial = self._widen(structured, random, carried, parts, kept)
            step = self._step(number, step_number, trial, kept, time.perf_counter() - clock)
            self._record(step)
            if not step.accepted:
                break
            kept = trial
        assert kept is not None
        for part, features in zip(parts, kept.features, strict=True):
            part.accepted = features
        return GrownLayer(kept.layer(), kept.head, kept.score)

    def _n_random(self, kept: _Trial | None) -> int:
        """How many random neurons the next step adds."""
        settings, structured = self.settings, 2 * self.problem.n_outputs
        if kept is not None:
            return min(settings.n_step, settings.max_neurons - structured - kept.random.n_neurons)
        width = min(max(settings.n_min, structured + settings.n_step), settings.max_neurons)
        return width - structured if width > structured else settings.n_step

    def _draw(self, layer: int, number: int, size: int, n_inputs: int) -> Block:
        rng = np.random.default_rng([self.seed, layer, number, 0])
        return _block(rng.uniform(-1.0, 1.0, size=(n_inputs, size)), norm="unit")

    def _widen(
        self,
        structured: Block,
        random: Block,
        carried: list[np.ndarray],
        parts: list[Part],
        kept: _Trial | None,
    ) -> _Trial:
        """Add random neurons to what was kept, and fit the head; ``carried`` are the structured features."""
        pooled = [self._values(part, random, replace(OPERATORS, activation="identity")) for part in parts]
        if kept is not None:
            pooled = [np.concatenate(pair, axis=1) for pair in zip(kept.pooled, pooled, strict=True)]
            random = _block(np.concatenate([_weight(kept.random), _weight(random)], axis=1), norm="unit")
        features = [_features(*pair) for pair in zip(carried, pooled, strict=True)]
        head, train_loss = self._fit_head(features[0])
        scored = parts[-1]
        outputs = _outputs(head, features[-1])
        score = evaluate(self.settings.criterion, "mse", outputs, scored.target, scored.weight)
        return _Trial(structured, random, head, pooled, features, score, train_loss)

    def _step(
        self, layer: int, number: int, trial: _Trial, kept: _Trial | None, seconds: float
    ) -> GrowthStep:
        """The record of a step, and so its decision."""
        improvement = None if kept is None else trial.score.improvement_over(kept.score)
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
            n_neurons=trial.layer().n_neurons - (0 if kept is None else kept.layer().n_neurons),
            search_seconds=seconds,
            train_loss=trial.train_loss,
        )

    def _fit_head(self, features: np.ndarray) -> tuple[nn.Linear, float]:
        """The head for features (N, 2C + r) of the training rows, and its squared error."""
        settings, n_outputs = self.settings, self.problem.n_outputs
        gram, cross = self._sums(features)
        total = float(np.square(self.centred).sum())

        def cost(output: np.ndarray) -> float:
            return total + float((output * (gram @ output - 2 * cross)).sum())

        radius = settings.alpha * float(np.sqrt(2 * n_outputs))
        output = bounded_least_squares(gram, cross, radius, settings.mu, settings.admm_iterations)
        output = output.astype(np.float32).astype(np.float64)
        if settings.alpha >= 1:
            # ADMM may stop short of the optimum; the prediction before is within the bound and always there.
            same = np.eye(len(gram), n_outputs) - np.eye(len(gram), n_outputs, -n_outputs)
            output = min(output, same, key=cost)
        head = nn.Linear(*output.shape)
        assign_head(head, output, self.bias)
        return head, max(cost(output), 0.0) / (float(np.square(self.root).sum()) * n_outputs)

    def _first_output(self) -> np.ndarray:
        """Ridge regression from the inputs to the centred targets: (D, C)."""
        x, ridge = self.problem.x, self.settings.ridge
        if x.shape[1] <= x.shape[0]:
            output = _ridge_solution(*self._sums(x), ridge)
        else:  # the same from the products of rows, which are fewer
            weighted = x * self.root
            with np.errstate(all="ignore"):
                gram = weighted @ weighted.T
            _require_finite(gram)
            output = weighted.T @ _ridge_solution(gram, self.centred, ridge)
        return output.astype(np.float32)

    def _sums(self, features: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weighted products of features (N, n), with each other and with the centred targets."""
        n = features.shape[1]

        def task(rows: slice) -> tuple[np.ndarray, np.ndarray]:
            weighted = features[rows] * self.root[rows]
            with np.errstate(all="ignore"):  # reported below, in words
                return weighted.T @ weighted, weighted.T @ self.centred[rows]

        gram, cross = np.zeros((n, n)), np.zeros((n, self.problem.n_outputs))
        tasks = [partial(task, rows) for rows in chunks(len(features), 2 * n)]
        for part in stream(tasks, self.n_threads if features.size * n > SMALL else 1):
            gram += part[0]
            cross += part[1]
        _require_finite(gram)
        return gram, cross

    def _values(self, part: Part, block: Block, operator_set: OperatorSet) -> np.ndarray:
        bias = block.bias.numpy()
        return compiled_features(part.x, _weight(block), bias, operator_set, self.n_threads)


def _features(carried: np.ndarray, pooled: np.ndarray) -> np.ndarray:
    """What the layer's two blocks compute, side by side."""
    split, columns = carried.shape[1], pooled.shape[1]
    features = np.empty((len(carried), split + columns), np.float32)
    features[:, :split] = carried
    for rows in chunks(len(pooled), columns):
        features[rows, split:] = torch.relu(unit_rows(torch.from_numpy(pooled[rows]))).numpy()
    return features


def _outputs(head: nn.Linear, features: np.ndarray) -> np.ndarray:
    """The head's outputs, in double precision as the network has them."""
    weight, bias = (tensor.detach().numpy().astype(np.float64) for tensor in (head.weight, head.bias))
    outputs = np.empty((len(features), len(bias)), np.float32)
    for rows in chunks(len(features), 2 * features.shape[1]):
        with np.errstate(all="ignore"):  # the score tells
            outputs[rows] = features[rows].astype(np.float64) @ weight.T + bias
    return outputs


def _block(weight: np.ndarray, norm: str | None) -> Block:
    n_inputs, n_neurons = weight.shape
    block = Block(n_inputs, n_neurons, OPERATORS, norm=norm, bias=False)
    block.weight.data.copy_(torch.from_numpy(weight))
    return block


def _weight(block: Block) -> np.ndarray:
    return block.weight.detach().numpy()


def _ridge_solution(gram: np.ndarray, cross: np.ndarray, ridge: float) -> np.ndarray:
    # What rounding may call for in addition to the ridge is measured by the trace, for inputs of any scale.
    base = factor_base(torch.from_numpy(gram), torch.from_numpy(cross), 0.0, float(np.trace(gram)), ridge)
    return base.head.numpy()


def _require_finite(gram: np.ndarray) -> None:
    if not np.isfinite(gram).all():
        raise FloatingPointError("the features are not finite or overflow; check the scale of the inputs")


#: Progressive learning network: structured and random relu neurons, heads in closed form.
PLN = Method("PLN", PLNGrowth)
