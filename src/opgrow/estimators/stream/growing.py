"""A further network beside a grown one: grown by the same loop and method, kept by the same rule.

It grows from rows that are still there, with the constants of inputs and targets of the first network. The
head of both is solved from the sums of all rows, widened by what these rows say of the new features
(`opgrow.closed_form.widening`). It stays if this head is better on held-out rows than the present one, by the
least improvement that a further layer needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from ...closed_form.running_ridge import RunningRidge
from ...closed_form.widening import widened
from ...common.team import ALONE
from ...engine.native import native
from ...growth.devices import choose_engine
from ...growth.events import GrowthStep
from ...growth.loop import Growth
from ...growth.settings import GrowthSettings
from ...network import Network
from ...network.beside import beside
from ...network.scaling import Scaling
from ...rows.preparation import split_rows, standardized
from ...rows.problem import Problem
from ...training.scores import Score, evaluate
from ..base import GrowingEstimator
from ..fit.data import MIN_VALIDATION_ROWS
from .state import LearnedRows, Running

__all__ = ["FEWEST_ROWS", "Grown", "grow_beside", "room_beside"]

#: Rows that a further network needs to grow from, and how often a growth is repeated with a smaller bound,
#: where both networks would be too large.
FEWEST_ROWS, _MOST_TRIALS = 20, 4


@dataclass(frozen=True)
class Grown:
    """What came of a growth; without success, network and state are those from before.

    Attributes
    ----------
    network, state : to go on with
    steps : what was tried; the last one says whether the new network stays
    """

    network: Network
    state: Running
    steps: list[GrowthStep]


def grow_beside(
    estimator: GrowingEstimator[Any], state: Running, rows: LearnedRows, number: int | None = None
) -> Grown:
    """Grow a network from some rows beside the network of an estimator.

    ``estimator`` has the parameters of this growth; its ``max_parameters`` bounds both networks together.
    Growths with other numbers have other random numbers; by default it is how many networks there are then.
    """
    network, most = estimator.network_, estimator.max_parameters
    if number is None:
        number = 2 if network.members is None else len(network.members) + 1
    seed = int(check_random_state(estimator.random_state).randint(2**31 - 1))
    rng = np.random.default_rng([seed, number, 0])
    train, held = _divided(estimator, rows, rng)
    settings = _settings(estimator, network)
    engine = choose_engine(estimator.device, rows.x.size, settings.n_threads)
    validation = None if held is train else engine.prepared(_problem(network, held), ALONE)
    problem = engine.prepared(_problem(network, train, validation), ALONE)
    settings = estimator._complete(settings, problem)

    def grown(settings: GrowthSettings) -> Growth:
        return estimator._method.growth(problem, estimator._method, settings, seed + number, engine=engine)

    growth, second = _within(grown, settings, network)
    engine.forget(problem)
    second.input_mean, second.input_scale = network.input_mean, network.input_scale
    second.input_bound = network.input_bound
    wide, order = beside(network, second)
    before = _score(settings, state, state.sums, network.features(held.x), _scaled(network, held), held)
    trial = _widened(state.sums, network, second, train)
    features = np.concatenate([network.features(held.x), second.features(held.x)], axis=1)
    after = _score(settings, state, trial, features, _scaled(network, held), held)
    improvement = after.improvement_over(before)
    fits = most is None or wide.n_parameters() <= most
    accepted = fits and after.finite and improvement >= settings.layer_threshold
    if accepted:
        sums = _widened(state.sums, network, second, rows).reordered(order)
        state = replace(state, sums=sums)
        network = state.network(wide)
    decision = GrowthStep(
        "layer",
        1,
        0,
        bool(accepted),
        after,
        improvement,
        wide.n_parameters(),
        n_neurons=sum(layer.n_neurons for layer in second.layers),
    )
    return Grown(network, state, [replace(step, member=number) for step in [*growth.steps, decision]])


def _divided(
    estimator: GrowingEstimator[Any], rows: LearnedRows, rng: np.random.Generator
) -> tuple[LearnedRows, LearnedRows]:
    """Rows to grow from and rows that decide; the same ones where there would be few of these."""
    codes = rows.target.argmax(axis=1) if is_classifier(estimator) else None
    most, rest = split_rows(len(rows.x), estimator.validation_fraction, codes, rng)
    if len(rest) < MIN_VALIDATION_ROWS:
        return rows, rows
    return rows.chosen(most), rows.chosen(rest)


def _settings(estimator: GrowingEstimator[Any], network: Network) -> GrowthSettings:
    settings: GrowthSettings = estimator._settings(is_classifier(estimator))
    most = estimator.max_parameters
    if most is not None:
        most = room_beside(most, network)
        if most < 1:
            raise ValueError(
                f"max_parameters={estimator.max_parameters} leaves no room beside the network, which has "
                f"{network.n_parameters()} parameters"
            )
    return replace(settings, max_parameters=most)


def _within(
    grown: Callable[[GrowthSettings], Growth], settings: GrowthSettings, network: Network
) -> tuple[Growth, Network]:
    """A growth and its network, which has room beside the other one.

    Blocks of broad networks get weights for the features of the first one, which their growth does not count.
    """
    room = settings.max_parameters
    for _ in range(_MOST_TRIALS):
        growth = grown(settings)
        second = growth.run()
        if room is None or settings.max_parameters is None:
            break
        added = beside(network, second).network.n_parameters() - network.n_parameters() + network.n_outputs
        if added <= room:
            break
        settings = replace(settings, max_parameters=max(1, settings.max_parameters * room // added))
    return growth, second


def room_beside(most: int, network: Network) -> int:
    """Parameters of a further network, if both have so many: together they have the head's biases once."""
    return most - network.n_parameters() + network.n_outputs


def _problem(network: Network, rows: LearnedRows, validation: Problem | None = None) -> Problem:
    weight = (rows.weight / rows.weight.mean()).astype(np.float32)
    scaling = Scaling(network.input_mean, network.input_scale, network.input_bound)
    target = np.ascontiguousarray(_scaled(network, rows), np.float32)
    return Problem(rows.x, target, weight, validation, None, scaling)


def _scaled(network: Network, rows: LearnedRows) -> np.ndarray:
    """Targets as the head predicts them."""
    if network.output_mean is None or network.output_scale is None:
        return rows.target
    return standardized(rows.target, network.output_mean, network.output_scale, "y")


def _widened(sums: RunningRidge, first: Network, second: Network, rows: LearnedRows) -> RunningRidge:
    target = _scaled(first, rows)
    return widened(sums, first.features(rows.x), second.features(rows.x), target, rows.weight)


def _score(
    settings: GrowthSettings,
    state: Running,
    sums: RunningRidge,
    features: np.ndarray,
    target: np.ndarray,
    rows: LearnedRows,
) -> Score:
    """How good the head is that follows from sums, on rows with these features."""
    solution = sums.solve(state.ridge)
    outputs = native().multiply(features.astype(np.float64), solution.weight) + solution.intercept
    return evaluate(settings.criterion, state.loss, outputs * state.factor, target, rows.weight)
