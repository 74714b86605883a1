"""Populations of candidates: each one's training against plain torch, and what the search may rely on."""

from __future__ import annotations

import itertools
import threading
from collections import Counter

import numpy as np
import pytest
import torch
from torch import nn

from draws import epoch_orders
from opgrow import (
    PERCEPTRON,
    Layer,
    OperatorSet,
    engines,
    operator_sets,
    population,
    population_torch,
    tuning,
)
from opgrow.engine.candidates import Candidate, CandidateFunctions, Schedule
from opgrow.engine.native import native
from opgrow.engines import TuningData, TuningSettings
from opgrow.kernels import reference
from opgrow.operators import register_activation, register_nodal, register_pool, unregister
from opgrow.population import Member, draw_start, train_population
from opgrow.scores import CRITERIA, Score, evaluate

pytestmark = pytest.mark.cpu

HARMONIC = OperatorSet("harmonic", "sum", "tanh")
NODALS = ("multiplication", "exponential", "harmonic", "quadratic", "gaussian", "dog")
POOLS = ("sum", "correlation1", "correlation2", "maximum")
ACTIVATIONS = ("sigmoid", "tanh", "relu", "softplus", "inverse_absolute", "elu")
ONE_EPOCH = {"learning_rates": (0.002,), "epochs": (1,)}


@pytest.fixture(autouse=True)
def one_thread():
    """Steps of a few rows: threads of torch would only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def data(n=60, n_inputs=4, n_frozen=2, n_outputs=2, seed=0):
    """Classes that depend on products and waves of the inputs, and on the frozen features."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.5, 1.5, (n, n_inputs)).astype(np.float32)
    frozen = rng.normal(size=(n, n_frozen)).astype(np.float32)
    logits = np.sin(2 * x[:, :1]) + x[:, 1:2] * x[:, 2:3] + frozen.sum(axis=1, keepdims=True) / 2
    classes = np.digitize(logits[:, 0], np.linspace(-0.7, 0.7, n_outputs + 1)[1:-1])
    weight = rng.uniform(0.3, 2, n)
    target = np.eye(n_outputs, dtype=np.float32)[classes]
    return TuningData(x, frozen, target, (weight / weight.mean()).astype(np.float32))


def settings(**changes):
    return TuningSettings(**({"loss": "mse", "batch_size": 20} | ONE_EPOCH | changes))


def start_for(rows, n_neurons=5, seed=0):
    sizes = rows.x.shape[1], n_neurons, rows.frozen.shape[1], rows.target.shape[1]
    return draw_start(*sizes, 0.8, np.random.default_rng(seed))


def train(members, rows, given, start=None, criterion="loss", seed=7, validation=None, report=None):
    more = {} if report is None else {"on_outcome": report}
    start = start or start_for(rows)
    return train_population(members, start, rows, given, criterion, seed, validation, **more)


def parameters_of(trained, n_frozen):
    layers = [Layer([trained.block])]
    return engines.Shape(layers, trained.head, n_frozen).flatten(layers, trained.head)


def untrained(member, start):
    """Shape and flat parameters of a candidate that nobody has touched."""
    shape = population.modules_of(member, start)[2]
    theta = np.zeros(shape.size, np.float32)
    [[view]] = shape.blocks(theta)
    view.weight[:], view.scale[:] = start.hidden, 1.0
    shape.head(theta)[0][:] = start.head
    return shape, theta


def torch_orders(n_rows, seed):
    """The order of rows in every epoch as the batched path draws them."""
    rng = np.random.default_rng(seed)
    while True:
        yield rng.permutation(n_rows), 1


def follow(member, start, rows, given, orders):
    """Parameters after the whole schedule in double precision, and which of them have a gradient.

    Adam makes whole steps of gradients that are 0 but for rounding; such parameters cannot be compared.
    """
    shape, theta = untrained(member, start)
    theta = theta.astype(np.float64)
    tensors = [tensor.double() for tensor in rows.tensors()]
    engine = engines.ReferenceEngine(shape, torch.from_numpy(theta), tensors, given)
    skipped = 0
    for rate, count in zip(given.learning_rates, given.epochs, strict=True):
        for _ in range(count):
            order, seed = next(orders)
            skipped += engine.epoch(order, rate, seed)[1]
    clear = np.zeros(theta.size, bool)
    for parameter, state in engine.optimizer.state.items():
        at = (parameter.data_ptr() - theta.ctypes.data) // theta.itemsize
        size = state["exp_avg_sq"].sqrt().reshape(-1).numpy()
        clear[at : at + parameter.numel()] = size > max(1e-2 * size.max(), 1e-5)
    return theta.astype(np.float32), clear, skipped


