"""What a fitted estimator holds of the rows that it has seen, and the head that follows from it.

The features that the head sees stay what they are, and so do the constants by which inputs and targets are
scaled. The head becomes the least-squares solution for all rows seen (`opgrow.closed_form.running_ridge`),
whatever head the network was grown with. For classes its outputs estimate the targets 0 and 1; a factor
that the first rows decide makes logits of them.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace

import numpy as np

from ...closed_form.running_ridge import RidgeSolution, RunningRidge
from ...network import Linear, Network
from ...network.scaling import Ranges, spread_rows
from ...rows.preparation import ranges
from ...training.scores import temperature
from .buffer import Buffer
from .learned import LearnedRows
from .watch import Watch

__all__ = ["Running", "extended", "scaled_targets"]

#: Ridges that generalised cross-validation chooses from, relative to a sum over rows of mean weight 1.
_RIDGES = (0.01, 0.1, 1.0, 10.0, 100.0)
#: Rows whose features are computed at once, and rows that decide the scale of the logits, at most.
_CHUNK_ROWS, _SCALE_ROWS = 8192, 4096


@dataclass(frozen=True)
class Running:
    """The sums of an estimator's head, and what else the rows decide.

    Attributes
    ----------
    sums : RunningRidge of the features that the head sees
    ridge : by which the head is solved, chosen from the rows of the first call
    factor : what the head's outputs are multiplied by; 1 for regression
    ranges : what was seen of inputs and targets
    n_rows : rows seen
    buffer : some of these rows
    watch : over the errors on them, where ``drift`` asks for one
    files : names of the files of a folder that were learned, each once
    """

    sums: RunningRidge
    ridge: float
    factor: float
    ranges: Ranges
    n_rows: int
    buffer: Buffer
    watch: Watch | None = None
    files: tuple[str, ...] = ()

    @classmethod
    def of(cls, network: Network, rows: LearnedRows, forgetting: float, buffer_rows: int) -> Running:
        """The state after the first rows: those that a network was grown from, or what is left of them."""
        sums = RunningRidge.start(network.head_width, rows.target.shape[1])
        sums = extended(sums, network, rows, forgetting)
        ridge = sums.best_ridge(_RIDGES)
        factor = 1.0
        if network.output_mean is None:
            factor = _factor(network, sums, sums.solve(ridge), rows)
        buffer = Buffer.empty(buffer_rows, rows.x, rows.target)
        buffer = buffer.extended(rows, network.output_mean is None)
        return cls(sums, ridge, factor, ranges(rows.x, rows.target), len(rows.x), buffer)

    def learned(self, network: Network, rows: LearnedRows, forgetting: float) -> Running:
        """The state after further rows; ``network`` has the features that it had from the start."""
        if not len(rows.x):
            return self
        seen = self.ranges.joined(ranges(rows.x, rows.target))
        sums = extended(self.sums, network, rows, forgetting)
        buffer = self.buffer.extended(rows, network.output_mean is None)
        return replace(self, sums=sums, ranges=seen, n_rows=self.n_rows + len(rows.x), buffer=buffer)

    def with_targets(self, places: np.ndarray) -> Running:
        """The state with further classes, which no row so far belongs to; see `RunningRidge.with_targets`."""
        known = places >= 0
        low, high = np.zeros((2, len(places)))
        low[known], high[known] = (
            self.ranges.target_low[places[known]],
            self.ranges.target_high[places[known]],
        )
        seen = replace(self.ranges, target_low=low, target_high=high)
        buffer = self.buffer.with_targets(places)
        return replace(self, sums=self.sums.with_targets(places), ranges=seen, buffer=buffer)

    @property
    def loss(self) -> str:
        """What outputs times ``factor`` are judged by: those for classes are logits."""
        return "mse" if self.factor == 1.0 else "cross_entropy"

    @property
    def n_bytes(self) -> int:
        """What the sums and the buffer take, in memory and in a model file."""
        holders = (self.sums, self.ranges, self.buffer)
        return sum(a.nbytes for one in holders for a in vars(one).values() if isinstance(a, np.ndarray))

    def with_file(self, name: str) -> Running:
        """The state that remembers a file, whose rows it has learned, by its name."""
        return replace(self, files=(*self.files, name))

    def without_rows(self) -> Running:
        """The state with an empty buffer, for a file that is to hold no rows."""
        return replace(self, buffer=self.buffer.emptied())

    def solution(self) -> RidgeSolution:
        """The head in double precision, for targets as it was grown for and before it is scaled."""
        return self.sums.solve(self.ridge)

    def network(self, network: Network) -> Network:
        """A network with the same features and the head of all rows seen; the one passed stays as it is."""
        weight, bias, *_ = self.solution()
        result = copy(network)
        head = Linear(*weight.shape)
        head.weight[:], head.bias[:] = weight * self.factor, bias * self.factor
        result.head, result.n_outputs = head, len(bias)
        # Rows to come may have other features, and the head is to learn from them as they are.
        result.head_low = result.head_high = None
        seen = self.ranges
        result.input_low, result.input_high = _wider(
            network.input_low, network.input_high, seen.low, seen.high
        )
        if network.output_mean is not None:
            limits = network.output_low, network.output_high, *seen.output_limits()
            result.output_low, result.output_high = _wider(*limits)
        return result


def scaled_targets(network: Network, rows: LearnedRows) -> np.ndarray:
    """Targets as the head predicts them."""
    if network.output_mean is None or network.output_scale is None:
        return rows.target
    return (rows.target - network.output_mean) / network.output_scale


def _wider(
    low: np.ndarray | None, high: np.ndarray | None, new_low: np.ndarray, new_high: np.ndarray
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Both ranges as one; older model files do not tell theirs, and none is made up."""
    if low is None or high is None:
        return low, high
    return np.minimum(low, new_low), np.maximum(high, new_high)


def extended(sums: RunningRidge, network: Network, rows: LearnedRows, forgetting: float) -> RunningRidge:
    """The sums with the features that a network has for further rows."""
    target = scaled_targets(network, rows)
    for start in range(0, len(rows.x), _CHUNK_ROWS):
        span = slice(start, start + _CHUNK_ROWS)
        features = network.features(rows.x[span])
        sums = sums.extended(features, target[span], rows.weight[span], forgetting)
    return sums


def _factor(network: Network, sums: RunningRidge, head: RidgeSolution, rows: LearnedRows) -> float:
    """By which factor estimates of 0 and 1 become logits: that of the least cross-entropy.

    Each row is predicted by the head without it, which leverages tell, and as in `calibrate` no number of
    rows proves more than it can.
    """
    chosen = spread_rows(len(rows.x), 0, len(rows.x), _SCALE_ROWS)
    features = network.features(rows.x[chosen]).astype(np.float64)
    target, weight = rows.target[chosen].astype(np.float64), rows.weight[chosen]
    outputs = sums.left_out(head, features, target, weight)
    doubt = 1.0 / (len(rows.x) + 1.0)
    return temperature(outputs, (1 - doubt) * target + doubt / target.shape[1], weight)
