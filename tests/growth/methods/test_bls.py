"""BLS: windows, enhancement nodes, the head that grows with them, and the estimators."""

from __future__ import annotations

import inspect
from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris, make_friedman1
from sklearn.linear_model import Lasso, LogisticRegression, RidgeCV
from sklearn.model_selection import train_test_split

from opgrow import BLSClassifier, BLSRegressor
from opgrow.closed_form.incremental_ridge import IncrementalRidge, feature_moments
from opgrow.growth.events import GrowthFinished, PhaseStarted
from opgrow.growth.methods.bls import BLS, BroadGrowth, BroadSettings, orthonormal, sparse_map
from opgrow.network.tensors import to_tensors
from opgrow.rows.problem import Problem
from opgrow.training.scores import evaluate
from opgrow.training.settings import TuningSettings

pytestmark = pytest.mark.cpu

SMALL = {"n_min": 12, "n_step": 6, "max_neurons": 24, "window_size": 5, "random_state": 0}
BOTH = pytest.mark.parametrize("cls", [BLSClassifier, BLSRegressor], ids=lambda c: c.__name__)


def small(cls, **changes):
    return cls(**(SMALL | changes))


def problem(n=120, seed=0, validation=None, weight=None):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4)).astype(np.float32)
    labels = (x[:, 0] * x[:, 1] > 0).astype(int) + (np.sin(2 * x[:, 2]) + 0.3 * rng.normal(size=n) > 0.3)
    weight = np.ones(n) if weight is None else weight
    return Problem(x, np.eye(3, dtype=np.float32)[labels], weight.astype(np.float32), validation)


def settings(**changes):
    values = {
        "fine_tuning": TuningSettings(loss="mse", learning_rates=(), epochs=()),
        "max_layers": 1,
        "n_min": 12,
        "n_step": 6,
        "max_neurons": 24,
        "window_size": 5,
        "block_threshold": -np.inf,
    }
    return BroadSettings(**(values | changes))


class Watched(BroadGrowth):
    """Remembers what every step made."""

    def _widen(self, *arguments):
        trial = super()._widen(*arguments)
        self.trials = [*getattr(self, "trials", []), trial]
        return trial


def grow(data=None, seed=3, **changes):
    events = []
    growth = Watched(data or problem(), BLS, settings(**changes), seed, events.append)
    network = growth.run()
    return network, growth, events


def state(network):
    return to_tensors(network)


def assert_same(first, second, **tolerance):
    first, second = state(first), state(second)
    assert list(first) == list(second)
    for name, values in first.items():
        np.testing.assert_allclose(values, second[name], **({"rtol": 0, "atol": 0} | tolerance), err_msg=name)


def ridge_from_scratch(features, target, weight, ridge):
    """Weights and intercept by orthogonal factorisation of the rows themselves, in float64."""
    features, target, weight = (np.asarray(a, np.float64) for a in (features, target, weight))
    mean, target_mean = weight @ features / weight.sum(), weight @ target / weight.sum()
    scale = np.sqrt(weight @ (features - mean) ** 2 / weight.sum())
    scale[scale <= 1e-6 * np.abs(mean)] = 1.0
    root, p = np.sqrt(weight)[:, None], features.shape[1]
    rows = np.concatenate([root * (features - mean) / scale, np.sqrt(ridge) * np.eye(p)])
    wanted = np.concatenate([root * (target - target_mean), np.zeros((p, target.shape[1]))])
    solution = np.linalg.lstsq(rows, wanted, rcond=None)[0] / scale[:, None]
    return solution, target_mean - mean @ solution


def assert_close(actual, wanted, tolerance=1e-6):
    assert np.abs(actual - wanted).max() <= tolerance * np.abs(wanted).max()


# --- the head ---


@pytest.mark.parametrize("activation", ["sigmoid", "identity"])
@pytest.mark.parametrize("ridge", [1e-3, 1.0, 1e3])
def test_after_every_step_the_head_is_ridge_solved_from_scratch(activation, ridge):
    # The linear nodes of 4 inputs are collinear from the fifth on, and here two inputs are the same.
    data = problem(weight=np.random.default_rng(1).uniform(0.2, 3, 120))
    data.x[:, 3] = data.x[:, 0]
    _, growth, _ = grow(data, ridges=(ridge,), feature_activation=activation)
    assert len(growth.trials) == 3
    for trial in growth.trials:
        weight, intercept = ridge_from_scratch(trial.columns[0], data.target, data.weight, ridge)
        actual = trial.regression.head()
        assert_close(actual[0], weight)
        assert_close(actual[1], intercept)
        order = np.argsort(trial.enhancing, kind="stable")
        np.testing.assert_array_equal(trial.head().weight, actual[0][order].astype(np.float32))


