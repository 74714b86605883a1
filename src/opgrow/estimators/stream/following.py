"""Rows that go on coming are watched: what happens when errors grow, and when they no longer shrink.

Each row is predicted before it is learned. Its error goes to a detector of drifts and into a record. When a
drift is found, the rows from before it count less from then on: by which factor, the rows since it decide,
each predicted by a head that has not learned from it. The buffer keeps rows since the drift alone. Once it is
full of them, and whenever errors have stalled, parts that no longer contribute are dropped and a further
network is grown on the buffer, which stays by the rule of `grow_beside`. After each growth that did not help,
the next is tried after twice as many rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy, deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ...closed_form.running_ridge import RunningRidge
from ...growth.events import GrowthStep
from ...growth.stream_record import StreamEvent
from ...network import Network
from .dropping import drop_idle, judging
from .growing import FEWEST_ROWS, grow_beside, room_beside
from .learned import LearnedRows
from .page_hinkley import Detector, PageHinkley
from .state import Running, extended, scaled_targets
from .watch import Watch

__all__ = ["Followed", "detector_of", "follow"]

#: Rows that are predicted and then learned at once.
_PIECE_ROWS = 250
#: Rows between looks at whether errors have stalled, at first; and the relative gain that is no stall.
PAUSE_ROWS, _GAIN = 2000, 0.05
#: How much rows from before a drift may count after it.
_SHARES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.0)
#: Times the first network's parameters that may be there without ``max_parameters``.
_TIMES = 4
#: The largest error of a row in regression: the squares of a few far rows would say nothing else.
_LARGEST_ERROR = 4.0
#: Rows that are taken for those since a drift if the detector does not tell; and how many of them judge it.
_SINCE, _ENOUGH = 100, 50


def detector_of(drift: object) -> Detector | None:
    """A detector before its first value, for a value of the parameter ``drift``."""
    if drift is None:
        return None
    if isinstance(drift, str):
        if drift != "page_hinkley":
            raise ValueError(f"drift must be None, 'page_hinkley' or a detector, got {drift!r}")
        return PageHinkley()
    if isinstance(drift, PageHinkley):
        return drift.fresh()
    if isinstance(drift, type) or not isinstance(drift, Detector):
        wanted = "None, 'page_hinkley' or an object with update(x) and drift_detected"
        raise ValueError(f"drift must be {wanted}, got {drift!r}")
    return deepcopy(drift)


@dataclass(frozen=True)
class Followed:
    """What came of further rows.

    Attributes
    ----------
    network, state : to go on with
    steps : of growths
    """

    network: Network
    state: Running
    steps: list[GrowthStep] = field(default_factory=list)


def follow(estimator: Any, network: Network, state: Running, rows: LearnedRows) -> Followed:
    """Learn from rows, each predicted before, and let the network change with them.

    ``estimator`` has the parameters; it stays as it is.
    """
    followed = Followed(network, _watched(estimator, network, state))
    for piece in _pieces(rows):
        followed = _learned(estimator, followed, piece)
    return followed


def _pieces(rows: LearnedRows) -> Iterator[LearnedRows]:
    for start in range(0, len(rows.x), _PIECE_ROWS):
        yield rows.chosen(np.arange(start, min(start + _PIECE_ROWS, len(rows.x))))


def _watched(estimator: Any, network: Network, state: Running) -> Running:
    """The state with a detector of the kind that the parameter asks for."""
    fresh, place = detector_of(estimator.drift), state.buffer.seen
    if state.watch is None:
        most = _TIMES * network.n_parameters()
        n_steps = len(estimator.history_)
        return replace(state, watch=Watch(fresh, place, place + PAUSE_ROWS, PAUSE_ROWS, most, n_steps))
    present = state.watch.detector
    if isinstance(fresh, PageHinkley):
        same = isinstance(present, PageHinkley) and present.fresh() == fresh
    else:
        same = type(present) is type(fresh)
    # A copy, as detectors change with each value, and a call that fails is to change nothing.
    return replace(state, watch=replace(state.watch, detector=deepcopy(present) if same else fresh))


def _learned(estimator: Any, before: Followed, rows: LearnedRows) -> Followed:
    network, state, watch = before.network, before.state, before.state.watch
    assert watch is not None
    errors = _errors(estimator, network, rows)
    n_since = _since(watch.detector, errors)
    n, place = len(rows.x), state.buffer.seen + len(rows.x)
    alarm = watch.alarm if n_since is None else place - n_since
    record = watch.record.noted(place, n, float(errors.sum()), network.n_parameters())
    earlier = state.buffer.last(0 if alarm is None else place - alarm - n)
    state = state.learned(network, rows, estimator.forgetting)
    state = replace(state, watch=replace(watch, record=record, alarm=alarm))
    if alarm is not None and place - alarm >= _ENOUGH:
        recent = earlier.beside(rows.chosen(np.arange(max(0, n - (place - alarm)), n)))
        state = _forgotten(estimator, network, state, recent)
    followed = replace(before, network=state.network(network), state=state)
    return _looked_at(estimator, followed)


def _errors(estimator: Any, network: Network, rows: LearnedRows) -> np.ndarray:
    """The error of each row: whether its class is wrong, or the squares that `StreamWindow` describes."""
    if is_classifier(estimator):
        predicted = estimator._predictions(network, rows.x, "cross_entropy").argmax(axis=1)
        return (predicted != rows.target.argmax(axis=1)).astype(np.float64)
    outputs = LearnedRows(rows.x, network.outputs(rows.x), rows.weight)
    apart = scaled_targets(network, outputs) - scaled_targets(network, rows)
    with np.errstate(over="ignore"):
        errors = (apart * apart).mean(axis=1)
    return np.where(errors < _LARGEST_ERROR, errors, _LARGEST_ERROR)


def _since(detector: Detector | None, errors: np.ndarray) -> int | None:
    """How many of the rows until the last error are those since a drift, or None without one."""
    if detector is None:
        return None
    found = None
    for number, error in enumerate(errors.tolist()):
        detector.update(error)
        if detector.drift_detected:
            rows = detector.n_since if isinstance(detector, PageHinkley) else _SINCE
            found = rows + len(errors) - 1 - number
    return found


def _forgotten(estimator: Any, network: Network, state: Running, recent: LearnedRows) -> Running:
    """The state after a drift: rows from before it count as much as helps to predict the ``recent`` ones."""
    watch, place = state.watch, state.buffer.seen
    assert watch is not None
    start = RunningRidge.start(state.sums.n_features, recent.target.shape[1])
    since = extended(start, network, recent, estimator.forgetting)
    heads = {share: state.sums.faded(share).joined(since.faded(1 - share)) for share in _SHARES}
    judge = judging(network, state, recent, estimator._settings(is_classifier(estimator)))
    share, best = 1.0, judge(heads[1.0])
    for other in _SHARES[1:]:
        score = judge(heads[other])
        if score.better_than(best):
            share, best = other, score
    event = StreamEvent(place, "drift", share, network.n_parameters())
    watch = replace(watch, record=watch.record.happened(event), alarm=None)
    if share == 1.0:  # a false alarm, or a drift that the head has followed already
        return replace(state, watch=watch)
    began = place - len(recent.x)
    due = began + max(FEWEST_ROWS, estimator.buffer_rows)
    watch = replace(watch, since=began, due=due, pause=PAUSE_ROWS, before=None)
    return replace(state, sums=heads[share], watch=watch, buffer=state.buffer.since(began))


def _looked_at(estimator: Any, followed: Followed) -> Followed:
    """Drop and grow if it is time to, and errors have not become smaller since the last time."""
    state = followed.state
    watch, place = state.watch, state.buffer.seen
    assert watch is not None
    if place < watch.due or len(state.buffer.x) < FEWEST_ROWS:
        return followed
    recent = watch.record.error_of_last(min(watch.pause, place - watch.since))
    stalled = watch.before is None or not recent < (1 - _GAIN) * watch.before
    watch = replace(watch, before=recent, due=place + watch.pause)
    followed = replace(followed, state=replace(state, watch=watch))
    if not stalled:
        return followed
    return _grown(estimator, _dropped(estimator, followed))


def _dropped(estimator: Any, followed: Followed) -> Followed:
    settings = estimator._settings(is_classifier(estimator))
    state = followed.state
    dropped = drop_idle(followed.network, state, state.buffer.rows, settings)
    if not dropped.n_neurons:
        return followed
    return _with_event(
        replace(followed, network=dropped.network, state=dropped.state), "dropped", dropped.n_neurons
    )


def _grown(estimator: Any, followed: Followed) -> Followed:
    """With a further network, if it helps and there is room for one."""
    state = followed.state
    watch, rows = state.watch, state.buffer.rows
    assert watch is not None
    trial = copy(estimator)
    trial.network_ = followed.network
    trial.max_parameters = watch.most if estimator.max_parameters is None else estimator.max_parameters
    if room_beside(trial.max_parameters, followed.network) < 1:
        return followed
    first = (step.member for step in estimator.history_[: watch.n_steps])
    number = max(first, default=1) + 1 + watch.trials
    shares = state.sums.target_mean.clip(0) if is_classifier(estimator) else None
    grown = grow_beside(trial, state, rows.representing(shares), number)
    accepted, improvement = grown.steps[-1].accepted, grown.steps[-1].improvement
    pause = PAUSE_ROWS if accepted else 2 * watch.pause
    watch = replace(watch, trials=watch.trials + 1, pause=pause, due=state.buffer.seen + pause)
    result = Followed(grown.network, replace(grown.state, watch=watch), [*followed.steps, *grown.steps])
    return _with_event(result, "grown" if accepted else "tried", float(improvement or 0.0))


def _with_event(followed: Followed, kind: str, value: float) -> Followed:
    state = followed.state
    assert state.watch is not None
    event = StreamEvent(state.buffer.seen, kind, value, followed.network.n_parameters())
    watch = replace(state.watch, record=state.watch.record.happened(event))
    return replace(followed, state=replace(state, watch=watch))
