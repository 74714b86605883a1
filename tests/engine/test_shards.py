"""Batches in cells, which several processes may hold, against torch's derivatives in double precision."""

from __future__ import annotations

import numpy as np
import pytest

from opgrow.engine.shards import HIDDEN, pairwise_sum
from opgrow.engine.training import Rows, Settings
from tests.engine.test_training import (
    HARMONIC,
    PERCEPTRON,
    SETS,
    data,
    exact_gradient,
    flat,
    network,
    one_batch,
    well_conditioned,
)

SEED = 7


def step(engine, modules, rows, holders, loss="cross_entropy", **changes):
    """Gradient and loss of all rows as one batch; ``holders``: rows, and bounds of their cells, of each."""
    known, shape, state = flat(*modules, rows.frozen.shape[1])
    settings, n = Settings(loss, known.decay(0.0), **changes), len(rows.x)
    batches = []
    for held, bounds in holders:
        mine = Rows(*(np.ascontiguousarray(a[held]) for a in vars(rows).values()))
        batch = np.arange(len(held)), np.array(bounds), held
        batches.append(engine.shard_batch(shape, mine, settings, state.theta, batch, n, SEED))
    for layer in range(len(shape.widths)):
        mean, square = pairwise_sum(np.stack([batch.forward(layer) for batch in batches])) / n
        for batch in batches:
            batch.normalise(layer, np.stack([mean, square - mean**2]))
    value = sum(batch.head() for batch in batches)
    for layer in reversed(range(len(shape.widths))):
        sums = pairwise_sum(np.stack([batch.slopes(layer) for batch in batches]))
        for batch in batches:
            batch.backward(layer, sums)
    return pairwise_sum(np.stack([batch.gradient() for batch in batches])), value


def cells(n, n_cells=8):
    return [n * cell // n_cells for cell in range(n_cells + 1)]


@pytest.mark.parametrize("loss", ["cross_entropy", "mse"])
def test_gradients_of_blocks_and_layers(engine, loss):
    rows, rng, tested = data(n=60), np.random.default_rng(0), 0
    while tested < 12:
        sets = [[SETS[i] for i in rng.integers(0, len(SETS), 2)] for _ in range(1 + tested % 2)]
        if not well_conditioned(sets, rows):
            continue
        tested += 1
        expected, scale, value = exact_gradient(*network(sets), rows, loss)
        actual, share = step(engine, network(sets), rows, [(np.arange(60), cells(60))], loss)
        assert (np.abs(actual - expected) <= 2e-3 * scale + 1e-4 * scale.max()).all(), sets
        assert share == pytest.approx(value, rel=1e-4)


def test_who_holds_the_cells_changes_no_bit(engine):
    """8 cells here, on 2 or on 4 holders; one of the cells has no rows, and others less than a tile."""
    rows, bounds = data(n=203), [0, 40, 40, 57, 100, 133, 150, 151, 203]
    changes = {"dropout": 0.3, "input_dropout": 0.1}
    actual = []
    for size in (1, 2, 4):
        holders, width = [], 8 // size
        for first in range(0, 8, width):
            start, stop = bounds[first], bounds[first + width]
            mine = [min(max(b, start), stop) - start for b in bounds]
            holders.append((np.arange(start, stop), mine))
        actual.append(
            step(engine, network([[HARMONIC, PERCEPTRON], [HARMONIC]]), rows, holders, **changes)[0]
        )
    assert np.array_equal(actual[0], actual[1])
    assert np.array_equal(actual[0], actual[2])
    assert np.abs(actual[0]).max() > 0


def test_a_holder_without_rows_adds_nothing(engine):
    rows = data(n=30)
    everything, nothing = (np.arange(30), [0, 30]), (np.arange(0), [0, 0])
    alone, beside = (
        step(engine, network([[HARMONIC]]), rows, holders)[0]
        for holders in ([everything], [everything, nothing])
    )
    assert np.array_equal(alone, beside)


def test_updates_are_those_of_an_epoch(engine):
    rows, modules = data(n=48), network([[HARMONIC, PERCEPTRON]])
    whole = one_batch(engine, modules, rows, "mse", 0.01, max_norm=0.9)
    known, shape, state = flat(*modules, 2)
    gradient, _ = step(engine, modules, rows, [(np.arange(48), [0, 48])], "mse")
    settings = Settings("mse", known.decay(0.01), max_norm=0.9)
    assert engine.train_update(shape, settings, state, gradient.astype(np.float32), 0.01)
    np.testing.assert_allclose(state.theta, whole.theta, rtol=0, atol=1e-5)
    before = state.theta.copy()
    gradient[3] = np.inf
    assert not engine.train_update(shape, settings, state, gradient.astype(np.float32), 0.01)
    assert np.array_equal(state.theta, before)
    assert (state.step, state.skipped) == (1, 1)


def test_dropout_follows_from_the_number_of_a_row(engine):
    numbers = np.arange(5000)
    keep = engine.keep(SEED, HIDDEN, numbers, (3, 40), 0.25)
    assert set(np.unique(keep)) == {np.float32(0), np.float32(1) / np.float32(0.75)}
    assert keep.mean() == pytest.approx(1.0, abs=0.01)
    some = numbers[::-7].copy()
    assert np.array_equal(engine.keep(SEED, HIDDEN, some, (5, 6), 0.25), keep[some][:, 2:8])
    assert np.abs(np.corrcoef(keep.T) - np.eye(40)).max() < 0.1


def test_dropout_of_the_steps_is_what_keep_says(engine):
    """Inputs and frozen features that are multiplied by it beforehand give the same gradient."""
    rows = data(n=50)
    dropped = Rows(
        rows.x * engine.keep(SEED, 0, np.arange(50), (0, 5), 0.2),
        rows.frozen,
        rows.target,
        rows.weight,
    )
    holders = [(np.arange(50), cells(50))]
    actual, _ = step(engine, network([[HARMONIC]]), rows, holders, input_dropout=0.2)
    expected, _ = step(engine, network([[HARMONIC]]), dropped, holders)
    assert np.array_equal(actual, expected)


def test_what_does_not_fit_is_refused(engine):
    rows = data(n=20)
    known, shape, state = flat(*network([[HARMONIC]]), 2)
    settings, order, numbers = Settings("mse", known.decay(0.0)), np.arange(20), np.arange(20)
    for batch, count, message in (
        ((order, np.array([0, 21]), numbers), 20, "bounds must not fall"),
        ((order, np.array([0, 8, 4]), numbers), 20, "bounds must not fall"),
        ((order + 1, np.array([0, 20]), numbers), 20, "order must name rows below 20"),
        ((order, np.array([0, 20]), numbers), 19, "the whole batch has 19 rows"),
        ((order, np.array([0, 20]), numbers[1:]), 20, "numbers must be a contiguous array"),
    ):
        with pytest.raises(ValueError, match=message):
            engine.shard_batch(shape, rows, settings, state.theta, batch, count, SEED)


def test_pairwise_sums_do_not_depend_on_where_cells_are_divided():
    parts = np.random.default_rng(0).normal(size=(8, 100)) * 10.0 ** np.arange(8)[:, None]
    whole = pairwise_sum(parts)
    for size in (2, 4, 8):
        assert np.array_equal(pairwise_sum(np.stack([pairwise_sum(p) for p in np.split(parts, size)])), whole)
    np.testing.assert_allclose(pairwise_sum(parts[:5]), parts[:5].sum(axis=0))
