"""Splits have the shares of the protocol, keep classes together, and are the same for everybody."""

from __future__ import annotations

import numpy as np
import pytest

from opgrow.bench.protocols import PROTOCOLS, SMALL_ROWS, draw_inner_split, draw_split, hold_out, split_of


def target(n, n_classes=3, seed=0):
    return np.random.default_rng(seed).integers(0, n_classes, n)


def test_a_small_problem_has_no_validation_rows():
    split = draw_split(target(768), 0)
    assert split.validation is None
    assert (len(split.train), len(split.test)) == (460, 308)  # the paper's numbers for PIMA


def test_a_large_problem_is_divided_in_three():
    y = target(SMALL_ROWS + 500)
    split = draw_split(y, 1)
    parts = [split.train, split.validation, split.test]
    assert [len(part) for part in parts] == [1500, 500, 500]
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(y)))
    for part in parts:
        shares = np.bincount(y[part]) / len(part)
        np.testing.assert_allclose(shares, np.bincount(y) / len(y), atol=0.01)


def test_a_split_is_the_same_whenever_it_is_drawn():
    y = target(300)
    again = [draw_split(y, number) for number in (5, 2, 5)]
    assert np.array_equal(again[0].test, again[2].test)
    assert not np.array_equal(again[0].test, again[1].test)


@pytest.mark.parametrize("rare", [1, 2])
def test_rare_classes_do_not_stop_a_split(rare):
    y = np.concatenate([target(100), np.full(rare, 7)])
    split = draw_split(y, 0)
    assert len(split.train) + len(split.test) == len(y)


def test_many_classes_with_few_rows_each():
    y = np.repeat(np.arange(60), 2)
    split = draw_split(y, 0)
    assert len(split.test) == 48


@pytest.mark.parametrize("n", [300, 2 * SMALL_ROWS])
def test_inner_splits_use_training_rows_only(n):
    y = target(n)
    outer, inner = draw_split(y, 4), draw_inner_split(y, 4)
    parts = [part for part in (inner.train, inner.validation, inner.test) if part is not None]
    assert sorted(np.concatenate(parts).tolist()) == outer.train.tolist()


def test_the_protocols():
    assert PROTOCOLS["paper"].n_splits(768) == PROTOCOLS["paper"].n_splits(10**5) == 3
    assert PROTOCOLS["splits"].n_splits(768) >= 20


def test_seeds_share_a_split_and_a_given_partition_is_taken_as_it_is():
    y, given = target(300), np.arange(300) % 2
    seeds, own = PROTOCOLS["seeds"], PROTOCOLS["given"]
    assert (seeds.n_splits(300), seeds.summary) == (own.n_splits(300), own.summary) == (3, "median")
    for number in range(3):
        np.testing.assert_array_equal(split_of(seeds, y, number, None).test, draw_split(y, 0).test)
        split = split_of(own, y, number, given)
        np.testing.assert_array_equal(split.train, np.arange(0, 300, 2))
        np.testing.assert_array_equal(split.test, np.arange(1, 300, 2))
        assert split.validation is None


@pytest.mark.parametrize("given", [None, np.zeros(300), np.arange(300)])
def test_a_partition_that_is_not_there_is_asked_for(given):
    with pytest.raises(
        ValueError, match="protocol 'given' needs a partition: an NPZ file with an array 'split'"
    ):
        split_of(PROTOCOLS["given"], target(300), 0, given)


def test_rows_to_choose_on_are_training_rows():
    y = target(400)
    split = draw_split(y, 0)
    fit, choose = hold_out(y, split.train, 0)
    assert sorted([*fit, *choose]) == split.train.tolist()
    assert len(choose) == len(split.train) // 4
