"""Several networks divide the rows among them, grow side by side, and become one network."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

import opgrow
from opgrow import HeMLGOPClassifier, HeMLGOPRegressor, HoMLRNClassifier
from opgrow.estimators.listeners import Callback
from opgrow.growth.engine import NativeEngine

X, Y = load_iris(return_X_y=True)
SHORT = {"n_min": 4, "n_step": 2, "max_neurons": 6, "epochs": (2,), "learning_rates": (0.01,)}


def classifier(**changes):
    return HeMLGOPClassifier(**({"n_estimators": 3, "random_state": 0, **SHORT} | changes))


# --- averages ---


def test_the_average_of_several_networks_is_one_network(tmp_path):
    model = classifier(max_layers=1).fit(X, Y)
    widths = {step.member: step.n_neurons for step in model.history_ if step.kind == "layer"}
    assert sorted(widths) == [1, 2, 3]
    assert model.network_.topology() == f"4-{sum(widths.values())}-3"
    assert model.score(X, Y) > 0.9
    model.save(tmp_path / "model.safetensors")
    again = opgrow.load(tmp_path / "model.safetensors")
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert [step.member for step in again.history_] == [step.member for step in model.history_]


def test_threads_do_not_change_anything():
    one, two = (classifier(n_jobs=n).fit(X, Y).predict_proba(X) for n in (1, 2))
    assert np.array_equal(one, two)


def test_the_same_seed_gives_the_same_network():
    first, again, other = (classifier(random_state=seed).fit(X, Y).predict_proba(X) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_networks_differ_where_they_share_their_rows():
    seen = Members()
    model = classifier(n_estimators=2, callbacks=[seen]).fit(X[::2], Y[::2], eval_set=(X[1::2], Y[1::2]))
    assert [(event.n_rows, event.n_validation) for event in seen.started] == [(75, 75)] * 2
    blocks = list(model.network_.layers[0])
    starts = [next(b for b in blocks if b.n_neurons == 4), [b for b in blocks if b.n_neurons == 4][-1]]
    assert not np.array_equal(starts[0].weight, starts[1].weight)


def test_averages_of_regressions_have_the_units_of_the_target():
    x, y = load_diabetes(return_X_y=True)
    model = HeMLGOPRegressor(n_estimators=3, random_state=0, **SHORT).fit(x, y)
    assert model.score(x, y) > 0.3
    assert model.network_.output_scale is not None


def test_networks_with_several_layers_are_averaged():
    flipped = np.where(np.arange(150) % 10, Y, (Y + 1) % 3)  # so that one layer leaves something to learn
    model = classifier(max_layers=2, layer_threshold=-1e9).fit(X, flipped)
    assert [len(counts) for counts in model.network_.members] == [2, 2, 2]
    assert len(model.network_.layers) == 2


def test_sizes_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="n_estimators must be an integer of at least 1 or 'auto', got 0"):
        classifier(n_estimators=0).fit(X, Y)
    with pytest.raises(ValueError, match="max_layers must be an integer of at least 1 or 'auto', got 'deep'"):
        classifier(max_layers="deep").fit(X, Y)


def test_too_few_rows_are_not_divided():
    seen = Members()
    HoMLRNClassifier(n_estimators=2, callbacks=[seen], **SHORT).fit(X[::10], Y[::10])
    assert [(event.n_rows, event.n_validation) for event in seen.started] == [(15, 0)] * 2


# --- distillation ---


def test_a_student_takes_the_place_of_the_average(tmp_path):
    model = classifier(distill=5).fit(X, Y)
    assert model.network_.topology() == "4-5-3"
    assert sorted({step.member for step in model.history_}) == [1, 2, 3, 4]
    assert model.score(X, Y) > 0.9
    model.save(tmp_path / "model.safetensors")
    assert np.array_equal(
        opgrow.load(tmp_path / "model.safetensors").predict_proba(X), model.predict_proba(X)
    )


def test_a_student_says_what_its_teachers_say():
    given = {"n_estimators": 3, "random_state": 0, "n_min": 20, "max_neurons": 20}
    flipped = Y.copy()
    flipped[::10] = (flipped[::10] + 1) % 3  # what the teachers do not learn, the student cannot know
    teacher = HeMLGOPClassifier(**given).fit(X, flipped).predict_proba(X)
    student = HeMLGOPClassifier(distill=20, **given).fit(X, flipped).predict_proba(X)
    alone = HeMLGOPClassifier(max_layers=1, **(given | {"n_estimators": 1})).fit(X, flipped).predict_proba(X)
    assert np.abs(student - teacher).mean() < 0.5 * np.abs(alone - teacher).mean()


def test_one_network_can_be_a_teacher():
    x, y = load_diabetes(return_X_y=True)
    model = HeMLGOPRegressor(n_estimators=1, distill=3, random_state=0, **SHORT).fit(x, y)
    assert model.network_.topology() == "10-3-1"
    assert model.score(x, y) > 0.3
    assert [step.member for step in model.history_ if step.kind == "layer"][-1] == 2


def test_a_student_has_neurons():
    with pytest.raises(ValueError, match="distill must be an integer of at least 1, None or 'auto', got 0"):
        classifier(distill=0).fit(X, Y)


def test_networks_of_an_average_take_values_of_dropout_in_turn():
    model = classifier(n_estimators=4, dropout=(0.5, 0.0)).fit(X, Y)
    used = {step.member: step.dropout for step in model.history_ if step.kind == "block"}
    assert used == {1: 0.5, 2: 0.0, 3: 0.5, 4: 0.0}


# --- events ---


class Members(Callback):
    """Remembers which network an event belongs to, and whether two came at the same time."""

    def __init__(self):
        self.started, self.members, self.busy = [], [], threading.Lock()

    def on_growth_start(self, event):
        self.started.append(event)

    def on_epoch_end(self, event):
        assert self.busy.acquire(blocking=False)
        self.members.append(event.member)
        self.busy.release()

    def on_step_end(self, event):
        self.members.append(event.step.member)


def test_a_student_is_validated_between_the_rows():
    members = Members()
    classifier(n_estimators=2, distill=4, callbacks=[members]).fit(X, Y)
    *_, student = members.started
    assert (student.member, student.n_rows, student.n_validation) == (3, 150, 150)


def test_events_say_which_network_they_belong_to():
    seen = Members()
    classifier(callbacks=[seen], n_jobs=2).fit(X, Y)
    assert {event.member for event in seen.started} == set(seen.members) == {1, 2, 3}
    assert all(event.n_members == 3 for event in seen.started)
    assert [event.n_validation for event in seen.started] == [30] * 3


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_ends_all_networks(n_jobs):
    class Fails(Callback):
        n_steps = 0

        def on_step_end(self, event):
            type(self).n_steps += 1
            if event.step.member == 1:
                raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        classifier(n_estimators=8, n_jobs=n_jobs, callbacks=[Fails()]).fit(X, Y)
    time.sleep(0.3)
    assert Fails.n_steps < 2 * 8  # the others did not grow to their end, and most did not begin


def test_nothing_grows_on_after_an_error():
    heard = []

    class Fails(Callback):
        def on_epoch_end(self, event):
            heard.append(event.member)

        def on_step_end(self, event):
            heard.append(event.step.member)
            if event.step.member == 1:
                raise KeyError("enough")

    long = {"n_jobs": 2, "n_estimators": 2, "max_neurons": 100, "block_threshold": -1e9}
    with pytest.raises(KeyError, match="enough"):
        classifier(callbacks=[Fails()], **long).fit(X, Y)
    before = len(heard)
    time.sleep(1.0)
    assert len(heard) == before


def test_every_problem_is_forgotten(monkeypatch):
    forgotten = []
    monkeypatch.setattr(NativeEngine, "forget", lambda self, problem: forgotten.append(problem.n_rows))
    classifier(distill=3).fit(X, Y)
    assert forgotten == [120, 120, 120, 150]
