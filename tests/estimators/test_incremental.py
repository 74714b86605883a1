"""Estimators that go on learning: their heads are those of all rows seen, and what they refuse."""

from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from opgrow.stream import from_arrays
from sklearn.base import is_classifier
from sklearn.datasets import load_diabetes, load_digits, load_iris

import opgrow
from opgrow import BLSClassifier, BLSRegressor, HeMLRNClassifier, POPClassifier
from opgrow.network import Linear

NAMES = sorted(name for name in opgrow.__all__ if name.endswith(("Classifier", "Regressor")))
ESTIMATORS = [getattr(opgrow, name) for name in NAMES]
SMALL = {
    "n_min": 10,
    "n_step": 10,
    "max_neurons": 20,
    "max_layers": 1,
    "n_estimators": 1,
    "widths": (6,),
    "learning_rates": (0.01,),
    "epochs": (2,),
    "fine_tune_epochs": 0,
    "operators": [("multiplication", "sum", "tanh"), ("gaussian", "sum", "sigmoid")],
    "random_state": 0,
}


def small(cls, **changes):
    names = cls().get_params()
    return cls(**{name: value for name, value in (SMALL | changes).items() if name in names})


@pytest.fixture(scope="module")
def iris():
    x, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))
    return x[order], y[order]


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True)


@pytest.fixture(scope="module")
def weight():
    return np.random.default_rng(1).uniform(0.5, 2, 442)


def from_scratch(model, x, columns, weight, forgetting=1.0):
    """The head for the model's features that numpy finds from all rows at once, in double precision."""
    g = model.network_.features(x).astype(np.float64)
    remembered = forgetting ** np.arange(len(x) - 1, -1, -1.0)
    share = weight * remembered / (weight * remembered).sum()
    mean, middle = share @ g, share @ columns
    scale = np.sqrt(share @ (g - mean) ** 2)
    scale[scale <= 1e-6 * np.abs(mean)] = 1.0
    root = np.sqrt(share * remembered.sum())[:, None]
    z, y = (g - mean) / scale * root, (columns - middle) * root
    identity = np.eye(g.shape[1])
    left = np.concatenate([z, np.sqrt(model.running_.ridge) * identity])
    head = (
        np.linalg.lstsq(left, np.concatenate([y, 0 * g.T[:, : y.shape[1]]]), rcond=None)[0] / scale[:, None]
    )
    return head, middle - mean @ head


def columns_of(model, y):
    """The targets that the head is solved for: of three classes, or in the units of the network."""
    if is_classifier(model):
        return np.eye(3)[y]
    return (y[:, None] - model.network_.output_mean) / model.network_.output_scale


def assert_head(model, expected):
    """Exact in double precision, and what the network has but for single precision."""
    solution, (weight, bias) = model.running_.solution(), expected
    np.testing.assert_allclose(solution.weight, weight, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(solution.intercept, bias, rtol=1e-8, atol=1e-8)
    factor = model.running_.factor
    np.testing.assert_allclose(model.network_.head.weight, weight * factor, rtol=1e-5, atol=1e-5)


def stream(model, x, y, weight, borders, **first):
    for number, (start, stop) in enumerate(pairwise(borders)):
        options = {"sample_weight": weight[start:stop]} | (first if number == 0 else {})
        model.partial_fit(x[start:stop], y[start:stop], **options)
    return model


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("forgetting", [1.0, 0.98])
def test_the_head_is_that_of_all_rows_seen(cls, forgetting, iris, diabetes, weight):
    x, y = iris if is_classifier(cls()) else diabetes
    x, y, weight = x[:150], y[:150], weight[:150]
    models = [
        stream(small(cls, forgetting=forgetting), x, y, weight, borders)
        for borders in ([0, 90, 150], [0, 90, 91, 120, 150])
    ]
    for model in models:
        assert_head(model, from_scratch(model, x, columns_of(model, y), weight, forgetting))
        assert isinstance(model.network_.head, Linear)
        assert model.predict(x).shape == y.shape
    np.testing.assert_allclose(models[0].predict(x), models[1].predict(x), rtol=1e-4)


def test_chunks_are_learned_as_they_come(iris):
    """Of any iterable, also an endless one, and of sources, whose chunks have weights."""
    x, y = iris
    weight = np.random.default_rng(2).uniform(0.5, 2, 150)
    expected = stream(small(BLSClassifier), x, y, weight, [0, 60, 120, 150])
    source = from_arrays(x, y, weight, chunk_rows=60)
    assert small(BLSClassifier).learn(source).network_.digest() == expected.network_.digest()

    def endless():
        for start in (0, 60, 120):
            yield x[start : start + 60], y[start : start + 60], weight[start : start + 60]
        raise KeyboardInterrupt

    model = small(BLSClassifier)
    with pytest.raises(KeyboardInterrupt):
        model.learn(endless())
    assert model.network_.digest() == expected.network_.digest()
    for chunk, message in (
        (x, "chunk 1 must be a pair"),
        ((x,), "tuple of 1"),
        ((x, None), "chunk 1 has no targets"),
    ):
        with pytest.raises(ValueError, match=message):
            model.learn([chunk])


def in_any_way(model, x, y, rng):
    """A copy of a model that learns rows in an order and in chunks that are drawn at random."""
    model, order = pickle.loads(pickle.dumps(model)), rng.permutation(len(x))
    cuts = np.unique(np.r_[0, 1, rng.integers(1, len(x), rng.integers(0, 6)), len(x)])
    for start, stop in pairwise(cuts):
        model.partial_fit(x[order[start:stop]], y[order[start:stop]])
    return model


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda c: c.__name__)
def test_neither_the_order_nor_the_chunks_of_later_rows_matter(cls, iris, diabetes):
    x, y = iris if is_classifier(cls()) else diabetes
    x, y = x[:150], y[:150]
    first = small(cls).partial_fit(x[:90], y[:90])
    columns = columns_of(first, y)
    expected = from_scratch(first, x, columns, np.ones(150))
    rng = np.random.default_rng(11)
    for _ in range(4):
        assert_head(in_any_way(first, x[90:], y[90:], rng), expected)


