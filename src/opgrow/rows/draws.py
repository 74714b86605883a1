"""Candidates of the search: operator sets with random weights, and their features."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise

import numpy as np

from ..common.threads import stream
from ..engine.features import compiled_features
from ..engine.native import native
from ..operators import OperatorSet

__all__ = ["Draw", "DrawSettings", "all_features", "draw_weights", "n_features", "picked"]

#: The weights of inputs on which a neuron does not concentrate, as a part of what they would be.
_ASIDE = 0.05


@dataclass(frozen=True)
class DrawSettings:
    """How random weights are drawn.

    Attributes
    ----------
    weight_ranges : draws are uniform in [-range, range], once for each range
    n_draws : draws for each range
    share_draws : sets with the same nodal operator use the same draw
    focus : inputs on which each neuron concentrates in every second draw; None: all draws are alike
    """

    weight_ranges: tuple[float, ...] = (1.0,)
    n_draws: int = 1
    share_draws: bool = True
    focus: int | None = None


@dataclass(frozen=True)
class Draw:
    """One matrix of random weights and the candidates that use it."""

    weight: np.ndarray
    weight_range: float
    sets: list[OperatorSet]
    first: int  # index of the first candidate

    @cached_property
    def codes(self) -> list[tuple[int, int, int] | None]:
        """The engine's codes of the sets, None for those it does not have."""
        return [operator_set.codes for operator_set in self.sets]


def draw_weights(
    n_inputs: int,
    n_neurons: int,
    sets: Sequence[OperatorSet],
    settings: DrawSettings,
    rng: np.random.Generator,
) -> list[Draw]:
    """Random weights for every operator set, or once for all sets with the same nodal operator."""
    groups: list[list[OperatorSet]]
    if settings.share_draws:
        by_nodal: dict[str, list[OperatorSet]] = {}
        for s in sets:
            by_nodal.setdefault(s.nodal, []).append(s)
        groups = list(by_nodal.values())
    else:
        groups = [[s] for s in sets]
    draws, first = [], 0
    for number in range(settings.n_draws):
        for group in groups:
            unit = rng.uniform(-1.0, 1.0, size=(n_inputs, n_neurons))
            if settings.focus is not None and settings.focus < n_inputs and number % 2:
                unit = _focused(unit, settings.focus, rng)
            for weight_range in settings.weight_ranges:
                draws.append(Draw((unit * weight_range).astype(np.float32), weight_range, group, first))
                first += len(group)
    return draws


def _focused(unit: np.ndarray, focus: int, rng: np.random.Generator) -> np.ndarray:
    """Weights of which each neuron has a few large ones, so that its sum varies as much as before.

    Few inputs matter together in most tables, and a sum of many hides them.
    """
    n_inputs = len(unit)
    place = rng.random(unit.shape).argsort(axis=0, kind="stable").argsort(axis=0, kind="stable")
    return unit * np.where(place < focus, np.sqrt(n_inputs / focus), _ASIDE)


def _features(x: np.ndarray, draw: Draw, out: np.ndarray) -> None:
    """Raw features of a draw's candidates for some rows: out (sets, m, n)."""
    built_in = [codes for codes in draw.codes if codes is not None]
    if built_in:
        whole = out if len(built_in) == len(draw.sets) else None
        nodals, pools, activations = zip(*built_in, strict=True)
        features = native().search_features(nodals[0], pools, activations, x, draw.weight, whole)
        if whole is not None:
            return
        out[[codes is not None for codes in draw.codes]] = features
    nothing = np.zeros(draw.weight.shape[1], np.float32)
    for j, operator_set in enumerate(draw.sets):
        if draw.codes[j] is None:
            out[j] = compiled_features(x, draw.weight, nothing, operator_set).T


def n_features(draws: Sequence[Draw]) -> int:
    """Features of all candidates together."""
    return sum(len(draw.sets) for draw in draws) * draws[0].weight.shape[1]


def picked(draws: Sequence[Draw], chosen: np.ndarray) -> list[Draw]:
    """The draws of the chosen candidates, each with no more of its sets than these."""
    return [
        Draw(d.weight, d.weight_range, [d.sets[i - d.first] for i in wanted], d.first)
        for d in draws
        if (wanted := chosen[(chosen >= d.first) & (chosen < d.first + len(d.sets))]).size
    ]


def all_features(x: np.ndarray, draws: Sequence[Draw], n_threads: int = 1) -> np.ndarray:
    """Features of all candidates for some rows: (k, m, n). Draws are spread over threads."""
    starts = np.cumsum([0, *(len(draw.sets) for draw in draws)])
    out = np.empty((starts[-1], draws[0].weight.shape[1], len(x)), np.float32)
    x = np.ascontiguousarray(x)
    places = [out[start:stop] for start, stop in pairwise(starts)]
    tasks = [partial(_features, x, draw, place) for draw, place in zip(draws, places, strict=True)]
    deque(stream(tasks, n_threads), maxlen=0)
    return out
