"""Back-propagation: both engines against double-precision autograd, and what tuning promises."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from networks import as_modules, with_random_parameters
from opgrow import PERCEPTRON, Block, Layer, OperatorSet, engines
from opgrow.engines import TuningData, TuningSettings
from opgrow.network import Linear
from opgrow.operators import library, register_activation, unregister
from opgrow.scores import evaluate, row_losses
from opgrow.tuning import HostSession, tune

pytestmark = pytest.mark.cpu


def reference_engine(shape, theta, rows, settings):
    return engines.ReferenceEngine(shape, torch.from_numpy(theta), rows.tensors(), settings)


ENGINES = {"compiled": engines.CompiledEngine, "reference": reference_engine}
SETS = sorted({*library("paper"), *library("pygop")})
HARMONIC = OperatorSet("harmonic", "sum", "tanh")
NODALS = ("multiplication", "exponential", "harmonic", "quadratic", "gaussian", "dog")
POOLS = ("sum", "correlation1", "correlation2", "maximum")
ACTIVATIONS = ("sigmoid", "tanh", "relu", "softplus", "inverse_absolute", "elu")


@pytest.fixture(autouse=True)
def one_thread():
    """Steps of a few rows: threads of torch would only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def data(n=40, n_inputs=5, n_frozen=2, n_outputs=3, seed=0, weighted=True):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.5, 1.5, (n, n_inputs)).astype(np.float32)
    target = np.eye(n_outputs, dtype=np.float32)[rng.integers(0, n_outputs, n)]
    weight = rng.uniform(0.2, 2, n) if weighted else np.ones(n)
    frozen = rng.normal(size=(n, n_frozen)).astype(np.float32)
    return TuningData(x, frozen, target, (weight / weight.mean()).astype(np.float32))


def network(sets, n_inputs=5, n_frozen=2, n_outputs=3, seed=0, head_set=None, width=3):
    """Layers with the given operator sets (a list for each layer), and a head, with random parameters."""
    layers = []
    for blocks in sets:
        layers.append(Layer([Block(n_inputs, width, s) for s in blocks]))
        n_inputs = layers[-1].n_neurons
    head = Linear(n_frozen + n_inputs, n_outputs)
    if head_set is not None:
        head = Block(n_frozen + n_inputs, n_outputs, head_set, norm=None)
    return with_random_parameters(layers, head, seed)


def flat_gradient(layers, head, rows, settings):
    """Gradient of the loss plus decay in double precision, laid out as the engines' flat vector."""
    layers, head = as_modules(layers, head)
    layers, head = [layer.double().train() for layer in layers], head.double()
    x, frozen, target, weight = (
        torch.from_numpy(a).double() for a in (rows.x, rows.frozen, rows.target, rows.weight)
    )
    for layer in layers:
        x = layer(x)
    losses = row_losses(settings.loss, head(torch.cat([frozen, x], dim=1)), target)
    (losses * weight).mean().backward()
    parts, groups = [], []
    for layer in layers:
        for block in layer.blocks:
            groups += [block.weight.grad + settings.weight_decay * block.weight.detach()]
            groups += [block.bias.grad, block.norm.weight.grad, block.norm.bias.grad]
    decayed = head.weight.grad + settings.weight_decay * head.weight.detach()
    groups += [decayed.T if isinstance(head, nn.Linear) else decayed, head.bias.grad]
    parts = [group.reshape(-1).numpy() for group in groups]
    return np.concatenate(parts), np.repeat([np.abs(p).max() for p in parts], [p.size for p in parts])


def one_step(engine_name, layers, head, rows, settings, rate=0.01, seed=1):
    """The engine after one batch of all rows: the gradient it saw, and the parameters before and after."""
    shape = engines.Shape(layers, head, rows.frozen.shape[1])
    theta = shape.flatten(layers, head)
    before = theta.copy()
    engine = ENGINES[engine_name](shape, theta, rows, settings)
    loss, skipped = engine.epoch(np.arange(len(rows.x)), rate, seed)
    if engine_name == "compiled":
        first = engine.moving.first
    else:
        first = np.zeros_like(theta)
        for parameter, state in engine.optimizer.state.items():
            at = (parameter.data_ptr() - theta.ctypes.data) // 4
            first[at : at + parameter.numel()] = state["exp_avg"].reshape(-1).numpy()
    return first / np.float32(0.1), before, theta, loss, skipped