def exact_score(theta, member, start, rows, given, criterion, validation=None):
    """As `tuning` scores: with statistics of all training rows."""
    shape = untrained(member, start)[0]
    outputs, _ = tuning.outputs_of(shape, theta, rows, validation, 1)
    scored = validation or rows
    return evaluate(criterion, given.loss, outputs, scored.target, scored.weight)


# --- the compiled loop ---


HEADS = [
    OperatorSet(nodal, pool, ACTIVATIONS[number % 6])
    for number, (pool, nodal) in enumerate(itertools.product(POOLS, NODALS))
]
HIDDENS = [
    HARMONIC,
    PERCEPTRON,
    OperatorSet("exponential", "maximum", "tanh"),
    OperatorSet("quadratic", "correlation1", "inverse_absolute"),
    OperatorSet("multiplication", "correlation2", "relu"),
    OperatorSet("dog", "sum", "softplus"),
    OperatorSet("gaussian", "sum", "elu"),
]
PAIRS = [
    *(Member(hidden, head) for hidden, head in zip(itertools.cycle(HIDDENS), HEADS, strict=False)),
    *(Member(hidden) for hidden in HIDDENS),
]


@pytest.mark.parametrize("member", PAIRS, ids=lambda m: f"{m.hidden}-{m.head}")
def test_a_candidate_takes_the_steps_of_plain_torch(member):
    rows = data()
    given = settings(
        epochs=(2,), loss="cross_entropy" if member.head is None else "mse", weight_decay=0.01, max_norm=1.2
    )
    start = start_for(rows)
    wanted, clear, _ = follow(member, start, rows, given, epoch_orders(60, 1))
    trained, [outcome] = train([member], rows, given, seed=1)
    found = parameters_of(trained, 2)
    assert (outcome.best_epoch, outcome.epochs, outcome.skipped_batches) == (2, 2, 0)
    moved = np.abs(wanted - untrained(member, start)[1])
    assert clear.mean() > 0.2
    assert np.median(moved[clear]) > 0.003  # six steps of 0.002
    np.testing.assert_allclose(found[clear], wanted[clear], atol=3e-6)
    # All parameters together, those included that only rounding moves.
    [score, other] = (exact_score(t, member, start, rows, given, "loss") for t in (found, wanted))
    assert score.value == pytest.approx(other.value, rel=1e-4)
    assert outcome.score.value == pytest.approx(other.value, rel=1e-4)


@pytest.mark.parametrize("n", [1, 2, 3, 17, 1000])
def test_shuffles_are_permutations(n):
    orders = [native().shuffle(n, seed) for seed in (1, 2, 1)]
    assert all(sorted(order) == list(range(n)) for order in orders)
    np.testing.assert_array_equal(orders[0], orders[2])
    if n > 3:
        assert not np.array_equal(orders[0], orders[1])
        assert not np.array_equal(orders[0], np.arange(n))


def test_every_permutation_is_equally_likely():
    seeds = np.random.default_rng(0).integers(1, 2**63, 6000)
    counts = Counter(tuple(native().shuffle(3, int(seed))) for seed in seeds)
    assert len(counts) == 6
    # Five standard deviations of a binomial count.
    assert all(abs(count - 1000) < 5 * np.sqrt(6000 * 5 / 36) for count in counts.values())


def test_every_epoch_has_an_order_of_its_own():
    orders = epoch_orders(30, 7)
    first, second = next(orders), next(orders)
    assert not np.array_equal(first[0], second[0])
    assert first[1] != second[1]
    rows, given = data(n=30), settings(epochs=(2,), learning_rates=(0.01,), batch_size=3)
    trained, _ = train([Member(HARMONIC)], rows, given)
    start = start_for(rows)
    repeated = follow(Member(HARMONIC), start, rows, given, iter([first, first]))
    wanted = follow(Member(HARMONIC), start, rows, given, iter([first, second]))
    found = parameters_of(trained, 2)
    distance = [np.abs(found - other)[wanted[1]].max() for other in (repeated[0], wanted[0])]
    assert distance[1] < 1e-3 < distance[0]


