"""Whole fits on a device: the same decisions as on the host, any operators, and clear words."""

from __future__ import annotations

import gc
from collections import Counter

import numpy as np
import pytest
import torch

from opgrow import (
    HeMLGOPClassifier,
    HeMLGOPRegressor,
    HeMLRNClassifier,
    OperatorSet,
    POPClassifier,
    POPFastClassifier,
)
from opgrow.estimators.fit import array_data
from opgrow.estimators.listeners import Callback, StopGrowth
from opgrow.operators import register_activation, unregister

pytest.importorskip("triton", reason="the GPU kernels are written in Triton, which is not installed")

from opgrow.growth.cuda_engine import CudaEngine
from opgrow.rows.device import budget
from opgrow.training.cuda import training as gpu_training

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
PERCEPTRONS = [("multiplication", "sum", "sigmoid"), ("multiplication", "sum", "tanh")]
# One network: the interpreter of Triton, which runs the kernels where there is no GPU, knows no threads.
SMALL = {"n_min": 3, "n_step": 2, "max_neurons": 5, "max_layers": 1, "random_state": 0, "n_estimators": 1}
BRIEF = {"learning_rates": (0.01,), "epochs": (1,), "fine_tune_epochs": 1, "dropout": 0.1, "batch_size": 64}


@pytest.fixture
def on_device(monkeypatch):
    """Fits run on the device: a GPU, or the same code interpreted on the CPU."""
    monkeypatch.setattr(array_data, "choose_engine", lambda *_: CudaEngine(DEVICE))


@pytest.fixture
def streamed(monkeypatch):
    """Nothing stays on the device."""
    monkeypatch.setattr(budget, "RESIDENT_SHARE", 0.0)
    monkeypatch.setattr(budget, "free_bytes", lambda device: 50_000)


