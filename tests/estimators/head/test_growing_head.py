"""Heads on frozen backbones: they learn what the estimator would from features, and nothing else changes."""

from __future__ import annotations

import inspect
import pickle
import sys

import numpy as np
import pytest
import torch
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import opgrow
from opgrow import BLSClassifier, BLSRegressor, GrowingHead, HeMLRNClassifier, load
from opgrow.estimators.head import predicting_head

from ..test_incremental import ESTIMATORS, assert_head, small
from .examples import convolution, digits, features_by_hand, loader

pytestmark = pytest.mark.filterwarnings("ignore::opgrow.RangeWarning")


@pytest.fixture(scope="module")
def images():
    return digits()


def from_scratch(features, columns, ridge):
    """The head that numpy finds from all rows at once; see `RidgeSolution`."""
    g = features.astype(np.float64)
    mean, scale = g.mean(axis=0), g.std(axis=0)
    scale[scale <= 1e-6 * np.abs(mean)] = 1.0
    left = np.concatenate([(g - mean) / scale, np.sqrt(ridge) * np.eye(g.shape[1])])
    right = np.concatenate([columns - columns.mean(axis=0), np.zeros((g.shape[1], columns.shape[1]))])
    head = np.linalg.lstsq(left, right, rcond=None)[0] / scale[:, None]
    return head, columns.mean(axis=0) - mean @ head


# --- what is learned ---


def test_a_network_grows_on_the_features_of_the_first_rows_and_its_head_sees_all(images):
    """Rows come as arrays and by loaders, in other batches than those of the estimator beside it."""
    x, y = images
    module = convolution()
    seen = features_by_hand(module, x)
    head = GrowingHead(module, small(BLSClassifier)).fit(x[:200], y[:200])
    head.partial_fit(loader(x[200:450], y[200:450])).partial_fit(x[450:].numpy(), y[450:])
    alone = small(BLSClassifier).partial_fit(seen[:200], y[:200]).partial_fit(seen[200:], y[200:])
    expected = alone.running_.solution()
    assert_head(head.estimator_, (expected.weight, expected.intercept))
    features = head.estimator_.network_.features(seen)
    assert_head(head.estimator_, from_scratch(features, np.eye(10)[y], head.estimator_.running_.ridge))
    np.testing.assert_allclose(head.predict_proba(x), alone.predict_proba(seen), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(head.predict(x), head.classes_[head.predict_proba(x).argmax(axis=1)])
    np.testing.assert_allclose(head.features(x), seen, rtol=1e-6)


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda c: c.__name__)
def test_every_estimator_is_a_head_and_its_module_has_the_same_outputs(cls, images):
    x, y = images
    x, y = x[:250], y[:250] % 3
    module = convolution()
    head = GrowingHead(module, small(cls)).fit(loader(x[:200], y[:200])).partial_fit(x[200:], y[200:])
    with torch.no_grad():
        outputs = head.to_torch()(x)
    if is_classifier(cls()):
        assert is_classifier(head)
        expected = head.predict_proba(x)
        np.testing.assert_allclose(outputs.softmax(dim=1).numpy(), expected, rtol=1e-4, atol=1e-5)
    else:
        assert is_regressor(head)
        np.testing.assert_allclose(outputs.numpy()[:, 0], head.predict(x), rtol=1e-4, atol=1e-5)
        assert not hasattr(head, "predict_proba")
    assert head.score(x, y) == pytest.approx(head.score(loader(x, y, 64)), abs=1e-6)


def test_new_classes_come_later(images):
    x, y = images
    known = torch.as_tensor(y < 7)
    head = GrowingHead(convolution(), small(BLSClassifier)).fit(x[known], y[known])
    assert list(head.classes_) == list(range(7))
    head.partial_fit(loader(x[~known], y[~known]))
    assert list(head.classes_) == list(range(10))
    assert head.predict_proba(x).shape == (900, 10)
    named = GrowingHead(convolution(), small(BLSClassifier))
    assert list(named.partial_fit(x[known], y[known], classes=range(10)).classes_) == list(range(10))


