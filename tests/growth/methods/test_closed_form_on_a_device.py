"""PLN, BLS and the memory of POP on a device: the same networks as on the host, wherever the rows are."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter

import numpy as np
import pytest
import torch

from opgrow import OperatorSet
from opgrow.closed_form.admm import sparse_code
from opgrow.closed_form.incremental_ridge import IncrementalRidge, feature_moments
from opgrow.closed_form.linear_memory import projection
from opgrow.growth import methods
from opgrow.growth.engine import NativeEngine
from opgrow.growth.methods.bls import BroadSettings
from opgrow.growth.methods.pln import PLNSettings
from opgrow.growth.methods.pop import POPSettings
from opgrow.rows.problem import Problem
from opgrow.training.settings import TuningSettings

pytest.importorskip("triton", reason="the GPU kernels are written in Triton, which is not installed")

from opgrow.growth.cuda_engine import CudaEngine
from opgrow.rows.device import budget

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
NOT_TUNED = TuningSettings(loss="mse", learning_rates=(), epochs=())
#: All rows in one batch, so that their order, which is the device's own, does not count.
TUNED = TuningSettings(loss="mse", learning_rates=(1e-3,), epochs=(2,), batch_size=60)
#: Every step and layer is kept, so that there is something to compare.
ALWAYS = {"layer_threshold": -np.inf}
SETTINGS = {
    "PLN": PLNSettings(
        fine_tuning=NOT_TUNED,
        n_min=12,
        n_step=4,
        max_neurons=20,
        max_layers=3,
        block_threshold=-np.inf,
        **ALWAYS,
    ),
    "BLS": BroadSettings(
        fine_tuning=NOT_TUNED,
        max_layers=1,
        n_min=12,
        n_step=6,
        max_neurons=24,
        window_size=5,
        ridges=(1e-3, 0.1, 10.0),
        block_threshold=-np.inf,
    ),
}


@pytest.fixture
def too_small(monkeypatch):
    """A device on which no rows are kept, and the work of a few dozen fits."""
    monkeypatch.setattr(budget, "RESIDENT_SHARE", 0.0)
    monkeypatch.setattr(budget, "free_bytes", lambda device: 4000)


def problem(n=150, d=5, seed=0, held=False, weighted=True):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)).astype(np.float32)
    classes = np.digitize(np.sin(2 * x[:, 0]) + 0.5 * x[:, 1] + 0.2 * rng.normal(size=n), [-0.4, 0.4])
    weight = rng.uniform(0.3, 3, n) if weighted else np.ones(n)
    validation = problem(n // 2, d, seed + 1, weighted=weighted) if held else None
    share = (weight / weight.mean()).astype(np.float32)
    return Problem(x, np.eye(3, dtype=np.float32)[classes], share, validation)


def remembering(kind, **changes):
    values = {"widths": (3, 2), "max_layers": 2, "sets": (OperatorSet("multiplication", "sum", "sigmoid"),)}
    values |= {"fine_tuning": NOT_TUNED, "tuning": TUNED, "memory": kind} | ALWAYS
    return POPSettings(**(values | changes))


def grow(method, settings, data, backend):
    growth = method.growth(data, method, settings, 3, engine=backend)
    return growth.run(), growth


def assert_same(method, settings, data):
    """The same topology, decisions and predictions on host and device; both networks."""
    (network, growth), (other, actual) = (
        grow(method, settings, data, backend) for backend in (NativeEngine(), CudaEngine(DEVICE))
    )
    assert other.describe() == network.describe()
    assert {type(value) for s in actual.steps for value in (s.accepted, s.score.value)} == {bool, float}
    assert [(s.kind, s.layer, s.block, s.accepted) for s in actual.steps] == [
        (s.kind, s.layer, s.block, s.accepted) for s in growth.steps
    ]
    for ours, theirs in zip(actual.steps, growth.steps, strict=True):
        assert ours.score.value == pytest.approx(theirs.score.value, rel=1e-4, abs=1e-5)
        assert ours.train_loss == (theirs.train_loss and pytest.approx(theirs.train_loss, rel=1e-4, abs=1e-7))
    outputs = [n.outputs(data.x) for n in (network, other)]
    np.testing.assert_allclose(outputs[1], outputs[0], atol=1e-4)
    return network, other


# --- PLN and BLS ---


@pytest.mark.parametrize("criterion", ["loss", "accuracy", "brier"])
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_closed_form_networks_are_the_hosts(name, held, weighted, criterion):
    settings = replace(SETTINGS[name], criterion=criterion)
    assert_same(getattr(methods, name), settings, problem(held=held, weighted=weighted))


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("held", [False, True])
def test_inputs_that_do_not_fit_are_streamed(name, held, too_small):
    network, _ = assert_same(getattr(methods, name), SETTINGS[name], problem(held=held))
    assert len(network.layers) > 1


def test_fewer_rows_than_inputs():
    assert_same(methods.PLN, SETTINGS["PLN"], problem(30, 70, held=True))
    assert_same(methods.BLS, SETTINGS["BLS"], problem(30, 70, held=True))


def test_few_long_rows_that_do_not_fit_are_refused(too_small):
    with pytest.raises(MemoryError, match="needs all 30 x 70 inputs on the GPU at once"):
        grow(methods.PLN, SETTINGS["PLN"], problem(30, 70), CudaEngine(DEVICE))


def test_linear_and_collinear_nodes():
    """Linear features of 5 inputs repeat each other from the sixth on: only the ridge tells them apart."""
    settings = replace(SETTINGS["BLS"], feature_activation="identity", ridges=(1e-3,))
    assert_same(methods.BLS, settings, problem(held=True))


def test_features_that_overflow_are_named(too_small):
    data = problem()
    data.x[:] *= 4e37
    with pytest.raises(FloatingPointError, match="overflow"):
        grow(methods.BLS, SETTINGS["BLS"], data, CudaEngine(DEVICE))


# --- the memory of POP ---


@pytest.mark.parametrize(
    ("method", "kind", "held"),
    [
        (methods.POPMEMO, "pca", False),
        (methods.POPMEMO, "lda", True),
        (methods.POPMEMH, "pca", True),
        (methods.POPMEMH, "lda", False),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_remembering_networks_are_the_hosts(method, kind, held):
    networks = assert_same(method, remembering(kind), problem(60, 3, held=held))
    assert_memories_agree(*networks, 2 if method is methods.POPMEMO else 1)


@pytest.mark.parametrize("method", [methods.POPMEMO, methods.POPMEMH], ids=lambda method: method.name)
def test_what_is_remembered_of_rows_that_do_not_fit(method, too_small):
    settings = remembering("pca", widths=(3, 2, 2), max_layers=3, tuning=NOT_TUNED)
    networks = assert_same(method, settings, problem(60, 3))
    assert_memories_agree(*networks, 3 if method is methods.POPMEMO else 2)


def assert_memories_agree(network, other, count):
    identity = OperatorSet("multiplication", "sum", "identity")
    actual = [
        [block for layer in n.layers for block in layer if block.operator_set == identity]
        for n in (network, other)
    ]
    assert len(actual[0]) == len(actual[1]) == count
    for ours, theirs in zip(*actual, strict=True):
        for name in ("weight", "bias", "norm.scale", "norm.shift", "norm.mean", "norm.variance"):
            values, others = (attrgetter(name)(block) for block in (ours, theirs))
            np.testing.assert_allclose(others, values, rtol=1e-3, atol=1e-4, err_msg=name)


# --- the fits themselves ---


@pytest.fixture
def rows(too_small):
    """The same rows, and what works on them, on host and device, where they come in many chunks."""
    data = problem(300, 7)
    actual = []
    for backend in (NativeEngine(), CudaEngine(DEVICE)):
        part, matrices = backend.rows(data), backend.matrices
        actual.append((matrices.inputs(part), *matrices.labels(part), matrices))
    return actual


def close(actual, expected, tolerance=1e-9):
    for ours, theirs in zip(actual, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def test_sums_are_in_double_precision(rows):
    """Rows are the same float32 values, so sums of their products differ by rounding of float64 alone."""
    close(*([projection("pca", x, t, w, 0.9, 0.1, m)] for x, t, w, m in rows))
    close(*([projection("lda", x, t, w, 0.9, 0.1, m)] for x, t, w, m in rows))
    close(*(m.moments(x, w) for x, _, w, m in rows))
    close(*(feature_moments(t, w, m) for _, t, w, m in rows))
    actual = ([sparse_code(t, m.with_ones(x), 0.5, weight=w, matrices=m)] for x, t, w, m in rows)
    close(*actual, tolerance=1e-7)  # iterations end at 1e-8


def test_regressions_agree(rows):
    rng = np.random.default_rng(0)
    groups = [rng.normal(size=(300, size)).astype(np.float32) for size in (4, 3)]
    groups.append(groups[0] * np.float32(3))  # collinear, so that the ridge alone decides
    actual = []
    for _, target, weight, matrices in rows:
        regression = IncrementalRidge.start(target, weight, 1e-4, matrices)
        for group in groups:
            regression = regression.extend(matrices.constant(group))
        actual.append((*regression.head(), regression.leave_one_out(), regression.total_weight))
    close(*actual, tolerance=1e-6)
