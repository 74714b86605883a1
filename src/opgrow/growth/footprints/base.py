"""What the footprints of all families share: the sizes of the data, and arrays that every family has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

from ...rows.search_sums import chunks

__all__ = ["DOUBLE", "SINGLE", "Footprint", "Sizes", "problem_bytes", "scoring_bytes", "sum_bytes"]

#: Bytes of a number in single and in double precision.
SINGLE, DOUBLE = 4, 8
MethodType = TypeVar("MethodType")
SettingsType = TypeVar("SettingsType")


@dataclass(frozen=True)
class Sizes:
    """Rows to train on and to validate with (0: none), inputs, outputs, and threads within one network."""

    n_rows: int
    n_held: int
    n_inputs: int
    n_outputs: int
    n_threads: int

    @property
    def n_scored(self) -> int:
        return self.n_held or self.n_rows

    @property
    def n_all(self) -> int:
        return self.n_rows + self.n_held


class Footprint(ABC, Generic[MethodType, SettingsType]):
    """How much a network takes that a method grows with some settings, as far as they let it grow."""

    def __init__(self, method: MethodType, settings: SettingsType) -> None:
        self.method, self.settings = method, settings

    @abstractmethod
    def n_parameters(self, n_inputs: int, n_outputs: int) -> int:
        """Parameters of the largest network that may come of it."""

    @abstractmethod
    def n_bytes(self, sizes: Sizes) -> int:
        """Most bytes that its growth has at a time."""

    def cached_bytes(self, sizes: Sizes) -> int:
        """Those of them that are a cache, which networks side by side share."""
        return 0


def problem_bytes(sizes: Sizes) -> int:
    """The standardised inputs and targets of a network, and the weights."""
    return SINGLE * sizes.n_all * (sizes.n_inputs + sizes.n_outputs + 1)


def sum_bytes(sizes: Sizes, columns: int) -> int:
    """Sums over chunks of rows in double precision: a chunk and a product in each thread, and the results."""
    rows = chunks(sizes.n_rows, 2 * columns)[0].stop
    chunk = DOUBLE * rows * (columns + sizes.n_outputs)
    return sizes.n_threads * 2 * chunk + (sizes.n_threads + 3) * DOUBLE * columns**2


def scoring_bytes(sizes: Sizes, width: int, moments_of: int) -> int:
    """A pass with the whole state: statistics of new features over the training rows, outputs of the scored.

    The statistics need the features in single and three arrays in double precision; the outputs the features
    below the head twice, as they are joined, and for the score the outputs and four arrays in double
    precision.
    """
    statistics = sizes.n_rows * moments_of * (SINGLE + 3 * DOUBLE)
    outputs = sizes.n_scored * (2 * SINGLE * width + sizes.n_outputs * (SINGLE + 4 * DOUBLE))
    return max(statistics, outputs)