def table(n=80, seed=0):
    """Two classes that a sine of an input, or nearly so its sign, decides."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    return x, np.where(np.sin(1.5 * x[:, 0]) + 0.1 * x[:, 1] > 0, "up", "down")


def fit_both(monkeypatch, model, x, y, **options):
    host = type(model)(**model.get_params()).fit(x, y, **options)
    monkeypatch.setattr(array_data, "choose_engine", lambda *_: CudaEngine(DEVICE))
    return host, model.fit(x, y, **options)


@pytest.mark.parametrize("weighted", [False, True])
def test_without_tuning_the_network_is_that_of_the_host(monkeypatch, weighted):
    x, y = table()
    sets = [*PERCEPTRONS, ("harmonic", "sum", "tanh")]
    model = HeMLRNClassifier(operators=sets, fine_tune_epochs=0, **(SMALL | {"max_layers": 2}))
    options = {"sample_weight": np.random.default_rng(1).uniform(0.5, 2, len(x))} if weighted else {}
    host, device = fit_both(monkeypatch, model, x, y, **options)
    sets = [[step.operator_set for step in m.history_] for m in (host, device)]
    assert sets[0] == sets[1]
    assert sets[0][0].nodal == "harmonic"  # the problem is a clear one
    assert host.network_.topology() == device.network_.topology()
    np.testing.assert_allclose(host.predict_proba(x), device.predict_proba(x), atol=1e-3)


def test_the_same_search_with_streamed_rows(monkeypatch, streamed):
    x, y = table()
    model = HeMLRNClassifier(operators=PERCEPTRONS, fine_tune_epochs=0, **(SMALL | {"max_layers": 2}))
    host, device = fit_both(monkeypatch, model, x, y)
    assert [s.operator_set for s in host.history_] == [s.operator_set for s in device.history_]
    np.testing.assert_allclose(host.predict_proba(x), device.predict_proba(x), atol=1e-3)


@pytest.mark.parametrize("validation_fraction", [0.0, 0.25])
def test_a_tuned_network_grows(on_device, validation_fraction):
    x, y = table()
    model = HeMLGOPClassifier(
        operators=PERCEPTRONS[:1], validation_fraction=validation_fraction, **SMALL, **BRIEF
    ).fit(x, y)
    steps = {step.kind for step in model.history_}
    assert steps == {"block", "layer", "fine-tune"}
    assert model.score(x, y) > 0.6
    for step in model.history_:
        if step.curve:
            assert all(np.isfinite(epoch.train_loss) for epoch in step.curve)


def test_streamed_rows_tune_as_well(on_device, streamed):
    x, y = table()
    model = HeMLGOPClassifier(operators=PERCEPTRONS[:1], **SMALL, **BRIEF).fit(x, y)
    assert model.score(x, y) > 0.6


def test_regression_on_a_device(on_device):
    x, _ = table()
    model = HeMLGOPRegressor(operators=PERCEPTRONS[1:], **SMALL, **BRIEF).fit(x, 5 + 3 * x[:, 0])
    assert model.score(x, 5 + 3 * x[:, 0]) > 0.5


def test_operators_and_losses_of_ones_own_run_as_plain_torch(on_device):
    x, y = table()
    register_activation("swish_for_a_device", torch.nn.functional.silu)
    try:
        own = [("multiplication", "sum", "swish_for_a_device"), ("gaussian", "sum", "swish_for_a_device")]
        model = HeMLGOPClassifier(operators=own, **SMALL, **BRIEF).fit(x, y)
        assert model.score(x, y) > 0.6

        def absolute(outputs, target):
            return (torch.softmax(outputs, dim=1) - target).abs().sum(dim=1)

        given = {"operators": own, "widths": (3,), "random_state": 0, **BRIEF}
        assert POPFastClassifier(loss=absolute, **given).fit(x, y).score(x, y) > 0.5
        assert POPFastClassifier(**given).fit(x, y).score(x, y) > 0.5
    finally:
        unregister("activation", "swish_for_a_device")


@pytest.mark.parametrize("validation_fraction", [0.0, 0.25])
def test_a_population_keeps_its_best_candidate(on_device, validation_fraction):
    x, y = table(60)
    model = POPFastClassifier(
        operators=[*PERCEPTRONS, ("quadratic", "sum", "tanh")],
        widths=(3,),
        validation_fraction=validation_fraction,
        patience=1,
        learning_rates=(0.02, 0.002),
        epochs=(3, 2),
        batch_size=64,
        fine_tune_epochs=0,
        random_state=0,
    ).fit(x, y)
    search = next(step for step in model.history_ if step.kind == "search")
    assert len(search.candidates) == 3
    assert search.candidates[0].operator_set == search.operator_set
    assert -search.candidates[0].score == pytest.approx(search.score.value)
    assert search.best_epoch > 0
    # What is restored is the best state and not the start; the search takes statistics of batches.
    layer = next(step for step in model.history_ if step.kind == "layer")
    assert layer.score.value == pytest.approx(search.score.value, rel=0.05)
    assert model.score(x, y) > 0.5


def test_a_population_that_runs_out_of_memory_goes_on_in_smaller_groups(on_device, monkeypatch):
    x, y = table(40)
    steps, train, groups = gpu_training.DeviceSteps, CudaEngine.train, []

    def scarce(model, *rest):
        if model.n_candidates > 1:
            raise torch.cuda.OutOfMemoryError("no memory")
        return steps(model, *rest)

    def recorded(self, training):
        if not training.exact:
            groups.append(len(training.candidates))
        return train(self, training)

    monkeypatch.setattr(gpu_training, "DeviceSteps", scarce)
    monkeypatch.setattr(CudaEngine, "train", recorded)
    settings = {"widths": (2,), "epochs": (1,), "learning_rates": (0.01,), "fine_tune_epochs": 0}
    model = POPFastClassifier(operators=PERCEPTRONS, random_state=0, batch_size=64, **settings).fit(x, y)
    assert groups == [2, 1, 1]
    search = next(step for step in model.history_ if step.kind == "search")
    assert {c.operator_set.activation for c in search.candidates} == {"sigmoid", "tanh"}


class StopsAt(Callback):
    """Ends growth at the first event of one hook."""

    def __init__(self, hook):
        self.counts = Counter()
        setattr(self, hook, self.stop)

    def stop(self, event):
        self.counts["stop"] += 1
        raise StopGrowth("enough")

    def on_candidate_end(self, event):
        self.counts["candidates"] += 1


@pytest.mark.parametrize("together", [1, 2])
def test_a_population_on_a_device_can_be_stopped(on_device, monkeypatch, together):
    monkeypatch.setattr(CudaEngine, "group_size", lambda *_: together)
    x, y = table(40)
    stop = StopsAt("on_population_epoch_end")
    settings = {"widths": (3,), "operators": PERCEPTRONS, "callbacks": [stop], "random_state": 0}
    clf = POPFastClassifier(**settings, **(BRIEF | {"epochs": (5,)})).fit(x, y)
    assert stop.counts == {"stop": 1, "candidates": together}
    assert clf.history_[-1].stopped == "enough"
    assert np.isfinite(clf.predict_proba(x)).all()


def test_tuning_on_a_device_can_be_stopped(on_device):
    x, y = table(40)
    stop = StopsAt("on_epoch_end")
    settings = {"operators": PERCEPTRONS, "callbacks": [stop]}
    clf = HeMLGOPClassifier(**settings, **SMALL, **(BRIEF | {"epochs": (5,)})).fit(x, y)
    assert [len(step.curve) for step in clf.history_] == [1, 0]


def test_pop_searches_pairs_on_a_device(on_device):
    x, y = table(40)
    heard = []

    class Counts(Callback):
        def on_candidate_end(self, event):
            heard.append(event.done)

    model = POPClassifier(
        operators=PERCEPTRONS,
        widths=(2,),
        learning_rates=(0.01,),
        epochs=(1,),
        fine_tune_epochs=0,
        batch_size=64,
        random_state=0,
        callbacks=[Counts()],
    ).fit(x, y)
    searches = [step for step in model.history_ if step.kind == "search"]
    assert [len(step.candidates) for step in searches] == [2, 2, 2, 2]
    assert len(heard) == 8
    assert isinstance(model.network_.head.operator_set, OperatorSet)


def test_the_same_seed_grows_the_same_network(on_device):
    x, y = table(50)
    models = [HeMLGOPClassifier(operators=PERCEPTRONS, **SMALL, **BRIEF).fit(x, y) for _ in range(2)]
    assert models[0].network_.digest() == models[1].network_.digest()


@pytest.mark.skipif(DEVICE.type != "cuda", reason="needs a GPU")
def test_a_gpu_and_the_cpu_choose_the_same_operators_from_the_whole_library():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 6)).astype(np.float32)
    y = (np.sin(2 * x).sum(axis=1) > 0).astype(int)
    settings = {"fine_tune_epochs": 0, "max_layers": 1, "max_neurons": 60, "random_state": 0}
    host, device = (HeMLRNClassifier(device=d, **settings).fit(x, y) for d in ("cpu", "cuda"))
    assert [s.operator_set for s in host.history_] == [s.operator_set for s in device.history_]
    np.testing.assert_allclose(host.predict_proba(x), device.predict_proba(x), atol=1e-3)


@pytest.mark.skipif(DEVICE.type != "cuda", reason="needs a GPU")
def test_a_network_predicts_on_a_gpu_what_it_predicts_on_the_cpu():
    x, y = table(500)
    model = HeMLGOPClassifier(device="cpu", random_state=0, fine_tune_epochs=5).fit(x, y)
    on_cpu = model.predict_proba(x)
    model.set_params(device="cuda")
    np.testing.assert_allclose(model.predict_proba(x), on_cpu, rtol=1e-3, atol=1e-4)
    network = model.network_.to_torch().to("cuda")
    inputs = torch.from_numpy(x).to("cuda").requires_grad_()
    network(inputs).sum().backward()
    assert inputs.grad.isfinite().all()
    assert inputs.grad.abs().sum() > 0


@pytest.mark.skipif(DEVICE.type != "cuda", reason="needs a GPU")
def test_little_memory_is_enough():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200_000, 64)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] > 0).astype(int)
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.empty_cache()
    allowed = torch.cuda.memory_reserved(0) + 300 * 2**20
    torch.cuda.set_per_process_memory_fraction(allowed / total)
    try:
        model = HeMLGOPClassifier(
            device="cuda", max_layers=1, max_neurons=60, epochs=(1,), learning_rates=(0.01,), random_state=0
        ).fit(x, y)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert model.score(x[:2000], y[:2000]) > 0.6


@pytest.mark.skipif(DEVICE.type != "cuda", reason="needs a GPU")
def test_fits_leave_nothing_behind_on_the_device():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20_000, 64)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] > 0).astype(int)
    used = []
    for seed in range(4):
        HeMLGOPClassifier(
            device="cuda",
            max_layers=1,
            max_neurons=60,
            epochs=(1,),
            learning_rates=(0.01,),
            random_state=seed,
        ).fit(x, y)
        gc.collect()
        used.append(torch.cuda.memory_allocated(0))
    assert used[-1] <= used[1] + 2**20, used