def test_growing_on_takes_all_rows_of_the_call(images):
    x, y = images
    head = GrowingHead(convolution(), BLSClassifier(max_neurons=8, random_state=0)).fit(x[:400], y[:400])
    before, size = head.estimator_, head.estimator_.network_.n_parameters()
    head.grow(loader(x[400:], y[400:]), max_neurons=80)
    assert head.estimator_.network_.n_parameters() > size
    assert head.estimator_.running_.n_rows == 900
    assert before.network_.n_parameters() == size
    alone = BLSClassifier(max_neurons=8, random_state=0)
    seen = features_by_hand(head.backbone_, x)
    alone.partial_fit(seen[:400], y[:400]).grow(seen[400:], y[400:], max_neurons=80)
    assert head.estimator_.history_[-1].accepted == alone.history_[-1].accepted
    np.testing.assert_allclose(head.predict_proba(x), alone.predict_proba(seen), rtol=1e-3, atol=1e-4)
    assert head.grow(max_neurons=40).estimator_.running_.n_rows == 900


def test_weights_count_as_in_the_estimator(images):
    x, y = images
    weight = np.random.default_rng(0).uniform(0.5, 2, 900)
    head = GrowingHead(convolution(), small(BLSClassifier)).fit(x[:500], y[:500], weight[:500])
    head.partial_fit(x[500:], y[500:], sample_weight=weight[500:])
    seen = features_by_hand(head.backbone_, x)
    alone = small(BLSClassifier).partial_fit(seen[:500], y[:500], sample_weight=weight[:500])
    expected = alone.partial_fit(seen[500:], y[500:], sample_weight=weight[500:]).running_.solution()
    assert_head(head.estimator_, (expected.weight, expected.intercept))
    expected = np.average(head.predict(x) == y, weights=weight)
    assert head.score(x, y, weight) == pytest.approx(expected)


# --- memory ---


class Counting(BLSClassifier):
    """Knows how many rows it was given at once."""

    calls: list[int] = []  # noqa: RUF012 - of all instances, as clones learn

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        Counting.calls.append(len(X))
        return super().partial_fit(X, y, classes, sample_weight)


def test_no_more_rows_are_held_than_first_rows_and_a_part(images, monkeypatch):
    monkeypatch.setattr(predicting_head, "CHUNK_ROWS", 100)
    monkeypatch.setattr(sys.modules[GrowingHead.__module__], "CHUNK_ROWS", 100)
    monkeypatch.setattr(Counting, "calls", [])
    x, y = images
    waiting = []

    def batches():
        for start in range(0, 900, 30):
            waiting.append(start)
            yield x[start : start + 30], y[start : start + 30]

    head = GrowingHead(convolution(), small(Counting), first_rows=200).fit(batches())
    assert Counting.calls == [210, *[120] * 5, 90]
    assert head.estimator_.running_.n_rows == 900
    Counting.calls.clear()
    head.partial_fit(x, y)
    assert Counting.calls == [256, 256, 256, 132]
    Counting.calls.clear()
    GrowingHead(convolution(), small(Counting)).fit(batches())
    assert Counting.calls == [900]
    batches_seen = []
    monkeypatch.setattr(Counting, "predict", lambda _, part: batches_seen.append(len(part)) or y[: len(part)])
    assert len(head.predict(batches())) == 900
    assert batches_seen == [*[120] * 7, 60]


def test_one_warning_tells_of_all_parts_of_the_rows():
    rows = np.random.default_rng(0).uniform(size=(9000, 3))
    head = GrowingHead(nn.Identity(), small(BLSRegressor)).fit(rows, rows.sum(axis=1))
    rows[[5000, 8999], 1] = 9.0
    with pytest.warns(opgrow.RangeWarning, match="2 of 9000 rows lie .* in row 5000, column 1 is 9") as seen:
        head.predict(rows)
    assert len(seen) == 1
    assert seen[0].filename == __file__


# --- files ---