@pytest.mark.parametrize("ridge", [1e-4, 1.0, 100.0])
def test_groups_of_nearly_collinear_features_are_added_exactly(ridge):
    rng = np.random.default_rng(0)
    target, weight = rng.normal(size=(90, 2)).astype(np.float32), rng.uniform(0.1, 2, 90)
    groups = [rng.normal(size=(90, 7)).astype(np.float32)]
    groups.append(groups[0] @ rng.normal(size=(7, 5)).astype(np.float32))
    groups.append((groups[0][:, :3] * 100 + 1e-4 * rng.normal(size=(90, 3)) + 5).astype(np.float32))
    groups.append(np.full((90, 2), 0.3, np.float32))
    regression = IncrementalRidge.start(target, weight, ridge)
    for k, group in enumerate(groups, 1):
        before, regression = regression, regression.extend(group)
        wanted = ridge_from_scratch(np.concatenate(groups[:k], axis=1), target, weight, ridge)
        for actual, expected in zip(regression.head(), wanted, strict=True):
            assert_close(actual, expected)
    assert len(before.mean) == 15  # what was extended is as it was


def test_more_features_than_rows_and_a_ridge_below_rounding():
    rng = np.random.default_rng(0)
    target, features = (
        rng.normal(size=(10, 1)).astype(np.float32),
        rng.normal(size=(10, 40)).astype(np.float32),
    )
    regression = IncrementalRidge.start(target, np.ones(10), 1e-300).extend(features[:, :20]).extend(features)
    weight, intercept = regression.head()
    fitted = regression.features @ weight + intercept
    np.testing.assert_allclose(fitted, target, atol=1e-4)


def test_rounding_errors_of_a_constant_feature_are_not_a_feature():
    target = np.float32([[0], [1]] * 20)
    features = np.where(target > 0, np.nextafter(np.float32(0.3), np.float32(1)), np.float32(0.3))
    weight, intercept = IncrementalRidge.start(target, np.ones(40), 1e-3).extend(features).head()
    assert np.abs(weight).max() < 0.1
    np.testing.assert_allclose(features @ weight + intercept, 0.5, atol=1e-6)


def test_leave_one_out_is_what_leaving_out_each_row_gives():
    rng = np.random.default_rng(0)
    features, target = (
        rng.normal(size=(30, 6)).astype(np.float32),
        rng.normal(size=(30, 2)).astype(np.float32),
    )
    weight, ridge = rng.uniform(0.5, 2, 30), 2.0
    mean, scale = feature_moments(features, weight)
    h = (features - mean) / scale
    errors = []
    for i in range(30):
        rows = np.arange(30) != i
        root = np.sqrt(weight[rows])[:, None]
        # The intercept is a column without penalty; the scale of the features is that of all rows.
        left = np.concatenate([root * np.c_[np.ones(29), h[rows]], np.sqrt(ridge) * np.eye(7)[1:]])
        right = np.concatenate([root * target[rows], np.zeros((6, 2))])
        solution = np.linalg.lstsq(left, right, rcond=None)[0]
        errors.append(((target[i] - np.r_[1.0, h[i]] @ solution) ** 2).mean())
    regression = IncrementalRidge.start(target, weight, ridge).extend(features[:, :2]).extend(features[:, 2:])
    assert regression.leave_one_out() == pytest.approx(weight @ errors / weight.sum(), rel=1e-9)


def test_the_first_step_chooses_the_ridge_by_leave_one_out():
    ridges = (1e-3, 0.1, 10.0, 1e3)
    singles = [grow(ridges=(ridge,))[1].trials[0].regression for ridge in ridges]
    wanted = min(singles, key=IncrementalRidge.leave_one_out).ridge
    assert wanted not in (ridges[0], ridges[-1])
    trials = grow(ridges=ridges)[1].trials
    assert [trial.regression.ridge for trial in trials] == [wanted] * 3


# --- the nodes ---


