"""A linear head reads no feature far beyond what training rows had."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_diabetes

import opgrow
from opgrow import Block, Layer, Network, OperatorSet
from opgrow.network import compiled
from opgrow.network.average import member_outputs
from opgrow.network.beside import beside
from opgrow.network.limits import head_limits
from opgrow.network.torch import from_torch
from opgrow.network.without import parts_of, without
from tests.example_networks import limited_average, mixed, perceptrons
from tests.networks import in_double, in_double_with_limits

ROWS = np.random.default_rng(1).normal(size=(300, 4))
QUICK = {"n_min": 6, "n_step": 6, "max_neurons": 12, "max_layers": 1, "fine_tune_epochs": 2, "n_jobs": 1}


def limit_at_work(network, x):
    features = network.features(x)
    return ((features < network.head_low) | (features > network.head_high)).any(axis=1)


@pytest.mark.parametrize("compilable", [True, False])
def test_outputs_are_those_of_limited_features(compilable, monkeypatch):
    monkeypatch.setattr(compiled, "is_compilable", lambda network: compilable)
    network = limited_average()
    assert limit_at_work(network, ROWS).mean() > 0.7
    expected = in_double_with_limits(network, ROWS)
    together = network.outputs(ROWS)
    np.testing.assert_allclose(together, expected, rtol=1e-5, atol=1e-5)
    for rows in (slice(0, 1), slice(1, 4), slice(5, 150)):
        assert np.array_equal(network.outputs(ROWS[rows]), together[rows])


def test_modules_have_the_same_limits_and_keep_them():
    network = limited_average()
    module = network.to_torch()
    np.testing.assert_allclose(in_double(network, ROWS), in_double_with_limits(network, ROWS), rtol=1e-12)
    with torch.no_grad():
        said = module(torch.from_numpy(ROWS)).numpy()
    np.testing.assert_allclose(said, network.outputs(ROWS), rtol=1e-5, atol=1e-5)
    assert from_torch(module).digest() == network.digest()
    assert {"head_low", "head_high"} <= set(module.state_dict())


def test_limits_are_noticed_belong_to_the_digest_and_are_no_parameters():
    network = limited_average()
    before, digest, size = network.outputs(ROWS), network.digest(), network.n_parameters()
    network.head_low[:] = network.head_high
    assert not np.array_equal(network.outputs(ROWS), before)
    assert network.digest() != digest
    network.head_low = network.head_high = None
    assert network.n_parameters() == size


def test_what_is_not_a_number_stays_so():
    network, x = limited_average(), ROWS[:40].copy()
    x[[3, 30], 1] = np.nan
    said = network.outputs(x)
    assert np.isnan(said[[3, 30]]).all()
    assert np.isfinite(np.delete(said, [3, 30], axis=0)).all()


def test_members_of_an_average_say_what_they_add():
    network = limited_average()
    biases = np.stack([network.head.bias, network.head.bias]).astype(np.float64)
    said = member_outputs(network, biases, ROWS)
    np.testing.assert_allclose(said.mean(axis=0), network.outputs(ROWS), rtol=1e-5, atol=1e-5)


def test_a_head_that_is_still_to_be_solved_has_no_limits():
    network = limited_average()
    assert beside(network, mixed()).network.head_low is None
    rest = without(network, parts_of(network)[0])
    assert rest is not None
    assert rest.network.head_low is rest.network.head_high is None
    assert network.head_low is not None


def test_limits_are_the_range_of_features_and_once_more_as_much():
    network = perceptrons(4, 5, 2)
    network.layers[0].blocks[0].weight[:] = np.random.default_rng(0).normal(size=(4, 5))
    network.layers[0].blocks[0].weight[:, 4] = 0  # a feature that never changes
    low, high = head_limits(network, ROWS)
    features = network.features(ROWS)
    least, most = features.min(axis=0), features.max(axis=0)
    np.testing.assert_allclose(low, 2 * least - most, rtol=1e-5)
    np.testing.assert_allclose(high, 2 * most - least, rtol=1e-5)
    assert low[4] == high[4] == features[0, 4]
    rows = np.vstack([ROWS, np.full((1, 4), np.nan)])
    assert np.array_equal(head_limits(network, rows), (low, high))
    assert np.isfinite(head_limits(network, np.full((2, 4), np.nan))).all()


def test_heads_of_neurons_and_broad_networks_have_none():
    operators = OperatorSet("gaussian", "sum", "tanh")
    layers = [Layer([Block(4, 3, operators)])]
    assert head_limits(Network(4, 1, layers, head_operators=operators), ROWS) is None
    assert head_limits(Network(4, 1, layers, broad=True), ROWS) is None
    with pytest.raises(ValueError, match="features have limits below a linear head alone"):
        Network(4, 1, layers, head_operators=operators, head_low=np.zeros(3), head_high=np.ones(3))
    network = Network(4, 1, layers, head_low=np.zeros(2), head_high=np.ones(2))
    with pytest.raises(ValueError, match=r"expected 3 values of single precision, got shape \(2,\)"):
        network.outputs(ROWS)


@pytest.mark.parametrize("options", [{"validation_fraction": 0.0}, {"preset": "compact"}], ids=str)
def test_networks_have_limits_of_their_own_rows_and_lose_them_where_a_head_learns_on(options):
    x, y = load_diabetes(return_X_y=True)
    model = opgrow.HeMLGOPRegressor(**QUICK | options, random_state=0).fit(x[:200], y[:200])
    network = model.network_
    assert np.array_equal(head_limits(network, x[:200]), (network.head_low, network.head_high))
    assert not limit_at_work(network, x[:200]).any()
    model.partial_fit(x[200:300], y[200:300])
    assert model.network_.head_low is model.network_.head_high is None


def test_limits_are_those_of_rows_that_a_network_has_learned_from():
    x, y = load_breast_cancer(return_X_y=True)
    x = x.copy()
    x[:20] = x.min(axis=0) - 10 * np.ptp(x, axis=0)  # which one of the networks may not have learned from
    model = opgrow.HeMLGOPClassifier(**QUICK, n_estimators=3, random_state=0).fit(x, y)
    network = model.network_
    low, high = head_limits(network, x)
    assert (low <= network.head_low).all()
    assert (network.head_high <= high).all()
    assert not np.array_equal(low, network.head_low)


def test_an_extreme_product_does_not_decide_a_class():
    """Two inputs that are never large together: their product is, in rows of which a model knows nothing."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2))
    x[:200, 0], x[200:, 1] = 0.01 * x[:200, 0], 0.01 * x[200:, 1]
    y = np.arange(400) >= 200
    products = OperatorSet("multiplication", "correlation1", "elu")
    model = opgrow.HeMLGOPClassifier(**QUICK, operators=[products], random_state=0).fit(x, y)
    far = np.array([[3.0, 3.0], [-3.0, 3.0], [3.0, -3.0], [-3.0, -3.0]])
    assert limit_at_work(model.network_, far).any()
    within = np.abs(model.network_.outputs(far)).max()
    model.network_.head_low = model.network_.head_high = None
    assert within < np.abs(model.network_.outputs(far)).max()


def test_two_rare_categories_at_once_are_predicted_from_what_each_of_them_does():
    """In training each is alone; a second layer squares what becomes of both together."""
    rng = np.random.default_rng(1)
    first, second = np.zeros((2, 800))
    first[:40], second[40:80] = 1, 1

    def truth(x):
        return x[:, 0] - x[:, 1] + x[:, 2] + 0.5 * x[:, 3]

    x = np.column_stack([first, second, rng.normal(size=(800, 2))])
    y = truth(x) + 0.1 * rng.normal(size=800)
    options = QUICK | {"max_layers": 2, "layer_threshold": -1.0, "operators": [("quadratic", "sum", "relu")]}
    model = opgrow.HeMLGOPRegressor(**options, n_estimators=3, random_state=1).fit(x, y)
    rows = rng.normal(size=(200, 4))
    rows[:, :2] = 1
    assert limit_at_work(model.network_, rows).mean() > 0.5
    assert not limit_at_work(model.network_, x).any()
    error = np.abs(model.predict(rows) - truth(rows)).mean()
    model.network_.head_low = model.network_.head_high = None
    assert error < 0.7 * np.abs(model.predict(rows) - truth(rows)).mean()