@pytest.mark.parametrize("fitted", [True, False])
def test_a_head_from_a_file_goes_on_behind_its_backbone(images, tmp_path, fitted):
    x, y = images
    module = convolution()
    head = GrowingHead(module, small(BLSClassifier)).fit(x[:400], y[:400])
    head.estimator_.save(tmp_path / "head.safetensors", sums=True)
    again = GrowingHead.from_fitted(module, load(tmp_path / "head.safetensors"))
    np.testing.assert_array_equal(again.predict_proba(x), head.predict_proba(x))
    for one in (head, again):
        one.fit(x, y) if not fitted else one.partial_fit(x[400:], y[400:])
    assert again.estimator_.network_.digest() == head.estimator_.network_.digest()
    assert again.estimator_.get_params() == head.estimator_.get_params()


# --- scikit-learn's conventions ---


def test_parameters_are_only_assigned_and_clones_share_a_frozen_backbone():
    marks = {name: object() for name in inspect.signature(GrowingHead).parameters}
    assert vars(GrowingHead(**marks)) == marks
    module, scaler = convolution(), StandardScaler()
    head = GrowingHead(module, HeMLRNClassifier(n_min=7), first_rows=500, batch_rows=8)
    copied = clone(head)
    assert copied.backbone is module
    assert copied.estimator is not head.estimator
    assert (copied.estimator.n_min, copied.first_rows, copied.batch_rows) == (7, 500, 8)
    assert head.set_params(estimator__n_min=9).get_params()["estimator__n_min"] == 9
    assert clone(GrowingHead(scaler)).backbone is not scaler
    scaler.fit(np.eye(3))
    assert clone(GrowingHead(scaler)).backbone is scaler
    assert clone(GrowingHead(scaler)).estimator is None
    assert is_classifier(GrowingHead(scaler))


def test_heads_are_chosen_pickled_and_validated(images):
    x, y = images
    head = GrowingHead(convolution(), small(BLSClassifier))
    assert cross_val_score(head, x.numpy(), y, cv=3).shape == (3,)
    search = GridSearchCV(head, {"estimator__max_neurons": [10, 20]}, cv=2, scoring="neg_log_loss")
    assert list(search.fit(x.numpy(), y).best_estimator_.classes_) == list(range(10))
    head.fit(x, y)
    again = pickle.loads(pickle.dumps(head))
    np.testing.assert_array_equal(again.predict(x), head.predict(x))
    with pytest.raises(NotFittedError):
        clone(head).predict(x)
    assert not hasattr(clone(head), "estimator_")


def test_a_call_that_fails_changes_nothing(images):
    x, y = images
    head = GrowingHead(convolution(), small(BLSClassifier)).fit(x[:300], y[:300])
    before = head.estimator_, head.estimator_.network_, head.backbone_

    def breaks():
        yield x, y
        for _ in range(40):
            yield x[:200], y[:200]
        raise OSError("the file has ended")

    with pytest.raises(OSError, match="has ended"):
        head.partial_fit(breaks())
    with pytest.raises(ValueError, match="at least 2 classes"):
        head.fit(x[:10], np.zeros(10))
    assert (head.estimator_, head.estimator_.network_, head.backbone_) == before
    assert head.estimator_.running_.n_rows == 300


class Pair(nn.Module):
    def forward(self, x):
        return x, x


class Wide(nn.Module):
    """As many features as there are rows."""

    def forward(self, x):
        return x.flatten(1)[:, : len(x)]


class Shorter(nn.Module):
    def forward(self, x):
        return x.flatten(1)[1:]


class Broken(nn.Module):
    def forward(self, x):
        return x.flatten(1) / 0


ROWS = torch.rand(40, 6)
TARGETS = np.arange(40) % 2
WITHOUT = DataLoader(TensorDataset(ROWS), batch_size=8)
THREE = DataLoader(TensorDataset(ROWS, ROWS, ROWS), batch_size=8)