@pytest.mark.parametrize("mu", [0.01, 3.0, 20.0])
def test_a_sparse_window_is_the_lasso_of_scikit_learn(mu):
    data = problem()
    start = np.random.default_rng([3, 1, 1, 0]).uniform(-1, 1, size=(5, 5))
    seen = np.c_[data.x, np.ones(120)].astype(np.float64)
    # Scikit-learn divides the squared error by the number of rows.
    lasso = Lasso(alpha=mu / 120, fit_intercept=False, tol=1e-14, max_iter=100_000)
    wanted = lasso.fit((seen @ start).astype(np.float64), seen).coef_
    actual = sparse_map(data.x, data.weight, start, mu, 20_000)
    np.testing.assert_allclose(actual, wanted, atol=1e-5)
    assert mu < 1 or (actual == 0).any()
    # The network's first window is that map with its scale folded in.
    network, _, _ = grow(data, mu=mu, admm_iterations=20_000)
    block = next(iter(network.layers[0]))
    values = seen @ wanted
    scale = values.std(axis=0)
    assert (scale > 0).all()
    np.testing.assert_allclose(block.weight, wanted[:-1] / scale, atol=1e-4)
    bias = (wanted[-1] - values.mean(axis=0)) / scale
    np.testing.assert_allclose(block.bias, bias, atol=1e-4)


def test_only_the_first_windows_are_fine_tuned():
    light, heavy = (grow(mu=mu)[0].layers[0] for mu in (1e-3, 5.0))
    for number, (a, b) in enumerate(zip(light, heavy, strict=True)):
        same = np.array_equal(a.weight, b.weight)
        assert same == (number >= 3)  # windows of 5, 5 and 2 nodes in the first step


@pytest.mark.parametrize("activation", ["sigmoid", "identity"])
def test_scales_are_those_of_the_training_rows(activation):
    weight = np.random.default_rng(1).uniform(0.2, 3, 120)
    networks = []
    for shift in (0.0, 50.0):
        held = problem(60, seed=9)
        held.x[:] += shift
        data = problem(weight=weight, validation=held)
        network, growth, _ = grow(data, feature_activation=activation)
        networks.append(network)
        # For validation rows far away the same nodes are far from standard.
        for block in network.layers[0]:
            linear = block.weight.astype(np.float64), block.bias
            before = data.x @ linear[0] + linear[1]
            np.testing.assert_allclose(weight @ before / weight.sum(), 0, atol=1e-5)
            np.testing.assert_allclose(weight @ before**2 / weight.sum(), 1, rtol=1e-4)
            assert (np.abs((held.x @ linear[0] + linear[1]).mean(axis=0)) > 5).any() == (shift > 0)
        for block, trial in zip(network.layers[1], growth.trials, strict=True):
            features = trial.columns[0][:, ~trial.enhancing].astype(np.float64)
            argument = features @ block.weight + block.bias
            mean = weight @ argument / weight.sum()
            deviation = np.sqrt(weight @ (argument - mean) ** 2 / weight.sum())
            np.testing.assert_allclose(deviation, 0.8, rtol=1e-3)
    assert_same(*networks)


def test_enhancement_nodes_see_the_feature_nodes_that_were_there():
    network, _, _ = grow()
    features, enhancements = network.layers
    assert [block.n_neurons for block in features] == [5, 5, 2, 5, 1, 5, 1]
    assert [block.n_inputs for block in enhancements] == [12, 18, 24]
    assert [block.n_neurons for block in enhancements] == [12, 6, 6]
    values = features.outputs(problem().x)
    changed = values.copy()
    changed[:, 12:18] += 1.0
    difference = np.abs(enhancements.outputs(changed) - enhancements.outputs(values)).max(axis=0)
    assert (difference[:12] == 0).all()
    assert (difference[12:] > 0).all()


def test_the_network_is_the_formula():
    data = problem()
    network, _, _ = grow(data)

    def sigmoid(z):
        return 1 / (1 + np.exp(-z))

    def parameters(part):
        return part.weight.astype(np.float64), part.bias.astype(np.float64)

    columns = []
    for block in network.layers[0]:
        weight, bias = parameters(block)
        columns.append(sigmoid(data.x @ weight + bias))
    features = np.concatenate(columns, axis=1)
    for block in network.layers[1]:
        weight, bias = parameters(block)
        columns.append(sigmoid(features[:, : len(weight)] @ weight + bias))
    weight, bias = parameters(network.head)
    actual = network.outputs(data.x)
    np.testing.assert_allclose(actual, np.concatenate(columns, axis=1) @ weight + bias, atol=1e-4)


