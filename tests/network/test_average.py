"""Rows are divided among networks, and networks averaged into one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from opgrow.network import Block, Layer, Network
from opgrow.network.average import average, fold_rows, rows_between
from opgrow.operators import OperatorSet
from tests.networks import randomized

# --- rows ---


@given(st.integers(4, 60), st.integers(1, 9), st.integers(1, 4), st.sampled_from([0.1, 0.2, 0.34, 0.5]))
def test_rows_are_held_back_once_in_every_division(n_rows, n_networks, n_classes, fraction):
    rng = np.random.default_rng(n_rows)
    codes = rng.integers(0, n_classes, n_rows)
    folds = fold_rows(n_rows, n_networks, fraction, codes, rng)
    assert len(folds) == n_networks
    n_folds = round(1 / fraction)
    for start in range(0, n_networks - n_folds + 1, n_folds):
        held = np.concatenate([rest for _, rest in folds[start : start + n_folds]])
        common = np.bincount(codes)[codes] > 1
        assert sorted(held) == np.flatnonzero(common).tolist()
    for most, rest in folds:
        assert sorted(np.concatenate([most, rest])) == list(range(n_rows))
        assert len(rest) <= np.ceil(n_rows / n_folds)
        assert set(codes[most]) == set(codes)


def test_classes_are_held_back_evenly():
    codes = np.repeat([0, 1, 2], [50, 25, 5])
    for _, rest in fold_rows(80, 5, 0.2, codes, np.random.default_rng(0)):
        assert np.bincount(codes[rest]).tolist() == [10, 5, 1]


def test_rows_are_divided_anew_when_folds_run_out():
    folds = fold_rows(40, 4, 0.5, None, np.random.default_rng(0))
    assert not np.array_equal(folds[0][1], folds[2][1])


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
    mean = np.mean([member.outputs(x) for member in members], axis=0)
    np.testing.assert_allclose(merged.outputs(x), mean, rtol=1e-5, atol=1e-5)
    assert merged.topology() == "5-16-3"


def test_rows_between_lie_between_rows():
    x = np.random.default_rng(0).normal(size=(20, 3))
    between, near = rows_between(x, 15, np.random.default_rng(1))
    assert between.shape == (15, 3)
    assert len(set(near)) == 15
    away = np.linalg.norm(between - x[near], axis=1)
    spread = np.linalg.norm(x[:, None] - x, axis=2).max(axis=1)[near]
    assert (away <= spread / 2 + 1e-12).all()
    assert away.max() > 0
