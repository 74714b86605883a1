"""How a network grew, drawn by matplotlib."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from ..growth.model import GrownModel
from ..network.drawing.svg import shades
from .explanation.plots import new_axes

__all__ = ["plot_growth"]


def plot_growth(estimator: Any, *, ax: Any = None) -> Any:
    """Draw the score of every step of a fitted estimator's growth against the parameters of the network.

    Parameters
    ----------
    estimator : a fitted estimator of this package
    ax : matplotlib axes, optional
        By default those of a new figure.

    Returns
    -------
    matplotlib.axes.Axes
        A line for each network of an average, through the steps that were kept; crosses are steps that were
        tried and discarded.
    """
    history = getattr(estimator, "history_", None)
    if not isinstance(estimator, GrownModel) or not history:
        raise ValueError(
            f"plot_growth needs a fitted estimator with a history, got {type(estimator).__name__}."
        )
    ax = new_axes("plot_growth", width=5.5)[0] if ax is None else ax
    networks = [list(steps) for _, steps in groupby(history, lambda step: step.member)]
    for steps, colour in zip(networks, shades(len(networks)), strict=True):
        kept = [step for step in steps if step.accepted and step.score.finite]
        lost = [step for step in steps if not step.accepted and step.score.finite]
        label = f"network {steps[0].member}" if len(networks) > 1 else "kept"
        for group, style, words in (
            (kept, "o-", label),
            (lost, "x", None if len(networks) > 1 else "discarded"),
        ):
            if group:
                sizes, scores = [s.n_parameters for s in group], [s.score.value for s in group]
                ax.plot(sizes, scores, style, color=colour, label=words, alpha=1.0 if style == "o-" else 0.5)
    better = "more" if history[0].score.higher_is_better else "less"
    ax.set_xlabel("parameters")
    ax.set_ylabel(f"score ({better} is better)")
    ax.legend(fontsize="x-small", frameon=False)
    return ax