def test_columns_of_enhancement_maps_are_orthogonal():
    network, _, _ = grow(n_min=10)
    for block in network.layers[1]:
        assert block.n_neurons <= block.n_inputs + 1
        columns = np.r_[block.weight, block.bias[None]].astype(np.float64)
        columns /= np.linalg.norm(columns, axis=0)
        np.testing.assert_allclose(columns.T @ columns, np.eye(block.n_neurons), atol=1e-5)


def test_wide_maps_have_orthonormal_rows():
    weights = np.random.default_rng(0).uniform(-1, 1, size=(3, 8))
    rows, columns = orthonormal(weights), orthonormal(weights.T)
    np.testing.assert_allclose(rows @ rows.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(columns.T @ columns, np.eye(3), atol=1e-12)
    assert np.linalg.matrix_rank(np.c_[weights.T, columns]) == 3


def test_linear_feature_nodes():
    network, _, _ = grow(feature_activation="identity")
    assert {block.operator_set.activation for block in network.layers[0]} == {"identity"}
    assert {block.operator_set.activation for block in network.layers[1]} == {"sigmoid"}


def test_a_window_that_the_penalty_empties_is_constant():
    data = problem()
    network, growth, _ = grow(data, mu=1e9, max_neurons=12)
    assert (growth.trials[0].columns[0] == growth.trials[0].columns[0][0]).all()
    assert all(not block.weight.any() for block in network.layers[0])
    outputs = network.outputs(data.x)
    np.testing.assert_allclose(outputs, np.tile(data.target.mean(axis=0), (120, 1)), rtol=1e-5)


# --- growth ---


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("criterion", ["accuracy", "brier", "loss"])
def test_the_network_predicts_what_was_scored(criterion, held):
    data = problem(validation=problem(60, seed=9) if held else None)
    network, growth, events = grow(data, criterion=criterion, block_threshold=1e-4)
    scored = data.validation if held else data
    outputs, trained = (network.outputs(part.x) for part in (scored, data))
    wanted = evaluate(criterion, "mse", outputs, scored.target, scored.weight)
    last = [step for step in growth.steps if step.accepted and step.kind == "block"][-1]
    assert last.score.value == pytest.approx(wanted.value, rel=1e-6)
    assert last.train_loss == pytest.approx(np.square(trained - data.target).mean(), rel=1e-5)
    assert growth.score == last.score == events[-1].score
    assert isinstance(events[-1], GrowthFinished)


def test_every_step_and_its_improvement_is_in_the_history():
    network, growth, events = grow(ridges=(1e-6,))
    *blocks, layer = growth.steps
    assert [step.kind for step in growth.steps] == ["block", "block", "block", "layer"]
    assert [(step.layer, step.block) for step in blocks] == [(1, 1), (1, 2), (1, 3)]
    assert [step.n_neurons for step in blocks] == [24, 12, 12]
    assert layer.n_neurons == 48
    assert all(str(step.operator_set) == "multiplication/sum/sigmoid" for step in blocks)
    assert blocks[0].improvement is None
    for before, after in pairwise(blocks):
        gain = (before.score.value - after.score.value) / before.score.value
        assert after.improvement == pytest.approx(gain)
        assert after.train_loss < before.train_loss
    assert all(step.search_seconds > 0 for step in blocks)
    assert blocks[-1].n_parameters == layer.n_parameters == network.n_parameters()
    assert [event.block for event in events if isinstance(event, PhaseStarted)] == [1, 2, 3]


def test_a_step_that_does_not_improve_is_thrown_away():
    network, growth, _ = grow(block_threshold=0.9)
    assert [step.accepted for step in growth.steps] == [True, False, True]
    assert_same(network, grow(max_neurons=12)[0])


def test_growth_ends_at_the_target():
    _, growth, _ = grow(target=10.0)
    assert [step.kind for step in growth.steps] == ["block", "layer"]


@pytest.mark.parametrize(
    ("bound", "widths"), [(25, [12, 18, 24, 25]), (12, [12]), (5, [5]), (14, [12, 14]), (1, [1])]
)
def test_each_layer_has_at_most_max_neurons(bound, widths):
    network, growth, _ = grow(max_neurons=bound)
    assert [trial.width for trial in growth.trials] == widths
    assert [layer.n_neurons for layer in network.layers] == [widths[-1]] * 2


def test_parameters_counted_by_hand():
    network, growth, _ = grow()
    # 24 feature nodes of 4 inputs and a bias; 12, 6 and 6 enhancement nodes; 48 nodes and a bias per output.
    wanted = 24 * 5 + 12 * 13 + 6 * 19 + 6 * 25 + 49 * 3
    assert network.n_parameters() == growth.steps[-2].n_parameters == wanted
    assert growth.steps[0].n_parameters == 12 * 5 + 12 * 13 + 25 * 3
    assert network.topology() == "4-24-24-3"
    assert network.broad


def test_a_weight_of_two_is_a_row_twice():
    counts = np.random.default_rng(1).integers(1, 4, 120)
    data = problem(weight=counts)
    repeated = Problem(
        *(np.repeat(a, counts, axis=0) for a in (data.x, data.target, np.ones(120, np.float32)))
    )
    first, second = grow(data, mu=2.0)[0], grow(repeated, mu=2.0)[0]
    assert_same(first, second, rtol=1e-3, atol=1e-4)
    outputs = [network.outputs(data.x) for network in (first, second)]
    np.testing.assert_allclose(*outputs, atol=1e-5)


@BOTH
def test_weights_of_an_estimator_are_repeated_rows(cls):
    x, y = load_iris(return_X_y=True)
    counts = np.random.default_rng(1).integers(1, 4, 150)
    # Weights are scaled to mean 1, and the penalties are relative to sums over rows.
    share = 150 / counts.sum()
    fixed = {"validation_fraction": 0.0, "block_threshold": -np.inf}
    weighted = small(cls, ridge=2.0 * share, mu=0.1 * share, **fixed).fit(x, y, sample_weight=counts)
    repeated = small(cls, ridge=2.0, mu=0.1, **fixed).fit(np.repeat(x, counts, axis=0), np.repeat(y, counts))
    plain = small(cls, ridge=2.0, mu=0.1, **fixed).fit(x, y)
    np.testing.assert_allclose(weighted.network_.outputs(x), repeated.network_.outputs(x), atol=1e-5)
    assert np.abs(plain.network_.outputs(x) - repeated.network_.outputs(x)).max() > 1e-4


def test_the_same_seed_grows_the_same_network():
    first, again = grow(n_threads=1)[0], grow(n_threads=2)[0]
    assert_same(first, again)
    assert not np.array_equal(first.head.weight, grow(seed=4)[0].head.weight)


# --- the estimators ---


def test_better_than_linear():
    x, y = make_friedman1(n_samples=400, noise=0.5, random_state=0)
    x, x_test, y, y_test = train_test_split(x, y, random_state=0)
    linear = RidgeCV().fit(x, y).score(x_test, y_test)
    assert BLSRegressor(random_state=0).fit(x, y).score(x_test, y_test) > linear + 0.05
    plane, plane_test = x[:, :2], x_test[:, :2]
    quadrant, quadrant_test = ((a[:, 0] > 0.5) == (a[:, 1] > 0.5) for a in (plane, plane_test))
    straight = LogisticRegression().fit(plane, quadrant).score(plane_test, quadrant_test)
    assert (
        BLSClassifier(random_state=0).fit(plane, quadrant).score(plane_test, quadrant_test) > straight + 0.3
    )


def test_probabilities_are_the_shares_of_positive_least_squares_outputs():
    x, y = load_iris(return_X_y=True)
    clf = small(BLSClassifier).fit(x, y)
    clipped = clf.decision_function(x).clip(0, None).astype(np.float64)
    np.testing.assert_allclose(clf.predict_proba(x), clipped / clipped.sum(axis=1, keepdims=True))
    assert clf.loss_ == "mse"
    assert clf.score(x, y) > 0.9


@BOTH
@pytest.mark.parametrize("activation", ["sigmoid", "identity"])
def test_odd_data_give_finite_outputs(cls, activation):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 3)), np.arange(40) % 4
    far = np.c_[x[:, :1] * 1e-12, x[:, :1] * 1e12 + 1e15, x[:, :1]]
    cases = {
        "constant and duplicated": (np.c_[x, x, np.zeros((40, 2)), np.full((40, 1), 7.0)], y),
        "all constant": (np.ones((40, 3)), y),
        "one row a class": (x[:6], np.arange(6)),
        "two rows": (x[:2], [0, 1]),
        "fewer rows than inputs": (rng.normal(size=(12, 60)), y[:12]),
        "equal rows": (np.repeat(x[:2], 20, axis=0), np.repeat([0, 1], 20)),
        "one input": (x[:, :1], y),
        "scales": (far, y),
    }
    for name, (inputs, labels) in cases.items():
        for fraction in (0.0, 0.25):
            model = small(cls, validation_fraction=fraction, feature_activation=activation)
            assert np.isfinite(model.fit(inputs, labels).network_.outputs(inputs)).all(), name