@pytest.mark.parametrize("loss", ["mse", "cross_entropy"])
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("n_outputs", [1, 2, 5])
def test_scores_are_those_of_every_other_method(criterion, loss, n_outputs):
    rng = np.random.default_rng(n_outputs)
    outputs = rng.normal(size=(200, n_outputs)).astype(np.float32)
    outputs[:20] = -np.abs(outputs[:20])  # no class has anything for it
    outputs[20:40] = np.round(outputs[20:40])  # ties
    outputs[40:50] *= 200
    target = np.eye(n_outputs, dtype=np.float32)[rng.integers(0, n_outputs, 200)]
    if criterion == "loss" and loss == "mse":
        target = rng.normal(size=target.shape).astype(np.float32)
    weight = rng.uniform(0.1, 3, 200).astype(np.float32)
    found = native().score(criterion, loss, outputs, target, weight)
    wanted = evaluate(criterion, loss, outputs, target, weight)
    assert found == pytest.approx((wanted.value, wanted.loss), rel=1e-5, abs=1e-7)
    plain = native().score(criterion, loss, outputs, target)
    if n_outputs > 1:
        assert plain != pytest.approx(found, rel=1e-4)  # weights count
    for bad in (np.nan, np.inf, -np.inf):
        spoiled = outputs.copy()
        spoiled[7, -1] = bad
        assert np.isnan(native().score(criterion, loss, spoiled, target, weight)[0])
        assert not evaluate(criterion, loss, spoiled, target, weight).better_than(None)


def candidate_of(member, theta, rows, held, criterion, epochs, scores=None):
    """A candidate after some epochs that change nothing; its first score stands already if one is given."""
    shape, given = untrained(member, start_for(rows))[0], settings()
    state = Candidate.begin(theta, shape.plan[0, 4], 7)
    if scores is not None:
        state.scores[:], state.counts[0] = scores, 0
    schedule = Schedule((0.0,), (epochs,), 0, criterion, engines.batch_bounds(len(rows.x), 20))
    compiled = shape.compiled(), rows, held, engines.compiled_settings(shape, given)
    assert native().train_candidate(*compiled, schedule, state)
    return state


@pytest.mark.parametrize("spoiled", [False, True])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_better_means_the_same_in_both_worlds(criterion, spoiled):
    member, rows, held = Member(HARMONIC), data(), data(n=30, seed=1)
    if spoiled:
        held.target[3, 1] = np.nan
    theta = untrained(member, start_for(rows))[1]
    # Statistics are those of the batches after an epoch, and those of all rows before the first one.
    kept = None if spoiled else (np.nan, np.nan)
    a, b = candidate_of(member, theta, rows, held, criterion, 0 if spoiled else 1, kept).scores
    assert np.isfinite(b) == (not spoiled)
    others = [(v - 0.01, v, v + 0.01, np.nan, np.inf) for v in (a, b)]
    for c, d in itertools.product(*others):
        wanted = Score(a, b, CRITERIA[criterion]).better_than(Score(c, d, CRITERIA[criterion]))
        state = candidate_of(member, theta, rows, held, criterion, 1, (c, d))
        assert state.counts[4] == wanted, (a, b, c, d)
        np.testing.assert_array_equal(state.scores, (a, b) if wanted else (c, d))


