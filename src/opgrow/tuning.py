"""Back-propagation of a new block and head, or of a whole network.

A session holds the state and takes the steps, here by the engines and on a GPU by `opgrow.gpu.tuning`.
After every epoch the state is scored with batch-norm statistics of the whole training set, exactly as the
finished network will predict, and the best state over all epochs, the untouched start included, is kept:
tuning never makes a network worse.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from .checkpoints import Draft
from .engine.native import native
from .engines import Moments, Shape, TuningData, TuningSettings, choose_engine, fill
from .kernels import compiled_features
from .network import NORM_EPSILON, Head, Layer
from .operators import OperatorSet
from .scores import Score, evaluate

__all__ = [
    "Epoch",
    "FlatParameters",
    "HostSession",
    "Session",
    "TuningResult",
    "TuningState",
    "outputs_of",
    "pack_best",
    "restore_generator",
    "tune",
    "unpack_best",
]

#: The neurons of a linear head.
_LINEAR = OperatorSet("multiplication", "sum", "identity")


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


@dataclass
class TuningState:
    """Where a tuning stands: all that it needs to go on, in this process or in another one.

    Attributes
    ----------
    stage, used, waited : position in the schedule, epochs there, and those of them without a better score
    ended : whether there are no more epochs
    rng : state of the random numbers, as JSON; arrays : of the session
    """

    start: Score
    best: Score
    best_epoch: int = 0
    skipped_batches: int = 0
    curve: list[Epoch] = field(default_factory=list)
    stage: int = 0
    used: int = 0
    waited: int = 0
    ended: bool = False
    rng: str = ""
    arrays: dict[str, np.ndarray] = field(default_factory=dict)

    def result(self) -> TuningResult:
        return TuningResult(self.start, self.best, self.best_epoch, self.curve, self.skipped_batches)


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

    def kept(self) -> dict[str, np.ndarray]:
        """What is remembered, as arrays."""
        ...

    def moving(self) -> dict[str, np.ndarray] | None:
        """The state as it is, as arrays; None where an optimiser has more than those."""
        ...

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what `kept`, and perhaps `moving`, have said in another session of the same shape."""
        ...


def tune(
    session: Session,
    settings: TuningSettings,
    rng: np.random.Generator,
    on_epoch: Callable[[Epoch], bool | None] | None = None,
    draft: Draft | None = None,
) -> TuningResult:
    """Tune in epochs as the schedule says, and leave the modules in the best state.

    ``on_epoch`` hears of each epoch; if it answers True, the tuning ends there. A ``draft`` knows where the
    tuning was when it was cut off, and is offered every epoch.
    """
    draft = Draft() if draft is None else draft
    state = draft.recall(TuningState)
    if state is None:
        score = session.score()
        session.keep()
        state = TuningState(score, score)
    else:
        session.load(state.arrays)
        restore_generator(rng, state.rng)

    def saved() -> TuningState | None:
        moving = session.moving()
        if moving is None:
            return None
        return replace(state, rng=json.dumps(rng.bit_generator.state), arrays=session.kept() | moving)

    while not state.ended:
        if _over(state, settings):
            state.stage, state.used, state.waited = state.stage + 1, 0, 0
            state.ended = state.stage >= len(settings.epochs)
            continue
        rate = settings.learning_rates[state.stage]
        loss, skips = session.epoch(rate, rng)
        state.skipped_batches += skips
        now = session.score()
        state.curve.append(Epoch(len(state.curve) + 1, rate, loss, now))
        state.used, state.waited = state.used + 1, state.waited + 1
        if now.better_than(state.best):
            session.keep()
            state.best, state.best_epoch, state.waited = now, len(state.curve), 0
        state.ended = on_epoch is not None and bool(on_epoch(state.curve[-1]))
        draft.offer(saved)
    session.restore()
    draft.finish(lambda: replace(state, rng=json.dumps(rng.bit_generator.state), arrays=session.kept()))
    return state.result()


