"""Callbacks hear every event, through an estimator too."""

from __future__ import annotations

import numpy as np
import pytest

from opgrow import HeMLGOPClassifier
from opgrow.estimators import listeners as callbacks
from opgrow.estimators.listeners import Callback, broadcast
from opgrow.growth.events import (
    CandidateFinished,
    EpochFinished,
    Event,
    FitFinished,
    FitStarted,
    GrowthFinished,
    GrowthStarted,
    PhaseStarted,
    PopulationEpochFinished,
    StepFinished,
)

HOOKS = {
    FitStarted: "on_fit_start",
    GrowthStarted: "on_growth_start",
    PhaseStarted: "on_phase_start",
    EpochFinished: "on_epoch_end",
    CandidateFinished: "on_candidate_end",
    PopulationEpochFinished: "on_population_epoch_end",
    StepFinished: "on_step_end",
    GrowthFinished: "on_growth_end",
    FitFinished: "on_fit_end",
}


class Notes(Callback):
    def __init__(self):
        self.heard = []

    def __getattribute__(self, name):
        if name.startswith("on_"):
            return lambda event: self.heard.append((name, event))
        return super().__getattribute__(name)


def test_every_event_has_its_hook():
    assert set(HOOKS) == set(Event.__args__)
    for kind, hook in HOOKS.items():
        event = object.__new__(kind)
        first, second = Notes(), Notes()
        broadcast(event, [first, second])
        assert first.heard == second.heard == [(hook, event)]


def test_the_hooks_of_the_base_class_do_nothing():
    for kind in HOOKS:
        broadcast(object.__new__(kind), [Callback()])
    assert callbacks.__all__


@pytest.fixture
def small():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    parameters = {
        "preset": None,
        "n_min": 4,
        "n_step": 2,
        "max_neurons": 6,
        "max_layers": 1,
        "learning_rates": (0.01,),
        "epochs": (2,),
        "fine_tune_epochs": 1,
        "dropout": 0.1,
        "operators": [("harmonic", "sum", "tanh")],
        "random_state": 0,
    }
    return x, (x[:, 0] > 0).astype(int), parameters


def test_an_estimator_tells_its_callbacks(small):
    x, y, parameters = small
    notes = Notes()
    clf = HeMLGOPClassifier(callbacks=[notes], **parameters).fit(x, y)
    names = [name for name, _ in notes.heard]
    assert names[:2] == ["on_fit_start", "on_growth_start"]
    assert names[-2:] == ["on_growth_end", "on_fit_end"]
    assert notes.heard[0][1].parameters["n_min"] == 4
    assert notes.heard[-1][1].network is clf.network_
    assert [event.step for name, event in notes.heard if name == "on_step_end"] == clf.history_
    epochs = sum(len(step.curve) for step in clf.history_)
    assert names.count("on_epoch_end") == epochs > 0


def test_an_error_in_a_callback_ends_the_fit(small):
    x, y, parameters = small

    class Budget(Callback):
        def on_step_end(self, event):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        HeMLGOPClassifier(callbacks=[Budget()], **parameters).fit(x, y)


def test_listening_does_not_change_the_network(small):
    x, y, parameters = small
    alone = HeMLGOPClassifier(**parameters).fit(x, y)
    heard = HeMLGOPClassifier(callbacks=[Notes()], **parameters).fit(x, y)
    np.testing.assert_array_equal(alone.predict_proba(x), heard.predict_proba(x))


def test_ready_ones_stand_in_one_place():
    for name in ("Progress", "TensorBoard", "MLflow", "MaxSeconds", "MaxParameters"):
        assert issubclass(getattr(callbacks, name), Callback)
        assert name in callbacks.__all__
