"""Networks that go on growing: what was there stays, what is new has to help, and bounds are kept."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.datasets import load_diabetes, load_digits
from sklearn.exceptions import NotFittedError

import opgrow
from opgrow import BLSClassifier, HeMLGOPClassifier, HeMLRNClassifier, PMLPClassifier
from tests.estimators.test_incremental import ESTIMATORS, small

CLASSIFIERS = [cls for cls in ESTIMATORS if is_classifier(cls())]


@pytest.fixture(scope="module")
def digits():
    x, y = load_digits(return_X_y=True)
    return x, y


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda c: c.__name__)
def test_a_network_grows_beside_what_is_there(cls, digits):
    x, y = digits if is_classifier(cls()) else load_diabetes(return_X_y=True)
    x, y = x[:400], y[:400]
    model = small(cls, max_neurons=10, max_layers=2).partial_fit(x[:200], y[:200])
    before, n_steps = model.network_, len(model.history_)
    # Whatever is tried is to stay in this test.
    lenient = {"layer_threshold": -1e9} if "layer_threshold" in model.get_params() else {}
    if "block_threshold" in model.get_params():
        lenient["block_threshold"] = -1e9
    model.grow(x[200:], y[200:], **lenient)
    *_, decision = model.history_[n_steps:]
    assert decision.kind == "layer"
    if not lenient.get("layer_threshold"):  # BLS and its like decide by their own
        assert decision.accepted == (decision.improvement >= 1e-4)
    if not decision.accepted:
        assert model.network_.head_width == before.head_width
        return
    width = before.head_width
    assert model.network_.head_width == model.running_.sums.n_features > width
    old, both = before.features(x), model.network_.features(x)
    for column in old.T:
        assert np.isclose(both, column[:, None], rtol=1e-5, atol=1e-6).all(axis=0).any()
    solution = model.running_.solution()
    np.testing.assert_allclose(
        model.network_.head.weight, solution.weight * model.running_.factor, rtol=1e-5, atol=1e-5
    )
    n_rows = model.running_.n_rows
    assert model.partial_fit(x[:50], y[:50]).running_.n_rows == n_rows + 50
    assert model.predict(x).shape == y.shape


@pytest.mark.parametrize("cls", [BLSClassifier, HeMLGOPClassifier, PMLPClassifier], ids=lambda c: c.__name__)
def test_growing_on_helps_a_network_that_is_too_small(cls, digits):
    x, y = digits
    sizes = {"widths": (8,)} if cls is PMLPClassifier else {"max_neurons": 20, "n_min": 20}
    model = small(cls, epochs=(10,), preset=None, **sizes).partial_fit(x[:300], y[:300])
    model.partial_fit(x[300:1200], y[300:1200])
    before = model.score(x[1200:], y[1200:])
    wider = {"widths": (24,)} if cls is PMLPClassifier else {"max_neurons": 60}
    assert model.grow(x[300:1200], y[300:1200], **wider).score(x[1200:], y[1200:]) > before + 0.02
    assert model.get_params()[next(iter(wider))] != next(iter(wider.values()))


def test_what_does_not_help_enough_does_not_stay(digits):
    x, y = digits
    model = small(HeMLRNClassifier).partial_fit(x[:300], y[:300])
    before = model.network_.digest()
    decision = model.grow(layer_threshold=0.999).history_[-1]
    assert not decision.accepted
    assert decision.improvement < 0.999
    assert model.network_.digest() == before
    assert model.layer_threshold != 0.999


def test_the_budget_is_that_of_all_that_has_grown(digits):
    x, y = digits
    model = small(HeMLRNClassifier, preset=None).partial_fit(x[:300], y[:300])
    n_before = model.network_.n_parameters()
    model.grow(x[300:800], y[300:800], max_parameters=n_before + 600, max_neurons=50)
    assert n_before < model.network_.n_parameters() <= n_before + 600
    with pytest.raises(ValueError, match="leaves no room beside the network"):
        model.grow(max_parameters=50)


@pytest.mark.parametrize("room", [300, 1500, 4000])
def test_the_budget_of_broad_networks_counts_the_weights_between_them(room, digits):
    x, y = digits
    model = small(BLSClassifier).partial_fit(x[:300], y[:300])
    n_before = model.network_.n_parameters()
    model.grow(x[300:800], y[300:800], max_parameters=n_before + room, max_neurons=60)
    assert n_before < model.network_.n_parameters() <= n_before + room


def test_warm_start_goes_on_where_the_last_fit_ended(digits):
    x, y = digits
    model = small(BLSClassifier, warm_start=True).fit(x[:300], y[:300])
    assert model.running_.n_rows == 300
    model.fit(x[300:900], y[300:900])
    assert model.running_.n_rows == 900
    assert model.history_[-1].member == 2
    again = small(BLSClassifier).partial_fit(x[:300], y[:300]).grow(x[300:900], y[300:900])
    assert again.network_.digest() == model.network_.digest()
    with pytest.raises(ValueError, match="no source or eval_set"):
        model.fit(x, y, eval_set=(x, y))


def test_new_classes_may_come_with_a_growth(digits):
    x, y = digits
    first, later = np.flatnonzero(y[:1200] < 5), np.flatnonzero(y[:1200] >= 5)
    model = small(BLSClassifier, max_neurons=60, n_min=60, random_state=1).partial_fit(x[first], y[first])
    model.grow(x[later], y[later])
    assert list(model.classes_) == list(range(10))
    assert model.score(x[1200:], y[1200:]) > 0.85


def test_a_grown_model_is_saved_and_exported(digits, tmp_path):
    x, y = digits
    for cls in (BLSClassifier, HeMLRNClassifier):
        model = small(cls, max_neurons=20).partial_fit(x[:300], y[:300]).grow(x[300:900], y[300:900])
        model.save(tmp_path / "model.safetensors")
        loaded = opgrow.load(tmp_path / "model.safetensors")
        assert loaded.network_.digest() == model.network_.digest()
        np.testing.assert_array_equal(loaded.predict_proba(x[900:1000]), model.predict_proba(x[900:1000]))
        assert model.export_onnx(tmp_path / "model.onnx").agreement > 0.99


def test_what_grow_refuses(digits):
    x, y = digits
    model = small(BLSClassifier, buffer_rows=0)
    with pytest.raises(NotFittedError):
        model.grow(x, y)
    model.partial_fit(x[:300], y[:300])
    with pytest.raises(ValueError, match="there are 0 rows to grow from, and at least 20 are needed"):
        model.grow()
    with pytest.raises(ValueError, match="Invalid parameter 'neurons'"):
        model.grow(x, y, neurons=3)
    with pytest.raises(ValueError, match="buffer_rows must be an integer of at least 0, got -1"):
        small(BLSClassifier, buffer_rows=-1).partial_fit(x, y)
    assert model.running_.n_rows == 300