@pytest.mark.parametrize("cls", [c for c in ESTIMATORS if is_classifier(c())], ids=lambda c: c.__name__)
def test_new_classes_may_come_in_any_order(cls, iris):
    """Two classes are there at first; two others come among rows of all."""
    x, codes = iris
    names = np.array(["d", "b", "c"])[codes]
    names[np.flatnonzero(codes == 0)[::2]] = "a"
    early = np.flatnonzero((codes > 0) & (np.arange(150) < 100))
    late = np.setdiff1d(np.arange(150), early)
    first = small(cls).partial_fit(x[early], names[early])
    assert list(first.classes_) == ["b", "c"]
    expected = from_scratch(first, x, np.eye(4)[np.searchsorted(list("abcd"), names)], np.ones(150))
    rng = np.random.default_rng(12)
    for _ in range(4):
        model = in_any_way(first, x[late], names[late], rng)
        assert list(model.classes_) == ["a", "b", "c", "d"]
        assert_head(model, expected)


@pytest.mark.parametrize("cls", [BLSClassifier, HeMLRNClassifier, POPClassifier], ids=lambda c: c.__name__)
def test_classes_may_come_later(cls, iris):
    """Their columns are zeros in all rows before, wherever their labels are among those of the others."""
    x, y = iris
    names = np.array(["b", "a", "c"])[y]
    first, rest = np.flatnonzero(y > 0), np.flatnonzero(y == 0)
    order = np.concatenate([first, rest])
    model = small(cls).partial_fit(x[first], names[first])
    assert list(model.classes_) == ["a", "c"]
    model.partial_fit(x[rest[:20]], names[rest[:20]]).partial_fit(x[rest[20:]], names[rest[20:]])
    assert list(model.classes_) == ["a", "b", "c"]
    columns = (names[order, None] == model.classes_).astype(float)
    assert_head(model, from_scratch(model, x[order], columns, np.ones(150)))
    assert model.predict_proba(x).shape == (150, 3)
    assert model.score(x, names) > 0.8


def test_classes_that_are_named_are_there_before_their_rows(iris):
    x, y = iris
    model = small(BLSClassifier).partial_fit(x[y < 2], y[y < 2], classes=[0, 1, 2])
    assert list(model.classes_) == [0, 1, 2]
    assert set(model.predict(x[y < 2])) <= {0, 1}
    later = small(BLSClassifier).partial_fit(x[y < 2], y[y < 2])
    later.partial_fit(x[:10], y[:10], classes=[2, 7])
    assert list(later.classes_) == [0, 1, 2, 7]


def test_rows_without_weight_are_not_seen(iris):
    x, y = iris
    some = np.where(np.arange(60) % 3, 1.0, 0.0)
    one = small(BLSClassifier, forgetting=0.99).partial_fit(x[:90], y[:90])
    other = pickle.loads(pickle.dumps(one))
    one.partial_fit(x[90:], y[90:], sample_weight=some)
    other.partial_fit(x[90:][some > 0], y[90:][some > 0])
    assert one.network_.digest() == other.network_.digest()
    one.set_params(class_weight={0: 0.0}).partial_fit(x[y == 0], y[y == 0])
    assert one.network_.digest() == other.network_.digest()


def test_weights_of_classes_are_those_of_a_dictionary(iris):
    x, y = iris
    heavy = {0: 1.0, 1: 5.0, 2: 1.0}
    model = stream(small(BLSClassifier, class_weight=heavy), x, y, np.ones(150), [0, 90, 150])
    weights = np.where(y == 1, 5.0, 1.0)
    assert_head(model, from_scratch(model, x, np.eye(3)[y], weights))
    with pytest.raises(ValueError, match="class_weight='balanced'"):
        small(BLSClassifier, class_weight="balanced").partial_fit(x, y)