def assert_gradients(sets, rows, engines=tuple(ENGINES), modules=None, **changes):
    settings = TuningSettings(**({"batch_size": len(rows.x), "loss": "cross_entropy"} | changes))
    shape = {"n_inputs": rows.x.shape[1], "n_frozen": rows.frozen.shape[1], **(modules or {})}
    wanted, scale = flat_gradient(*network(sets, **shape), rows, settings)
    for name in engines:
        found, *_ = one_step(name, *network(sets, **shape), rows, settings)
        excess = np.abs(found - wanted) - 2e-3 * scale - 1e-4 * scale.max()
        assert excess.max() <= 0, (
            name,
            [[str(s) for s in layer] for layer in sets],
            modules,
            excess.max(),
            scale.max(),
        )
    return wanted


def well_conditioned(sets, rows, **shape):
    """Whether no neuron is nearly constant, which a batch norm would blow up, or ruled by one row."""
    layers, _ = as_modules(*network(sets, n_inputs=rows.x.shape[1], **shape))
    x = torch.from_numpy(rows.x).double()
    for layer in layers:
        raws = torch.cat([block.double().features(x) for block in layer.blocks], dim=1)
        spread = raws.std(dim=0)
        standard = (raws - raws.mean(dim=0)) / spread.clamp_min(1e-30)
        if (spread < 0.01 * (raws.abs().max(dim=0).values + 0.1)).any() or standard.abs().max() > 5:
            return False
        x = layer.double().train()(x).detach()
    return True


@pytest.mark.parametrize("loss", ["cross_entropy", "mse"])
def test_gradients_of_every_operator_set(loss):
    rows = data()
    tested = [s for s in SETS if well_conditioned([[s]], rows)]
    assert len(tested) > 0.5 * len(SETS)
    assert {s.nodal for s in tested} == {s.nodal for s in SETS}
    for number, operator_set in enumerate(tested):
        engines = ENGINES if number % 5 == 0 else ("compiled",)
        assert_gradients([[operator_set]], rows, engines, loss=loss)


@pytest.mark.parametrize("loss", ["cross_entropy", "mse"])
def test_gradients_through_two_layers(loss):
    rng = np.random.default_rng(0)
    rows, tested = data(), 0
    while tested < 20:
        sets = [[SETS[i] for i in rng.integers(0, len(SETS), 2)] for _ in range(2)]
        if well_conditioned(sets, rows):
            tested += 1
            assert_gradients(sets, rows, loss=loss, weight_decay=0.01)


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("nodal", NODALS)
def test_gradients_of_heads_with_neurons(nodal, pool):
    rows = data()
    for number, activation in enumerate(ACTIVATIONS):
        loss = ("mse", "cross_entropy")[number % 2]
        modules = {"head_set": OperatorSet(nodal, pool, activation)}
        wanted = assert_gradients([[HARMONIC]], rows, modules=modules, loss=loss, weight_decay=0.01)
        assert np.abs(wanted[:15]).max() > 1e-6  # the hidden layer's weights get something through the head
    deep = [[HARMONIC, PERCEPTRON], [OperatorSet("harmonic", "sum", "elu")]]
    assert_gradients(deep, rows, modules={"head_set": OperatorSet(nodal, pool, "tanh")}, loss="mse")


