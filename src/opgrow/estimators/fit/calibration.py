"""How confident a classifier should be, as rows tell that its networks have not learned from.

A network is surer of the rows that it was trained on than of any others, and its logits are too large. The
validation rows of each network tell by which factor: the one with the least cross-entropy, found on all of
them together. The factor goes into the head, so that predictions, model files and exports have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...common.team import Alone
from ...network import Linear, Network
from ...network.scaling import spread_rows
from ...training.scores import temperature

__all__ = ["HeldOut", "calibrate", "joined"]

#: Rows that decide, at most.
_ROWS = 20_000
#: A logit is not farther below the largest one of its row than so many times the distance that this part of
#: the rows stays within.
_FAR, _PART = 4.0, 0.9


class HeldOut(NamedTuple):
    """Rows that a network has not learned from, as it takes them: inputs, its outputs, targets and weights.

    Outputs and targets are (n, outputs), in the units of the user.
    """

    x: np.ndarray
    outputs: np.ndarray
    target: np.ndarray
    weight: np.ndarray


def joined(parts: Sequence[HeldOut], team: Alone) -> HeldOut | None:
    """What several networks say of rows of all ranks; of many rows, some of each network's."""
    if not parts:
        return None
    shared = [_of_all(part, team, len(parts)) for part in parts]
    held = HeldOut(*(np.concatenate(arrays) for arrays in zip(*shared, strict=True)))
    return held if len(held.outputs) else None


def _of_all(part: HeldOut, team: Alone, n_parts: int) -> HeldOut:
    n_rows = len(part.outputs)
    chosen = spread_rows(n_rows, team.before(n_rows), team.total(n_rows), _ROWS // n_parts)
    x, *rest = part
    return HeldOut(team.joined(x[chosen]), *(team.joined(array[chosen].astype(np.float64)) for array in rest))


def calibrate(network: Network, held: HeldOut) -> float:
    """Scale the logits of a network as held-out rows ask for; the factor.

    Rows that are all predicted correctly would ask for certainty. As in Platt's method, each class is given
    its share of one further row, so that no number of rows proves more than it can. A row whose features are
    far beyond those of all others can have logits of thousands, and if it is wrong, it would ask for doubt
    about every other row: differences far beyond those of the others are cut off.
    """
    _, outputs, target, weight = held
    n_rows, n_classes = target.shape
    doubt = 1.0 / (n_rows + 1.0)
    factor = temperature(_without_far(outputs), (1 - doubt) * target + doubt / n_classes, weight)
    head = network.head
    assert isinstance(head, Linear)
    head.weight, head.bias = head.weight * np.float32(factor), head.bias * np.float32(factor)
    return factor


def _without_far(outputs: np.ndarray) -> np.ndarray:
    """Logits (n, classes) whose differences within a row are not far beyond those within other rows."""
    largest = outputs.max(axis=1, keepdims=True)
    distance = _FAR * float(np.quantile(largest - outputs.min(axis=1, keepdims=True), _PART))
    return np.maximum(outputs, largest - distance)
