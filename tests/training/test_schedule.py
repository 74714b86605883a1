"""The schedule of a training, by itself: against a plain loop over each candidate's scores."""

from __future__ import annotations

import math

import numpy as np
import pytest

from opgrow.training.schedule import Epoch, Schedule
from opgrow.training.scores import CRITERIA, Score
from opgrow.training.settings import TuningSettings

pytestmark = pytest.mark.cpu


def alone(criterion, start, scores, losses, skipped, settings, stop_after=None):
    """One candidate, by brute force: its curve, best score and epoch, skipped batches and rates.

    ``scores``, ``losses`` and ``skipped`` have what each epoch would bring.
    """
    higher = CRITERIA[criterion]
    best, best_epoch, curve, n_skipped = Score(*start, higher), 0, [], 0
    for rate, epochs in zip(settings.learning_rates, settings.epochs, strict=True):
        waited = 0
        for _ in range(epochs if rate > 0 else 0):
            if waited == settings.patience or len(curve) == stop_after:
                break
            number = len(curve) + 1
            score = Score(*scores[number - 1], higher)
            curve.append(Epoch(number, rate, losses[number - 1], score))
            n_skipped += skipped[number - 1]
            waited += 1
            if score.better_than(best):
                best, best_epoch, waited = score, number, 0
    return curve, best, best_epoch, n_skipped


def follow(criterion, start, scores, losses, skipped, settings, stop_after=None):
    """All candidates in one schedule, epoch by epoch, with the rates of each."""
    schedule, rates, better = Schedule.begin(criterion, start, settings), [], []
    while schedule.rates(settings).any():
        e = schedule.epochs
        rates.append(schedule.rates(settings))
        better.append(schedule.advance(losses[e], skipped[e], scores[e], settings))
        if schedule.epochs == stop_after:
            schedule.stopped = True
    return schedule, rates, better


def same(first, second):
    """Equal, where a score that is not a number equals another one."""
    return repr(first) == repr(second)


def test_the_last_state_is_kept_where_that_is_asked_for():
    settings = TuningSettings(learning_rates=(0.1,), epochs=(4,), keep_state="last")
    scores = [(0.5, 0.5), (0.9, 0.1), (0.4, 0.6), (math.nan, math.nan)]
    values = np.array(scores)[:, :, None]
    schedule, _, better = follow(
        "accuracy", np.array([[0.6], [0.2]]), values, [[0.0]] * 4, [[0]] * 4, settings
    )
    assert [bool(b[0]) for b in better] == [True, True, True, False]
    assert schedule.outcome(0).best == Score(0.4, 0.6, True)
    assert schedule.outcome(0).best_epoch == 3


def test_a_start_that_was_scored_otherwise_is_replaced_by_the_first_epoch():
    settings = TuningSettings(learning_rates=(0.1,), epochs=(3,), epoch_score="during")
    values = np.array([(0.5, 0.5), (0.4, 0.4), (0.7, 0.3)])[:, :, None]
    schedule, _, better = follow(
        "accuracy", np.array([[0.9], [0.1]]), values, [[0.0]] * 3, [[0]] * 3, settings
    )
    assert [bool(b[0]) for b in better] == [True, False, True]
    assert schedule.outcome(0).best.value == 0.7
    assert schedule.outcome(0).start.value == 0.9


RATES = [((0.1, 0.01, 0.001), (4, 7, 3)), ((0.1,), (20,)), ((0.3, 0.0, 0.1), (3, 4, 5)), ((0.1, 0.2), (0, 5))]


@pytest.mark.parametrize("stop_after", [None, 5])
@pytest.mark.parametrize("patience", [None, 1, 2, 4])
@pytest.mark.parametrize("rates", RATES, ids=str)
@pytest.mark.parametrize("criterion", CRITERIA)
def test_each_candidate_goes_through_the_schedule_as_if_it_were_alone(criterion, rates, patience, stop_after):
    settings = TuningSettings(learning_rates=rates[0], epochs=rates[1], patience=patience)
    rng = np.random.default_rng(0)
    n_epochs, n = sum(rates[1]), 40
    # Few different values, so that there are ties, and some that are not finite.
    start, scores = (rng.choice([0.1, 0.2, 0.3, 0.4, 0.5], (*size, 2, n)) for size in ((), (n_epochs,)))
    for values in (start, scores):
        values[rng.uniform(size=values.shape) < 0.1] = np.nan
        values[rng.uniform(size=values.shape) < 0.05] = np.inf
    losses, skipped = rng.normal(size=(n_epochs, n)), rng.integers(0, 3, (n_epochs, n))
    given = start, scores, losses, skipped
    schedule, used, better = follow(criterion, *given, settings, stop_after)
    lengths = set()
    for k in range(n):
        curve, best, best_epoch, n_skipped = alone(
            criterion,
            start[:, k].tolist(),
            scores[:, :, k].tolist(),
            losses[:, k].tolist(),
            skipped[:, k].tolist(),
            settings,
            stop_after,
        )
        outcome = schedule.outcome(k)
        assert same(outcome.curve, curve)
        assert same(outcome.best, best)
        assert same(outcome.start, Score(*start[:, k].tolist(), CRITERIA[criterion]))
        assert (outcome.best_epoch, outcome.skipped_batches) == (best_epoch, n_skipped)
        assert outcome.invalid_epochs == sum(not epoch.score.finite for epoch in curve)
        assert [rate[k] for rate in used if rate[k]] == [epoch.learning_rate for epoch in curve]
        assert not any(rate[k] for rate in used[len(curve) :])  # at rest after its last epoch
        improved = [number + 1 for number, which in enumerate(better) if which[k]]
        assert (improved[-1] if improved else 0) == best_epoch
        lengths.add(len(curve))
    assert max(lengths) == schedule.epochs
    if patience is None and stop_after is None:
        assert len(lengths) == 1
    if patience == 1 and stop_after is None:
        assert len(lengths) > 1  # or the candidates would not go their own ways


