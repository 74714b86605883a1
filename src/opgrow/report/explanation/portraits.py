"""What is shown of a neuron: its curves and maps, its activation, and what it adds to the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ...network import Network
from .columns import Axis
from .neurons import Neuron
from .terms import Terms

__all__ = ["Curve", "Map", "Portrait", "portrait"]

#: Curves and maps of a neuron that are shown at most, unless they add less than a part of the largest.
_CURVES, _MAPS, _SMALL = 8, 4, 1e-3
_POINTS, _BINS = 61, 20


@dataclass(frozen=True, eq=False)
class Curve:
    """What a column adds to a neuron's sum: G values, and their standard deviation over the background."""

    column: int
    values: np.ndarray
    size: float


@dataclass(frozen=True, eq=False)
class Map:
    """What two columns add together: (G1, G2) values. A third column is ``fixed`` at a place of its grid."""

    columns: tuple[int, int]
    values: np.ndarray
    size: float
    fixed: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Portrait:
    """One neuron.

    Attributes
    ----------
    neuron : Neuron
    weights : what one unit of it adds to each output, or None where the head has operators
    size : standard deviation of what it adds, summed over the outputs
    adds : array (outputs, 3), quantiles 0.1, 0.5 and 0.9 of what it adds
    curves, maps : the largest ones, the largest first
    left_out : curves and maps that are not among these
    sums : values that the activation is applied to, or None where they are not known
    handed_on : what the neuron hands on there, or None
    counts, edges : histogram of the sums over the background, or None
    """

    neuron: Neuron
    weights: np.ndarray | None
    size: float
    adds: np.ndarray
    curves: list[Curve]
    maps: list[Map]
    left_out: int = 0
    sums: np.ndarray | None = None
    handed_on: np.ndarray | None = None
    counts: np.ndarray | None = None
    edges: np.ndarray | None = None


def portrait(
    network: Network,
    axes: Sequence[Axis],
    neuron: Neuron,
    added: np.ndarray,
    weights: np.ndarray | None,
    background: np.ndarray,
    averaged: Sequence[Curve],
) -> Portrait:
    """The portrait of a neuron.

    Parameters
    ----------
    network, axes, neuron
    added : array (rows, outputs), what the neuron adds in rows of the background
    weights : what one unit of it adds to each output, or None
    background : rows (n, inputs)
    averaged : its averaged curves, which are shown where it has no exact ones
    """
    size = float(added.std(axis=0).sum())
    adds = np.quantile(added, (0.1, 0.5, 0.9), axis=0).T
    if neuron.view == "averaged":
        return Portrait(neuron, weights, size, adds, list(averaged), [])
    assert neuron.weight is not None
    assert neuron.window is not None
    operator = neuron.operators.nodal_operator
    terms = Terms(network, axes, operator, neuron.window, neuron.weight)
    there = terms.at(background)
    sizes = {columns: float(values.std()) for columns, values in there.items()}
    smallest = _SMALL * max(sizes.values(), default=0.0)
    order = [c for c in sorted(sizes, key=lambda columns: -sizes[columns]) if sizes[c] > smallest]
    single = [columns for columns in order if len(columns) == 1][:_CURVES]
    several = [columns for columns in order if len(columns) > 1][:_MAPS]
    values = list(there.values())
    pooled = np.zeros(len(background))
    if values:
        pooled = np.max(values, axis=0) if neuron.window == 0 else np.sum(values, axis=0)
    pooled = pooled + neuron.bias
    low, high = float(pooled.min()), float(pooled.max())
    margin = 0.25 * (high - low) or 1.0
    sums = np.linspace(low - margin, high + margin, _POINTS)
    handed_on = neuron.handed_on(sums)
    counts, edges = np.histogram(pooled, bins=_BINS, range=(sums[0], sums[-1]))
    return Portrait(
        neuron,
        weights,
        size,
        adds,
        [Curve(c[0], terms.curve(c[0]), sizes[c]) for c in single],
        [_map(terms, axes, columns, background, sizes[columns]) for columns in several],
        len(sizes) - len(single) - len(several),
        None if handed_on is None else sums,
        handed_on,
        None if handed_on is None else counts,
        None if handed_on is None else edges,
    )


def _map(
    terms: Terms, axes: Sequence[Axis], columns: tuple[int, ...], background: np.ndarray, size: float
) -> Map:
    """Of three columns, the middle one stays at the value of its grid that is nearest to its median."""
    fixed = {}
    for column in columns[1:-1]:
        axis = axes[column]
        if axis.kind == "levels":
            place = int(axis.counts[: len(axis.encoded)].argmax())
        else:
            middle = np.median(background[:, axis.start])
            place = int(np.abs(axis.encoded[:, 0] - middle).argmin())
        fixed[column] = place
    return Map((columns[0], columns[-1]), terms.map(columns, fixed), size, fixed)
