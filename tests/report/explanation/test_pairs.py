"""What columns do together is found, and what they do apart is not taken for it."""

from __future__ import annotations

import numpy as np
import pytest

from opgrow import Block, Layer, Network, OperatorSet
from opgrow.report import explain
from tests.report.explanation.models import of_network


@pytest.fixture(scope="module")
def explanation():
    """z0 z1 + z2, of inputs as they are."""
    linear = OperatorSet("multiplication", "sum", "identity")
    products = OperatorSet("multiplication", "correlation1", "identity")
    layer = Layer([Block(3, 1, products, norm=None), Block(3, 1, linear, norm=None)])
    network = Network(3, 1, [layer])
    network.layers[0].blocks[0].weight[:, 0] = 1, 1, 0
    network.layers[0].blocks[1].weight[:, 0] = 0, 0, 1
    network.head.weight[:] = 1
    return explain(of_network(network, "regression"), np.random.default_rng(0).normal(size=(200, 3)))


def test_a_product_is_the_first_pair_and_sums_have_nothing_in_common(explanation):
    first, *others = explanation.pairs(3)
    assert first.columns == (0, 1)
    a, b = (
        explanation.axis(column).grid[places] for column, places in zip((0, 1), first.places, strict=True)
    )
    expected = np.outer(a - a.mean(), b - b.mean())
    np.testing.assert_allclose(first.joint[..., 0], expected, rtol=0, atol=1e-5)
    assert [one.size < 1e-6 for one in others] == [True, True]


def test_a_map_is_the_mean_over_rows_in_which_two_columns_are_replaced(explanation):
    one = explanation.pair("x0", "x2")
    a, c = (explanation.axis(column).grid[places] for column, places in zip((0, 2), one.places, strict=True))
    differences = np.diff(one.values[..., 0], axis=1)
    np.testing.assert_allclose(differences, np.tile(np.diff(c), (len(a), 1)), rtol=0, atol=1e-5)


def test_two_columns_are_needed(explanation):
    with pytest.raises(ValueError, match="A pair needs two columns, got 'x0' twice"):
        explanation.pair("x0", 0)


def test_pairs_are_part_of_the_data(explanation):
    pairs = explanation.data()["pairs"]
    assert pairs[0]["columns"] == [0, 1]
    assert pairs[0]["view"] == "averaged"
    assert np.shape(pairs[0]["values"]) == (1, *map(len, pairs[0]["places"]))
    assert pairs == sorted(pairs, key=lambda one: -one["size"])
