"""Tuning on rows that pass through in chunks.

An epoch takes the chunks in a random order and shuffles the rows of several of them together, a window. While
one window is trained on, the chunks of the next are read. The state of the optimiser goes on from window to
window; if one window holds all rows, an epoch is the same as in memory.

Scores are taken on rows that are held in memory. While parameters change, the statistics of batch norm are
those of a sample; the state that is kept in the end gets those of all rows, by one more pass a layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..backends import HostPart, block_outputs
from ..engines import Moments, Shape, TuningData, TuningSettings, choose_engine, fill
from ..kernels import compiled_features
from ..network import NORM_EPSILON, Block, Head, Layer
from ..scores import Score, evaluate
from ..tuning import outputs_of, pack_best, unpack_best
from .moments import ColumnMoments, column_moments
from .part import StreamPart

__all__ = ["StreamSession", "Windows", "exact_moments", "found_moments"]


class StreamSession:
    """Tuning of ``layers`` and ``head``; scored on ``validation``, or on the sample of the training rows."""

    def __init__(
        self,
        layers: Sequence[Layer],
        head: Head,
        part: StreamPart,
        validation: HostPart | None,
        settings: TuningSettings,
        criterion: str,
        windows: Windows,
    ) -> None:
        self.layers, self.head, self.settings, self.criterion = layers, head, settings, criterion
        self.part, self.windows = part, windows
        self.sample = part.sample_rows.tuning_data()
        self.validation = None if validation is None else validation.tuning_data()
        self.shape = Shape(layers, head, part.n_accepted)
        self.theta = self.shape.flatten(layers, head)
        self.engine = choose_engine(self.shape, self.theta, self.sample, settings)
        # The statistics that the search has found are those of all rows.
        self._moments = found_moments(layers)
        self._exact = True
        self._best: tuple[np.ndarray, list[Moments], bool] | None = None

    def epoch(self, rate: float, rng: np.random.Generator) -> tuple[float, int]:
        self._exact = False
        total, batches, skipped = 0.0, 0, 0
        for data in self.windows.shuffled(rng):
            self.engine.use(data)
            loss, skips = self.engine.epoch(rng.permutation(len(data.x)), rate, int(rng.integers(1, 2**63)))
            count = len(self.engine.bounds) - 1
            total, batches, skipped = total + loss * count, batches + count, skipped + skips
        return total / batches, skipped

    def score(self) -> Score:
        scored, settings = self.validation or self.sample, self.settings
        if self._exact and not self.part.complete:
            outputs = self._outputs_now(scored)
        else:
            outputs, self._moments = outputs_of(
                self.shape, self.theta, self.sample, self.validation, settings.n_threads
            )
            self._exact = self._exact or self.part.complete
        return evaluate(self.criterion, settings.loss, outputs, scored.target, scored.weight)

    def keep(self) -> None:
        self._best = self.theta.copy(), self._moments, self._exact

    def restore(self) -> None:
        assert self._best is not None
        theta, moments, exact = self._best
        if not exact:
            moments = exact_moments(self.shape, theta, self.part, self.settings.n_threads)
            self._best = theta, moments, True
        self.shape.restore(theta, moments, self.layers, self.head)

    def kept(self) -> dict[str, np.ndarray]:
        assert self._best is not None
        theta, moments, exact = self._best
        return pack_best(theta, moments) | {"exact": np.array([exact])}

    def moving(self) -> dict[str, np.ndarray] | None:
        arrays = self.engine.state()
        return None if arrays is None else {"theta": self.theta} | arrays

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        exact = np.zeros(1, bool)
        fill(exact, arrays, "exact")
        self._best = *unpack_best(self.shape, arrays), bool(exact[0])
        if "theta" in arrays:
            fill(self.theta, arrays, "theta")
            self.engine.load(arrays)
            self._exact = False

    def _outputs_now(self, data: TuningData) -> np.ndarray:
        """Outputs of the modules as they were handed over."""
        x = data.x
        with np.errstate(all="ignore"):
            for layer in self.layers:
                x = np.concatenate([block_outputs(b, x, self.settings.n_threads) for b in layer], axis=1)
            weight, bias = self.shape.head(self.theta)
            return np.concatenate([data.frozen, x], axis=1) @ weight + bias


def exact_moments(
    shape: Shape,
    theta: np.ndarray,
    part: StreamPart,
    n_threads: int,
    merge: Callable[[ColumnMoments], ColumnMoments] = lambda own: own,
) -> list[Moments]:
    """Statistics of all training rows: one pass for each layer; ``merge`` adds those of other readers."""

    def raw(x: np.ndarray, block: Any) -> np.ndarray:
        return compiled_features(x, block.weight, block.bias, block.operator_set, n_threads)

    def normal(x: np.ndarray, block: Any, moments: Moments) -> np.ndarray:
        factor = block.scale / np.sqrt(moments.variance + np.float32(NORM_EPSILON))
        return raw(x, block) * factor + (block.shift - moments.mean * factor)

    found: list[list[Moments]] = []
    blocks = shape.blocks(theta)
    for number, layer in enumerate(blocks):
        sums = [ColumnMoments.nothing(len(block.bias)) for block in layer]
        for chunk in part.chunks():
            x = chunk.x
            for below, moments in zip(blocks[:number], found, strict=True):
                pairs = zip(below, moments, strict=True)
                x = np.concatenate([normal(x, block, known) for block, known in pairs], axis=1)
            for total, block in zip(sums, layer, strict=True):
                total.add(column_moments(raw(x, block), chunk.weight))
        sums = [merge(total) for total in sums]
        found.append([Moments(s.mean.astype(np.float32), s.variance.astype(np.float32)) for s in sums])
    return [moments for layer_moments in found for moments in layer_moments]


def found_moments(layers: Sequence[Layer]) -> list[Moments]:
    """The statistics that blocks have been given."""
    return [_of(block) for layer in layers for block in layer]


def _of(block: Block) -> Moments:
    return Moments(block.norm.mean.copy(), block.norm.variance.copy())


class Windows:
    """Windows of rows that tuning goes through; their memory is taken once, when the first one is read."""

    def __init__(self, part: StreamPart, rows: int) -> None:
        self.part, self.rows = part, rows
        self.single = part.n_rows <= rows
        self.data: TuningData | None = None
        self.n_chunks = part.training.n_chunks

    def shuffled(self, rng: np.random.Generator) -> Iterator[TuningData]:
        """All rows once, window by window."""
        if self.single:
            if self.data is None:
                self.data = self._all(self.part.chunks())
            yield self.data
            return
        order = rng.permutation(self.n_chunks)
        each = max(1, round(self.rows * self.n_chunks / self.part.n_rows))
        # Windows of nearly equal numbers of chunks, so that no last one is tiny.
        bounds = np.linspace(0, self.n_chunks, -(-self.n_chunks // each) + 1).round().astype(int)
        chunks = self.part.chunks(order, depth=each)
        for start, stop in pairwise(bounds.tolist()):
            window = self._window(chunks, stop - start)
            if len(window.x):
                yield window

    def _all(self, chunks: Iterator[HostPart]) -> TuningData:
        self.data = None
        return self._window(chunks, self.n_chunks)

    def _window(self, chunks: Iterator[HostPart], count: int) -> TuningData:
        """The next chunks, copied into the memory of the window as they come."""
        filled = 0
        for _ in range(count):
            chunk = next(chunks).tuning_data()
            needed = filled + len(chunk.x)
            if self.data is None or needed > len(self.data.x):
                self.data = self._room(needed, chunk, filled)
            for name in ("x", "frozen", "target", "weight"):
                getattr(self.data, name)[filled:needed] = getattr(chunk, name)
            filled = needed
        data = self.data
        assert data is not None
        return TuningData(data.x[:filled], data.frozen[:filled], data.target[:filled], data.weight[:filled])

    def _room(self, needed: int, chunk: TuningData, filled: int) -> TuningData:
        """Arrays for at least so many rows, with the first ones of those that there were."""
        size = self.part.n_rows if self.single else max(needed, min(self.rows, self.part.n_rows))
        old = self.data
        arrays = []
        for name in ("x", "frozen", "target", "weight"):
            like = getattr(chunk, name)
            array = np.empty((size, *like.shape[1:]), np.float32)
            if old is not None:
                array[:filled] = getattr(old, name)[:filled]
            arrays.append(array)
        return TuningData(*arrays)