@pytest.mark.parametrize(
    ("head", "x", "y", "message"),
    [
        (GrowingHead(Pair()), ROWS, TARGETS, "has to return one tensor of features, and returns tuple"),
        (
            GrowingHead(Wide(), batch_rows=5),
            ROWS[:8],
            TARGETS[:8],
            "gives 3 features of a row, and .* expects 5",
        ),
        (GrowingHead(Shorter()), ROWS, TARGETS, r"returns features of shape \(39, 6\) for 40 rows"),
        (GrowingHead(Broken()), ROWS, TARGETS, "features of the backbone have NaN or infinity"),
        (
            GrowingHead(nn.Linear(5, 2)),
            ROWS,
            TARGETS,
            r"fails on rows of shape \(40, 6\) and type torch.float32",
        ),
        (
            GrowingHead(nn.Identity()),
            ["a", "b"],
            [0, 1],
            "takes tensors and arrays of numbers, got list",
        ),
        (GrowingHead(nn.Linear), ROWS, TARGETS, "backbone must be a torch.nn.Module or a transformer"),
        (GrowingHead(BLSClassifier()), ROWS, TARGETS, "backbone must be a torch.nn.Module or a transformer"),
        (GrowingHead(FunctionTransformer(lambda x: x.astype(str))), ROWS, TARGETS, "have to be numbers"),
        (
            GrowingHead(nn.Identity(), PCA()),
            ROWS,
            TARGETS,
            "estimator must be a classifier or regressor of opgrow",
        ),
        (
            GrowingHead(nn.Identity(), BLSClassifier(table=opgrow.TableEncoder())),
            ROWS,
            TARGETS,
            "estimator has a table",
        ),
        (GrowingHead(nn.Identity(), batch_rows=0), ROWS, TARGETS, "batch_rows must be"),
        (GrowingHead(nn.Identity(), first_rows=1), ROWS, TARGETS, "first_rows must be"),
        (
            GrowingHead(nn.Identity()),
            ROWS,
            None,
            "need y, or a DataLoader or iterator .* got X of type Tensor",
        ),
        (GrowingHead(nn.Identity()), WITHOUT, None, r"give pairs \(X, y\), and a batch of it has X alone"),
        (GrowingHead(nn.Identity()), THREE, None, r"give pairs \(X, y\), and a batch of it has 3 parts"),
        (GrowingHead(nn.Identity()), WITHOUT, TARGETS, "neither y nor sample_weight"),
        (
            GrowingHead(nn.Identity()),
            iter([(ROWS, TARGETS[:3])]),
            None,
            r"40 rows, and targets of shape \(3,\)",
        ),
        (GrowingHead(nn.Identity()), ROWS, TARGETS[:5], "inconsistent numbers of samples"),
        (GrowingHead(nn.Identity()), iter([]), None, "there are no rows"),
        (GrowingHead(PCA()), iter([]), None, "there are no rows"),
        (GrowingHead(nn.Identity()), ROWS, TARGETS * 0, "needs at least 2 classes"),
    ],
)
def test_what_is_refused_in_one_sentence(head, x, y, message):
    with pytest.raises(ValueError, match=message) as caught:
        head.fit(x, y)
    assert "\n" not in str(caught.value)
    assert not hasattr(head, "estimator_")


def test_other_rows_than_those_that_were_learned_are_refused():
    head = GrowingHead(nn.Identity(), small(BLSClassifier)).fit(ROWS, TARGETS)
    for call in (head.predict, head.predict_proba, head.features):
        with pytest.raises(ValueError, match="gives 5 features of a row, and the head expects 6"):
            call(ROWS[:, :5])
    with pytest.raises(ValueError, match="there are no rows to predict"):
        head.predict(iter([]))
    with pytest.raises(ValueError, match="has X alone"):
        head.score(WITHOUT)
    assert len(head.predict(WITHOUT)) == 40
    regressor = GrowingHead(nn.Identity(), small(BLSRegressor))
    with pytest.raises(ValueError, match="classes are for classifiers"):
        regressor.partial_fit(ROWS, TARGETS, classes=[0, 1])
    scaler = StandardScaler()
    with pytest.raises(ValueError, match="StandardScaler has not been fitted"):
        GrowingHead.from_fitted(scaler, head.estimator_)
    with pytest.raises(NotFittedError):
        GrowingHead.from_fitted(nn.Identity(), BLSClassifier())
    with pytest.raises(ValueError, match="to_torch needs a backbone that is a torch module"):
        GrowingHead(scaler, small(BLSClassifier)).fit(ROWS.numpy(), TARGETS).to_torch()
