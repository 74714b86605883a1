"""What a fit asks of its data, whether the rows are in memory or are read in chunks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...growth.engine import Engine
from ...network import Network
from ...network.limits import head_limits
from ...network.scaling import Ranges, Scaling
from ...rows.problem import Problem
from ..base import GrowingEstimator
from .calibration import HeldOut

__all__ = ["MIN_VALIDATION_ROWS", "Constants", "FitData", "check_classes"]

#: Below this many rows a validation split decides by luck; scores are then taken on the training data.
MIN_VALIDATION_ROWS = 8


@dataclass(frozen=True)
class Constants:
    """How inputs are scaled, what was seen of them and of targets, and shift and spread of the targets."""

    scaling: Scaling
    ranges: Ranges
    shift: np.ndarray
    spread: np.ndarray


class FitData(ABC):
    """The rows of one fit, on this rank.

    A fit calls the methods in the order in which they stand here.

    Attributes
    ----------
    n_features : columns of X
    n_targets : columns of the targets; None while they are not known
    classes : labels of the classes, sorted; None for regression, or while they are not known
    classification : whether the targets are classes
    single_target : whether y has one dimension
    same_rows_validate : whether the same rows validate all networks
    kind : by which checkpoints tell rows in memory from rows in chunks
    constants : what the network has to know of the data, once the rows are divided
    seen_rows : some of the training rows, the same on all ranks, whose features limit those of others
    sample : a few of these, by which exports measure themselves
    """

    n_features: int
    n_targets: int | None
    classification: bool
    classes: np.ndarray | None
    single_target: bool
    same_rows_validate: bool
    kind: ClassVar[str]
    constants: Constants
    seen_rows: np.ndarray
    sample: np.ndarray

    @abstractmethod
    def family(self, estimator: GrowingEstimator[Any]) -> GrowingEstimator[Any]:
        """The estimator with the parameters that it has for such data."""

    @abstractmethod
    def survey(self, seed: int, n_threads: int) -> None:
        """Go through rows that are not in memory for the first time."""

    @abstractmethod
    def engine(self, n_threads: int) -> Engine:
        """The engine of this rank that grows networks from these rows."""

    @abstractmethod
    def fingerprints(self) -> dict[str, str]:
        """What tells this data from other data, by names that a user understands."""

    @abstractmethod
    def divide(self, seed: int, engine: Engine) -> int:
        """Divide the rows among networks and find the constants; the number of networks."""

    @abstractmethod
    def rows_to_learn(self) -> int:
        """The rows of all ranks that each network learns from at least."""

    @abstractmethod
    def problem(self, number: int) -> Problem:
        """The problem of one network, from 0."""

    @abstractmethod
    def held_out(self, network: Network, number: int) -> HeldOut | None:
        """What the network of a number says of rows that it has not learned from; None without such rows."""

    @abstractmethod
    def distilled(self, teacher: Network, loss: str) -> Problem:
        """The problem of a network that learns from another one, which was grown for a loss."""

    def finish(self, network: Network, learned_from: np.ndarray | None = None) -> None:
        """Tell a network how its inputs were scaled, and what was seen of them and of its targets.

        Rows that it has learned from set the limits of the features that its head reads. Without them, the
        limits that it has stay; if it has none, rows that were seen set them.
        """
        scaling, ranges = self.constants.scaling, self.constants.ranges
        network.input_mean, network.input_scale = scaling.center.copy(), scaling.scale.copy()
        network.input_bound = scaling.bound
        network.input_low, network.input_high = ranges.low, ranges.high
        if not self.classification:
            network.output_mean, network.output_scale = self.constants.shift, self.constants.spread
            network.output_low, network.output_high = ranges.output_limits()
        if learned_from is not None or network.head_low is None:
            rows = self.seen_rows if learned_from is None else learned_from
            network.head_low, network.head_high = head_limits(network, rows) or (None, None)


def check_classes(labels: np.ndarray, classes: np.ndarray) -> None:
    """Refuse an eval_set with classes that the training rows do not have."""
    unknown = np.setdiff1d(labels, classes)
    if unknown.size:
        raise ValueError(f"eval_set has classes that y does not have: {unknown.tolist()}")
