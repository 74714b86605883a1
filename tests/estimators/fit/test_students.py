"""The smallest student that is about as good as its teacher."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes

from opgrow import HeMLGOPClassifier, HeMLGOPRegressor
from opgrow.estimators.fit.students import Student, indistinguishable, smallest
from opgrow.estimators.fit.trials import Rehearsal
from opgrow.estimators.listeners import Callback
from opgrow.growth.events import EpochFinished, GrowthFinished, GrowthStarted, StepFinished, StopGrowth
from opgrow.training.scores import Score


def students(*distances: float, stopped: int | None = None) -> Any:
    """Students with given distances, and a list of those that are grown."""
    grown: list[float] = []

    def grow(distance: Any) -> Student:
        grown.append(distance)
        reason = "no more time" if stopped == len(grown) else None
        growth = SimpleNamespace(score=Score(distance, 0.0), stopped=reason)
        return Student(growth, None)  # type: ignore[arg-type]

    return grow, grown


@pytest.mark.parametrize(
    ("kinds", "tolerance", "n_grown", "taken"),
    [
        ([[0.9, 0.5, 0.09, 0.01]], 0.1, 3, 0.09),  # the first that is near enough
        ([[0.9, 0.5, 0.3, 0.2]], 0.1, 4, 0.2),  # none is: the nearest,
        ([[0.9, 0.21, 0.2]], 0.1, 3, 0.21),  # or a smaller one that is about as near
        ([[0.9, 0.5, 0.49, 0.48, 0.1]], 0.0, 4, 0.5),  # after two in vain, no further one is tried
        ([[0.5, 0.3], [0.4, 0.25]], 0.1, 4, 0.3),  # slower operators are not worth a little,
        ([[0.5, 0.3], [0.4, 0.2]], 0.1, 4, 0.2),  # but a third
        ([[0.5, 0.05], [0.01]], 0.1, 2, 0.05),  # which nobody asks for where the faster ones will do
    ],
)
def test_the_smallest_that_is_near_enough_is_taken(
    kinds: list[list[float]], tolerance: float, n_grown: int, taken: float
) -> None:
    grow, grown = students()
    assert smallest(kinds, tolerance, grow).distance == taken  # type: ignore[arg-type]
    assert len(grown) == n_grown


def test_nothing_more_is_tried_once_a_callback_has_stopped_the_growth() -> None:
    grow, grown = students(stopped=2)
    assert smallest([[0.9, 0.5, 0.1], [0.1]], 0.0, grow).distance == 0.5  # type: ignore[arg-type]
    assert grown == [0.9, 0.5]


def test_more_rows_tell_smaller_differences() -> None:
    few, many = (indistinguishable(Score(0.3, 0.5), n) for n in (100, 10_000))
    assert few == pytest.approx(100 * many)
    assert indistinguishable(None, 100) == 0.0
    # The simulated difference of squared errors at that distance is 1.5 standard errors.
    rng = np.random.default_rng(0)
    distance, error = few, 0.3
    noise = rng.normal(0, np.sqrt(error), (20_000, 100))
    worse = ((noise + np.sqrt(distance)) ** 2 - noise**2).mean(axis=1)
    assert worse.mean() / worse.std() == pytest.approx(1.5, rel=0.03)


def test_students_are_told_of_as_one() -> None:
    heard: list[str] = []
    rehearsal = Rehearsal(lambda event: heard.append(type(event).__name__))
    events: list[Any] = [object.__new__(kind) for kind in (GrowthStarted, EpochFinished, StepFinished)]
    kept: list[list[Any]] = [[], []]
    for own in kept:
        hear = rehearsal.next(own)
        for event in [*events, object.__new__(GrowthFinished)]:
            hear(event)
    assert heard == ["GrowthStarted", "EpochFinished", "EpochFinished"]
    rehearsal.end(Student(None, None, kept[1]))  # type: ignore[arg-type]
    assert heard[3:] == ["StepFinished", "GrowthFinished"]


def test_an_easy_table_needs_few_neurons() -> None:
    x, y = load_breast_cancer(return_X_y=True)
    model = HeMLGOPClassifier(preset="compact", random_state=0).fit(x[:400], y[:400])
    full = HeMLGOPClassifier(preset="compact", distill=20, random_state=0).fit(x[:400], y[:400])
    assert 2 * model.network_.n_parameters() < full.network_.n_parameters()
    assert {(b.operator_set.nodal, b.operator_set.pool) for b in model.network_.layers[0]} == {
        ("multiplication", "sum")
    }
    assert model.score(x[400:], y[400:]) > full.score(x[400:], y[400:]) - 0.02
    assert {step.member for step in model.history_} == {1, 2, 3, 4, 5, 6}
    assert sum(step.member == 6 and step.kind == "block" for step in model.history_) == 1


def test_numbers_have_small_students_too() -> None:
    x, y = load_diabetes(return_X_y=True)
    model = HeMLGOPRegressor(preset="compact", random_state=0).fit(x[:300], y[:300])
    assert model.network_.n_parameters() < 200
    assert model.score(x[300:], y[300:]) > 0.4


def test_a_fit_that_is_stopped_among_its_students_has_a_network() -> None:
    class Enough(Callback):
        def on_epoch_end(self, event: EpochFinished) -> None:
            if event.member == 3:
                raise StopGrowth("enough")

    x, y = load_breast_cancer(return_X_y=True)
    model = HeMLGOPClassifier(preset="compact", n_estimators=2, random_state=0, callbacks=[Enough()]).fit(
        x, y
    )
    assert len(model.network_.layers) == 1
    assert model.history_[-1].stopped == "enough"
    assert model.score(x, y) > 0.8


def test_a_checkpoint_keeps_the_students(tmp_path: Any) -> None:
    x, y = load_breast_cancer(return_X_y=True)
    given = {"preset": "compact", "n_estimators": 2, "random_state": 0, "checkpoint_dir": tmp_path}
    first = HeMLGOPClassifier(**given).fit(x, y)
    files = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("student*")}
    again = HeMLGOPClassifier(**given).fit(x, y)
    assert files
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("student*")} == files
    assert np.array_equal(first.predict_proba(x), again.predict_proba(x))
