"""Gradients and steps of both trainers on the host against double-precision autograd."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from opgrow import PERCEPTRON, OperatorSet
from opgrow.operators import library
from opgrow.training.candidates import Candidates
from opgrow.training.scores import row_losses
from opgrow.training.settings import ADAM_EPSILON, batch_bounds
from tests.networks import as_modules
from tests.plain_training import plain_training
from tests.training.problems import (
    ACTIVATIONS,
    HARMONIC,
    NODALS,
    POOLS,
    TRAINERS,
    data,
    network,
    settings,
    well_conditioned,
)

pytestmark = pytest.mark.cpu

SETS = sorted({*library("paper"), *library("pygop")})


def flat_gradient(layers, head, rows, tuning):
    """Gradient of the loss plus decay in double precision, laid out as a flat vector."""
    layers, head = as_modules(layers, head)
    layers, head = [layer.double().train() for layer in layers], head.double()
    x, frozen, target, weight = (
        torch.from_numpy(a).double() for a in (rows.x, rows.accepted, rows.target, rows.weight)
    )
    for layer in layers:
        x = layer(x)
    losses = row_losses(tuning.loss, head(torch.cat([frozen, x], dim=1)), target)
    (losses * weight).mean().backward()
    parts, groups = [], []
    for layer in layers:
        for block in layer.blocks:
            groups += [block.weight.grad + tuning.weight_decay * block.weight.detach()]
            groups += [block.bias.grad, block.norm.weight.grad, block.norm.bias.grad]
    decayed = head.weight.grad + tuning.weight_decay * head.weight.detach()
    groups += [decayed.T if isinstance(head, nn.Linear) else decayed, head.bias.grad]
    parts = [group.reshape(-1).numpy() for group in groups]
    return np.concatenate(parts), np.repeat([np.abs(p).max() for p in parts], [p.size for p in parts])


def trainer_of(name, networks, rows, tuning):
    candidates = Candidates.of_networks(networks, rows.n_accepted, [tuning.dropout] * len(networks))
    return TRAINERS[name](candidates, rows, tuning, "loss")


def one_step(name, layers, head, rows, tuning, rate=0.01, seed=1):
    """A trainer after one batch of all rows: the gradient it saw, the parameters before and after."""
    trainer = trainer_of(name, [(layers, head)], rows, tuning)
    [loss], [skipped] = trainer.epoch(np.array([rate]), np.random.default_rng(seed))
    state = trainer.state()
    [first], [after] = state["first"], state["theta"]
    return first / np.float32(0.1), trainer.candidates.theta[0], after, loss, skipped


def assert_gradients(sets, rows, trainers=tuple(TRAINERS), modules=None, **changes):
    tuning = settings(**({"batch_size": len(rows.x)} | changes))
    shape = {"n_inputs": rows.x.shape[1], "n_frozen": rows.accepted.shape[1], **(modules or {})}
    expected, scale = flat_gradient(*network(sets, **shape), rows, tuning)
    for name in trainers:
        actual, *_ = one_step(name, *network(sets, **shape), rows, tuning)
        excess = np.abs(actual - expected) - 2e-3 * scale - 1e-4 * scale.max()
        assert excess.max() <= 0, (
            name,
            [[str(s) for s in layer] for layer in sets],
            modules,
            excess.max(),
            scale.max(),
        )
    return expected


@pytest.mark.parametrize("loss", ["cross_entropy", "mse"])
def test_gradients_of_every_operator_set(loss):
    rows = data()
    tested = [s for s in SETS if well_conditioned([[s]], rows)]
    assert len(tested) > 0.5 * len(SETS)
    assert {s.nodal for s in tested[::5]} == {s.nodal for s in SETS}
    for operator_set in tested[::5]:  # the tests of the engine walk over all of them
        assert_gradients([[operator_set]], rows, loss=loss)


@pytest.mark.parametrize("loss", ["cross_entropy", "mse"])
def test_gradients_through_two_layers(loss):
    rng = np.random.default_rng(0)
    rows, tested = data(), 0
    while tested < 20:
        sets = [[SETS[i] for i in rng.integers(0, len(SETS), 2)] for _ in range(2)]
        if well_conditioned(sets, rows):
            tested += 1
            assert_gradients(sets, rows, loss=loss, weight_decay=0.01)


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("nodal", NODALS)
def test_gradients_of_heads_with_neurons(nodal, pool):
    rows = data()
    for number, activation in enumerate(ACTIVATIONS):
        loss = ("mse", "cross_entropy")[number % 2]
        modules = {"head_set": OperatorSet(nodal, pool, activation)}
        expected = assert_gradients([[HARMONIC]], rows, modules=modules, loss=loss, weight_decay=0.01)
        assert np.abs(expected[:15]).max() > 1e-6  # the hidden layer's weights get something through the head
    deep = [[HARMONIC, PERCEPTRON], [OperatorSet("harmonic", "sum", "elu")]]
    assert_gradients(deep, rows, modules={"head_set": OperatorSet(nodal, pool, "tanh")}, loss="mse")


@pytest.mark.parametrize("n_inputs", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("pool", ["sum", "correlation1", "correlation2"])
@pytest.mark.parametrize("nodal", ["multiplication", "quadratic"])
def test_gradients_of_products(nodal, pool, n_inputs):
    """Computed as products of matrices, of one, two or three neighbours; with too few of them there is 0."""
    operator_set = OperatorSet(nodal, pool, "tanh")
    rows = data(n=37, n_inputs=n_inputs, n_frozen=0)
    terms = n_inputs - POOLS.index(pool)
    # In the head: its inputs are the only features there are, and their gradient goes on to a hidden layer.
    shape = {"head_set": operator_set, "width": n_inputs, "seed": 1}
    expected = assert_gradients([[HARMONIC]], rows, modules=shape, loss="mse")
    by_head = expected[-(n_inputs + 1) * 3 : -3]
    assert (np.abs(by_head).max() > 1e-6) == (terms > 0)
    if terms > 0:  # in both of two hidden layers
        layers, shapes = [[operator_set]] * 2, [{"width": n_inputs, "seed": seed} for seed in range(300)]
        assert_gradients(layers, rows, modules=next(s for s in shapes if well_conditioned(layers, rows, **s)))
        return
    for name in TRAINERS:
        modules = network([[operator_set]], n_inputs=n_inputs, n_frozen=0)
        actual, before, after, _, skipped = one_step(name, *modules, rows, settings(batch_size=37))
        assert skipped == 0
        assert np.abs(actual[: 3 * n_inputs]).max() == 0
        np.testing.assert_array_equal(after[: 3 * n_inputs], before[: 3 * n_inputs])


@pytest.mark.parametrize(
    "rows",
    [data(n=33), data(n=2), data(n=64, n_frozen=0), data(weighted=False)],
    ids=["odd", "two rows", "nothing frozen", "unweighted"],
)
def test_gradients_of_other_shapes(rows):
    tuning = settings(batch_size=len(rows.x), weight_decay=0.1)
    n_frozen = rows.accepted.shape[1]
    expected, scale = flat_gradient(*network([[HARMONIC]], n_frozen=n_frozen), rows, tuning)
    for name in TRAINERS:
        actual, *_ = one_step(name, *network([[HARMONIC]], n_frozen=n_frozen), rows, tuning)
        assert (np.abs(actual - expected) <= 2e-3 * scale + 1e-4 * scale.max()).all()


def test_decay_touches_weights_only():
    rows, sets = data(), [[PERCEPTRON]]
    plain, *_ = one_step("native", *network(sets), rows, settings(batch_size=40))
    decayed, before, *_ = one_step("native", *network(sets), rows, settings(batch_size=40, weight_decay=0.5))
    layers, head = network(sets)
    n_weights = layers[0].blocks[0].weight.size
    is_weight = np.zeros(len(before), bool)
    is_weight[:n_weights] = True
    is_weight[-(head.weight.size + 3) : -3] = True
    np.testing.assert_allclose(decayed - plain, np.where(is_weight, 0.5 * before, 0), rtol=1e-3, atol=1e-5)


def test_both_take_the_step_of_adam():
    rows, sets, tuning = data(), [[HARMONIC], [PERCEPTRON]], settings(batch_size=40)
    results = {name: one_step(name, *network(sets), rows, tuning) for name in TRAINERS}
    for gradient, before, after, *_ in results.values():
        # The first step of Adam is the learning rate in the direction of the gradient.
        expected = before - 0.01 * gradient / (np.abs(gradient) + ADAM_EPSILON)
        np.testing.assert_allclose(after, expected, rtol=1e-4, atol=1e-6)
    losses = [loss for *_, loss, _ in results.values()]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


@pytest.mark.parametrize(
    "head_set", [None, HARMONIC, OperatorSet("quadratic", "correlation1", "elu")], ids=str
)
@pytest.mark.parametrize("sets", [[[PERCEPTRON]], [[HARMONIC, PERCEPTRON], [HARMONIC]]])
@pytest.mark.parametrize("name", TRAINERS)
def test_epochs_are_those_of_double_precision(name, sets, head_set):
    """With dropout, decay and bounded norms, and the learning rate of the moment."""
    rows = data(n=150)
    tuning = settings(
        loss="cross_entropy" if head_set is None else "mse",
        weight_decay=1e-3,
        max_norm=1.5,
        dropout=0.2,
        input_dropout=0.1,
        learning_rates=(0.003, 0.001),
        epochs=(3, 2),
    )
    layers, head = network(sets, head_set=head_set)
    expected = plain_training(layers, head, rows, tuning)
    trainer = trainer_of(name, [(layers, head)], rows, tuning)
    rng = np.random.default_rng(0)
    losses = [trainer.epoch(np.array([rate]), rng)[0][0] for rate in (*[0.003] * 3, *[0.001] * 2)]
    np.testing.assert_allclose(losses, expected.losses, rtol=1e-3)
    assert expected.best_epoch == 5
    assert expected.clear.mean() > 0.2
    np.testing.assert_allclose(trainer.theta[0][expected.clear], expected.theta[expected.clear], atol=5e-4)
    moved = np.abs(expected.theta - trainer.candidates.theta[0])[expected.clear]
    assert np.median(moved) > 5e-3


@pytest.mark.parametrize("name", TRAINERS)
def test_a_batch_without_a_finite_gradient_changes_nothing(name):
    rows = data()
    rows.target[5] = np.inf
    tuning = settings(batch_size=40, loss="mse", weight_decay=0.1, max_norm=0.5)
    trainer = trainer_of(name, [network([[HARMONIC]])], rows, tuning)
    before = {key: values.copy() for key, values in trainer.state().items()}
    _, [skipped] = trainer.epoch(np.array([0.1]), np.random.default_rng(0))
    assert skipped == 1
    for key, values in trainer.state().items():
        np.testing.assert_array_equal(values, before[key])
    rows.target[5] = 0.0
    _, [skipped] = trainer.epoch(np.array([0.1]), np.random.default_rng(0))
    assert skipped == 0
    assert trainer.state()["steps"] == [1]


@pytest.mark.parametrize("name", TRAINERS)
def test_max_norm_is_respected(name):
    rows = data()
    layers, head = network([[PERCEPTRON]])
    tuning = settings(batch_size=40, max_norm=0.7)
    _, before, after, *_ = one_step(name, layers, head, rows, tuning)
    norms = [np.linalg.norm(theta[:15].reshape(5, 3), axis=0) for theta in (before, after)]
    assert norms[0].max() > 0.7
    assert norms[1].max() <= 0.7 * (1 + 1e-6)
    _, _, free, *_ = one_step(name, *network([[PERCEPTRON]]), rows, settings(batch_size=40))
    expected = free[:15].reshape(5, 3)
    expected = expected * np.minimum(1, 0.7 / np.linalg.norm(expected, axis=0))
    np.testing.assert_allclose(after[:15].reshape(5, 3), expected, rtol=1e-4)
    np.testing.assert_allclose(after[15:], free[15:], rtol=1e-5)  # nothing else is bounded


@pytest.mark.parametrize(
    ("n_rows", "batch_size"), [(100, 32), (1, 32), (33, 32), (64, 32), (31, 7), (5, 100), (65, 64)]
)
def test_batches_cover_all_rows_and_differ_by_one_at_most(n_rows, batch_size):
    bounds = batch_bounds(n_rows, batch_size)
    sizes = np.diff(bounds)
    assert bounds[0] == 0
    assert bounds[-1] == n_rows
    assert sizes.max() <= batch_size
    assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize("name", TRAINERS)
@pytest.mark.parametrize("part", ["new", "frozen"])
def test_dropout_preserves_expectations_and_drops_its_share(name, part):
    """The mean output, and its variance p / (1 - p) times the squared contribution."""
    rate, n = 0.3, 4000
    rows = data(n=n, n_frozen=1, n_outputs=1, weighted=False)
    rows.accepted[:] = 2.0 if part == "frozen" else 0.0
    rows.target[:] = 0.0
    layers, head = network([[PERCEPTRON]], n_frozen=1, n_outputs=1)
    block = layers[0].blocks[0]
    block.norm.scale[:] = 0.0
    block.norm.shift[:] = 2.0 if part == "new" else 0.0  # every new feature is the constant 2
    head.weight[:], head.bias[:] = 1.0, 0.0
    n_features = 3 if part == "new" else 1
    tuning = settings(loss="mse", batch_size=n, dropout=rate)
    gradient, *_, loss, _ = one_step(name, layers, head, rows, tuning, rate=1e-30, seed=77)
    mean = 2.0 * n_features
    assert gradient[-1] / 2 == pytest.approx(mean, rel=0.03)  # d/db of the mean square is twice the mean
    variance = n_features * 4.0 * rate / (1 - rate)
    assert loss - (gradient[-1] / 2) ** 2 == pytest.approx(variance, rel=0.1)
