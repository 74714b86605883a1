"""The training of one candidate: schedule, patience, best state, and interruptions."""

from __future__ import annotations

import numpy as np
import pytest

from draws import epoch_orders
from opgrow.engine.candidates import EVERY, Candidate, Schedule
from opgrow.engine.training import Rows, Settings, Shape, State

BOUNDS = np.arange(0, 97, 24)


def problem(seed=0, n=96):
    """Rows whose class is a function of the inputs that a few neurons can learn."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.5, 1.5, (n, 4)).astype(np.float32)
    target = np.eye(2, dtype=np.float32)[(np.sin(2 * x[:, 0]) + x[:, 1] > 0).astype(int)]
    return Rows(x, np.zeros((n, 0), np.float32), target, np.ones(n, np.float32))


def candidate(codes=(2, 0, 1), head=(-1, -1, -1), seed=3, width=8):
    plan = np.array([[*codes, 4, width, 0, 0, 0]])
    shape = Shape(plan, np.array([width]), head, 0, 2)
    rng = np.random.default_rng(seed)
    theta = np.zeros(shape.n_parameters, np.float32)
    theta[: 4 * width] = rng.uniform(-1, 1, 4 * width)
    theta[5 * width : 6 * width] = 1.0
    theta[7 * width : 9 * width] = rng.uniform(-0.3, 0.3, 2 * width)
    settings = Settings("cross_entropy", np.zeros(shape.n_parameters, np.float32), dropout=0.1)
    return shape, settings, Candidate.begin(theta, width, seed)


def train(engine, held, schedule=None, most=1 << 40, **options):
    shape, settings, state = candidate(**options)
    schedule = schedule or Schedule((0.03, 0.003), (15, 5), 0, "accuracy", BOUNDS)
    while not engine.train_candidate(shape, problem(), held, settings, schedule, state, most):
        pass
    return shape, settings, state


@pytest.mark.parametrize("held", [None, problem(1)], ids=["training rows", "held rows"])
@pytest.mark.parametrize("head", [(-1, -1, -1), (0, 0, 1)], ids=["linear", "neurons"])
def test_a_candidate_learns_and_its_best_state_is_the_one_that_was_scored(engine, held, head):
    _, _, state = train(engine, held, head=head)
    assert state.scores[0] > 0.8
    assert state.counts[3] == 20
    assert 0 < state.counts[4] <= 20
    assert (state.counts[5], state.counts[6]) == (80, 0)
    rows = held or problem()
    weight, d = state.theta[:32].reshape(4, 8), 8
    bias, scale, shift = state.theta[32:56].reshape(3, d)
    raw = engine.features((2, 0, 1), rows.x, weight, bias).astype(np.float64)
    mean, variance = state.moments.astype(np.float64)
    h = ((raw - mean) / np.sqrt(variance + 1e-8) * scale + shift).astype(np.float32)
    outputs = h @ state.theta[56:72].reshape(8, 2) + state.theta[72:]
    outputs = np.tanh(outputs) if head[0] >= 0 else outputs
    value, loss = engine.score("accuracy", "cross_entropy", np.ascontiguousarray(outputs), rows.target)
    assert value == pytest.approx(state.scores[0], abs=0.011)
    assert loss == pytest.approx(state.scores[1], rel=1e-3)


def test_one_epoch_at_a_time_is_the_same_training(engine):
    states = [train(engine, problem(1), most=most)[2] for most in (1 << 40, 1, 3)]
    for name, values in vars(states[0]).items():
        assert all(np.array_equal(values, vars(other)[name]) for other in states[1:]), name


def test_epochs_are_those_of_train_epoch(engine):
    shape, settings, state = candidate()
    schedule = Schedule((0.01,), (1,), 0, "loss", BOUNDS)
    rows = problem()
    alone = State(state.theta.copy())
    engine.train_candidate(shape, rows, problem(1), settings, schedule, state)
    order, seed = next(epoch_orders(96, 3))
    engine.train_epoch(shape, rows, settings, alone, (order, BOUNDS), 0.01, seed)
    assert np.array_equal(alone.theta, state.current)
    assert np.array_equal(alone.second, state.second)


def test_patience_ends_a_learning_rate(engine):
    patient = train(engine, None, Schedule((0.0, 0.0), (9, 9), 3, "accuracy", BOUNDS))[2]
    assert patient.counts[3] == 6
    assert patient.counts[4] == 0


@pytest.mark.parametrize("held", [None, problem(1)], ids=["training rows", "held rows"])
def test_scores_on_training_rows_are_rare(engine, held):
    """Every few epochs and at the end of a learning rate; on held rows after every epoch."""
    shape, settings, state = candidate()
    schedule, bests = Schedule((0.001,), (12,), 0, "loss", BOUNDS), set()
    settings = Settings(settings.loss, settings.decay)
    while not engine.train_candidate(shape, problem(), held, settings, schedule, state, 1):
        bests.add(int(state.counts[4]))
    assert bests == (set(range(12)) if held else set(range(0, 12, EVERY)))
    assert state.counts[4] == 12


def test_the_start_is_kept_if_nothing_is_better(engine):
    shape, settings, state = candidate()
    start = state.theta.copy()
    schedule = Schedule((30.0,), (4,), 0, "loss", BOUNDS)
    engine.train_candidate(shape, problem(), problem(1), settings, schedule, state)
    if state.counts[4] == 0:
        assert np.array_equal(state.theta, start)
    assert not np.array_equal(state.current, start)


def test_a_candidate_that_is_not_finite_has_no_finite_score(engine):
    shape, settings, state = candidate((0, 0, 7))
    rows = problem()
    rows.x[3, 2] = np.inf
    schedule = Schedule((0.01,), (2,), 0, "accuracy", BOUNDS)
    assert engine.train_candidate(shape, rows, None, settings, schedule, state)
    assert not np.isfinite(state.scores[0])
    assert state.counts[6] > 0


def test_shuffles_are_permutations_that_differ(engine):
    orders = np.array([engine.shuffle(50, seed) for seed in range(200)])
    assert (np.sort(orders, axis=1) == np.arange(50)).all()
    assert len({order.tobytes() for order in orders}) == 200
    assert np.abs(orders.mean(axis=0) - 24.5).max() < 5  # every place sees every row


def test_every_instruction_set_gives_the_same_bits(engines):
    for codes in ((1, 1, 0), (4, 3, 5), (5, 2, 3)):
        results = set()
        for engine in engines.values():
            _, _, state = train(engine, problem(1), Schedule((0.01,), (2,), 0, "brier", BOUNDS), codes=codes)
            results.add(b"".join(values.tobytes() for values in vars(state).values()))
        assert len(results) == 1


def test_a_position_outside_of_the_schedule_is_refused(engine):
    shape, settings, state = candidate()
    state.counts[0] = 5
    with pytest.raises(ValueError, match="candidate is at stage 5"):
        engine.train_candidate(
            shape, problem(), None, settings, Schedule((0.1,), (1,), 0, "loss", BOUNDS), state
        )
