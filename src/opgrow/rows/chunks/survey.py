"""The first pass over a source: sizes, classes, moments, and the few rows that stay in memory.

Which rows validate is decided by their number and the seed alone, so it depends neither on the chunks nor on
who reads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ...common.threads import stream
from ...network.scaling import Ranges
from ..preparation import ranges
from .moments import ColumnMoments, column_moments
from .sources import Chunk, Source

__all__ = ["Division", "Survey", "survey"]


def _uniform(start: int, count: int, seed: int, purpose: int) -> np.ndarray:
    """A number in [0, 1) for each row from ``start`` on, by splitmix64 of its number."""
    key = np.random.SeedSequence([seed, purpose]).generate_state(1, np.uint64)[0]
    with np.errstate(over="ignore"):
        z = (np.arange(start + 1, start + count + 1, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15) + key
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return (z >> np.uint64(11)) * 2.0**-53


@dataclass(frozen=True)
class Division:
    """Which rows validate, and which of the others are held in memory as a sample: shares in [0, 1]."""

    seed: int
    validates: float
    sampled: float

    def validating(self, start: int, count: int) -> np.ndarray:
        """Whether each of ``count`` rows from ``start`` on validates."""
        if self.validates <= 0:
            return np.zeros(count, bool)
        return _uniform(start, count, self.seed, 1) < self.validates

    def sample(self, start: int, count: int) -> np.ndarray:
        """Whether each of these rows would be in the sample, if it does not validate."""
        if self.sampled >= 1:
            return np.ones(count, bool)
        return _uniform(start, count, self.seed, 2) < self.sampled


@dataclass
class HeldRows:
    """Rows as the source gave them: inputs, targets (for classes, their labels) and weights."""

    x: list[np.ndarray] = field(default_factory=list)
    y: list[np.ndarray] = field(default_factory=list)
    weight: list[np.ndarray] = field(default_factory=list)

    def add(self, x: np.ndarray, y: np.ndarray, weight: np.ndarray) -> None:
        for parts, values in zip((self.x, self.y, self.weight), (x, y, weight), strict=True):
            parts.append(values)

    def extend(self, other: HeldRows) -> None:
        self.x += other.x
        self.y += other.y
        self.weight += other.weight

    def __len__(self) -> int:
        return sum(map(len, self.x))

    def arrays(self, n_features: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All of them as three arrays; this object is empty afterwards."""
        if not self.x:
            return np.zeros((0, n_features)), np.zeros(0), np.zeros(0)
        arrays = np.concatenate(self.x), np.concatenate(self.y), np.concatenate(self.weight)
        self.x, self.y, self.weight = [], [], []
        return arrays


@dataclass
class Survey:
    """What the first pass finds.

    Attributes
    ----------
    counts : rows of each class by its label, validation rows included; empty for regression
    moments : of X over training rows, by label if weights depend on classes, else under None
    target_moments : of y, for regression
    ranges : the least and the largest value of each input and target over training rows
    n_train : training rows of each chunk, those without weight left out
    weighted : whether the source has weights
    """

    classification: bool
    counts: dict[Any, int] = field(default_factory=dict)
    moments: dict[Any, ColumnMoments] = field(default_factory=dict)
    target_moments: ColumnMoments | None = None
    ranges: Ranges | None = None
    n_train: list[int] = field(default_factory=list)
    y_ndim: int = 1
    weighted: bool = False
    validation: HeldRows = field(default_factory=HeldRows)
    sample: HeldRows = field(default_factory=HeldRows)

    def extend(self, other: Survey) -> None:
        """Add what was found in the chunks that follow."""
        for label, count in other.counts.items():
            self.counts[label] = self.counts.get(label, 0) + count
        for label, moments in other.moments.items():
            self.moments.setdefault(label, ColumnMoments.nothing(len(moments.mean))).add(moments)
        if other.target_moments is not None:
            if self.target_moments is None:
                self.target_moments = ColumnMoments.nothing(len(other.target_moments.mean))
            self.target_moments.add(other.target_moments)
        if other.ranges is not None:
            self.ranges = other.ranges if self.ranges is None else self.ranges.joined(other.ranges)
        self.n_train += other.n_train
        self.y_ndim, self.weighted = other.y_ndim, self.weighted or other.weighted
        self.validation.extend(other.validation)
        self.sample.extend(other.sample)