def test_a_constant_target_is_predicted():
    x, _ = load_diabetes(return_X_y=True)
    np.testing.assert_allclose(small(BLSRegressor).fit(x, np.full(len(x), 7.5)).predict(x), 7.5)


def test_values_that_overflow_are_named_in_one_sentence():
    x, y = load_iris(return_X_y=True)
    with pytest.raises(FloatingPointError) as caught:
        small(BLSClassifier, standardize=False).fit(x * 4e37, y)
    assert "\n" not in str(caught.value)
    features = np.array([[1e30], [np.inf]], np.float32)
    with pytest.raises(FloatingPointError, match="overflow"):
        IncrementalRidge.start(np.zeros((2, 1)), np.ones(2), 1.0).extend(features)
    with pytest.raises(FloatingPointError, match="not finite"):
        IncrementalRidge.start(np.array([[np.inf], [1.0]]), np.ones(2), 1.0).extend(np.ones((2, 1)))


BAD_PARAMETERS = {
    "n_min": [0, -1, 2.5, "10", None, True],
    "n_step": [0, 1.0, None],
    "max_neurons": [0, "many", np.inf],
    "window_size": [0, 2.5, None],
    "block_threshold": ["no", None, np.nan],
    "ridge": [0, -1.0, "some", (), [1.0, -1.0], np.inf, np.nan, None],
    "mu": [-1.0, "some", None, np.nan, np.inf, [1.0]],
    "admm_iterations": [0, 1.5, None],
    "feature_activation": ["relu", None, 3],
    "criterion": ["f1", None, 3],
    "target": ["best", np.nan],
    "validation_fraction": [-0.1, 1.0, None],
    "device": ["tpu", None],
    "n_jobs": [0, -2, "all"],
    "callbacks": [3, [3]],
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param(name, value, id=f"{name}={value!r}")
        for name, values in BAD_PARAMETERS.items()
        for value in values
    ],
)
@BOTH
def test_bad_parameters_are_named_in_one_sentence(cls, name, value):
    with pytest.raises(ValueError, match=name) as caught:
        small(cls, **{name: value}).fit(*load_iris(return_X_y=True))
    assert "\n" not in str(caught.value)