@pytest.mark.parametrize("n_inputs", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("pool", ["sum", "correlation1", "correlation2"])
@pytest.mark.parametrize("nodal", ["multiplication", "quadratic"])
def test_gradients_of_products(nodal, pool, n_inputs):
    """Computed as products of matrices, of one, two or three neighbours; with too few of them there is 0."""
    operator_set = OperatorSet(nodal, pool, "tanh")
    rows = data(n=37, n_inputs=n_inputs, n_frozen=0)
    terms = n_inputs - POOLS.index(pool)
    # In the head: its inputs are the only features there are, and their gradient goes on to a hidden layer.
    shape = {"head_set": operator_set, "width": n_inputs, "seed": 1}
    wanted = assert_gradients([[HARMONIC]], rows, modules=shape, loss="mse")
    by_head = wanted[-(n_inputs + 1) * 3 : -3]
    assert (np.abs(by_head).max() > 1e-6) == (terms > 0)
    if terms > 0:  # in both of two hidden layers
        layers, shapes = [[operator_set]] * 2, [{"width": n_inputs, "seed": seed} for seed in range(300)]
        assert_gradients(layers, rows, modules=next(s for s in shapes if well_conditioned(layers, rows, **s)))
        return
    for name in ENGINES:
        modules = network([[operator_set]], n_inputs=n_inputs, n_frozen=0)
        found, before, after, _, skipped = one_step(name, *modules, rows, TuningSettings(batch_size=37))
        assert skipped == 0
        assert np.abs(found[: 3 * n_inputs]).max() == 0
        np.testing.assert_array_equal(after[: 3 * n_inputs], before[: 3 * n_inputs])


@pytest.mark.parametrize(
    "rows",
    [data(n=33), data(n=2), data(n=64, n_frozen=0), data(weighted=False)],
    ids=["odd", "two rows", "nothing frozen", "unweighted"],
)
def test_gradients_of_other_shapes(rows):
    settings = TuningSettings(batch_size=len(rows.x), weight_decay=0.1)
    n_frozen = rows.frozen.shape[1]
    wanted, scale = flat_gradient(*network([[HARMONIC]], n_frozen=n_frozen), rows, settings)
    for name in ENGINES:
        found, *_ = one_step(name, *network([[HARMONIC]], n_frozen=n_frozen), rows, settings)
        assert (np.abs(found - wanted) <= 2e-3 * scale + 1e-4 * scale.max()).all()


def test_decay_touches_weights_only():
    rows, sets = data(), [[PERCEPTRON]]
    plain, *_ = one_step("compiled", *network(sets), rows, TuningSettings(batch_size=40))
    decayed, before, *_ = one_step(
        "compiled", *network(sets), rows, TuningSettings(batch_size=40, weight_decay=0.5)
    )
    layers, head = network(sets)
    n_weights = layers[0].blocks[0].weight.size
    is_weight = np.zeros(len(before), bool)
    is_weight[:n_weights] = True
    is_weight[-(head.weight.size + 3) : -3] = True
    np.testing.assert_allclose(decayed - plain, np.where(is_weight, 0.5 * before, 0), rtol=1e-3, atol=1e-5)


def test_both_engines_take_the_step_of_adam():
    rows, sets, settings = data(), [[HARMONIC], [PERCEPTRON]], TuningSettings(batch_size=40)
    results = {name: one_step(name, *network(sets), rows, settings) for name in ENGINES}
    for gradient, before, after, *_ in results.values():
        # The first step of Adam is the learning rate in the direction of the gradient.
        wanted = before - 0.01 * gradient / (np.abs(gradient) + engines.ADAM_EPSILON)
        np.testing.assert_allclose(after, wanted, rtol=1e-4, atol=1e-6)
    losses = [loss for *_, loss, _ in results.values()]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


@pytest.mark.parametrize(
    "head_set", [None, HARMONIC, OperatorSet("quadratic", "correlation1", "elu")], ids=str
)
@pytest.mark.parametrize("sets", [[[PERCEPTRON]], [[HARMONIC, PERCEPTRON], [HARMONIC]]])
def test_both_engines_stay_together_over_epochs(sets, head_set):
    rows = data(n=150)
    loss = "cross_entropy" if head_set is None else "mse"
    settings = TuningSettings(loss=loss, batch_size=32, weight_decay=1e-3, max_norm=1.5)
    curves = []
    for engine in ENGINES.values():
        layers, head = network(sets, head_set=head_set)
        shape = engines.Shape(layers, head, 2)
        theta = shape.flatten(layers, head)
        running = engine(shape, theta, rows, settings)
        rng = np.random.default_rng(0)
        curves.append([running.epoch(rng.permutation(150), 0.003, 1)[0] for _ in range(5)])
    np.testing.assert_allclose(curves[0], curves[1], rtol=2e-3)
    assert curves[0][-1] < curves[0][0]


@pytest.mark.parametrize("engine", ENGINES)
def test_max_norm_is_respected(engine):
    rows = data()
    layers, head = network([[PERCEPTRON]])
    settings = TuningSettings(batch_size=40, max_norm=0.7)
    _, before, after, *_ = one_step(engine, layers, head, rows, settings)
    norms = [np.linalg.norm(theta[:15].reshape(5, 3), axis=0) for theta in (before, after)]
    assert norms[0].max() > 0.7
    assert norms[1].max() <= 0.7 * (1 + 1e-6)
    _, _, free, *_ = one_step(engine, *network([[PERCEPTRON]]), rows, TuningSettings(batch_size=40))
    wanted = free[:15].reshape(5, 3)
    wanted = wanted * np.minimum(1, 0.7 / np.linalg.norm(wanted, axis=0))
    np.testing.assert_allclose(after[:15].reshape(5, 3), wanted, rtol=1e-4)
    np.testing.assert_allclose(after[15:], free[15:], rtol=1e-5)  # nothing else is bounded


@pytest.mark.parametrize(
    ("n_rows", "batch_size"), [(100, 32), (1, 32), (33, 32), (64, 32), (31, 7), (5, 100), (65, 64)]
)
def test_batches_cover_all_rows_and_differ_by_one_at_most(n_rows, batch_size):
    bounds = engines.batch_bounds(n_rows, batch_size)
    sizes = np.diff(bounds)
    assert bounds[0] == 0
    assert bounds[-1] == n_rows
    assert sizes.max() <= batch_size
    assert sizes.max() - sizes.min() <= 1


# --- tune ---


def outputs_of(layers, head, rows):
    x = rows.x
    for layer in layers:
        x = layer.outputs(x)
    return head.outputs(np.concatenate([rows.frozen, x], axis=1)).astype(np.float32)


def run(sets, rows, seed=0, criterion="loss", validation=None, on_epoch=None, **settings):
    layers, head = network(sets, n_frozen=rows.frozen.shape[1])
    rng = np.random.default_rng(seed)
    settings = TuningSettings(**({"learning_rates": (0.01,), "epochs": (5,)} | settings))
    session = HostSession(layers, head, rows, validation, settings, criterion)
    return layers, head, tune(session, settings, rng, on_epoch)


TWO_LAYERS = [[HARMONIC, OperatorSet("gaussian", "maximum", "elu")], [PERCEPTRON]]


@pytest.mark.parametrize("criterion", ["loss", "accuracy", "brier"])
@pytest.mark.parametrize("held", [False, True])
def test_the_tuned_modules_have_the_best_score_of_the_curve(criterion, held):
    rows = data(n=120)
    validation = data(n=60, seed=1) if held else None
    layers, head, found = run(TWO_LAYERS, rows, criterion=criterion, validation=validation, epochs=(12,))
    scored = validation or rows
    now = evaluate(criterion, "cross_entropy", outputs_of(layers, head, scored), scored.target, scored.weight)
    assert now.value == pytest.approx(found.best.value, rel=1e-4, abs=1e-6)
    assert now.loss == pytest.approx(found.best.loss, rel=1e-4)
    scores = [found.start, *(epoch.score for epoch in found.curve)]
    assert found.best == scores[found.best_epoch]
    assert not any(score.better_than(found.best) for score in scores)
    assert found.best_epoch > 0


@pytest.mark.parametrize("loss", ["cross_entropy", "mse"])
def test_a_huge_learning_rate_leaves_the_start(loss):
    rows = data(n=100)
    good, head, _ = run([[HARMONIC]], rows, epochs=(40,), loss=loss)
    start = outputs_of(good, head, rows)
    rng = np.random.default_rng(0)
    settings = TuningSettings(loss=loss, learning_rates=(1e3,), epochs=(3,))
    found = tune(HostSession(good, head, rows, None, settings, "loss"), settings, rng)
    assert found.best_epoch == 0
    assert found.best == found.start
    np.testing.assert_allclose(outputs_of(good, head, rows), start, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("operator_set", [HARMONIC, OperatorSet("dog", "correlation1", "relu")])
def test_statistics_are_those_of_the_whole_training_set(operator_set):
    rows = data(n=130)
    layers, _, found = run([[operator_set], [PERCEPTRON]], rows, validation=data(n=50, seed=1))
    assert found.best_epoch > 0
    x = rows.x
    for layer in layers:
        for block in layer:
            raw = block.features(x).astype(np.float64)
            mean = np.average(raw, axis=0, weights=rows.weight)
            variance = np.average((raw - mean) ** 2, axis=0, weights=rows.weight)
            np.testing.assert_allclose(block.norm.mean, mean, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(block.norm.variance, variance, rtol=1e-3)
        x = layer.outputs(x)


def test_scores_are_taken_on_validation_data():
    rows, held = data(n=80), data(n=40, seed=1)
    layers, head, found = run([[HARMONIC]], rows, validation=held, epochs=(0,))
    start = evaluate("loss", "cross_entropy", outputs_of(layers, head, held), held.target, held.weight)
    assert found.start.value == pytest.approx(start.value, rel=1e-5)
    other = evaluate("loss", "cross_entropy", outputs_of(layers, head, rows), rows.target, rows.weight)
    assert found.start.value != pytest.approx(other.value, rel=1e-3)


def test_the_schedule_is_followed_and_every_epoch_reported():
    seen = []
    *_, found = run([[HARMONIC]], data(), learning_rates=(0.1, 0.01), epochs=(2, 3), on_epoch=seen.append)
    assert [epoch.learning_rate for epoch in found.curve] == [0.1, 0.1, 0.01, 0.01, 0.01]
    assert [epoch.number for epoch in found.curve] == [1, 2, 3, 4, 5]
    assert seen == found.curve


def test_patience_ends_a_learning_rate_that_no_longer_helps():
    settings = {"learning_rates": (1e3, 1e4), "epochs": (20, 20)}
    *_, found = run([[HARMONIC]], data(), patience=3, **settings)
    rates = [epoch.learning_rate for epoch in found.curve]
    waited, best = {1e3: 0, 1e4: 0}, found.start
    for number, epoch in enumerate(found.curve):
        better = epoch.score.better_than(best)
        best = epoch.score if better else best
        waited[epoch.learning_rate] = 0 if better else waited[epoch.learning_rate] + 1
        last = number + 1 == len(rates) or rates[number + 1] != epoch.learning_rate
        assert (waited[epoch.learning_rate] == 3) == last or rates.count(epoch.learning_rate) == 20
    assert len(rates) < 40
    *_, patient = run([[HARMONIC]], data(), patience=None, **settings)
    assert len(patient.curve) == 40


def custom_cross_entropy(outputs, target):
    return nn.functional.cross_entropy(outputs, target, reduction="none")


def custom_squared_error(outputs, target):
    return ((outputs - target) ** 2).mean(dim=1)


@pytest.mark.parametrize(
    ("name", "function"), [("cross_entropy", custom_cross_entropy), ("mse", custom_squared_error)]
)
def test_a_custom_loss_gives_the_result_of_the_named_one(name, function):
    rows = data(n=100)
    first = run([[HARMONIC]], rows, loss=name, learning_rates=(0.003,))
    second = run([[HARMONIC]], rows, loss=function, learning_rates=(0.003,))
    for a, b in zip(first[2].curve, second[2].curve, strict=True):
        assert a.score.value == pytest.approx(b.score.value, rel=1e-3)
        assert a.train_loss == pytest.approx(b.train_loss, rel=1e-3)
    np.testing.assert_allclose(
        outputs_of(*first[:2], rows), outputs_of(*second[:2], rows), rtol=0.01, atol=0.01
    )


def test_a_custom_optimizer_gives_the_result_of_the_named_one():
    rows = data(n=100)
    settings = {"loss": custom_cross_entropy, "weight_decay": 0.01}
    named = run([[HARMONIC]], rows, **settings)
    custom = run([[HARMONIC]], rows, optimizer=lambda groups: torch.optim.Adam(groups, eps=1e-7), **settings)
    assert named[2].curve == custom[2].curve
    other = run([[HARMONIC]], rows, optimizer=lambda groups: torch.optim.SGD(groups, lr=1.0), **settings)
    assert other[2].curve != custom[2].curve
    assert other[2].best.value < other[2].start.value


def test_custom_operators_are_tuned():
    register_activation("swish", nn.functional.silu)
    try:
        rows = data(n=100)
        *_, found = run([[OperatorSet("multiplication", "sum", "swish")]], rows, epochs=(10,))
        assert found.best.value < 0.95 * found.start.value
    finally:
        unregister("activation", "swish")


@pytest.mark.parametrize("loss", ["mse", custom_squared_error], ids=["compiled", "reference"])
def test_batches_with_gradients_that_are_not_finite_are_skipped_and_counted(loss):
    rows, held = data(n=96), data(n=50, seed=1)
    rows.target[5] = np.inf
    layers, head, found = run([[HARMONIC]], rows, loss=loss, batch_size=32, epochs=(4,), validation=held)
    assert found.skipped_batches == 4  # one of the three batches of every epoch
    assert all(np.isfinite(part.weight).all() for part in (*layers[0], head))
    assert np.isfinite(found.best.value)
    assert found.best_epoch > 0  # the other batches are learnt from


@pytest.mark.parametrize("loss", ["cross_entropy", custom_cross_entropy], ids=["compiled", "reference"])
@pytest.mark.parametrize("which", ["dropout", "input_dropout"])
def test_dropout_changes_training_and_is_the_same_for_the_same_seed(loss, which):
    rows = data(n=100)
    curves = [
        run([[HARMONIC]], rows, loss=loss, seed=0, **{which: rate})[2].curve for rate in (0.4, 0.4, 0.0)
    ]
    assert curves[0] == curves[1]
    assert curves[0] != curves[2]
    other = run([[HARMONIC]], rows, loss=loss, seed=1, **{which: 0.4})[2].curve
    assert other != curves[0]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("part", ["new", "frozen"])
def test_dropout_preserves_expectations_and_drops_its_share(engine, part):
    """The mean output, and its variance p / (1 - p) times the squared contribution."""
    rate, n = 0.3, 4000
    rows = data(n=n, n_frozen=1, n_outputs=1, weighted=False)
    rows.frozen[:] = 2.0 if part == "frozen" else 0.0
    rows.target[:] = 0.0
    layers, head = network([[PERCEPTRON]], n_frozen=1, n_outputs=1)
    block = layers[0].blocks[0]
    block.norm.scale[:] = 0.0
    block.norm.shift[:] = 2.0 if part == "new" else 0.0  # every new feature is the constant 2
    head.weight[:], head.bias[:] = 1.0, 0.0
    n_features = 3 if part == "new" else 1
    settings = TuningSettings(loss="mse", batch_size=n, dropout=rate)
    gradient, *_, loss, _ = one_step(engine, layers, head, rows, settings, rate=0.0, seed=77)
    mean = 2.0 * n_features
    assert gradient[-1] / 2 == pytest.approx(mean, rel=0.03)  # d/db of the mean square is twice the mean
    variance = n_features * 4.0 * rate / (1 - rate)
    assert loss - (gradient[-1] / 2) ** 2 == pytest.approx(variance, rel=0.1)


def test_zero_epochs_change_nothing_but_statistics():
    layers, head, found = run([[HARMONIC]], data(), learning_rates=(), epochs=())
    fresh, fresh_head = network([[HARMONIC]])
    assert found.curve == []
    assert np.array_equal(layers[0].blocks[0].weight, fresh[0].blocks[0].weight)
    assert np.array_equal(head.weight, fresh_head.weight)
