"""What all parts of an explanation share: the model, its columns, the rows that averages are taken over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .attribution import Attribution, attribute
from .columns import Axis
from .neurons import Head, Neuron, neurons_of
from .subject import Subject

__all__ = ["Context"]

#: Rows of the background that the size of contributions is relative to, at least.
_LEAST = 8


@dataclass(frozen=True, eq=False)
class Context:
    """The model, its columns and rows of data.

    Attributes
    ----------
    subject : Subject
    axes : the columns
    rows : array (n, inputs), the rows whose range and density are shown
    background : some of them, that averages are taken over
    seed : of what is drawn at random
    """

    subject: Subject
    axes: Sequence[Axis]
    rows: np.ndarray
    background: np.ndarray
    seed: int = 0

    def random(self, *purpose: int) -> np.random.Generator:
        """A generator of its own for each purpose, so that results do not depend on what was asked before."""
        return np.random.default_rng([self.seed, *purpose])

    @cached_property
    def head(self) -> Head:
        return Head(self.subject)

    @cached_property
    def neurons(self) -> list[Neuron]:
        return neurons_of(self.subject.network)

    @cached_property
    def features(self) -> np.ndarray:
        """What the head reads of the background: (n, neurons)."""
        return self.subject.network.read_by_head(self.background).astype(np.float64)

    def attribute(self, row: np.ndarray, budget: int) -> Attribution:
        """What each column contributes to the outputs for a row."""
        groups = [axis.inputs for axis in self.axes]
        return attribute(self.subject.outputs, row, self.background, groups, budget, self.random(0))

    def sizes(self, number: int, budget: int) -> np.ndarray:
        """How large the contributions (columns, outputs) to one of the ``rows`` are, about.

        Relative to some rows of the background only, where the budget does not suffice for all of them.
        """
        groups, rng = [axis.inputs for axis in self.axes], self.random(3, number)
        most = max(_LEAST, budget // (2 * (len(groups) + 1)))
        some = self.background
        if 2 ** len(groups) * len(some) > budget and len(some) > most:
            some = some[rng.permutation(len(some))[:most]]
        return np.abs(attribute(self.subject.outputs, self.rows[number], some, groups, budget, rng).values)
