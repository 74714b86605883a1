"""Networks without some of their blocks: what is left computes what it did."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from opgrow import BLSClassifier, HeMLGOPClassifier, HeMLRNClassifier
from opgrow.network.without import parts_of, without
from tests.estimators.test_incremental import small


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


def grown(cls, digits, **options):
    x, y = digits
    return small(cls, max_neurons=20, **options).partial_fit(x[:300], y[:300]).grow(x[300:800], y[300:800])


CASES = {
    "one layer": (HeMLRNClassifier, {"preset": None}),
    "two layers": (HeMLRNClassifier, {"preset": None, "max_layers": 2, "layer_threshold": -1e9}),
    "an average": (HeMLGOPClassifier, {"n_estimators": 3, "preset": None}),
    "broad": (BLSClassifier, {}),
}


@pytest.mark.parametrize("case", CASES)
def test_the_rest_computes_what_it_did(case, digits):
    cls, options = CASES[case]
    network = grown(cls, digits, **options).network_
    x = digits[0][800:900]
    features = network.features(x)
    parts = parts_of(network)
    assert len(parts) > 1
    blocks = [(level, place) for level, layer in enumerate(network.layers) for place in range(len(layer))]
    assert sorted(block for part in parts for block in part) == blocks
    for gone in (*parts, parts[0] | parts[-1]):
        rest = without(network, gone)
        if rest is None:
            assert len(parts) == 2
            continue
        assert rest.network.head_width == len(rest.kept)
        np.testing.assert_allclose(rest.network.features(x), features[:, rest.kept], rtol=1e-5, atol=1e-6)
        assert sum(map(len, rest.network.layers)) == len(blocks) - len(gone)
    assert without(network, frozenset(blocks)) is None
    np.testing.assert_array_equal(network.features(x), features)
