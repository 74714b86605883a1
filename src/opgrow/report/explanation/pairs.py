"""What two columns do together: averaged maps, and how much of them is not the sum of two curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .columns import Axis, crossed
from .subject import Subject

__all__ = ["Pair", "pair"]

#: Values of each column, and rows that averages are taken over, at most.
_PLACES, _ROWS = 13, 64


@dataclass(frozen=True, eq=False)
class Pair:
    """Outputs as two columns move, averaged over rows.

    Attributes
    ----------
    columns : their numbers
    places : for each of them, places on its grid
    values : array (P1, P2, outputs), means over rows in which these two columns alone are replaced
    joint : array (P1, P2, outputs), what of it is not the sum of a curve of each column
    size : standard deviation of ``joint``, summed over the outputs
    """

    columns: tuple[int, int]
    places: tuple[np.ndarray, np.ndarray]
    values: np.ndarray
    joint: np.ndarray
    size: float


def pair(subject: Subject, axes: Sequence[Axis], columns: tuple[int, int], background: np.ndarray) -> Pair:
    """The map of two columns, over some of the background rows (n, inputs)."""
    some = background[:: -(-len(background) // _ROWS)]
    places, (first, second) = crossed(axes, columns, _PLACES)
    rows = np.repeat(some[None], len(first), axis=0)
    for column, chosen in zip(columns, (first, second), strict=True):
        rows[:, :, axes[column].inputs] = axes[column].encoded[chosen][:, None]
    outputs = subject.outputs(rows.reshape(-1, rows.shape[2]))
    values = outputs.reshape(len(first), len(some), -1).mean(axis=1).reshape(*map(len, places), -1)
    joint = values - values.mean(axis=0) - values.mean(axis=1, keepdims=True) + values.mean(axis=(0, 1))
    size = float(joint.std(axis=(0, 1)).sum())
    return Pair(columns, (places[0], places[1]), values, joint, size)
