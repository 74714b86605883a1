"""Several networks divide the rows among them, grow side by side, and become one network."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes, load_iris, load_wine

import opgrow
from opgrow import HeMLGOPClassifier, HeMLGOPRegressor, HoMLRNClassifier
from opgrow.estimators.base import NetworkSize
from opgrow.estimators.families.presets import deepest, n_networks, preset_of, student_size, widest
from opgrow.estimators.listeners import Callback
from opgrow.growth.engine import NativeEngine
from opgrow.network import Block, Layer, Network
from opgrow.network.average import average, fold_rows, rows_between
from opgrow.operators import OperatorSet
from tests.networks import randomized

X, Y = load_iris(return_X_y=True)
SETS = [OperatorSet("multiplication", "sum", "sigmoid")]
SHORT = {"n_min": 4, "n_step": 2, "max_neurons": 6, "epochs": (2,), "learning_rates": (0.01,)}


def classifier(**changes):
    return HeMLGOPClassifier(**({"n_estimators": 3, "random_state": 0, **SHORT} | changes))


# --- rows ---


@given(st.integers(4, 60), st.integers(1, 9), st.integers(1, 4), st.sampled_from([0.1, 0.2, 0.34, 0.5]))
def test_rows_are_held_back_once_in_every_division(n_rows, n_networks, n_classes, fraction):
    rng = np.random.default_rng(n_rows)
    codes = rng.integers(0, n_classes, n_rows)
    found = fold_rows(n_rows, n_networks, fraction, codes, rng)
    assert len(found) == n_networks
    n_folds = round(1 / fraction)
    for start in range(0, n_networks - n_folds + 1, n_folds):
        held = np.concatenate([rest for _, rest in found[start : start + n_folds]])
        common = np.bincount(codes)[codes] > 1
        assert sorted(held) == np.flatnonzero(common).tolist()
    for most, rest in found:
        assert sorted(np.concatenate([most, rest])) == list(range(n_rows))
        assert len(rest) <= np.ceil(n_rows / n_folds)
        assert set(codes[most]) == set(codes)


def test_classes_are_held_back_evenly():
    codes = np.repeat([0, 1, 2], [50, 25, 5])
    for _, rest in fold_rows(80, 5, 0.2, codes, np.random.default_rng(0)):
        assert np.bincount(codes[rest]).tolist() == [10, 5, 1]


def test_rows_are_divided_anew_when_folds_run_out():
    found = fold_rows(40, 4, 0.5, None, np.random.default_rng(0))
    assert not np.array_equal(found[0][1], found[2][1])


# --- networks ---


def network(widths, seed):
    sets = [OperatorSet("gaussian", "maximum", "tanh"), OperatorSet("multiplication", "sum", "sigmoid")]
    blocks = [Block(5, d, s) for d, s in zip(widths, sets, strict=True)]
    return randomized(Network(5, 3, [Layer(blocks)]), seed)


def test_the_average_computes_the_mean_of_the_outputs():
    members = [network((4, 2), 0), network((3, 5), 1), network((1, 1), 2)]
    for member in members:  # as networks are while they grow
        member.input_mean, member.input_scale = np.zeros(5), np.ones(5)
    x = np.random.default_rng(3).normal(size=(20, 5))
    merged = average(members)
    wanted = np.mean([member.outputs(x) for member in members], axis=0)
    np.testing.assert_allclose(merged.outputs(x), wanted, rtol=1e-5, atol=1e-5)
    assert merged.topology() == "5-16-3"


# --- estimators ---


def test_the_average_of_several_networks_is_one_network(tmp_path):
    model = classifier().fit(X, Y)
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


def test_networks_with_several_layers_cannot_be_averaged():
    with pytest.raises(ValueError, match="n_estimators=3 averages networks with one layer each: max_layers"):
        classifier(max_layers=2).fit(X, Y)
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


# --- presets ---


def test_a_compact_network_has_few_parameters():
    x, y = load_wine(return_X_y=True)
    short = {"epochs": (2,), "learning_rates": (0.01,), "max_neurons": 20}
    model = HeMLGOPClassifier(preset="compact", random_state=0, **short).fit(x, y)
    assert 400 < model.network_.n_parameters() <= 500
    assert model.history_[-1].member == 6


@pytest.mark.parametrize(("n_inputs", "n_outputs"), [(2, 2), (20, 10), (7, 1)])
def test_compact_students_of_small_problems_have_at_most_500_parameters(n_inputs, n_outputs):
    teacher = Network(n_inputs, n_outputs, [Layer([Block(n_inputs, 300, SETS[0])])])
    size = student_size(HeMLGOPClassifier(preset="compact"), NetworkSize.of(teacher))
    student = Network(n_inputs, n_outputs, [Layer([Block(n_inputs, size, SETS[0])])])
    assert student.n_parameters() <= 500
    assert size == 200 or student.n_parameters() > 500 - (n_inputs + n_outputs + 3)


def test_a_compact_student_has_a_neuron_for_each_of_many_classes():
    teacher = NetworkSize.of(Network(30, 102, [Layer([Block(30, 300, SETS[0])])]))
    assert student_size(HeMLGOPClassifier(preset="compact"), teacher) == 102
    assert student_size(HeMLGOPClassifier(preset="compact", distill=None), teacher) is None
    assert student_size(HeMLGOPClassifier(), teacher) is None


def test_growth_and_not_a_preset_bounds_the_networks_of_an_average():
    assert widest(HeMLGOPClassifier()) == widest(HeMLGOPRegressor()) == 200
    assert widest(HeMLGOPClassifier(n_min=300)) == 300
    assert widest(HeMLGOPClassifier(max_neurons=70)) == 70


def test_a_single_network_may_have_two_layers_and_those_of_an_average_one():
    assert deepest(HeMLGOPRegressor(), 1) == 2
    assert deepest(HeMLGOPRegressor(), 5) == 1
    assert deepest(HeMLGOPRegressor(max_layers=4), 1) == 4


def test_parameters_of_their_own_come_before_those_of_a_preset():
    found = preset_of(HeMLGOPClassifier(preset="accurate", n_min=7, n_estimators=2))
    assert (found.n_min, found.n_step, found.n_estimators, found.max_layers) == (7, 40, 2, 1)
    alone = preset_of(HeMLGOPClassifier(preset=None))
    assert (alone.n_min, alone.n_step, alone.n_estimators, alone.max_layers) == (40, 20, 1, 2)
    several = preset_of(HeMLGOPClassifier(preset=None, n_estimators=3))
    assert (several.n_estimators, several.max_layers) == (3, 1)
    deep = preset_of(HeMLGOPClassifier(max_layers=3))
    assert (deep.n_estimators, deep.max_layers) == (1, 3)
    with pytest.raises(
        ValueError, match="preset must be one of None, 'compact', 'balanced', 'accurate', got"
    ):
        HeMLGOPClassifier(preset="tiny").fit(X, Y)


def test_many_rows_need_fewer_networks():
    model = HeMLGOPClassifier()
    assert [n_networks(model, rows) for rows in (10, 20_000, 33_000, 50_000, 51_000, 10**7)] == [
        5,
        5,
        3,
        2,
        1,
        1,
    ]
    assert n_networks(HeMLGOPClassifier(n_estimators=4), 10**7) == 4


def test_networks_of_an_average_take_values_of_dropout_in_turn():
    model = classifier(n_estimators=4, dropout=(0.5, 0.0)).fit(X, Y)
    used = {step.member: step.dropout for step in model.history_ if step.kind == "block"}
    assert used == {1: 0.5, 2: 0.0, 3: 0.5, 4: 0.0}


def test_rows_between_lie_between_rows():
    x = np.random.default_rng(0).normal(size=(20, 3))
    between, near = rows_between(x, 15, np.random.default_rng(1))
    assert between.shape == (15, 3)
    assert len(set(near)) == 15
    away = np.linalg.norm(between - x[near], axis=1)
    spread = np.linalg.norm(x[:, None] - x, axis=2).max(axis=1)[near]
    assert (away <= spread / 2 + 1e-12).all()
    assert away.max() > 0


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
