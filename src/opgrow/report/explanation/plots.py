"""Explanations drawn by matplotlib, on axes of the user's own or in a figure of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...common.extras import require
from ...common.places import evenly
from ...network.drawing.svg import COLOURS, GREY, shortened
from .columns import MISSING, Axis
from .portraits import Map, Portrait
from .subject import Quantity
from .views import Views

__all__ = ["new_axes", "plot_explanation", "plot_neuron", "plot_pair", "plot_response", "plot_row"]

_BLUE, _RED, _GREEN = COLOURS[:3]
_LABEL = 28
#: What an axis says of each unit.
_UNITS = {"logit": "logit, relative to the mean of all classes", "share": "share", "target": ""}


def new_axes(what: str, n: int = 1, width: float = 4.2, height: float = 3.2, columns: int = 3) -> list[Any]:
    """Axes in a figure of their own; an ImportError says what is needed for them."""
    pyplot = require("matplotlib.pyplot", what, "plot")
    columns = min(n, columns)
    rows = -(-n // columns)
    size = (width * columns, height * rows)
    _, axes = pyplot.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    every = list(axes.ravel())
    for unused in every[n:]:
        unused.set_axis_off()
    return every[:n]


def plot_response(
    explanation: Views,
    column: str | int,
    output: str | int = 0,
    *,
    row: int | None = None,
    ax: Any = None,
) -> Any:
    """Draw how an output follows one column: averaged over rows, and for one row.

    Parameters
    ----------
    explanation : Explanation
    column : its name or number
    output : name or number of what is explained, the first by default
    row : a row of X, whose own curve is drawn, too
    ax : matplotlib axes, optional
        By default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        The line is the mean over rows, the band has the curves of four rows out of five once they are shifted
        to the same level, and the bars at the bottom are the data.
    """
    one, axis = explanation.response(column), explanation.axis(column)
    number = explanation.output_number(output)
    ax = new_axes("plot_response")[0] if ax is None else ax
    at, shown = _places(axis)
    mean, low, high = (values[shown, number] for values in (one.mean, one.low, one.high))
    if axis.kind == "levels":
        error = np.stack([np.maximum(mean - low, 0), np.maximum(high - mean, 0)])
        ax.errorbar(at, mean, yerr=error, fmt="o", color=_BLUE, ecolor=GREY, capsize=3, label=one.view)
    else:
        ax.fill_between(at, low, high, color=_BLUE, alpha=0.2, linewidth=0, label="four rows of five")
        ax.plot(at, mean, color=_BLUE, linewidth=2, label=one.view)
    if row is not None:
        way = explanation.row(row)
        local = way.curves(explanation.column_number(column))[shown, number]
        ax.plot(at, local, "s" if axis.kind == "levels" else "--", color=_RED, label=f"local: row {row}")
        if axis.kind == "number" and way.texts[explanation.column_number(column)] != MISSING:
            ax.plot(way.inputs[axis.start], way.outputs[number], "o", color=_RED)
    _draw_data(ax, axis, at)
    ax.set_xlabel(shortened(axis.name, _LABEL))
    ax.set_ylabel(_unit(explanation, number))
    ax.set_title(f"{one.view}, interplay {one.interplay:.0%}", fontsize="small")
    ax.legend(fontsize="x-small", frameon=False)
    return ax


def _places(axis: Axis) -> tuple[np.ndarray, np.ndarray]:
    """Where values of the grid are drawn, and which of them; gaps have no place."""
    if axis.grid is None:
        places = np.arange(len(axis.labels))
        return places.astype(float), places
    shown = np.flatnonzero(~np.isnan(axis.grid))
    return axis.grid[shown], shown


def _draw_data(ax: Any, axis: Axis, at: np.ndarray) -> None:
    """How many rows there are, as bars at the bottom, and ticks that can be read."""
    counts = axis.counts[: len(at)] if axis.edges is None else axis.counts[: len(axis.edges) - 1]
    below = ax.twinx()
    if axis.edges is None:
        below.bar(at, counts, width=0.6, color=GREY, alpha=0.25)
        ax.set_xticks(at, [shortened(label, 12) for label in axis.labels], rotation=45, ha="right")
    else:
        below.bar(axis.edges[:-1], counts, width=np.diff(axis.edges), align="edge", color=GREY, alpha=0.25)
    below.set_ylim(0, 5 * max(1, counts.max()))
    below.set_yticks([])
    below.set_zorder(0)
    ax.set_zorder(1)
    ax.patch.set_visible(False)
    if axis.kind == "date" and axis.grid is not None:
        chosen = evenly(len(at), 4)
        ax.set_xticks(at[chosen], [axis.labels[i] for i in chosen], rotation=20, ha="right")


def _unit(explanation: Views, number: int) -> str:
    quantity: Quantity = explanation.quantities[number]
    unit = _UNITS.get(quantity.unit, "")
    return shortened(f"{quantity.name}" + (f" ({unit})" if unit else ""), 2 * _LABEL)


def plot_row(explanation: Views, row: int, output: str | int = 0, *, ax: Any = None, most: int = 10) -> Any:
    """Draw what the columns contribute to an output for one row: bars that add up to the output.

    Parameters
    ----------
    explanation : Explanation
    row : number of a row of X
    output : name or number of what is explained
    ax : matplotlib axes, optional
    most : int, default=10
        Columns that have a bar of their own.

    Returns
    -------
    matplotlib.axes.Axes
    """
    way, number = explanation.row(row), explanation.output_number(output)
    ax = new_axes("plot_row", width=6)[0] if ax is None else ax
    values = way.columns.values[:, number]
    order = np.argsort(-np.abs(values), kind="stable").tolist()
    names = [f"{explanation.columns[j]} = {way.texts[j]}" for j in order[:most]]
    sizes = [float(values[j]) for j in order[:most]]
    if len(order) > most:
        names.append(f"{len(order) - most} others")
        sizes.append(float(values[order[most:]].sum()))
    ends = float(way.columns.base[number]) + np.cumsum(sizes)
    starts = ends - sizes
    places = np.arange(len(sizes))[::-1]
    ax.barh(places, sizes, left=starts, color=[_BLUE if size > 0 else _RED for size in sizes])
    for place, size, end in zip(places, sizes, ends, strict=True):
        ax.annotate(
            f"{size:+.2g}",
            (end, place),
            (3 if size > 0 else -3, 0),
            textcoords="offset points",
            va="center",
            ha="left" if size > 0 else "right",
            fontsize="x-small",
        )
    ax.axvline(way.columns.base[number], color=GREY, linestyle=":", label="mean of the data")
    ax.axvline(way.outputs[number], color="black", linewidth=1, label=f"row {row}")
    ax.set_yticks(places, [shortened(name, _LABEL + 8) for name in names])
    ax.set_xlabel(_unit(explanation, number))
    low, high = min(starts.min(), ends.min()), max(starts.max(), ends.max())
    ax.set_xlim(low - 0.15 * (high - low), high + 0.15 * (high - low))
    ax.legend(fontsize="x-small", frameon=False)
    return ax


def plot_pair(
    explanation: Views,
    first: str | int,
    second: str | int,
    output: str | int = 0,
    *,
    ax: Any = None,
) -> Any:
    """Draw an output as two columns move, averaged over rows; ``explanation.pairs()`` has candidates.

    Parameters
    ----------
    explanation : Explanation
    first, second : columns, by name or number
    output : name or number of what is explained
    ax : matplotlib axes, optional

    Returns
    -------
    matplotlib.axes.Axes
    """
    one, number = explanation.pair(first, second), explanation.output_number(output)
    ax = new_axes("plot_pair")[0] if ax is None else ax
    x, y = (explanation.axis(column) for column in one.columns)
    _draw_places(
        ax, (x, y), one.places, one.values[..., number], middle=float(one.values[..., number].mean())
    )
    ax.set_title(f"averaged: {_unit(explanation, number)}", fontsize="small")
    return ax


def plot_neuron(explanation: Views, neuron: int, *, axes: Sequence[Any] | None = None) -> list[Any]:
    """Draw a neuron: the largest of its curves and maps, and its activation.

    Parameters
    ----------
    explanation : Explanation
    neuron : its number; ``explanation.neuron_order`` has the most important ones first
    axes : sequence of matplotlib axes, optional
        The last one has the activation, those before it curves and maps. By default four in a new figure.

    Returns
    -------
    list of matplotlib.axes.Axes
    """
    one = explanation.neuron(neuron)
    parts: list[Any] = sorted([*one.curves, *one.maps], key=lambda part: -part.size)
    chosen = (
        list(axes) if axes is not None else new_axes("plot_neuron", min(len(parts), 3) + 1, 3.4, columns=4)
    )
    if not chosen:
        raise ValueError("axes is empty; at least one is needed")
    for ax, part in zip(chosen[:-1], parts, strict=False):
        if isinstance(part, Map):
            _draw_map(ax, explanation, part)
            continue
        axis = explanation.axis(part.column)
        at, shown = _places(axis)
        ax.plot(at, part.values[shown], "o" if axis.kind == "levels" else "-", color=_GREEN)
        _draw_data(ax, axis, at)
        ax.set_xlabel(shortened(axis.name, _LABEL))
        ax.set_title(one.neuron.view, fontsize="small")
    _draw_activation(chosen[-1], one)
    return chosen


def _draw_map(ax: Any, explanation: Views, part: Map) -> None:
    axes = [explanation.axis(column) for column in part.columns]
    places = [np.arange(n) for n in part.values.shape]
    _draw_places(ax, axes, places, part.values, middle=0.0)
    fixed = [f"{explanation.axis(c).name} = {explanation.axis(c).labels[p]}" for c, p in part.fixed.items()]
    ax.set_title(f"local: {fixed[0]}" if fixed else "exact", fontsize="small")


def _draw_places(
    ax: Any, axes: Sequence[Axis], places: Sequence[np.ndarray], values: np.ndarray, middle: float
) -> None:
    """A map, white in the middle; gaps have no place on it."""
    shown = [_places(axis) for axis in axes]
    kept = [np.isin(chosen, there) for chosen, (_, there) in zip(places, shown, strict=True)]
    x, y = (at[np.isin(there, chosen)] for chosen, (at, there) in zip(places, shown, strict=True))
    values = values[np.ix_(*kept)].T
    far = float(np.abs(values - middle).max()) or 1.0
    mesh = ax.pcolormesh(x, y, values, cmap="RdBu", vmin=middle - far, vmax=middle + far, shading="nearest")
    ax.figure.colorbar(mesh, ax=ax)
    ways = ((ax.set_xlabel, ax.set_xticks), (ax.set_ylabel, ax.set_yticks))
    for axis, (label, ticks) in zip(axes, ways, strict=True):
        label(shortened(axis.name, _LABEL))
        if axis.grid is None:
            ticks(range(len(axis.labels)), [shortened(text, 12) for text in axis.labels])


def _draw_activation(ax: Any, one: Portrait) -> None:
    operators = one.neuron.operators
    ax.set_title(f"neuron {one.neuron.number}: {operators}", fontsize="small")
    if one.sums is None or one.handed_on is None or one.counts is None or one.edges is None:
        ax.text(0.5, 0.5, "no curve of its own", ha="center", transform=ax.transAxes)
        ax.set_axis_off()
        return
    ax.plot(one.sums, one.handed_on, color=_BLUE, linewidth=2)
    below = ax.twinx()
    below.bar(one.edges[:-1], one.counts, width=np.diff(one.edges), align="edge", color=GREY, alpha=0.25)
    below.set_ylim(0, 5 * max(1, one.counts.max()))
    below.set_yticks([])
    ax.set_xlabel("largest of the curves" if one.neuron.view == "maximum" else "sum of the curves and maps")
    ax.set_ylabel("what the neuron hands on")


def plot_explanation(explanation: Views, n_columns: int = 6) -> Any:
    """A figure of the importance and of the responses to the most important columns, of the first output."""
    order = explanation.order[:n_columns]
    axes = new_axes("Explanation.plot", len(order) + 1)
    sizes = explanation.importance.sum(axis=1)
    shown = explanation.order[:12][::-1]
    axes[0].barh([shortened(explanation.columns[j], _LABEL) for j in shown], sizes[shown], color=GREY)
    axes[0].set_xlabel("mean size of contributions")
    for ax, j in zip(axes[1:], order, strict=True):
        plot_response(explanation, j, ax=ax)
    return axes[0].figure