def _over(state: TuningState, settings: TuningSettings) -> bool:
    """Whether a learning rate has had its epochs, or its patience."""
    if state.stage >= len(settings.epochs) or state.used >= settings.epochs[state.stage]:
        return True
    return settings.patience is not None and state.waited >= settings.patience


def restore_generator(rng: np.random.Generator, text: str) -> None:
    """Let a generator go on from the state that JSON tells of."""
    try:
        rng.bit_generator.state = json.loads(text)
    except (TypeError, KeyError, OverflowError) as error:
        raise ValueError(f"the state of the random numbers is not valid ({error})") from error


class FlatParameters:
    """What a session in the memory of the host remembers of its parameters.

    Attributes
    ----------
    layers, head : the modules; shape : where their parameters lie in ``theta``; engine : what changes it
    """

    layers: Sequence[Layer]
    head: Head
    shape: Shape
    theta: np.ndarray
    engine: Any
    _moments: list[Moments]
    _best: tuple[np.ndarray, list[Moments]] | None

    def keep(self) -> None:
        self._best = self.theta.copy(), self._moments

    def restore(self) -> None:
        assert self._best is not None
        self.shape.restore(*self._best, self.layers, self.head)

    def kept(self) -> dict[str, np.ndarray]:
        assert self._best is not None
        return pack_best(*self._best)

    def moving(self) -> dict[str, np.ndarray] | None:
        arrays = self.engine.state()
        return None if arrays is None else {"theta": self.theta} | arrays

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        self._best = unpack_best(self.shape, arrays)
        if "theta" in arrays:
            fill(self.theta, arrays, "theta")
            self.engine.load(arrays)


class HostSession(FlatParameters):
    """Tuning of all parameters of ``layers`` and ``head`` in the memory of the host.

    The head sees ``frozen`` and then the last layer's features. Scores are taken on ``validation`` if it
    is given, else on ``train``.
    """

    def __init__(
        self,
        layers: Sequence[Layer],
        head: Head,
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
        self._moments, self._best = [], None

    def epoch(self, rate: float, rng: np.random.Generator) -> tuple[float, int]:
        order = rng.permutation(len(self.train.x))
        return self.engine.epoch(order, rate, int(rng.integers(1, 2**63)))

    def score(self) -> Score:
        scored, settings = self.validation or self.train, self.settings
        outputs, self._moments = outputs_of(
            self.shape, self.theta, self.train, self.validation, settings.n_threads
        )
        return evaluate(self.criterion, settings.loss, outputs, scored.target, scored.weight)


def pack_best(theta: np.ndarray, moments: Sequence[Moments]) -> dict[str, np.ndarray]:
    """Parameters and the statistics of each block as arrays."""
    means, variances = ([getattr(m, name) for m in moments] for name in ("mean", "variance"))
    return {"best": theta, "means": np.concatenate(means), "variances": np.concatenate(variances)}


def unpack_best(shape: Shape, arrays: dict[str, np.ndarray]) -> tuple[np.ndarray, list[Moments]]:
    """What `pack_best` has made arrays of."""
    theta, found = np.empty(shape.size, np.float32), np.empty((2, int(shape.widths.sum())), np.float32)
    for target, name in ((theta, "best"), (found[0], "means"), (found[1], "variances")):
        fill(target, arrays, name)
    parts = np.split(found, np.cumsum(shape.plan[:, 4])[:-1], axis=1)
    return theta, [Moments(mean, variance) for mean, variance in parts]


def _moments(raw: np.ndarray, weight: np.ndarray) -> Moments:
    raw = np.ascontiguousarray(raw)  # custom operators answer in any layout
    with np.errstate(over="ignore"):
        mean, variance = (values.astype(np.float32) for values in native().moments(raw, weight))
    variance[np.isinf(variance)] = np.nan  # as `engines.single`
    return Moments(mean, variance)


def outputs_of(
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
        return compiled_features(features, weight, bias, shape.head_set or _LINEAR, n_threads), moments
