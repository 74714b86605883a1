"""Back-propagation of a new block and head, or of a whole network.

A session holds the state and takes the steps, here by the engines and on a GPU by `opgrow.gpu.tuning`.
After every epoch the state is scored with batch-norm statistics of the whole training set, exactly as the
finished network will predict, and the best state over all epochs, the untouched start included, is kept:
tuning never makes a network worse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from torch import nn

from .engines import Moments, Shape, TuningData, TuningSettings, choose_engine
from .kernels import compiled_features
from .network import NORM_EPSILON, Block, Layer
from .scores import Score, evaluate

__all__ = ["Epoch", "HostSession", "Session", "TuningResult", "tune"]


@dataclass(frozen=True)
class Epoch:
    """One point of a tuning curve."""

    number: int
    learning_rate: float
    train_loss: float
    score: Score


@dataclass(frozen=True)
class TuningResult:
    """The curve, the score that was kept, and the number of batches skipped for non-finite gradients."""

    start: Score
    best: Score
    best_epoch: int
    curve: list[Epoch]
    skipped_batches: int

    @property
    def invalid_epochs(self) -> int:
        """Epochs whose score was not finite."""
        return sum(not epoch.score.finite for epoch in self.curve)


class Session(Protocol):
    """The state of one tuning, wherever it is."""

    def epoch(self, rate: float, rng: np.random.Generator) -> tuple[float, int]:
        """Train for one epoch; the mean loss of its batches and the number of those skipped."""
        ...

    def score(self) -> Score:
        """The score of the state as it is."""
        ...

    def keep(self) -> None:
        """Remember the state that was scored last."""
        ...

    def restore(self) -> None:
        """Write what is remembered into the modules."""
        ...


def tune(
    session: Session,
    settings: TuningSettings,
    rng: np.random.Generator,
    on_epoch: Callable[[Epoch], bool | None] | None = None,
) -> TuningResult:
    """Tune in epochs as the schedule says, and leave the modules in the best state.

    ``on_epoch`` hears of each epoch; if it answers True, the tuning ends there.
    """
    start = best = session.score()
    session.keep()
    best_epoch, skipped = 0, 0
    curve: list[Epoch] = []
    ended = False
    for rate, count in zip(settings.learning_rates, settings.epochs, strict=True):
        waited = 0
        for _ in range(count):
            if ended or (settings.patience is not None and waited >= settings.patience):
                break
            loss, skips = session.epoch(rate, rng)
            skipped += skips
            now = session.score()
            curve.append(Epoch(len(curve) + 1, rate, loss, now))
            waited += 1
            if now.better_than(best):
                session.keep()
                best, best_epoch, waited = now, len(curve), 0
            ended = on_epoch is not None and bool(on_epoch(curve[-1]))
    session.restore()
    return TuningResult(start, best, best_epoch, curve, skipped)


class HostSession:
    """Tuning of all parameters of ``layers`` and ``head`` in the memory of the host.

    The head sees ``frozen`` and then the last layer's features. Scores are taken on ``validation`` if it
    is given, else on ``train``.
    """

    def __init__(
        self,
        layers: Sequence[Layer],
        head: nn.Linear | Block,
        train: TuningData,
        validation: TuningData | None,
        settings: TuningSettings,
        criterion: str,
    ) -> None:
        self.layers, self.head, self.settings, self.criterion = layers, head, settings, criterion
        self.train, self.validation = train, validation
        self.shape = Shape(layers, head, train.frozen.shape[1])
        self.theta = self.shape.flatten(layers, head)
        self.engine = choose_engine(self.shape, self.theta, train, settings)
        self._moments: list[Moments] = []
        self._best: tuple[np.ndarray, list[Moments]] | None = None

    def epoch(self, rate: float, rng: np.random.Generator) -> tuple[float, int]:
        order = rng.permutation(len(self.train.x))
        return self.engine.epoch(order, rate, int(rng.integers(1, 2**63)))

    def score(self) -> Score:
        scored, settings = self.validation or self.train, self.settings
        outputs, self._moments = _outputs(
            self.shape, self.theta, self.train, self.validation, settings.n_threads
        )
        return evaluate(self.criterion, settings.loss, outputs, scored.target, scored.weight)

    def keep(self) -> None:
        self._best = self.theta.copy(), self._moments

    def restore(self) -> None:
        assert self._best is not None
        self.shape.restore(*self._best, self.layers, self.head)


def _moments(raw: np.ndarray, weight: np.ndarray) -> Moments:
    total = weight.sum(dtype=np.float64)
    with np.errstate(all="ignore"):
        mean = (weight @ raw.astype(np.float64)) / total
        variance = (weight @ np.square(raw - mean)) / total
        mean, variance = mean.astype(np.float32), variance.astype(np.float32)
    variance[np.isinf(variance)] = np.nan  # as `engines.single`
    return Moments(mean, variance)


def _outputs(
    shape: Shape, theta: np.ndarray, train: TuningData, validation: TuningData | None, n_threads: int
) -> tuple[np.ndarray, list[Moments]]:
    """Outputs for the scored rows with statistics of the whole training set, and those statistics."""
    parts = [train] if validation is None else [train, validation]
    inputs = [part.x for part in parts]
    moments: list[Moments] = []
    layers = shape.blocks(theta)
    with np.errstate(all="ignore"):
        for number, layer in enumerate(layers):
            columns: list[list[np.ndarray]] = [[] for _ in parts]
            for block in layer:
                raws = [
                    compiled_features(x, block.weight, block.bias, block.operator_set, n_threads)
                    for x in inputs
                ]
                found = _moments(raws[0], train.weight)
                moments.append(found)
                factor = block.scale / np.sqrt(found.variance + np.float32(NORM_EPSILON))
                offset = block.shift - found.mean * factor
                last = number == len(layers) - 1
                for part, raw in enumerate(raws):
                    if part == len(raws) - 1 or not last:
                        columns[part].append(raw * factor + offset)
            inputs = [
                np.concatenate(c, axis=1) if len(c) > 1 else c[0] if c else x
                for c, x in zip(columns, inputs, strict=True)
            ]
        features = inputs[-1]
        if shape.n_frozen:
            features = np.concatenate([parts[-1].frozen, features], axis=1)
        weight, bias = shape.head(theta)
        if shape.head_set is not None:
            return compiled_features(features, weight, bias, shape.head_set, n_threads), moments
        return features @ weight + bias, moments
