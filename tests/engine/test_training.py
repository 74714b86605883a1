"""Epochs of back-propagation against torch's derivatives in double precision."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from opgrow import OperatorSet
from opgrow.engine.blocks import NODALS, POOLS
from opgrow.engine.training import Rows, Settings, Shape, State
from opgrow.operators import PERCEPTRON, library
from opgrow.rows.memory import MemoryRows
from opgrow.training import candidates
from opgrow.training.scores import row_losses
from opgrow.training.settings import TuningSettings
from tests.networks import as_modules
from tests.plain_training import plain_training
from tests.training.problems import HARMONIC, network, well_conditioned

SETS = sorted({*library("paper"), *library("pygop")})


def data(n=40, n_inputs=5, n_frozen=2, n_outputs=3, seed=0):
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0.2, 2, n)
    arrays = (
        rng.uniform(-1.5, 1.5, (n, n_inputs)),
        rng.normal(size=(n, n_frozen)),
        np.eye(n_outputs)[rng.integers(0, n_outputs, n)],
        weight / weight.mean(),
    )
    return Rows(*(a.astype(np.float32) for a in arrays))


def flat(layers, head, n_frozen):
    """The same as the engine sees it."""
    laid_out = candidates.Shape(layers, head, n_frozen)
    shape = Shape(
        laid_out.plan, laid_out.widths, tuple(laid_out.head_codes.tolist()), n_frozen, laid_out.n_outputs
    )
    return laid_out, shape, State(laid_out.flatten(layers, head))


def exact_gradient(layers, head, rows, loss, weight_decay=0.0):
    """Gradient of the loss plus decay in double precision as a flat vector, and the largest of each part."""
    layers, head = as_modules(layers, head)
    layers, head = [layer.double().train() for layer in layers], head.double()
    x, frozen, target, weight = (
        torch.from_numpy(a).double() for a in (rows.x, rows.frozen, rows.target, rows.weight)
    )
    for layer in layers:
        x = layer(x)
    value = (row_losses(loss, head(torch.cat([frozen, x], dim=1)), target) * weight).mean()
    value.backward()
    groups = []
    for layer in layers:
        for block in layer.blocks:
            groups += [block.weight.grad + weight_decay * block.weight.detach()]
            groups += [block.bias.grad, block.norm.weight.grad, block.norm.bias.grad]
    decayed = head.weight.grad + weight_decay * head.weight.detach()
    groups += [decayed.T if isinstance(head, nn.Linear) else decayed, head.bias.grad]
    parts = [group.reshape(-1).numpy() for group in groups]
    scale = np.repeat([np.abs(p).max() for p in parts], [p.size for p in parts])
    return np.concatenate(parts), scale, value.item()


def train_epoch(engine, shape, rows, settings, state, batches, rate, seed):
    order, bounds = batches
    engine.train_epoch(engine.epochs(shape, rows, settings, state, bounds), order, rate, seed)


def one_batch(engine, modules, rows, loss, weight_decay=0.0, **changes):
    laid_out, shape, state = flat(*modules, rows.frozen.shape[1])
    settings = Settings(loss, laid_out.decay(weight_decay), **changes)
    n = len(rows.x)
    batches = np.arange(n), np.array([0, n])
    train_epoch(engine, shape, rows, settings, state, batches, 0.01, 1)
    return state


def assert_gradients(engine, sets, rows, loss="cross_entropy", weight_decay=0.0, **shape):
    shape = {"n_inputs": rows.x.shape[1], "n_frozen": rows.frozen.shape[1], **shape}
    expected, scale, value = exact_gradient(*network(sets, **shape), rows, loss, weight_decay)
    state = one_batch(engine, network(sets, **shape), rows, loss, weight_decay)
    actual = state.first / np.float32(0.1)
    excess = np.abs(actual - expected) - 2e-3 * scale - 1e-4 * scale.max()
    assert excess.max() <= 0, (sets, excess.max(), scale.max())
    assert state.loss == pytest.approx(value, rel=1e-4)
    assert (state.step, state.skipped) == (1, 0)


@pytest.mark.parametrize("loss", ["cross_entropy", "mse"])
def test_gradients_of_every_operator_set(engine, loss):
    rows = data()
    tested = [s for s in SETS if well_conditioned([[s]], rows)]
    assert {s.nodal for s in tested} == {s.nodal for s in SETS}
    for operator_set in tested:
        assert_gradients(engine, [[operator_set]], rows, loss)


def test_gradients_through_two_layers(engine):
    rng, rows, tested = np.random.default_rng(0), data(), 0
    while tested < 20:
        sets = [[SETS[i] for i in rng.integers(0, len(SETS), 2)] for _ in range(2)]
        if well_conditioned(sets, rows):
            tested += 1
            assert_gradients(engine, sets, rows, ("mse", "cross_entropy")[tested % 2], weight_decay=0.01)


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("nodal", NODALS)
def test_gradients_of_heads_with_neurons(engine, nodal, pool):
    rows = data()
    for activation in ("sigmoid", "tanh", "relu", "softplus", "elu"):
        assert_gradients(
            engine, [[HARMONIC]], rows, "mse", 0.01, head_set=OperatorSet(nodal, pool, activation)
        )
    deep = [[HARMONIC, PERCEPTRON], [OperatorSet("harmonic", "sum", "elu")]]
    assert_gradients(engine, deep, rows, "mse", head_set=OperatorSet(nodal, pool, "tanh"))


@pytest.mark.parametrize("rows", [data(n=33), data(n=2), data(n=64, n_frozen=0), data(n=17, n_inputs=1)])
def test_gradients_of_other_shapes(engine, rows):
    assert_gradients(engine, [[HARMONIC, PERCEPTRON]], rows, width=19)


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_steps_are_those_of_torch(engine, dropout):
    """Ten batches of Adam with weight decay, dropout and bounded norms, in torch's double precision."""
    rows, loss = data(n=160), "cross_entropy"
    modules = network([[HARMONIC, PERCEPTRON]])
    laid_out, shape, state = flat(*modules, 2)
    settings = Settings(loss, laid_out.decay(0.01), dropout, 0.1, max_norm=0.9)
    rng = np.random.default_rng(1)
    order, bounds, seed = rng.permutation(160), np.arange(0, 161, 16), int(rng.integers(1, 2**63))
    train_epoch(engine, shape, rows, settings, state, (order, bounds), 0.003, seed)
    given = TuningSettings(
        loss,
        (0.003,),
        (1,),
        batch_size=16,
        weight_decay=0.01,
        max_norm=0.9,
        dropout=dropout,
        input_dropout=0.1,
    )
    part = MemoryRows(rows.x, rows.frozen, rows.target, rows.weight)
    expected = plain_training(*modules, part, given, seed=1)
    assert expected.best_epoch == 1
    assert state.loss == pytest.approx(expected.losses[0], rel=1e-4)
    assert np.abs(state.theta - expected.theta).max() < 2e-4
    weight = state.theta[:15].reshape(5, 3)
    assert np.linalg.norm(weight, axis=0).max() <= 0.9 * (1 + 1e-6)


