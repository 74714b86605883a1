"""PLN: what its layers keep, what its heads solve, and how it grows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.linear_model import Ridge

from opgrow import Block, Layer, Network, OperatorSet, PLNClassifier, PLNRegressor
from opgrow.growth import methods
from opgrow.growth.events import PhaseStarted
from opgrow.growth.methods.pln import PLNSettings
from opgrow.network.tensors import to_tensors
from opgrow.rows.problem import Problem
from opgrow.training.scores import evaluate
from opgrow.training.settings import TuningSettings
from tests.networks import are_same

pytestmark = pytest.mark.cpu

RELU = OperatorSet("multiplication", "sum", "relu")
#: Every step and layer is kept, so that there is something to look at.
ALWAYS = {"block_threshold": -np.inf, "layer_threshold": -np.inf}
SMALL = {"n_min": 12, "n_step": 4, "max_neurons": 20, "max_layers": 3}
CLASSES = {"iris": load_iris, "wine": load_wine, "breast_cancer": load_breast_cancer}
DATA = [*CLASSES, "diabetes"]


def standard(values):
    return (values - values.mean(axis=0)) / np.where(values.std(axis=0) > 0, values.std(axis=0), 1.0)


def real(name):
    """A data set that comes with scikit-learn, as estimators hand it over."""
    x, y = CLASSES.get(name, load_diabetes)(return_X_y=True)
    target = np.eye(y.max() + 1)[y] if name in CLASSES else standard(y)[:, None]
    return Problem(standard(x).astype(np.float32), target.astype(np.float32), np.ones(len(x), np.float32))


def artificial(n=80, d=4, c=2, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)).astype(np.float32)
    target = np.sin(2 * x @ rng.normal(size=(d, c))) + noise * rng.normal(size=(n, c))
    weight = rng.uniform(0.2, 3.0, n)
    return Problem(x, target.astype(np.float32), (weight / weight.mean()).astype(np.float32))


def grow(problem, seed=0, **changes):
    tuning = TuningSettings(loss="mse", learning_rates=(), epochs=())
    given_settings = PLNSettings(**({"fine_tuning": tuning, "criterion": "loss"} | SMALL | changes))
    events = []
    growth = methods.PLN.growth(problem, methods.PLN, given_settings, seed, events.append)
    return growth.run(), growth, events


def blocks(network):
    return [list(layer) for layer in network.layers]


def outputs_of(network, x):
    return network.outputs(x)


def layer_features(network, x):
    """The outputs of all layers."""
    actual = [x]
    for layer in network.layers:
        actual.append(layer.outputs(actual[-1]))
    return [y.astype(np.float64) for y in actual[1:]]


def heads(network):
    """The output weights of all layers; those below the last one are what the next layer carries on."""
    c = network.n_outputs
    carried = [structured.weight[:, :c] for structured, _ in blocks(network)[1:]]
    return [weight.astype(np.float64) for weight in (*carried, network.head.weight)]


def centred(problem):
    """Roots of the weights, and the weighted targets about their weighted mean."""
    weight = problem.weight.astype(np.float64)
    root = np.sqrt(weight)[:, None]
    return root, (problem.target - weight @ problem.target / weight.sum()) * root


def costs(network, problem):
    """Squared training errors: of the linear start, then of each layer with its head."""
    root, target = centred(problem)
    start = blocks(network)[0][0].weight[:, : network.n_outputs]
    fits = zip([problem.x, *layer_features(network, problem.x)], [start, *heads(network)], strict=True)
    return [np.square(root * (y @ head) - target).sum() for y, head in fits]


def rounding_of_costs(network, problem):
    """How far the costs move when the features of every layer are rounded in another way."""
    root, target = centred(problem)
    rng = np.random.default_rng(0)
    exact = np.array(costs(network, problem))
    change = np.zeros(len(exact))
    for _ in range(8):
        features = problem.x
        for number, (layer, head) in enumerate(zip(network.layers, heads(network), strict=True), 1):
            features = layer.outputs(features)
            features *= (1 + rng.uniform(-1, 1, features.shape) * 2.0**-23).astype(np.float32)
            cost = np.square(root * (features.astype(np.float64) @ head) - target).sum()
            change[number] = max(change[number], abs(cost - exact[number]))
    return change


def reference(features, target, radius):
    """Bounded least squares by its secular equation: (Y'Y + s I) O = Y'T with the s that meets the bound."""
    left, singular, right = np.linalg.svd(features, full_matrices=False)
    keep = singular > singular[0] * 1e-10
    slope, singular, right = (left.T @ target)[keep], singular[keep, None], right[keep]

    def solution(shift):
        return right.T @ (singular * slope / (singular**2 + shift))

    def excess(log_shift):
        return np.linalg.norm(solution(np.exp(log_shift))) - radius

    if np.linalg.norm(solution(0.0)) <= radius:
        return solution(0.0)
    return solution(np.exp(brentq(excess, -60.0, 60.0, xtol=1e-13)))


# --- the layer ---


@given(st.integers(1, 6), st.integers(1, 4), st.integers(0, 2**32 - 1), st.sampled_from([1e-3, 1.0, 1e6]))
@settings(max_examples=30, deadline=None)
def test_a_layer_can_keep_the_prediction_before(d, c, seed, scale):
    """[I, -I] relu([I; -I] g) = g, through the blocks."""
    rng = np.random.default_rng(seed)
    output = (scale * rng.normal(size=(d, c))).astype(np.float32)
    structured = Block(d, 2 * c, RELU, norm=None, bias=False)
    random = Block(d, 3, RELU, norm="unit", bias=False)
    network = Network(d, c, [Layer([structured, random])])
    same = np.concatenate([np.eye(c), -np.eye(c), np.zeros((3, c))])
    structured.weight[:] = np.concatenate([output, -output], axis=1)
    network.head.weight[:] = same
    x = rng.normal(size=(20, d)).astype(np.float32)
    # Sums of single precision round their summands, which may be far larger than what is left of them.
    size = np.abs(x.astype(np.float64)) @ np.abs(output)
    assert (np.abs(outputs_of(network, x) - x.astype(np.float64) @ output) <= 1e-6 * size).all()


def test_layers_have_a_structured_and_a_random_block():
    problem = real("wine")
    network, *_ = grow(problem, **ALWAYS)
    before = [None, *heads(network)[:-1]]
    for (structured, random), output in zip(blocks(network), before, strict=True):
        assert structured.operator_set == random.operator_set == RELU
        assert (structured.normalization, random.normalization) == (None, "unit")
        assert not structured.has_bias
        assert not random.has_bias
        assert (structured.n_neurons, random.n_neurons) == (6, 14)
        weight = structured.weight
        np.testing.assert_array_equal(weight[:, 3:], -weight[:, :3])
        if output is not None:
            np.testing.assert_array_equal(weight[:, :3], output)
        drawn = random.weight
        assert np.abs(drawn).max() <= 1
        assert drawn.std() == pytest.approx(3**-0.5, rel=0.15)


@pytest.mark.parametrize(("n", "d"), [(60, 5), (20, 50), (12, 12)])
def test_the_first_layer_starts_from_ridge_regression(n, d):
    problem = artificial(n, d)
    network, *_ = grow(problem, ridge=2.5, max_layers=1)
    weight = problem.weight.astype(np.float64)
    target = problem.target - weight @ problem.target / weight.sum()
    wanted = Ridge(2.5, fit_intercept=False).fit(problem.x, target, weight).coef_.T
    actual = blocks(network)[0][0].weight[:, :2]
    np.testing.assert_allclose(actual, wanted, rtol=1e-3, atol=1e-5)


# --- the heads ---


def assert_costs_never_rise(problem, **changes):
    network, growth, _ = grow(problem, **(ALWAYS | changes))
    actual = np.array(costs(network, problem))
    total = np.square(centred(problem)[1]).sum()
    assert (np.diff(actual) <= 1e-5 * actual[:-1] + 1e-9 * total).all(), actual
    told = {step.layer: step.train_loss for step in growth.steps if step.kind == "block"}  # the last of each
    mean = actual[1:] / (problem.weight.sum(dtype=np.float64) * problem.n_outputs)
    # Heads and features are in single precision, of which nearly singular problems lose some digits.
    slack = (
        4
        * rounding_of_costs(network, problem)[1:]
        / (problem.weight.sum(dtype=np.float64) * problem.n_outputs)
    )
    assert (np.abs(np.array(list(told.values())) - mean) <= 1e-4 * mean + 1e-9 + slack).all()
    return growth


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize(("alpha", "iterations"), [(1.0, 500), (10.0, 500), (1.0, 1), (3.0, 7)])
def test_the_training_error_never_rises_from_layer_to_layer(name, alpha, iterations):
    growth = assert_costs_never_rise(real(name), alpha=alpha, admm_iterations=iterations, max_layers=5)
    assert len(growth.layers) == 5


@given(
    st.integers(2, 40),
    st.integers(1, 12),
    st.integers(1, 4),
    st.integers(0, 2**32 - 1),
    st.sampled_from([1.0, 2.0, 1e3]),
    st.sampled_from([1, 3, 500]),
    st.sampled_from([1e-3, 1.0, 1e3]),
)
@settings(max_examples=40, deadline=None)
def test_the_training_error_never_rises_on_small_problems(n, d, c, seed, alpha, iterations, ridge):
    problem = artificial(n, d, c, seed)
    assert_costs_never_rise(problem, alpha=alpha, admm_iterations=iterations, ridge=ridge, seed=seed)


def test_without_a_bound_that_counts_the_head_is_least_squares():
    problem = real("diabetes")
    network, *_ = grow(problem, alpha=1e3, admm_iterations=5000, **ALWAYS)
    root, target = centred(problem)
    for features, head in zip(layer_features(network, problem.x), heads(network), strict=True):
        wanted = np.linalg.lstsq(root * features, target, rcond=1e-10)[0]
        np.testing.assert_allclose(head, wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())


@pytest.mark.parametrize("alpha", [0.01, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("name", DATA)
def test_the_norm_of_every_head_is_bounded(name, alpha):
    network, *_ = grow(real(name), alpha=alpha, **ALWAYS)
    radius = alpha * np.sqrt(2 * network.n_outputs)
    norms = [np.linalg.norm(head) for head in heads(network)]
    assert max(norms) <= radius * (1 + 1e-6)
    if alpha < 1:
        assert min(norms) == pytest.approx(radius, rel=1e-6)


@pytest.mark.parametrize("alpha", [0.3, 1.0, 10.0])
@pytest.mark.parametrize("name", DATA)
def test_heads_are_the_bounded_optimum(name, alpha):
    problem = real(name)
    network, *_ = grow(problem, alpha=alpha, **ALWAYS)
    root, target = centred(problem)
    radius = alpha * np.sqrt(2 * network.n_outputs)
    for features, head in zip(layer_features(network, problem.x), heads(network), strict=True):
        best = np.square(root * features @ reference(root * features, target, radius) - target).sum()
        assert np.square(root * features @ head - target).sum() <= best * (1 + 1e-3)


def test_the_bias_is_the_weighted_mean_of_the_targets():
    problem = artificial()
    network, *_ = grow(problem)
    wanted = np.average(problem.target, axis=0, weights=problem.weight)
    np.testing.assert_allclose(network.head.bias, wanted, rtol=1e-5)


# --- growth ---


@pytest.mark.parametrize("name", ["iris", "diabetes"])
@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("criterion", ["loss", "brier"])
def test_the_network_predicts_what_was_scored(name, held, criterion):
    problem = real(name)
    train, rest = (
        Problem(problem.x[i::2].copy(), problem.target[i::2].copy(), problem.weight[i::2]) for i in (0, 1)
    )
    network, growth, events = grow(replace(train, validation=rest if held else None), criterion=criterion)
    scored = rest if held else train
    actual = evaluate(criterion, "mse", outputs_of(network, scored.x), scored.target, scored.weight)
    assert growth.score.value == pytest.approx(actual.value, rel=1e-6)
    assert growth.score.loss == pytest.approx(actual.loss, rel=1e-6)
    assert events[-1].score == growth.score
    other = evaluate(criterion, "mse", outputs_of(network, problem.x), problem.target, problem.weight)
    assert growth.score.value != pytest.approx(other.value, rel=1e-4)


@pytest.mark.parametrize(
    ("c", "n_min", "n_step", "max_neurons", "wanted"),
    [
        (2, 12, 4, 20, [12, 4, 4]),
        (2, 12, 4, 18, [12, 4, 2]),
        (2, 5, 4, 13, [8, 4, 1]),  # n_step random neurons at least
        (2, 12, 4, 8, [8]),
        (2, 12, 4, 5, [5]),
        (2, 12, 3, 4, [7]),  # the structured neurons alone fill the layer
        (6, 12, 3, 4, [15]),
    ],
)
def test_widths_and_depth_are_bounded(c, n_min, n_step, max_neurons, wanted):
    sizes = {"n_min": n_min, "n_step": n_step, "max_neurons": max_neurons, "max_layers": 2}
    network, growth, _ = grow(artificial(c=c), **sizes, **ALWAYS)
    told = [[s.n_neurons for s in growth.steps if s.kind == "block" and s.layer == i] for i in (1, 2)]
    assert told == [wanted] * 2
    assert [layer.n_neurons for layer in network.layers] == [sum(wanted)] * 2
    assert all(step.accepted for step in growth.steps)


def test_a_step_leaves_what_is_there_alone():
    problem = real("wine")
    narrow, wide = (grow(problem, max_layers=1, max_neurons=n, **ALWAYS)[0] for n in (16, 20))
    (structured, random), (same, more) = blocks(narrow)[0], blocks(wide)[0]
    assert np.array_equal(structured.weight, same.weight)
    assert np.array_equal(random.weight, more.weight[:, : random.n_neurons])
    assert more.n_neurons == random.n_neurons + 4


def test_draws_depend_on_their_place_alone():
    problem = real("wine")
    networks = [grow(problem, n_min=n, max_neurons=n + 8, **ALWAYS)[0] for n in (12, 13)]
    one, other = ([random.weight[:13] for _, random in blocks(network)] for network in networks)
    for layer in (0, 1):
        steps = one[layer][:, 6:10], one[layer][:, 10:14]
        assert not np.array_equal(*steps)
    np.testing.assert_array_equal(one[0][:, 6:], other[0][:, 7:])
    assert not np.array_equal(one[0], one[1][:13])


def test_what_is_rejected_leaves_no_trace():
    problem = real("breast_cancer")
    thresholds = {"block_threshold": np.inf, "layer_threshold": np.inf}
    network, growth, _ = grow(problem, **thresholds)
    alone, *_ = grow(problem, max_neurons=12, max_layers=1)
    assert [(s.kind, s.layer, s.block, s.accepted) for s in growth.steps] == [
        ("block", 1, 1, True),
        ("block", 1, 2, False),
        ("layer", 1, 0, True),
        ("block", 2, 1, True),
        ("block", 2, 2, False),
        ("layer", 2, 0, False),
    ]
    assert are_same(network, alone)


def test_decisions_follow_the_thresholds():
    _, growth, _ = grow(real("breast_cancer"), max_neurons=60, max_layers=4, block_threshold=5e-3)
    kept = {0: None}
    for step in growth.steps:
        if step.kind == "block":
            before = None if step.block == 1 else kept[step.layer]
            assert step.improvement == (None if before is None else step.score.improvement_over(before))
            assert step.accepted == (before is None or step.improvement >= 5e-3)
            if step.accepted:
                kept[step.layer] = step.score
        else:
            assert step.score == kept[step.layer]
            below = kept[step.layer - 1]
            assert step.accepted == (below is None or step.score.improvement_over(below) >= 1e-4)
    decisions = [step.accepted for step in growth.steps if step.kind == "block" and step.block > 1]
    assert {True, False} == set(decisions)


def test_the_history_tells_every_step():
    problem = real("iris")
    network, growth, events = grow(problem, **ALWAYS)
    steps = [step for step in growth.steps if step.kind == "block"]
    assert [(step.layer, step.block) for step in steps] == [(i, j) for i in (1, 2, 3) for j in (1, 2, 3)]
    for step in steps:
        assert step.operator_set == RELU
        assert step.n_neurons == (12 if step.block == 1 else 4)
        assert step.search_seconds > 0
        assert step.train_loss == pytest.approx(step.score.loss, rel=1e-5)  # scored on the training rows
    assert steps[-1].n_parameters == network.n_parameters()
    phases = [(e.layer, e.block) for e in events if isinstance(e, PhaseStarted)]
    assert phases == [(step.layer, step.block) for step in steps]
    assert growth.settings.fine_tuning.epochs == ()
    assert all(step.kind != "fine-tune" for step in growth.steps)


def test_parameters_are_counted():
    network, growth, _ = grow(real("iris"), n_min=10, n_step=2, max_neurons=10, max_layers=2, **ALWAYS)
    assert network.topology() == "4-10-10-3"
    assert network.n_parameters() == 10 * 4 + 10 * 10 + (10 * 3 + 3) == 173
    assert [step.n_parameters for step in growth.steps] == [73, 73, 173, 173]


def test_a_target_ends_the_growth():
    problem = real("wine")
    _, free, _ = grow(problem, **ALWAYS)
    losses = [step.score.value for step in free.steps if step.kind == "block"]
    _, growth, _ = grow(problem, target=losses[0], **ALWAYS)
    assert [(step.kind, step.layer) for step in growth.steps] == [("block", 1), ("layer", 1)]
    _, growth, _ = grow(problem, target=0.0, **ALWAYS)
    assert len(growth.steps) == len(free.steps)


def test_the_same_seed_grows_the_same_network():
    problem = artificial(n=6000, d=6)
    changes = {"n_min": 60, "max_neurons": 64, "max_layers": 2, **ALWAYS}
    first, second, other = (
        to_tensors(grow(problem, seed, n_threads=threads, **changes)[0])
        for seed, threads in ((1, 1), (1, 3), (2, 1))
    )
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert not np.array_equal(first["layers.0.blocks.1.weight"], other["layers.0.blocks.1.weight"])
    assert np.array_equal(first["layers.0.blocks.0.weight"], other["layers.0.blocks.0.weight"])


# --- the estimators ---

QUICK = {**SMALL, "random_state": 0}


@pytest.mark.parametrize("cls", [PLNClassifier, PLNRegressor])
def test_whole_weights_are_repeated_rows(cls):
    """Only the ratio of weights counts, so that the ridge is as large as the mean weight says."""
    x, y = (load_iris if cls is PLNClassifier else load_diabetes)(return_X_y=True)
    weight = np.random.default_rng(0).integers(0, 4, len(x))
    mean = weight[weight > 0].mean()
    shared = {**QUICK, **ALWAYS, "validation_fraction": 0.0, "criterion": "loss"}
    weighted = cls(ridge=1.0, **shared).fit(x, y, sample_weight=weight)
    repeated = cls(ridge=mean, **shared).fit(np.repeat(x, weight, axis=0), np.repeat(y, weight))
    plain = cls(ridge=1.0, **shared).fit(x, y)
    assert weighted.network_.topology() == repeated.network_.topology()
    for name, tensor in to_tensors(weighted.network_).items():
        np.testing.assert_allclose(to_tensors(repeated.network_)[name], tensor, rtol=1e-3, atol=1e-4)
    assert np.abs(weighted.network_.outputs(x) - plain.network_.outputs(x)).max() > 1e-2


def test_outputs_are_least_squares_outputs():
    x, y = load_iris(return_X_y=True)
    clf = PLNClassifier(**QUICK).fit(x, y)
    assert clf.loss_ == "mse"
    outputs = np.clip(clf.decision_function(x).astype(np.float64), 0, None)
    np.testing.assert_allclose(clf.predict_proba(x), outputs / outputs.sum(axis=1, keepdims=True))


def test_defaults_predict_held_out_rows():
    x, y = load_wine(return_X_y=True)
    assert PLNClassifier(random_state=0).fit(x[::2], y[::2]).score(x[1::2], y[1::2]) > 0.93
    x, y = load_diabetes(return_X_y=True)
    assert PLNRegressor(random_state=0).fit(x[::2], y[::2]).score(x[1::2], y[1::2]) > 0.4


def test_the_papers_settings():
    clf = PLNClassifier.paper()
    assert (clf.n_min, clf.n_step, clf.max_neurons, clf.admm_iterations) == (40, 20, 300, 500)
    assert clf.block_threshold == clf.layer_threshold == 1e-4
    assert (clf.criterion, clf.validation_fraction) == ("accuracy", 0.2)
    assert PLNRegressor.paper().criterion == "loss"
    large = PLNClassifier.paper("large", alpha=10.0)
    assert (large.validation_fraction, large.alpha) == (0.25, 10.0)
    with pytest.raises(ValueError, match="scale"):
        PLNClassifier.paper("huge")
    x, y = load_wine(return_X_y=True)
    assert PLNClassifier.paper(random_state=0).fit(x, y).score(x, y) > 0.97


BAD = {
    "n_min": [0, 2.5, "10", None, True],
    "n_step": [0, 1.0],
    "max_neurons": [0, np.inf],
    "max_layers": [0, None],
    "block_threshold": ["no", None, np.nan],
    "layer_threshold": ["no", None, np.nan],
    "ridge": [0, -1.0, "auto", (0.1, 1.0), None, np.inf, np.nan],
    "alpha": [0, -1.0, "auto", None, np.inf, np.nan],
    "mu": [0, -1.0, None, np.inf],
    "admm_iterations": [0, 1.5, None],
    "criterion": ["f1", None],
    "target": ["best", np.nan],
    "n_jobs": [0, "all"],
}


@pytest.mark.parametrize("cls", [PLNClassifier, PLNRegressor])
@pytest.mark.parametrize(("name", "value"), [(name, value) for name in BAD for value in BAD[name]])
def test_bad_parameters_are_named_in_one_sentence(cls, name, value):
    with pytest.raises(ValueError, match=f"^{name} must be .*got ") as caught:
        cls(**{name: value}).fit(*load_iris(return_X_y=True))
    assert "\n" not in str(caught.value)


def odd_tables():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 4))
    y = (x[:, 0] > 0).astype(int)
    constant = x.copy()
    constant[:, 1:3] = 0.0, 1e8
    yield "constant columns", constant, y
    yield "only constant columns", np.ones((60, 3)), y
    yield "duplicated columns", np.concatenate([x, x, x], axis=1), y
    yield "duplicated rows", np.tile(x[:5], (12, 1)), np.tile(y[:5], 12)
    yield "more columns than rows", rng.normal(size=(20, 300)), np.arange(20) % 2
    yield "one row for each class", x[:5], np.arange(5)
    yield "two rows", x[:2], np.arange(2)
    yield "one column", x[:, :1], y
    for scale in (1e-30, 1e30):
        yield f"scale {scale:g}", scale * x, y
        yield f"scale {scale:g}, wide", scale * rng.normal(size=(20, 300)), np.arange(20) % 2
        yield f"scale {scale:g}, duplicated columns", scale * np.concatenate([x, x], axis=1), y


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize(("x", "y"), [pytest.param(x, y, id=name) for name, x, y in odd_tables()])
@pytest.mark.parametrize("cls", [PLNClassifier, PLNRegressor])
def test_odd_tables_are_fitted(cls, x, y, standardize):
    for ridge in (1e-12, 1.0):
        model = cls(standardize=standardize, ridge=ridge, **(QUICK | ALWAYS)).fit(x, y)
        assert np.isfinite(model.network_.outputs(x)).all()
        assert all(np.isfinite(array).all() for array in to_tensors(model.network_).values())
        assert np.isfinite([step.train_loss for step in model.history_ if step.kind == "block"]).all()
        if np.ptp(x) > 0:  # not worse than the mean
            assert model.score(x, y) > -0.1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("shape", [(30, 3), (3, 30)])
@pytest.mark.parametrize("bad", [np.inf, np.nan, 3e38])
def test_features_that_are_not_finite_are_an_error_that_says_so(shape, bad):
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    x[1] = bad
    target = np.linspace(-1, 1, len(x), dtype=np.float32)[:, None]
    with pytest.raises(FloatingPointError, match="not finite.*scale of the inputs"):
        grow(Problem(x, target, np.ones(len(x), np.float32)))
