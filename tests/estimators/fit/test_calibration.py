"""Classifiers are as confident as rows say that their networks have not learned from."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss

from opgrow import BLSClassifier, HeMLGOPClassifier, HeMLRNClassifier
from opgrow.common.team import ALONE
from opgrow.estimators.fit.calibration import HeldOut, calibrate, joined
from opgrow.network import Network
from tests.networks import randomized

QUICK = {"preset": None, "n_min": 20, "max_neurons": 40, "max_layers": 1, "random_state": 0}


def held_out(n_rows, n_classes, seed, scale=3.0):
    """Outputs that say more than they know, of rows with weights."""
    rng = np.random.default_rng(seed)
    outputs = rng.normal(size=(n_rows, n_classes)) * scale
    codes = (outputs / scale + rng.gumbel(size=outputs.shape)).argmax(axis=1)
    return HeldOut(np.zeros((n_rows, 1)), outputs, np.eye(n_classes)[codes], rng.uniform(0.2, 2.0, n_rows))


def cross_entropy(outputs, target, weight):
    shifted = outputs - outputs.max(axis=1, keepdims=True)
    logarithms = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return -(weight * (target * logarithms).sum(axis=1)).sum() / weight.sum()


@pytest.mark.parametrize(("n_rows", "n_classes", "scale"), [(40, 2, 3.0), (300, 5, 20.0), (1000, 3, 0.3)])
def test_the_head_is_scaled_by_the_factor_of_least_cross_entropy(n_rows, n_classes, scale):
    held = held_out(n_rows, n_classes, 0, scale)
    network = randomized(Network(4, n_classes), 1)
    before = network.head.weight.copy(), network.head.bias.copy()
    factor = calibrate(network, held)
    doubt = 1 / (n_rows + 1)
    target = (1 - doubt) * held.target + doubt / n_classes
    best = minimize_scalar(
        lambda f: cross_entropy(np.exp(f) * held.outputs, target, held.weight),
        bounds=(-4, 4),
        method="bounded",
        options={"xatol": 1e-8},
    )
    assert factor == pytest.approx(np.exp(best.x), rel=5e-3)
    np.testing.assert_allclose(network.head.weight, before[0] * factor, rtol=1e-6)
    np.testing.assert_allclose(network.head.bias, before[1] * factor, rtol=1e-6)


def test_few_rows_that_are_all_right_do_not_ask_for_certainty():
    outputs = np.array([[1.0, -1.0]] * 5 + [[-1.0, 1.0]] * 5)
    held = HeldOut(np.zeros((10, 1)), outputs, (outputs > 0) * 1.0, np.ones(10))
    factor = calibrate(randomized(Network(1, 2), 0), held)
    assert 1 / (1 + np.exp(-2 * factor)) == pytest.approx(1 - 0.5 / 11, abs=1e-3)


def test_one_row_far_beyond_all_others_does_not_ask_for_doubt_about_these():
    held = held_out(2000, 2, 3)
    expected = calibrate(randomized(Network(4, 2), 1), held)
    held.outputs[7] = 20_000.0 * (0.5 - held.target[7])  # wrong, and as sure as can be
    assert calibrate(randomized(Network(4, 2), 1), held) == pytest.approx(expected, rel=0.1)


def test_rows_of_all_networks_decide_and_of_many_some():
    parts = [held_out(30_000, 3, seed) for seed in range(2)]
    held = joined(parts, ALONE)
    assert len(held.outputs) == 20_000
    assert {row.tobytes() for row in held.outputs[::999]} <= {
        row.tobytes() for part in parts for row in part.outputs
    }
    assert joined([], ALONE) is None


def noisy(n_rows, seed):
    x, y = make_classification(
        n_rows, 20, n_informative=6, flip_y=0.25, class_sep=0.7, random_state=7, shuffle=False
    )
    order = np.random.default_rng(seed).permutation(n_rows)
    return x[order], y[order]


@pytest.mark.parametrize("preset", [None, "balanced"])
def test_probabilities_of_fresh_rows_cannot_be_improved_by_one_factor(preset):
    x, y = noisy(2400, 0)
    model = HeMLGOPClassifier(preset=preset, max_layers=1, random_state=0).fit(x[:400], y[:400])
    logits = model.decision_function(x[400:])
    losses = {f: log_loss(y[400:], 1 / (1 + np.exp(-f * logits))) for f in (0.3, 1.0, 3.0)}
    assert min(losses, key=losses.get) == 1.0


def test_an_eval_set_decides_where_there_is_one():
    x, y = noisy(900, 1)
    model = HeMLGOPClassifier(preset="balanced", max_layers=1, random_state=0)
    model.fit(x[:300], y[:300], eval_set=(x[300:], y[300:]))
    logits = model.decision_function(x[300:])
    loss = [log_loss(y[300:], 1 / (1 + np.exp(-f * logits))) for f in (0.9, 1.0, 1.1)]
    assert loss[1] < min(loss[0], loss[2])


def test_shares_of_squared_error_are_left_as_they_are():
    x, y = noisy(300, 2)
    for model in (HeMLRNClassifier(loss="mse", **QUICK), BLSClassifier(random_state=0)):
        model.fit(x, y)
        # Least squares from one-hot targets: the outputs of a row add up to about 1, and a factor would show.
        assert abs(model.decision_function(x)).max() < 3
        np.testing.assert_allclose(model._outputs(x).sum(axis=1), 1, atol=0.2)


def test_without_rows_to_judge_by_logits_stay_as_they_were_tuned():
    x, y = noisy(300, 3)
    model = HeMLGOPClassifier(validation_fraction=0, **QUICK).fit(x, y)
    again = HeMLGOPClassifier(validation_fraction=0, **QUICK).fit(x, y, eval_set=None)
    assert model.network_.digest() == again.network_.digest()