def test_regression_has_no_accuracy():
    with pytest.raises(ValueError, match="criterion"):
        small(BLSRegressor, criterion="accuracy").fit(*load_diabetes(return_X_y=True))


def test_the_papers_settings():
    clf, model, large = (
        BLSClassifier.paper("small"),
        BLSRegressor.paper(),
        BLSClassifier.paper("large", mu=10.0),
    )
    assert (clf.n_min, clf.n_step, clf.max_neurons) == (40, 20, 300)
    assert (clf.block_threshold, clf.admm_iterations, clf.feature_activation) == (1e-4, 500, "sigmoid")
    assert (clf.criterion, model.criterion) == ("accuracy", "loss")
    assert (clf.validation_fraction, large.validation_fraction, large.mu) == (0.2, 0.25, 10.0)
    assert isinstance(clf.ridge, float)
    with pytest.raises(ValueError, match="scale"):
        BLSClassifier.paper("huge")
    x, y = load_iris(return_X_y=True)
    assert BLSClassifier.paper(random_state=0).fit(x, y).score(x, y) > 0.95


@BOTH
def test_parameters_are_in_order_and_documented(cls):
    wanted = """
        n_min n_step max_neurons window_size block_threshold ridge mu admm_iterations feature_activation
        criterion target validation_fraction standardize table forgetting buffer_rows drift warm_start
        device n_jobs max_parameters max_seconds checkpoint_dir checkpoint_seconds callbacks verbose
        random_state
    """.split()  # noqa: SIM905
    if cls is BLSClassifier:
        wanted.insert(wanted.index("table") + 1, "class_weight")
    names = list(inspect.signature(cls).parameters)
    assert names == wanted
    assert all(name in cls.__doc__ for name in names)