@pytest.mark.parametrize("n", [1, 31, 150, 700])
@pytest.mark.parametrize("member", PAIRS[::5] + PAIRS[-2:], ids=lambda m: f"{m.hidden}-{m.head}")
def test_statistics_and_scores_are_those_of_tuning(member, n):
    rows = data(n=n)
    theta = untrained(member, start_for(rows))[1]
    theta += np.random.default_rng(1).normal(0, 0.3, theta.size).astype(np.float32)
    shape = untrained(member, start_for(rows))[0]
    outputs, [exact] = tuning.outputs_of(shape, theta, rows, None, 1)
    state = candidate_of(member, theta, rows, None, "brier", 0)
    np.testing.assert_allclose(state.moments[0], exact.mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(state.moments[1], exact.variance, rtol=1e-3, atol=1e-6)
    if n > 1:  # one row is a constant; divided by its deviation, rounding is all there is
        wanted = evaluate("brier", "mse", outputs, rows.target, rows.weight)
        assert tuple(state.scores) == pytest.approx((wanted.value, wanted.loss), rel=1e-3)


# --- what is kept ---


@pytest.fixture
def statistics(monkeypatch):
    """What the compiled training says the statistics of the best state were, by candidate."""
    found, original = [], CandidateFunctions.train_candidate

    def recording(self, *arguments):
        result = original(self, *arguments)
        found.extend(a.moments for a in arguments if isinstance(a, Candidate))
        return result

    monkeypatch.setattr(CandidateFunctions, "train_candidate", recording)
    return found


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize(
    "member", [Member(HARMONIC), Member(HARMONIC, OperatorSet("harmonic", "correlation1", "elu"))], ids=str
)
def test_the_state_that_is_kept_has_the_score_that_is_told(member, held, criterion, statistics):
    rows, validation = data(n=90), data(n=55, seed=1) if held else None
    given = settings(learning_rates=(0.03, 0.003), epochs=(9, 4), dropout=0.2)
    trained, [outcome] = train([member], rows, given, criterion=criterion, validation=validation)
    assert outcome.epochs == 13
    assert 0 < outcome.best_epoch <= 13
    block, head = trained.block, trained.head
    block.norm.mean, block.norm.variance = statistics[0]
    scored = validation or rows
    features = np.concatenate([scored.frozen, block.outputs(scored.x)], axis=1)
    outputs = head.outputs(features).astype(np.float32)
    found = evaluate(criterion, "mse", outputs, scored.target, scored.weight)
    assert outcome.score.value == pytest.approx(found.value, rel=1e-4)
    assert outcome.score.loss == pytest.approx(found.loss, rel=1e-4)
    exact = exact_score(
        parameters_of(trained, 2), member, start_for(rows), rows, given, criterion, validation
    )
    if not held:  # then nothing but exact statistics is used
        assert outcome.score.value == pytest.approx(exact.value, rel=1e-4)
    assert exact.value == pytest.approx(outcome.score.value, rel=0.1)


def test_the_best_of_all_epochs_is_kept():
    """Longer trainings start like shorter ones, so their best score can only be better."""
    rows, validation = data(n=60), data(n=40, seed=1)
    outcomes = []
    for epochs in range(25):
        given = settings(learning_rates=(0.1,), epochs=(epochs,))
        outcomes += train([Member(HARMONIC)], rows, given, validation=validation)[1]
    values = [outcome.score.value for outcome in outcomes]
    assert (np.diff(values) <= 0).all()
    best = values.index(min(values))
    assert 0 < best < 24  # this problem is overfitted, or the test would show nothing
    assert [outcome.best_epoch for outcome in outcomes[best:]] == [best] * (25 - best)


@pytest.mark.parametrize("held", [False, True])
def test_without_epochs_the_start_is_kept(held):
    rows, validation = data(), data(n=30, seed=1) if held else None
    trained, [outcome] = train(
        [Member(HARMONIC)], rows, settings(learning_rates=(), epochs=()), None, validation=validation
    )
    start = start_for(rows)
    assert (outcome.best_epoch, outcome.epochs) == (0, 0)
    np.testing.assert_array_equal(parameters_of(trained, 2), untrained(Member(HARMONIC), start)[1])
    exact = exact_score(
        parameters_of(trained, 2), Member(HARMONIC), start, rows, settings(), "loss", validation
    )
    assert outcome.score.value == pytest.approx(exact.value, rel=1e-5)


@pytest.mark.parametrize("loss", ["mse", "custom"])
@pytest.mark.parametrize("held", [False, True])
def test_patience_ends_a_learning_rate_that_no_longer_helps(held, loss):
    rows, validation = data(), data(n=30, seed=1) if held else None
    given = {"loss": squared_error if loss == "custom" else loss}
    hopeless = given | {"learning_rates": (1e3, 1e4), "epochs": (20, 20)}
    _, [outcome] = train([Member(HARMONIC)], rows, settings(patience=3, **hopeless), validation=validation)
    assert (outcome.best_epoch, outcome.epochs) == (0, 6)
    _, [patient] = train([Member(HARMONIC)], rows, settings(**hopeless), validation=validation)
    assert (patient.best_epoch, patient.epochs) == (0, 40)
    helpful = given | {"learning_rates": (1e-4,), "epochs": (12,)}
    _, [outcome] = train([Member(HARMONIC)], rows, settings(patience=3, **helpful))
    assert (outcome.best_epoch, outcome.epochs) == (12, 12)


OVERFLOWING = OperatorSet("quadratic", "sum", "inverse_absolute")


def huge(n=40):
    """Inputs whose squares are not finite in single precision."""
    rows = data(n=n)
    return TuningData(rows.x * np.float32(1e30), rows.frozen, rows.target, rows.weight)


@pytest.mark.parametrize("loss", ["mse", "custom"])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_candidate_that_is_not_finite_never_wins(criterion, loss):
    members = [Member(OVERFLOWING), Member(PERCEPTRON), Member(OVERFLOWING)]
    given = settings(loss=squared_error if loss == "custom" else loss, epochs=(3,))
    trained, outcomes = train(members, huge(), given, criterion=criterion)
    assert trained.outcome is outcomes[1]
    assert np.isfinite(trained.outcome.score.value)
    assert np.isnan([outcomes[0].score.value, outcomes[2].score.value]).all()
    assert outcomes[0].skipped_batches == outcomes[2].skipped_batches == 6
    assert outcomes[1].skipped_batches == 0


@pytest.mark.parametrize("loss", ["mse", "custom"])
def test_no_finite_candidate_is_an_error_that_says_so(loss):
    reported = []
    given = settings(loss=squared_error if loss == "custom" else loss)
    with pytest.raises(
        FloatingPointError, match="^none of the 2 candidates had a finite score; .*scale"
    ) as e:
        train([Member(OVERFLOWING)] * 2, huge(), given, report=reported.append)
    assert "\n" not in str(e.value)
    assert len(reported) == 2


@pytest.mark.parametrize("loss", ["mse", "custom"])
def test_batches_with_gradients_that_are_not_finite_are_skipped_and_counted(loss):
    rows, held = data(n=60), data(n=50, seed=1)
    rows.target[5] = np.inf
    given = settings(
        loss=squared_error if loss == "custom" else loss,
        epochs=(4,),
        learning_rates=(0.01,),
        weight_decay=0.1,
    )
    member, start = Member(HARMONIC, HARMONIC), start_for(rows)
    trained, [outcome] = train([member], rows, given, validation=held)
    assert outcome.skipped_batches == 4  # one of the three batches of every epoch
    assert outcome.best_epoch == 4
    orders = (torch_orders if loss == "custom" else epoch_orders)(60, 7)
    wanted, clear, skipped = follow(member, start, rows, given, orders)
    assert skipped == 4
    np.testing.assert_allclose(parameters_of(trained, 2)[clear], wanted[clear], atol=1e-4)


def test_a_candidate_that_sits_a_step_out_does_not_move():
    register_activation("fragile", lambda x: x + 0 * torch.sqrt((50 - x) * (x < 50)))  # no slope above 50
    try:
        rows, held = data(n=60), data(n=50, seed=1)
        rows.x[5] = 1e3
        members = [Member(OperatorSet("multiplication", "sum", "fragile")), Member(HARMONIC)]
        given = settings(epochs=(5,), learning_rates=(0.01,), weight_decay=0.3, batch_size=60)
        _, [still, moving] = train(members, rows, given, validation=held)
        _, [start, _] = train(members, rows, settings(learning_rates=(), epochs=()), validation=held)
        assert (still.best_epoch, still.skipped_batches, still.score) == (0, 5, start.score)
        assert (moving.best_epoch, moving.skipped_batches) == (5, 0)
    finally:
        unregister("activation", "fragile")


def test_equal_scores_are_decided_by_the_loss_and_then_by_the_order():
    rows = data()
    twins = [Member(HARMONIC), Member(HARMONIC)]
    trained, outcomes = train(twins, rows, settings())
    assert outcomes[0].score == outcomes[1].score
    assert trained.outcome is outcomes[0]
    members = [Member(s) for s in HIDDENS]
    trained, outcomes = train(members, data(n=6), settings(epochs=(0,)), criterion="accuracy")
    best = max(outcome.score.value for outcome in outcomes)
    tied = [outcome for outcome in outcomes if outcome.score.value == best]
    assert len(tied) > 1
    assert trained.outcome is min(tied, key=lambda outcome: outcome.score.loss)


def test_the_start_is_drawn_as_told():
    start = draw_start(50, 40, 9, 30, 0.7, np.random.default_rng(0))
    assert (start.hidden.shape, start.head.shape) == ((50, 40), (49, 30))
    assert start.hidden.dtype == start.head.dtype == np.float32
    for values, reach in ((start.hidden, 0.7), (start.head, 1.5 / 7)):
        assert np.abs(values).max() <= reach
        assert values.std() == pytest.approx(reach / np.sqrt(3), rel=0.05)
        assert abs(values.mean()) < 0.05 * reach
    same, other = (draw_start(50, 40, 9, 30, 0.7, np.random.default_rng(s)) for s in (0, 1))
    np.testing.assert_array_equal(same.head, start.head)
    assert not np.array_equal(other.hidden, start.hidden)


# --- many candidates ---


@pytest.mark.parametrize("held", [False, True])
def test_threads_change_nothing(held):
    rows, validation = data(n=70), data(n=30, seed=1) if held else None
    members = [Member(s, HARMONIC) for s in operator_sets()[::4]]
    results = []
    for n_threads in (1, 2):
        reported, threads = [], set()

        def report(outcome, reported=reported, threads=threads):
            reported.append(outcome)
            threads.add(threading.current_thread())

        given = settings(n_threads=n_threads, dropout=0.1, epochs=(3,))
        trained, outcomes = train(members, rows, given, validation=validation, report=report)
        assert [outcome.member for outcome in outcomes] == members
        assert reported == outcomes
        assert threads == {threading.current_thread()}
        assert not any(outcome.score.better_than(trained.outcome.score) for outcome in outcomes)
        results.append((parameters_of(trained, 2), outcomes))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    assert [(o.score, o.best_epoch) for o in results[0][1]] == [
        (o.score, o.best_epoch) for o in results[1][1]
    ]


def test_a_candidate_does_not_depend_on_the_others():
    rows, members = data(), [Member(s) for s in HIDDENS]
    _, together = train(members, rows, settings(dropout=0.2, epochs=(3,)))
    for member, outcome in zip(members, together, strict=True):
        _, [alone] = train([member], rows, settings(dropout=0.2, epochs=(3,)))
        assert alone.score == outcome.score


def test_the_seed_counts_and_so_does_dropout():
    rows, member = data(), [Member(HARMONIC)]
    given = settings(epochs=(3,), learning_rates=(0.01,))
    scores = [train(member, rows, given, seed=seed)[1][0].score for seed in (1, 1, 2)]
    assert scores[0] == scores[1] != scores[2]
    for name in ("dropout", "input_dropout"):
        dropped = settings(epochs=(3,), learning_rates=(0.01,), **{name: 0.3})
        assert train(member, rows, dropped, seed=1)[1][0].score != scores[0]


# --- the batched path ---


def squared_error(outputs, target):
    return ((outputs - target) ** 2).mean(dim=1)


def cross_entropy(outputs, target):
    return nn.functional.cross_entropy(outputs, target, reduction="none")


CUSTOM = {"mse": squared_error, "cross_entropy": cross_entropy}


@pytest.mark.parametrize("loss", CUSTOM)
@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("criterion", ["loss", "brier"])
def test_the_batched_path_scores_like_the_compiled_one(held, loss, criterion):
    """With all rows in one batch their order does not matter, and both paths do the same."""
    rows, validation = data(n=50), data(n=40, seed=1) if held else None
    members = PAIRS if loss == "mse" else PAIRS[-len(HIDDENS) :]
    linear = [m for m in members if m.head is None]
    neurons = [m for m in members if m.head is not None]
    for group in filter(None, (linear, neurons)):
        results = []
        for function in (loss, CUSTOM[loss]):
            # A custom loss has no name that says how outputs become probabilities but as logits.
            judged = "loss" if function is squared_error or loss == "mse" else criterion
            given = settings(loss=function, batch_size=50, epochs=(5,), weight_decay=0.01, max_norm=1.2)
            results.append(train(group, rows, given, criterion=judged, validation=validation))
        (compiled, first), (batched, second) = results
        for a, b in zip(first, second, strict=True):
            assert b.member == a.member
            assert b.epochs == a.epochs == 5
            assert b.score.value == pytest.approx(a.score.value, rel=1e-3), a.member
            assert b.score.loss == pytest.approx(a.score.loss, rel=1e-3), a.member
        values = np.sort([outcome.score.value for outcome in first])
        discrepancy = max(abs(a.score.value - b.score.value) for a, b in zip(first, second, strict=True))
        assert values[1] - values[0] > 2 * discrepancy
        assert batched.outcome.member == compiled.outcome.member


def test_the_batched_path_follows_the_reference_over_batches():
    rows = data()
    given = settings(loss=squared_error, epochs=(2,), weight_decay=0.01, max_norm=1.2)
    for member in PAIRS[::3]:
        trained, [outcome] = train([member], rows, given)
        wanted, clear, _ = follow(member, start_for(rows), rows, given, torch_orders(60, 7))
        assert outcome.best_epoch == 2
        np.testing.assert_allclose(parameters_of(trained, 2)[clear], wanted[clear], atol=3e-5)


def test_statistics_of_batches_make_those_of_all_rows():
    """Where nothing moves, means and variances of equal batches add up to those of their rows."""
    rows, member, start = data(n=60), Member(HARMONIC), start_for(data())
    given, order = settings(learning_rates=(0.0,), batch_size=5), np.random.default_rng(0).permutation(60)
    shape, theta = untrained(member, start)
    compiled = engines.CompiledEngine(shape, theta, rows, given)
    compiled.epoch(order, 0.0, 1)
    batch = population_torch._Batch([member], start, rows.tensors(), given, "loss", 1, None)
    batch.optimizer.param_groups[0]["lr"] = batch.optimizer.param_groups[1]["lr"] = 0.0
    (mean, variance), _ = batch._epoch(torch.from_numpy(order), torch.Generator())
    raw = reference.features(*(torch.from_numpy(a) for a in (rows.x, start.hidden)), torch.zeros(5), HARMONIC)
    for found in (compiled.moving.moments, np.stack([mean[0].numpy(), variance[0].numpy()])):
        np.testing.assert_allclose(found[0], raw.mean(dim=0), atol=1e-5)
        np.testing.assert_allclose(found[1], raw.var(dim=0, correction=0), rtol=1e-4)


def test_both_paths_choose_the_same_operators_on_a_clear_problem():
    rng = np.random.default_rng(0)

    def rows(n):
        x = rng.uniform(-2, 2, (n, 1)).astype(np.float32)
        target = np.sin(3 * x)
        return TuningData(x, np.zeros((n, 0), np.float32), target, np.ones(n, np.float32))

    train_rows, held = rows(200), rows(100)
    members = [Member(OperatorSet(nodal, "sum", "identity")) for nodal in ("multiplication", "harmonic")]
    start = draw_start(1, 12, 0, 1, 3.0, np.random.default_rng(0))
    for loss in ("mse", squared_error):
        given = settings(loss=loss, learning_rates=(0.01,), epochs=(30,))
        trained, outcomes = train(members, train_rows, given, start, validation=held)
        assert trained.outcome.member == members[1]
        assert outcomes[1].score.value < 0.1 * outcomes[0].score.value


@pytest.fixture
def twins():
    """Operators registered by a user that compute what built-in ones do."""
    register_nodal("wave", lambda y, w: torch.sin(w * y))
    register_pool("total", lambda z: z.sum(dim=1))
    register_activation("squash", torch.tanh)
    yield {"wave": "harmonic", "total": "sum", "squash": "tanh"}
    for kind, name in (("nodal", "wave"), ("pool", "total"), ("activation", "squash")):
        unregister(kind, name)


def test_custom_operators_are_trained(twins):
    rows = data()
    own = OperatorSet("wave", "total", "squash")
    mixed = OperatorSet("gaussian", "total", "relu")
    members = [Member(own, mixed), Member(HARMONIC, own), Member(mixed, HARMONIC)]

    def built_in(s):
        return OperatorSet(*(twins.get(name, name) for name in (s.nodal, s.pool, s.activation)))

    theirs = [Member(built_in(m.hidden), built_in(m.head)) for m in members]
    given = {"epochs": (3,), "learning_rates": (0.01,), "batch_size": 60}
    trained, outcomes = train(members, rows, settings(**given))
    compiled, known = train(theirs, rows, settings(**given))
    for a, b in zip(outcomes, known, strict=True):
        assert a.best_epoch == 3
        assert a.score.value == pytest.approx(b.score.value, rel=1e-3)
    best = outcomes.index(trained.outcome)
    assert trained.block.operator_set == members[best].hidden
    assert trained.head.operator_set == members[best].head
    assert best == known.index(compiled.outcome)
    _, linear = train([Member(own), Member(mixed)], rows, settings(**given))
    assert all(outcome.best_epoch == 3 for outcome in linear)


def test_one_custom_operator_takes_all_candidates_along(twins):
    """They are compared on the same batches, so they go the same way."""
    rows = data()
    seen = []
    original = population_torch._Batch

    class Spy(original):
        def __init__(self, members, *rest):
            seen.append(len(members))
            super().__init__(members, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(population_torch, "_Batch", Spy)
        train([Member(HARMONIC), Member(OperatorSet("wave", "sum", "tanh"))], rows, settings())
        assert seen == [2]
        train([Member(HARMONIC), Member(PERCEPTRON)], rows, settings())
        assert seen == [2]


def test_a_custom_optimizer_trains():
    rows, members = data(), [Member(s, HARMONIC) for s in HIDDENS]
    given = {"loss": squared_error, "weight_decay": 0.01, "epochs": (3,)}
    named = train(members, rows, settings(**given))[1]
    adam = train(
        members, rows, settings(optimizer=lambda groups: torch.optim.Adam(groups, eps=1e-7), **given)
    )[1]
    assert [outcome.score for outcome in adam] == [outcome.score for outcome in named]
    gradient = train(
        members, rows, settings(optimizer=lambda groups: torch.optim.SGD(groups, lr=1.0), **given)
    )[1]
    assert all(a.score != b.score for a, b in zip(gradient, named, strict=True))
    assert all(outcome.best_epoch > 0 for outcome in gradient)


@pytest.mark.parametrize("head", [None, HARMONIC], ids=str)
def test_batches_of_candidates_change_nothing(head, monkeypatch):
    rows, members = data(n=300), [Member(s, head) for s in HIDDENS]
    given = settings(loss=squared_error, dropout=0.2, input_dropout=0.1, epochs=(3,))
    whole, first = train(members, rows, given)
    sizes, original = [], population_torch._Batch.run

    def counting(self, *rest):
        sizes.append(len(self.members))
        return original(self, *rest)

    monkeypatch.setattr(population_torch._Batch, "run", counting)
    # Room for two candidates in a step of 20 rows, and far less than all rows.
    monkeypatch.setattr(population_torch, "_EVALUATIONS", 2 * 20 * 4 * 5)
    parts, second = train(members, rows, given)
    assert sizes == [2, 2, 2, 1]
    for a, b in zip(first, second, strict=True):
        assert (a.member, a.best_epoch, a.epochs) == (b.member, b.best_epoch, b.epochs)
        assert b.score.value == pytest.approx(a.score.value, rel=1e-5)
    np.testing.assert_allclose(parameters_of(parts, 2), parameters_of(whole, 2), atol=1e-5)


def test_the_batched_path_holds_few_evaluations_at_once(monkeypatch):
    """However many rows there are: scores and statistics are taken piece by piece."""
    rows, members = data(n=2000), [Member(s, HARMONIC) for s in HIDDENS]
    bound, largest = 2 * 20 * 4 * 5, 0
    nodal = OperatorSet.nodal_operator.fget

    def watched(self):
        operator = nodal(self)

        def function(y, w):
            nonlocal largest
            z = operator.function(y, w)
            largest = max(largest, z.numel())
            return z

        return type(operator)(operator.name, function, operator.flops, operator.code)

    monkeypatch.setattr(OperatorSet, "nodal_operator", property(watched))
    monkeypatch.setattr(population_torch, "_EVALUATIONS", bound)
    train(members, rows, settings(loss=squared_error), validation=data(n=1000, seed=1))
    assert 0 < largest <= bound
