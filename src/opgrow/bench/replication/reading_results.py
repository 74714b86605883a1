"""What the experiment on readings says: effects of the factors, the nearest readings, figures out of reach.

A reading is as far from the paper as its sizes and accuracies are from the printed ones: the root of the
mean, over tables, of squared distances. A size that is wrong by the factor e weighs as much as 5 points of
accuracy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ..published import published
from ..runs import DONE
from .factorial import Effect, main_effects
from .readings import FACTORS, TEST_ROWS, Reading, keeps_to_the_text

__all__ = ["Measured", "distance", "effects_of", "measured", "predicted_nearest"]

#: Points of accuracy that weigh as much as a factor e in size.
POINTS = 5.0
_METHOD = "HeMLGOP"
LEVELS = {factor.name: tuple(factor.levels) for factor in FACTORS}


@dataclass(frozen=True)
class Measured:
    """A reading, and by table the sizes and accuracies (in percent) of its splits."""

    part: str
    reading: Reading
    parameters: dict[str, list[int]]
    accuracy: dict[str, list[float]]
    training_accuracy: dict[str, list[float]]

    @property
    def decides_on_test(self) -> bool:
        return self.reading["rows that decide"] == TEST_ROWS

    def log_sizes(self) -> dict[str, float]:
        """Means over splits of the natural logarithm of the size, by table."""
        return {table: float(np.mean(np.log(sizes))) for table, sizes in self.parameters.items()}

    def accuracies(self) -> dict[str, float]:
        """Means over splits, by table."""
        return {table: float(np.mean(values)) for table, values in self.accuracy.items()}


def measured(rows: Sequence[Mapping[str, str]], part: str | None = None) -> list[Measured]:
    """The readings whose runs have all ended, of one part of the experiment or of all."""
    readings: dict[tuple[str, ...], list[Mapping[str, str]]] = {}
    for row in rows:
        if part in (None, row["part"]):
            readings.setdefault((row["part"], *(row[name] for name in LEVELS)), []).append(row)
    complete = []
    for key, group in readings.items():
        if any(row["status"] != DONE for row in group):
            continue
        by_table: dict[str, list[Mapping[str, str]]] = {}
        for row in group:
            by_table.setdefault(row["table"], []).append(row)
        complete.append(
            Measured(
                key[0],
                dict(zip(LEVELS, key[1:], strict=True)),
                {t: [int(row["parameters"]) for row in some] for t, some in by_table.items()},
                {t: [100 * float(row["accuracy"]) for row in some] for t, some in by_table.items()},
                {t: [100 * float(row["training_accuracy"]) for row in some] for t, some in by_table.items()},
            )
        )
    return complete


def distance(log_sizes: Mapping[str, float], accuracies: Mapping[str, float]) -> float:
    """How far sizes and accuracies are from what the paper prints for HeMLGOP on these tables."""
    squares = []
    for table, size in log_sizes.items():
        theirs = published(table, _METHOD)
        assert theirs.parameters is not None
        assert theirs.accuracy is not None
        squares.append((size - np.log(theirs.parameters)) ** 2)
        squares.append(((accuracies[table] - 100 * theirs.accuracy) / POINTS) ** 2)
    return float(np.sqrt(np.mean(squares)))


def effects_of(results: Sequence[Measured]) -> tuple[list[Effect], list[Effect]]:
    """Main effects on the logarithm (base 2) of the size and on accuracy, as means over tables."""
    readings = [one.reading for one in results]
    sizes = [float(np.mean(list(one.log_sizes().values()))) / np.log(2) for one in results]
    accuracies = [float(np.mean(list(one.accuracies().values()))) for one in results]
    return main_effects(readings, sizes, LEVELS), main_effects(readings, accuracies, LEVELS)


def predicted_nearest(results: Sequence[Measured]) -> Reading:
    """The reading that main effects, table by table, predict to be nearest of those that keep to the text."""
    readings = [one.reading for one in results]
    every = (dict(zip(LEVELS, chosen, strict=True)) for chosen in product(*LEVELS.values()))
    combinations = [reading for reading in every if keeps_to_the_text(reading)]
    tables = list(results[0].parameters)
    predicted: dict[str, dict[str, Any]] = {"size": {}, "accuracy": {}}
    for table in tables:
        sizes, accuracies = (
            [figures[table] for figures in some]
            for some in ([one.log_sizes() for one in results], [one.accuracies() for one in results])
        )
        for name, response in (("size", sizes), ("accuracy", accuracies)):
            predicted[name][table] = _predictions(readings, response, combinations)
    distances = [
        distance(
            {table: predicted["size"][table][i] for table in tables},
            {table: predicted["accuracy"][table][i] for table in tables},
        )
        for i in range(len(combinations))
    ]
    return combinations[int(np.argmin(distances))]


def _predictions(
    readings: Sequence[Reading], response: Sequence[float], wanted: Sequence[Reading]
) -> np.ndarray:
    """What the main effects of a response say of other readings."""
    effects = {(e.factor, e.level): e.effect for e in main_effects(readings, response, LEVELS)}

    def sums(some: Sequence[Reading]) -> np.ndarray:
        return np.array([sum(effects.get(item, 0.0) for item in reading.items()) for reading in some])

    mean: float = float(np.mean(response)) - float(sums(readings).mean())
    return mean + sums(wanted)
