"""Blocks that no longer contribute are dropped, and the sums of their features with them.

A part of the network (`opgrow.network.without`) contributes if the head without it predicts rows of the
buffer worse, each row by a head that has not learned from it. The sums of the other features stay what they
are, so that the head of what is left is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ...closed_form.running_ridge import RunningRidge
from ...growth.settings import GrowthSettings
from ...network import Network
from ...network.without import Part, parts_of, without
from ...training.scores import Score, evaluate
from .learned import LearnedRows
from .state import Running, scaled_targets

__all__ = ["Dropped", "drop_idle"]

#: Parts that a network may have so that all are tried: trials take time.
_MOST_PARTS = 200


@dataclass(frozen=True)
class Dropped:
    """What is left of a network.

    Attributes
    ----------
    network, state : to go on with; the head is that of all rows
    n_neurons : how many have gone
    """

    network: Network
    state: Running
    n_neurons: int


def judging(
    network: Network, state: Running, rows: LearnedRows, settings: GrowthSettings
) -> Callable[..., Score]:
    """A function of sums that these rows are in, and of the features that they are of, to a score.

    It says how good heads are on these rows, each predicted by a head that has not learned from it.
    """
    features = network.features(rows.x).astype(np.float64)
    target = scaled_targets(network, rows)

    def judge(sums: RunningRidge, kept: np.ndarray | slice = slice(None)) -> Score:
        seen = np.ascontiguousarray(features[:, kept])
        outputs = sums.left_out(sums.solve(state.ridge), seen, target, rows.weight)
        return evaluate(settings.criterion, state.loss, outputs * state.factor, target, rows.weight)

    return judge


def drop_idle(network: Network, state: Running, rows: LearnedRows, settings: GrowthSettings) -> Dropped:
    """Drop parts as long as the score on rows does not worsen by the least improvement of a layer.

    ``rows`` are among those of the sums.
    """
    judge = judging(network, state, rows, settings)

    def score(kept: np.ndarray) -> Score:
        return judge(state.sums.reordered(kept), kept)

    start = score(np.arange(state.sums.n_features))

    def harm(gone: Part) -> float:
        rest = without(network, gone)
        return np.inf if rest is None else -score(rest.kept).improvement_over(start)

    parts = parts_of(network)
    harms = [harm(part) for part in parts] if 1 < len(parts) <= _MOST_PARTS else []
    gone: Part = frozenset()
    for number in np.argsort(harms, kind="stable").tolist():
        if harms[number] > settings.layer_threshold:
            break
        if harm(gone | parts[number]) <= settings.layer_threshold:
            gone |= parts[number]
    rest = without(network, gone) if gone else None
    if rest is None:
        return Dropped(network, state, 0)
    state = replace(state, sums=state.sums.reordered(rest.kept))
    before, left = (sum(layer.n_neurons for layer in one.layers) for one in (network, rest.network))
    return Dropped(state.network(rest.network), state, before - left)
