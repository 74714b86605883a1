"""Budgets and callbacks end growth, and what it leaves is a finished network that keeps them."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest
from sklearn.base import clone

import opgrow
from opgrow import (
    HeMLGOPClassifier,
    HeMLGOPRegressor,
    PLNClassifier,
    POPFastClassifier,
    estimators,
)
from opgrow.estimators.listeners import Callback, MaxParameters, MaxSeconds, StopGrowth, budget
from opgrow.operators import register_nodal, unregister

EVERY = [getattr(estimators, name) for name in estimators.__all__]
SETS = [("harmonic", "sum", "tanh"), ("multiplication", "sum", "sigmoid"), ("gaussian", "maximum", "relu")]
QUICK = {
    "preset": None,
    "n_min": 6,
    "n_step": 3,
    "max_neurons": 12,
    "widths": (6, 5),
    "operators": SETS,
    "learning_rates": (0.01, 0.001),
    "epochs": (3, 3),
    "fine_tune_epochs": 3,
    "block_threshold": -10.0,
    "layer_threshold": -10.0,
    "random_state": 0,
}


def make(cls, **changes):
    """An estimator that grows as much as it may, quickly."""
    accepted_names = cls._get_param_names()
    return cls(**{name: value for name, value in (QUICK | changes).items() if name in accepted_names})


def data(cls):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(80, 4))
    y = x[:, 0] * x[:, 1] + 0.1 * rng.normal(size=80)
    return x, (y > 0).astype(int) if cls.__name__.endswith("Classifier") else y


def reasons(model):
    return [step.stopped for step in model.history_ if step.stopped is not None]


def check_finished(model, x):
    """The network predicts, and is the one that the history tells of."""
    assert np.isfinite(model.predict(x)).all()
    by_member = {}
    for step in model.history_:
        by_member.setdefault(step.member, []).append(step)
    for steps in by_member.values():
        assert all(step.stopped is None for step in steps[:-1])
    last = list(by_member.values())[-1]
    kept = [step for step in last if step.accepted and step.kind in ("layer", "fine-tune")]
    if len(by_member) == 1:
        assert kept[-1].n_parameters == model.network_.n_parameters()


class StopAt(Callback):
    """Asks for the end at the given event, counted from 1, of the hooks with such names."""

    def __init__(self, hook, number=1):
        self.hook, self.left, self.after = hook, number, []

    def __getattribute__(self, name):
        if not name.startswith("on_"):
            return super().__getattribute__(name)

        def hear(event):
            if self.left <= 0:
                self.after.append(name)
            elif name == self.hook:
                self.left -= 1
                if self.left == 0:
                    raise StopGrowth(f"{name} said so")

        return hear


@pytest.fixture
def ticking(monkeypatch):
    """A clock of which every look takes a second."""
    seconds = count()
    monkeypatch.setattr(budget, "perf_counter", lambda: float(next(seconds)))


# --- callbacks that stop ---


@pytest.mark.parametrize("cls", EVERY, ids=lambda c: c.__name__)
@pytest.mark.parametrize("hook", ["on_fit_start", "on_growth_start", "on_phase_start", "on_step_end"])
def test_every_method_ends_with_what_it_has(cls, hook):
    x, y = data(cls)
    stop = StopAt(hook)
    model = make(cls, callbacks=[stop], n_jobs=1).fit(x, y)
    check_finished(model, x)
    assert reasons(model) == [f"{hook} said so"]
    assert "on_epoch_end" not in stop.after
    assert stop.after.count("on_candidate_end") <= 1
    assert not any(step.kind == "fine-tune" for step in model.history_)
    assert {step.layer for step in model.history_} == {1}


def test_tuning_ends_with_the_epoch_and_keeps_its_best_state():
    x, y = data(HeMLGOPClassifier)
    stop = StopAt("on_epoch_end", 2)
    model = make(HeMLGOPClassifier, callbacks=[stop]).fit(x, y)
    check_finished(model, x)
    assert [len(step.curve) for step in model.history_] == [2, 0]
    assert "on_epoch_end" not in stop.after


def test_fine_tuning_ends_with_the_epoch():
    x, y = data(HeMLGOPClassifier)
    settings = {"max_layers": 1, "max_neurons": 6, "dropout": 0.1}
    whole = make(HeMLGOPClassifier, **settings).fit(x, y)
    before = sum(len(step.curve) for step in whole.history_ if step.kind == "block")
    model = make(HeMLGOPClassifier, callbacks=[StopAt("on_epoch_end", before + 1)], **settings).fit(x, y)
    assert (model.history_[-1].kind, len(model.history_[-1].curve)) == ("fine-tune", 1)
    assert model.history_[-1].stopped == "on_epoch_end said so"
    check_finished(model, x)


def test_a_population_ends_with_the_candidates_that_are_under_way():
    x, y = data(POPFastClassifier)
    stop = StopAt("on_candidate_end")
    model = make(POPFastClassifier, callbacks=[stop], n_jobs=1).fit(x, y)
    check_finished(model, x)
    assert [len(step.candidates) for step in model.history_] == [3, 0]
    assert stop.after.count("on_candidate_end") == 2  # trained together with the first one


def test_a_population_that_trains_together_ends_with_the_epoch():
    register_nodal("twice", lambda x, w: 2 * x * w, flops=2)
    try:
        x, y = data(POPFastClassifier)
        stop = StopAt("on_population_epoch_end", 2)
        sets = [*SETS, ("twice", "sum", "tanh")]
        model = make(POPFastClassifier, callbacks=[stop], operators=sets).fit(x, y)
        check_finished(model, x)
        assert "on_population_epoch_end" not in stop.after
        assert len(model.history_[0].candidates) == 4
    finally:
        unregister("nodal", "twice")


def test_every_callback_hears_the_event_that_one_stops_at():
    x, y = data(HeMLGOPClassifier)
    heard = []

    class Notes(Callback):
        def on_step_end(self, event):
            heard.append(event.step.kind)

    make(HeMLGOPClassifier, callbacks=[StopAt("on_step_end"), Notes()]).fit(x, y)
    assert heard == ["block", "layer"]


def test_the_reason_is_saved(tmp_path):
    x, y = data(PLNClassifier)
    model = make(PLNClassifier, callbacks=[StopAt("on_step_end")]).fit(x, y)
    model.save(tmp_path / "model.safetensors")
    assert reasons(opgrow.load(tmp_path / "model.safetensors")) == reasons(model) == ["on_step_end said so"]


# --- size ---


@pytest.mark.parametrize("cls", EVERY, ids=lambda c: c.__name__)
def test_no_method_exceeds_its_parameters(cls):
    x, y = data(cls)
    whole = make(cls, memory="pca").fit(x, y)
    largest = whole.network_.n_parameters()
    assert reasons(whole) == []
    for most in {largest, largest - 1, largest // 2, largest // 4}:
        model = make(cls, max_parameters=most).fit(x, y)
        assert model.network_.n_parameters() <= most
        assert all(step.n_parameters <= most for step in model.history_)
        check_finished(model, x)
        assert len(reasons(model)) == (most < largest)


@pytest.mark.parametrize("cls", EVERY, ids=lambda c: c.__name__)
def test_a_network_that_cannot_be_small_enough_is_refused_with_its_size(cls):
    x, y = data(cls)
    with pytest.raises(ValueError, match="max_parameters leaves 3 parameters.* has (\\d+)$") as error:
        make(cls, max_parameters=3).fit(x, y)
    smallest = int(str(error.value).split()[-1])
    assert make(cls, max_parameters=smallest).fit(x, y).network_.n_parameters() == smallest
    with pytest.raises(ValueError, match="max_parameters leaves"):
        make(cls, max_parameters=smallest - 1).fit(x, y)


def test_the_first_block_has_as_many_neurons_as_there_is_room_for():
    x, y = data(HeMLGOPClassifier)
    model = make(HeMLGOPClassifier, max_parameters=50).fit(x, y)
    # 9 parameters a neuron (4 weights, bias, scale, shift, 2 of the head) and 2 biases: 5 neurons are 47.
    assert model.network_.topology() == "4-5-2"
    assert reasons(model) == ["at most 50 parameters are allowed, which is 5 neurons instead of 6"]
    assert any(step.kind == "fine-tune" for step in model.history_)


def test_no_block_is_tuned_that_there_is_no_room_for():
    x, y = data(HeMLGOPClassifier)
    phases = []

    class Notes(Callback):
        def on_phase_start(self, event):
            phases.append((event.phase, event.layer, event.block))

    model = make(HeMLGOPClassifier, max_parameters=60, dropout=0.1, callbacks=[Notes()]).fit(x, y)
    assert phases == [("search", 1, 1), ("tune", 1, 1), ("fine-tune", 1, 0)]
    assert reasons(model) == ["the next step would make 83 parameters, and at most 60 are allowed"]


def test_networks_that_are_averaged_share_the_bound():
    x, y = data(HeMLGOPRegressor)
    model = make(HeMLGOPRegressor, n_estimators=3, max_parameters=100, distill=None).fit(x, y)
    assert model.network_.n_parameters() <= 100
    assert len({step.member for step in model.history_}) == 3
    check_finished(model, x)


def test_a_student_takes_the_place_of_an_average_that_is_too_large():
    x, y = data(HeMLGOPClassifier)
    settings = {"n_estimators": 3, "random_state": 0}
    model = make(HeMLGOPClassifier, max_parameters=100, **settings).fit(x, y)
    assert model.network_.n_parameters() <= 100
    assert max(step.member for step in model.history_) == 4
    teachers = [step.n_parameters for step in model.history_ if step.member < 4]
    assert max(teachers) > 100  # they are not bounded
    roomy = make(HeMLGOPClassifier, max_parameters=10_000, **settings).fit(x, y)
    assert max(step.member for step in roomy.history_) == 3


@pytest.mark.parametrize("changes", [{"distill": 30}, {"preset": "compact", "n_min": "auto"}])
def test_a_student_keeps_the_bound(changes):
    x, y = data(HeMLGOPClassifier)
    model = make(HeMLGOPClassifier, max_parameters=80, **changes).fit(x, y)
    assert model.network_.n_parameters() <= 80
    check_finished(model, x)


# --- time ---


@pytest.mark.parametrize("cls", EVERY, ids=lambda c: c.__name__)
@pytest.mark.parametrize("seconds", [1, 6])
def test_every_method_ends_in_time(cls, seconds, ticking):
    x, y = data(cls)
    model = make(cls, max_seconds=seconds, fine_tune_epochs=50, patience=None, max_neurons=200).fit(x, y)
    check_finished(model, x)
    assert reasons(model) == [f"max_seconds={seconds} was over"]


def test_networks_that_have_not_begun_in_time_are_left_out(ticking):
    x, y = data(HeMLGOPClassifier)
    settings = {"n_estimators": 4, "distill": None, "n_jobs": 1}
    model = make(HeMLGOPClassifier, max_seconds=3, **settings).fit(x, y)
    assert {step.member for step in model.history_} == {1}
    assert len(model.network_.layers[0]) == 1
    check_finished(model, x)


def test_a_student_has_half_of_the_time(ticking):
    x, y = data(HeMLGOPClassifier)
    settings = {"n_estimators": 2, "distill": 4, "n_jobs": 1, "patience": None, "epochs": (100, 100)}
    model = make(HeMLGOPClassifier, max_seconds=40, **settings).fit(x, y)
    first, student = (sum(len(s.curve) for s in model.history_ if s.member == m) for m in (1, 3))
    assert 10 < first <= 20
    assert 10 < student <= 20
    assert model.network_.topology() == "4-4-2"
    assert reasons(model)[-1] == "max_seconds=40 was over"
    assert reasons(model)[0] == "the networks' half of max_seconds=40 was over"


def test_a_bound_on_the_size_holds_when_time_is_over(ticking):
    x, y = data(HeMLGOPClassifier)
    model = make(HeMLGOPClassifier, n_estimators=3, max_seconds=1, max_parameters=30, n_jobs=1).fit(x, y)
    assert model.network_.n_parameters() <= 30
    check_finished(model, x)


def test_the_clock_starts_anew_with_every_fit(ticking):
    x, y = data(PLNClassifier)
    model = make(PLNClassifier, callbacks=[MaxSeconds(8)])
    first = len(model.fit(x, y).history_)
    assert len(model.fit(x, y).history_) == first > 2


# --- the face ---


def test_budgets_that_are_not_reached_change_nothing():
    x, y = data(HeMLGOPClassifier)
    settings = {"max_layers": 1, "n_jobs": 1}
    plain = make(HeMLGOPClassifier, **settings).fit(x, y)
    bounded = make(HeMLGOPClassifier, max_parameters=10_000, max_seconds=1e6, **settings).fit(x, y)
    np.testing.assert_array_equal(plain.predict_proba(x), bounded.predict_proba(x))


def test_a_parameter_is_its_callback():
    x, y = data(HeMLGOPClassifier)
    by_parameter = make(HeMLGOPClassifier, max_parameters=50, n_jobs=1).fit(x, y)
    by_callback = make(HeMLGOPClassifier, callbacks=[MaxParameters(50)], n_jobs=1).fit(x, y)
    np.testing.assert_array_equal(by_parameter.predict_proba(x), by_callback.predict_proba(x))
    both = make(HeMLGOPClassifier, max_parameters=50, callbacks=[MaxParameters(30)]).fit(x, y)
    assert both.network_.n_parameters() <= 30


@pytest.mark.parametrize("value", [0, -1, 2.5, "many", True])
def test_a_bound_on_the_size_must_be_a_positive_whole_number(value):
    x, y = data(HeMLGOPClassifier)
    with pytest.raises(ValueError, match="max_parameters must be an integer of at least 1, got"):
        make(HeMLGOPClassifier, max_parameters=value).fit(x, y)


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), "1h", True])
def test_a_bound_on_the_time_must_be_a_positive_number(value):
    x, y = data(HeMLGOPClassifier)
    with pytest.raises(ValueError, match="max_seconds must be a positive number, got"):
        make(HeMLGOPClassifier, max_seconds=value).fit(x, y)


def test_budgets_are_saved(tmp_path):
    x, y = data(HeMLGOPClassifier)
    model = make(HeMLGOPClassifier, max_parameters=50, max_seconds=100.0).fit(x, y)
    model.save(tmp_path / "model.safetensors")
    loaded = clone(opgrow.load(tmp_path / "model.safetensors"))
    assert (loaded.max_parameters, loaded.max_seconds) == (50, 100.0)