def test_without_epochs_nothing_trains():
    for rates, epochs in (((), ()), ((0.1,), (0,)), ((0.0,), (5,))):
        settings = TuningSettings(learning_rates=rates, epochs=epochs)
        schedule = Schedule.begin("loss", np.ones((2, 3)), settings)
        assert not schedule.rates(settings).any()
        assert not schedule.active(settings).any()
        outcome = schedule.outcome(1)
        assert (outcome.curve, outcome.best_epoch, outcome.best) == ([], 0, outcome.start)


def test_the_last_epoch_is_told_of():
    settings = TuningSettings(learning_rates=(0.1,), epochs=(3,))
    schedule = Schedule.begin("accuracy", np.zeros((2, 2)), settings)
    schedule.advance(np.array([1.0, 2.0]), np.zeros(2, int), np.array([[0.5, 0.6], [7.0, 8.0]]), settings)
    assert schedule.last_epoch(1) == Epoch(1, 0.1, 2.0, Score(0.6, 8.0, True))


def test_what_came_before_is_not_changed_by_a_further_epoch():
    """A state that is being written to a file stays as it is."""
    settings = TuningSettings(learning_rates=(0.1,), epochs=(5,), patience=2)
    schedule = Schedule.begin("loss", np.ones((2, 2)), settings)
    before = {name: value for name, value in vars(schedule).items() if isinstance(value, np.ndarray)}
    copies = {name: value.copy() for name, value in before.items()}
    schedule.advance(np.ones(2), np.ones(2, int), np.array([[0.5, 2.0]] * 2), settings)
    for name, value in before.items():
        np.testing.assert_array_equal(value, copies[name])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"criterion": "beauty"}, "the criterion is 'beauty', expected 'loss'"),
        ({"start": np.zeros((2, 2))}, r"'start' has shape \(2, 2\) and type float64, expected \(2, 3\)"),
        ({"best": np.zeros((2, 3), int)}, "'best' has shape .* and type int64"),
        ({"stage": np.zeros(2, int)}, "'stage' has shape"),
        ({"used": np.zeros(3)}, "'used' has shape .* and type float64"),
        ({"waited": np.zeros((3, 1), int)}, "'waited' has shape"),
        ({"skipped": np.zeros(3, bool)}, "'skipped' has shape .* and type bool"),
        ({"curves": np.zeros((4, 3, 3))}, "'curves' has shape"),
        ({"curves": np.zeros(())}, "'curves' has shape"),
        ({"stage": np.array([0, 1, 3])}, r"the stages \[0, 1, 3\] are not those of the schedule"),
        ({"stage": np.array([0, -1, 1])}, "the stages .* are not those of the schedule"),
        (
            {"curves": np.zeros((1, 4, 3))},
            r"the curves have \[1, 1, 1\] epochs, expected at most \[0, 0, 0\]",
        ),
        ({"best_epoch": np.array([0, 1, 9])}, "the best epochs .* are not among the 0 epochs"),
        ({"best_epoch": np.array([0, -1, 0])}, "the best epochs .* are not among the 0 epochs"),
    ],
    ids=str,
)
def test_a_schedule_of_other_candidates_is_refused(change, message):
    settings = TuningSettings(learning_rates=(0.1, 0.01), epochs=(2, 3))
    schedule = Schedule.begin("loss", np.ones((2, 3)), settings)
    schedule.check("loss", 3, settings)
    for name, value in change.items():
        setattr(schedule, name, value)
    with pytest.raises(ValueError, match=message) as error:
        schedule.check("loss", 3, settings)
    assert "\n" not in str(error.value)


def test_scores_that_are_not_finite_are_not_better():
    settings = TuningSettings(learning_rates=(0.1,), epochs=(4,))
    schedule = Schedule.begin("loss", np.array([[math.nan, 0.5], [math.nan, 0.5]]), settings)
    better = schedule.advance(np.ones(2), np.zeros(2, int), np.array([[math.inf, math.nan]] * 2), settings)
    assert not better.any()
    better = schedule.advance(np.ones(2), np.zeros(2, int), np.array([[9.0, 0.4], [9.0, 0.4]]), settings)
    assert better.all()
    assert schedule.best_epoch.tolist() == [2, 2]
