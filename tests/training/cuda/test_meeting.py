"""Networks that grow side by side: their trainings meet, whoever comes first and whoever has ended."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from sklearn.datasets import make_classification

from opgrow import Block, Callback, HeMLGOPClassifier, Layer, OperatorSet
from opgrow.common.team import ALONE
from opgrow.estimators.fit import array_data
from opgrow.estimators.listeners import StopGrowth
from opgrow.growth.engine import NativeEngine
from opgrow.network import Linear
from opgrow.rows.problem import Problem
from opgrow.training.candidates import Candidates
from opgrow.training.draft import Draft
from opgrow.training.settings import TuningSettings
from opgrow.training.train import Training
from tests.networks import with_random_parameters

pytest.importorskip("triton", reason="the GPU kernels are written in Triton, which is not installed")

from opgrow.growth.cuda_engine import CudaEngine
from opgrow.training.cuda import meeting
from opgrow.training.cuda.meeting import Meeting, train_together

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SETTINGS = TuningSettings(loss="mse", learning_rates=(0.01,), epochs=(2,), batch_size=16, dropout=0.2)
WAIT = 120  # seconds: only a meeting that hangs waits so long


@dataclass
class Handed:
    """Stands for a training: what the meeting looks at, and nothing of a device."""

    name: str
    size: int = 0
    seed: int = 0
    rng: np.random.Generator = field(init=False)

    def __post_init__(self):
        self.rng = np.random.default_rng([self.seed, *self.name.encode()])


@pytest.fixture
def groups(monkeypatch):
    """The groups that were trained together, by name."""
    seen = []

    def together(trainings):
        seen.append([training.name for training in trainings])
        if any("bad" in training.name for training in trainings):
            raise ArithmeticError("the device has failed")
        return [f"trained {training.name}" for training in trainings]

    monkeypatch.setattr(meeting, "train_together", together)
    monkeypatch.setattr(meeting, "_likeness", lambda training: training.size)
    return seen


def meet(plans, order=None):
    """Growths that hand in trainings one after the other; they begin in an order. What each one gets."""
    place = Meeting(len(plans))
    turns = {name: threading.Event() for name in plans}

    def grow(name):
        turns[name].wait(WAIT)
        results = []
        with place.member():
            for training in plans[name]:
                try:
                    results.append(place.train(training))
                except ArithmeticError as error:
                    results.append(str(error))
        return results

    with ThreadPoolExecutor(len(plans)) as pool:
        futures = {name: pool.submit(grow, name) for name in plans}
        for name in order or plans:
            turns[name].set()
            threading.Event().wait(0.05)
        return {name: future.result(WAIT) for name, future in futures.items()}


def test_what_all_hand_in_is_trained_together(groups):
    actual = meet({name: [Handed(f"{name}{i}") for i in range(3)] for name in "abc"})
    assert actual == {name: [f"trained {name}{i}" for i in range(3)] for name in "abc"}
    assert [sorted(group) for group in groups] == [[f"{name}{i}" for name in "abc"] for i in range(3)]


def test_the_order_of_arrival_does_not_matter(groups):
    for order in ("abc", "cba", "bac"):
        meet({name: [Handed(name)] for name in "abc"}, order)
    assert len(groups) == 3
    assert groups[0] == groups[1] == groups[2]


def test_nobody_waits_for_a_growth_that_has_ended(groups):
    plans = {"a": [Handed(f"a{i}") for i in range(3)], "b": [Handed("b0")], "c": []}
    actual = meet(plans)
    assert actual["a"] == ["trained a0", "trained a1", "trained a2"]
    assert [sorted(group) for group in groups] == [["a0", "b0"], ["a1"], ["a2"]]


def test_a_growth_that_fails_is_not_waited_for(groups):
    place, results = Meeting(2), []

    def fail():
        with pytest.raises(RuntimeError, match="broken"), place.member():
            raise RuntimeError("broken")

    def work():
        with place.member():
            results.append(place.train(Handed("a")))

    threads = [threading.Thread(target=target) for target in (work, fail)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
    assert results == ["trained a"]


def test_trainings_of_different_sizes_are_trained_apart(groups):
    plans = {"a": [Handed("a", 1)], "b": [Handed("b", 2)], "c": [Handed("c", 1)]}
    actual = meet(plans)
    assert actual == {name: [f"trained {name}"] for name in "abc"}
    assert sorted(sorted(group) for group in groups) == [["a", "c"], ["b"]]


def test_an_error_reaches_everybody_it_concerns_and_the_growths_go_on(groups):
    plans = {
        "a": [Handed("a bad", 1), Handed("a1", 1)],
        "b": [Handed("b", 1), Handed("b1", 1)],
        "c": [Handed("c", 2), Handed("c1", 1)],
    }
    actual = meet(plans)
    assert actual == {
        "a": ["the device has failed", "trained a1"],
        "b": ["the device has failed", "trained b1"],
        "c": ["trained c", "trained c1"],
    }


# --- on the device ---


def training_of(backend, seed, n=48, settings=SETTINGS, width=3, exact=True, draft=None):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4)).astype(np.float32)
    target = np.stack([np.sin(x[:, 0]), x[:, 1]], axis=1).astype(np.float32)
    rows = backend.rows(Problem(x, target, np.ones(n, np.float32)))
    block = Block(4, width, OperatorSet("harmonic", "sum", ("tanh", "elu")[seed % 2]))
    layers, head = with_random_parameters([Layer([block])], Linear(width, 2), seed)
    candidates = Candidates.of_networks([(layers, head)], 0, [settings.dropout])
    return Training(
        backend.trainer(candidates, rows, settings, "loss"),
        candidates,
        rows,
        rows,
        settings,
        "loss",
        np.random.default_rng(seed),
        exact,
        lambda epoch: None,
        draft or Draft(),
    )


def bits(trained):
    return trained.theta.tobytes(), trained.moments.tobytes(), repr(trained.outcomes)


def on_device(seeds, order):
    """Trainings that meet on the device, handed in in an order: what comes of each, to the last bit."""
    backend, *_ = CudaEngine(DEVICE).beside(len(seeds), ALONE)
    turns = [threading.Event() for _ in seeds]

    def grow(place):
        turns[place].wait(WAIT)
        with backend.member():
            return bits(backend.train(training_of(backend, seeds[place])))

    with ThreadPoolExecutor(len(seeds)) as pool:
        futures = [pool.submit(grow, place) for place in range(len(seeds))]
        for place in order:
            turns[place].set()
            threading.Event().wait(0.2)
        return [future.result(WAIT) for future in futures]


def test_what_comes_of_a_candidate_does_not_depend_on_who_is_there_first():
    first = on_device([5, 6, 7], [0, 1, 2])
    assert on_device([5, 6, 7], [2, 0, 1]) == first
    assert len(set(first)) == 3


def test_trainings_together_improve_like_alone():
    """Without dropout and with one batch of all rows, a training is the same in company."""
    settings = TuningSettings(loss="mse", learning_rates=(0.01, 0.003), epochs=(3, 2), batch_size=48)
    backend = CudaEngine(DEVICE)
    together = train_together([training_of(backend, seed, settings=settings) for seed in (1, 2, 3)])
    for seed, trained in zip((1, 2, 3), together, strict=True):
        [alone] = train_together([training_of(backend, seed, settings=settings)])
        assert trained.outcomes[0].best_epoch == alone.outcomes[0].best_epoch == 5
        np.testing.assert_allclose(trained.theta, alone.theta, atol=1e-4)
        np.testing.assert_allclose(trained.moments, alone.moments, rtol=1e-3, atol=1e-4)


def test_a_batch_becomes_smaller_when_trainings_end_early():
    settings = TuningSettings(loss="mse", learning_rates=(0.01,), epochs=(4,), batch_size=48)
    backend = CudaEngine(DEVICE)
    trainings = [training_of(backend, seed, settings=settings) for seed in (1, 2, 3, 4)]
    for training, last in zip(trainings[:3], (1, 1, 2), strict=True):
        training.on_epoch = lambda epoch, last=last: epoch.number == last
    actual = train_together(trainings)
    assert [len(trained.outcomes[0].curve) for trained in actual] == [1, 1, 2, 4]
    [alone] = train_together([training_of(backend, 4, settings=settings)])
    np.testing.assert_allclose(actual[3].theta, alone.theta, atol=1e-4)


def test_what_cannot_be_joined_is_trained_by_itself(monkeypatch):
    backend = CudaEngine(DEVICE)

    class Saving(Draft):
        saves = True

    changes = {"plain": {}, "alike": {}, "wider": {"width": 4}, "rough": {"exact": False}}
    changes["saved"] = {"draft": Saving()}
    plans = {name: [training_of(backend, i, **more)] for i, (name, more) in enumerate(changes.items())}
    names = {id(training): name for name, [training] in plans.items()}

    def together(trainings):
        return [{names[id(training)] for training in trainings}] * len(trainings)

    monkeypatch.setattr(meeting, "train_together", together)
    groups = {name: result for name, [result] in meet(plans).items()}
    joined = {"plain", "alike"}
    assert groups == {name: joined if name in joined else {name} for name in plans}


# --- whole fits, whose networks meet on the host ---


class MeetingOnHost(NativeEngine):
    """The host's engine with the threads and the meeting of a device's."""

    meeting: Meeting | None = None

    def beside(self, n_networks, team):
        other = MeetingOnHost(1)
        object.__setattr__(other, "meeting", Meeting(n_networks))
        return other, n_networks, 1

    def member(self):
        return nullcontext() if self.meeting is None else self.meeting.member()

    def train(self, training):
        return super().train(training) if self.meeting is None else self.meeting.train(training)


class Stops(Callback):
    def __init__(self, hook):
        setattr(self, hook, self.stop)

    def stop(self, event):
        raise StopGrowth("enough")


def fitted_in_time(**parameters):
    """A fit of three networks on another thread, which this one does not wait for without end."""
    x, y = make_classification(120, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
    brief = {"n_min": 3, "n_step": 2, "max_neurons": 7, "max_layers": 2}
    brief |= {"epochs": (2, 1), "learning_rates": (0.01, 0.001), "fine_tune_epochs": 2}
    model = HeMLGOPClassifier(n_estimators=3, random_state=0, **brief, **parameters)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(model.fit, x, y).result(WAIT)


def test_networks_that_meet_are_those_that_grow_apart(monkeypatch):
    apart = fitted_in_time()
    monkeypatch.setattr(
        array_data, "choose_engine", lambda device, n_values, n_threads: MeetingOnHost(n_threads)
    )
    assert fitted_in_time().network_.digest() == apart.network_.digest()


@pytest.mark.parametrize("hook", ["on_fit_start", "on_growth_start", "on_epoch_end", "on_step_end"])
def test_nobody_waits_for_a_network_that_never_begins(monkeypatch, hook):
    monkeypatch.setattr(
        array_data, "choose_engine", lambda device, n_values, n_threads: MeetingOnHost(n_threads)
    )
    assert fitted_in_time(callbacks=[Stops(hook)]).history_[-1].stopped == "enough"