def test_moments_of_an_epoch_are_those_of_all_its_rows(engine):
    rows = data(n=96)
    laid_out, shape, state = flat(*network([[HARMONIC]]), 2)
    block = network([[HARMONIC]])[0][0].blocks[0]
    raw = block.features(rows.x)
    batches = np.arange(96), np.arange(0, 97, 32)
    train_epoch(engine, shape, rows, Settings("mse", laid_out.decay(0.0)), state, batches, 0.0, 1)
    np.testing.assert_allclose(state.moments[0], raw.mean(axis=0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(state.moments[1], raw.var(axis=0), rtol=1e-4)


def test_a_batch_with_a_gradient_that_is_not_finite_is_skipped(engine):
    rows = data(n=64)
    rows.x[5, 1] = np.nan
    laid_out, shape, state = flat(*network([[HARMONIC]]), 2)
    before = state.theta.copy()
    batches = np.arange(64), np.array([0, 32])
    train_epoch(engine, shape, rows, Settings("mse", laid_out.decay(0.0)), state, batches, 0.1, 1)
    assert (state.step, state.skipped) == (0, 1)
    assert np.array_equal(state.theta, before)
    batches = np.arange(64), np.array([0, 32, 64])
    train_epoch(engine, shape, rows, Settings("mse", laid_out.decay(0.0)), state, batches, 0.1, 1)
    assert (state.step, state.skipped) == (1, 2)
    assert np.isfinite(state.theta).all()


def test_dropout_keeps_the_mean_and_follows_the_row_alone(engine):
    """With all weights of the head 1, the first output's gradient by a feature is that feature's mask."""
    rows = data(n=64)
    changes = {"dropout": 0.3, "input_dropout": 0.2}
    states = [one_batch(engine, network([[HARMONIC]]), rows, "mse", **changes) for _ in range(2)]
    assert np.array_equal(states[0].theta, states[1].theta)
    plain = one_batch(engine, network([[HARMONIC]]), rows, "mse")
    assert np.abs(plain.first - states[0].first).max() > 1e-3


@pytest.mark.parametrize("drop", [0.1, 0.5])
def test_masks_are_as_frequent_as_they_should_be_and_independent(engine, drop):
    """A frozen feature of ones with dropout, a head of ones, targets of zeros: outputs tell the masks."""
    n, features = 64, 200
    rows = Rows(
        np.zeros((n, 1), np.float32),
        np.ones((n, features), np.float32),
        np.zeros((n, 1), np.float32),
        np.ones(n, np.float32),
    )
    plan = np.array([[0, 0, 7, 1, 1, 0, 0, 0]])
    shape = Shape(plan, np.array([1]), (-1, -1, -1), features, 1)
    kept = []
    for seed in range(20):
        state = State(np.zeros(shape.n_parameters, np.float32))
        state.theta[-1] = 1.0  # the head's bias: every gradient is a sum of masks
        settings = Settings("mse", np.zeros(shape.n_parameters, np.float32), dropout=drop)
        train_epoch(engine, shape, rows, settings, state, (np.arange(n), np.array([0, n])), 0.0, seed)
        kept.append(state.first[4 : 4 + features] / np.float32(0.1) / 2)
    shares = np.array(kept)  # means over 64 rows of keep / (1 - drop)
    assert shares.mean() == pytest.approx(1.0, abs=0.02)
    spread = np.sqrt(drop / (1 - drop) / n)
    assert shares.std() == pytest.approx(spread, rel=0.1)
    correlation = np.corrcoef(shares.T[:50])
    assert np.abs(correlation[~np.eye(50, dtype=bool)]).mean() < 0.3


def test_every_instruction_set_gives_the_same_bits(engines):
    rows = data(n=70, n_inputs=9)
    rng = np.random.default_rng(0)
    for number in range(6):
        sets = [[SETS[i] for i in rng.integers(0, len(SETS), 2)] for _ in range(2)]
        head = OperatorSet("gaussian", POOLS[number % 4], "tanh") if number % 2 else None
        results = set()
        for engine in engines.values():
            laid_out, shape, state = flat(*network(sets, n_inputs=9, width=5, head_set=head), 2)
            changes = {"dropout": 0.2, "input_dropout": 0.1, "max_norm": 1.0}
            settings = Settings("cross_entropy", laid_out.decay(0.01), **changes)
            batches = np.arange(70)[::-1].copy(), np.array([0, 23, 47, 70])
            train_epoch(engine, shape, rows, settings, state, batches, 0.01, 7)
            results.add(state.theta.tobytes() + state.moments.tobytes() + np.float64(state.loss).tobytes())
        assert len(results) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batches": (np.arange(40), np.array([0, 41]))}, "bounds must rise from 0 to at most 40"),
        ({"batches": (np.arange(40) + 1, np.array([0, 40]))}, "order must name rows below 40, got 1 to 40"),
        ({"batches": (np.arange(39), np.array([0, 40]))}, "order has 39 rows, and the batches 40"),
        ({"state": State(np.zeros(3, np.float32))}, "theta must be a contiguous array of shape"),
        ({"rows": data(n_frozen=1)}, "frozen must be a contiguous array of shape"),
        ({"rows": data(n_inputs=4)}, "x has 4 columns, and a block of the first layer 5 inputs"),
    ],
)
def test_wrong_arrays_are_refused(engine, change, message):
    laid_out, shape, state = flat(*network([[HARMONIC]]), 2)
    arguments = {
        "shape": shape,
        "rows": data(),
        "settings": Settings("mse", laid_out.decay(0.0)),
        "state": state,
        "batches": (np.arange(40), np.array([0, 40])),
        "rate": 0.1,
        "seed": 1,
    }
    with pytest.raises(ValueError, match=message):
        train_epoch(engine, **(arguments | change))


def test_a_plan_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="block 1 of the plan does not fit"):
        Shape(np.array([[0, 0, 0, 5, 3, 1, 0, 0]]), np.array([3]), (-1, -1, -1), 0, 2)
    with pytest.raises(ValueError, match=r"the layers have \[3\] neurons, expected \[4\]"):
        Shape(np.array([[0, 0, 0, 5, 3, 0, 0, 0]]), np.array([4]), (-1, -1, -1), 0, 2)