def test_several_targets(diabetes):
    x, y = diabetes
    both = np.stack([y, x[:, 0]], axis=1)
    model = stream(small(BLSRegressor), x[:, 1:], both, np.ones(442), [0, 200, 442])
    assert model.predict(x[:, 1:]).shape == (442, 2)
    with pytest.raises(ValueError, match="y has 1 targets, and BLSRegressor has 2"):
        model.partial_fit(x[:, 1:], y)


def test_ranges_follow_the_rows(diabetes):
    """Predictions are bounded by the targets seen, and rows are outside by the inputs seen."""
    x, y = diabetes
    order = np.argsort(y)
    low, high = order[:300], order[300:]
    model = small(BLSRegressor).partial_fit(x[low], y[low])
    assert model.predict(x).max() < y[low].max() + 10
    model.partial_fit(x[high], y[high])
    assert model.network_.output_high > y.max()
    np.testing.assert_array_equal(model.network_.input_high, x.max(axis=0))
    with pytest.raises(ValueError, match="knows nothing of its errors"):
        model.predict_interval(x)


def test_tables_are_encoded_as_in_the_first_call():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"colour": rng.choice(["red", "green"], 200), "size": rng.normal(size=200)})
    y = np.where(frame["colour"] == "red", "warm", "cold")
    model = small(BLSClassifier).partial_fit(frame[:100], y[:100]).partial_fit(frame[100:], y[100:])
    assert model.score(frame, y) == 1.0
    with pytest.raises(ValueError, match="colour"):
        model.partial_fit(frame[["size"]], y)


def test_a_network_that_fit_has_grown_goes_on_from_what_it_says_of_its_sample():
    x, y = load_digits(return_X_y=True)
    model = BLSClassifier(random_state=0).fit(x[:1000], y[:1000])
    before = model.score(x[1400:], y[1400:])
    model.partial_fit(x[1000:1400], y[1000:1400])
    assert model.running_.n_rows == len(model.sample_) + 400
    assert model.score(x[1400:], y[1400:]) > before - 0.03
    model.fit(x[:1000], y[:1000])
    assert model.running_ is None
    model.sample_ = None
    with pytest.raises(ValueError, match="holds neither sums nor a sample"):
        model.partial_fit(x[1000:], y[1000:])


@pytest.mark.filterwarnings("ignore::opgrow.RangeWarning")
def test_logits_are_as_sure_as_rows_that_are_left_out(iris):
    x, y = load_digits(return_X_y=True)
    model = BLSClassifier(random_state=0).partial_fit(x[:900], y[:900])
    probability = model.predict_proba(x[900:])
    right = model.predict(x[900:]) == y[900:]
    assert abs(probability.max(axis=1).mean() - right.mean()) < 0.05


def test_a_call_that_fails_changes_nothing(iris):
    x, y = iris
    model = small(BLSClassifier).partial_fit(x, y)
    before = model.network_, model.running_, model.classes_
    for bad, message in (
        (lambda: model.partial_fit(x[:, :3], y), "X has 3 features"),
        (lambda: model.partial_fit(x, y[:10]), "inconsistent numbers"),
        (lambda: model.partial_fit(x, [f"class {label}" for label in y]), "y has labels that are text"),
        (lambda: model.partial_fit(np.full((2, 4), np.inf), y[:2]), "infinity"),
        (lambda: model.partial_fit(x, y, classes=[["a"]]), "list of class labels"),
        (lambda: model.partial_fit(x, y, classes=["a"]), "classes has labels that are text"),
        (lambda: model.partial_fit(x, y, sample_weight=-np.ones(150)), "Negative values"),
        (lambda: model.set_params(forgetting=1.5).partial_fit(x, y), "forgetting must be"),
    ):
        with pytest.raises(ValueError, match=message):
            bad()
    assert (model.network_, model.running_, model.classes_) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"forgetting": 0}, "forgetting must be a number above 0 and at most 1, got 0"),
        ({"classes": [0, 1]}, r"y has the class 2, which is not among classes=\[0, 1\]"),
        ({"classes": ["a", "b"]}, "y has the class 0, which is not among"),
        ({"classes": 3}, "classes must be a list of class labels, got 3"),
        ({"labels": np.zeros(150)}, "needs at least 2 classes"),
    ],
    ids=str,
)
def test_first_calls_that_are_refused(options, message, iris):
    x, y = iris
    model = small(BLSClassifier, forgetting=options.get("forgetting", 1.0))
    with pytest.raises(ValueError, match=message):
        model.partial_fit(x, options.get("labels", y), classes=options.get("classes"))
    assert not hasattr(model, "network_")


def test_a_copy_with_sums_goes_on_as_the_model_would(iris):
    x, y = iris
    clf = small(BLSClassifier).fit(x[:100], y[:100])
    copy = clf.with_sums()
    assert clf.running_ is None
    assert copy.running_ is not None
    assert copy.network_.digest() != clf.network_.digest()
    clf.partial_fit(x[100:], y[100:])
    assert copy.partial_fit(x[100:], y[100:]).network_.digest() == clf.network_.digest()
    assert clf.with_sums().network_.digest() == clf.network_.digest()
