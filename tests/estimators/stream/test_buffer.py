"""Rows that are kept of a stream: bounded, the same for any chunks, and as many of each class."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from opgrow.estimators.stream.buffer import Buffer
from opgrow.estimators.stream.learned import LearnedRows


def rows(n, n_classes=2, seed=0):
    codes = np.random.default_rng(seed).choice(
        n_classes, n, p=[0.9] + [0.1 / (n_classes - 1)] * (n_classes - 1)
    )
    return LearnedRows(np.arange(float(n))[:, None], np.eye(n_classes, dtype=np.float32)[codes], np.ones(n))


def fed(size, stream, borders, classes=True):
    buffer = Buffer.empty(size, stream.x, stream.target)
    for start, stop in pairwise(borders):
        buffer = buffer.extended(stream.chosen(np.arange(start, stop)), classes)
    return buffer


@pytest.mark.parametrize("borders", [[0, 1, 7, 500, 1000], list(range(0, 1001, 10))], ids=["4", "100"])
@pytest.mark.parametrize("classes", [True, False])
def test_chunks_do_not_matter(borders, classes):
    stream = rows(1000)
    one, other = fed(60, stream, [0, 1000], classes), fed(60, stream, borders, classes)
    for name in ("x", "target", "weight", "number", "draw"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.seen == other.seen == 1000
    assert len(one.number) <= 60


def test_half_are_the_last_rows_and_the_others_have_as_many_of_each_class():
    buffer = fed(100, rows(2000), [0, 2000])
    np.testing.assert_array_equal(buffer.number[-50:], np.arange(1950, 2000))
    older = buffer.target[buffer.number < 1950].sum(axis=0)
    assert older.min() >= 20
    np.testing.assert_array_equal(buffer.x[:, 0], buffer.number)


def test_every_row_is_as_likely_to_stay():
    """Of a stream in 10 parts, each has about a tenth of the sample."""
    buffer = fed(2000, rows(20_000), [0, 20_000], classes=False)
    counts = np.bincount(buffer.number[buffer.number < 18_000] // 2000, minlength=9)
    assert counts.sum() == pytest.approx(900, abs=60)
    assert counts.min() > 65
    assert counts.max() < 135


def test_a_class_that_comes_later_gets_its_share():
    stream = rows(500)
    buffer = fed(80, stream, [0, 500]).with_targets(np.array([0, -1, 1]))
    new = LearnedRows(np.arange(400.0)[:, None], np.eye(3)[np.ones(400, int)], np.ones(400))
    buffer = buffer.extended(new, True)
    assert len(buffer.number) <= 80
    assert (buffer.target[buffer.number < 500].argmax(axis=1) != 1).all()
    assert buffer.target[buffer.number < 500].sum(axis=0)[[0, 2]].min() >= 10


def test_without_rows_it_counts_only():
    buffer = fed(0, rows(50), [0, 20, 50])
    assert (buffer.seen, len(buffer.x)) == (50, 0)


def test_rows_count_for_all_that_they_represent():
    stream = rows(300, n_classes=3)
    shares = np.array([0.2, 0.3, 0.5])
    weighted = stream.representing(shares)
    counted = (weighted.weight[:, None] * weighted.target).sum(axis=0)
    np.testing.assert_allclose(counted / counted.sum(), shares, rtol=1e-6)
    assert stream.representing(None) is stream