def survey(
    source: Source, division: Division, classification: bool, by_class: bool, n_threads: int
) -> Survey:
    """Go through a source once; ``by_class``: weights depend on classes."""

    def task(number: int) -> Survey:
        chunk = checked(source.read(number), number)
        return _look(chunk, int(source.starts[number]), division, classification, by_class)

    def tasks() -> Iterator[Any]:
        return (partial(task, number) for number in range(source.n_chunks))

    result = Survey(classification)
    for part in stream(tasks(), n_threads):
        result.extend(part)
    return result


def checked(chunk: Chunk, number: int) -> Chunk:
    """Refuse a chunk that cannot be learned from."""
    if chunk.y is None:
        raise ValueError(
            "the source has no targets: name the target column, or give y where the source is made"
        )
    # The sum of finite values may overflow, so only a suspicious one is looked at closely.
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not np.isfinite(chunk.x.sum(dtype=np.float64))
    if suspicious and not np.isfinite(chunk.x).all():
        row, column = np.argwhere(~np.isfinite(chunk.x))[0]
        raise ValueError(
            f"X of the source holds {chunk.x[row, column]} in row {row}, column {column} of chunk {number}: "
            "values must be finite"
        )
    if chunk.y.dtype.kind == "f" and not np.isfinite(chunk.y).all():
        raise ValueError(f"y of the source holds NaN or infinity in chunk {number}: values must be finite")
    if chunk.weight is not None and not (np.isfinite(chunk.weight).all() and (chunk.weight >= 0).all()):
        raise ValueError(f"the weights of chunk {number} must be finite and at least 0")
    return chunk


def _look(chunk: Chunk, start: int, division: Division, classification: bool, by_class: bool) -> Survey:
    x, y = chunk.x, chunk.y
    assert y is not None
    result = Survey(classification, y_ndim=y.ndim, weighted=chunk.weight is not None)
    if classification:
        if y.ndim == 2 and y.shape[1] == 1:
            y = y[:, 0]
        labels = _labels(y)
        result.counts = dict(zip(labels.tolist(), _counts(y, labels), strict=True))
    else:
        if y.dtype.kind not in "biuf":
            raise ValueError(f"y of the source holds {y.dtype}: regression needs numbers")
        y = y.reshape(len(y), -1).astype(np.float64)
    weight = np.ones(len(x)) if chunk.weight is None else chunk.weight.astype(np.float64)
    held = division.validating(start, len(x))
    there = weight > 0
    train = there & ~held
    result.n_train = [int(train.sum())]
    for rows, mask in (
        (result.validation, there & held),
        (result.sample, train & division.sample(start, len(x))),
    ):
        if mask.any():
            rows.add(*(v if mask.all() else v[mask] for v in (x, y, weight)))
    used = None if chunk.weight is None else weight
    if not train.all():
        x, y, used = x[train], y[train], None if used is None else used[train]
    if by_class:
        for label in labels:
            mine = y == label
            if mine.any():
                of_class = None if used is None else used[mine]
                result.moments[label.item()] = column_moments(x[mine], of_class)
    else:
        result.moments[None] = column_moments(x, used)
    if not classification:
        result.target_moments = column_moments(y, used)
    if len(x):
        result.ranges = ranges(x, np.zeros((1, 0)) if classification else y)
    return result


def _labels(y: np.ndarray) -> np.ndarray:
    if y.ndim != 1:
        raise ValueError(f"y of a source of classes has one label a row, got chunks of shape {y.shape}")
    if y.dtype == object:
        y = y.astype(str)
    labels = np.unique(y)
    if labels.dtype.kind == "f" and (labels != np.round(labels)).any():
        raise ValueError(
            "Unknown label type: continuous: y of the source holds numbers that are not whole, and a "
            "classifier takes classes"
        )
    return labels


def _counts(y: np.ndarray, labels: np.ndarray) -> list[int]:
    return np.bincount(np.searchsorted(labels, y), minlength=len(labels)).tolist()
