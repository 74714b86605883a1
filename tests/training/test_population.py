"""Populations of candidates: each training against double precision, and what the search may rely on."""

from __future__ import annotations

import itertools
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from opgrow import PERCEPTRON, Layer, OperatorSet, operator_sets
from opgrow.growth.checkpoints.codec import decode, encode
from opgrow.growth.engine import NativeEngine
from opgrow.operators import register_activation, register_nodal, register_pool, unregister
from opgrow.rows.memory import MemoryRows
from opgrow.training import reference
from opgrow.training.candidates import Candidates, Shape
from opgrow.training.draft import Draft
from opgrow.training.native import NativeTrainer
from opgrow.training.population import Member, Tally, candidates_of, draw_start, modules_of, train_members
from opgrow.training.reference import ReferenceTrainer
from opgrow.training.scores import CRITERIA, evaluate
from opgrow.training.settings import TuningSettings
from opgrow.training.train import Training, score, statistics
from opgrow.training.train import train as train_candidates
from tests.plain_training import plain_training
from tests.training.problems import ACTIVATIONS, HARMONIC, NODALS, POOLS, TRAINERS

pytestmark = pytest.mark.cpu

ONE_EPOCH = {"learning_rates": (0.002,), "epochs": (1,)}


def data(n=60, n_inputs=4, n_frozen=2, n_outputs=2, seed=0):
    """Classes that depend on products and waves of the inputs, and on the frozen features."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.5, 1.5, (n, n_inputs)).astype(np.float32)
    frozen = rng.normal(size=(n, n_frozen)).astype(np.float32)
    logits = np.sin(2 * x[:, :1]) + x[:, 1:2] * x[:, 2:3] + frozen.sum(axis=1, keepdims=True) / 2
    classes = np.digitize(logits[:, 0], np.linspace(-0.7, 0.7, n_outputs + 1)[1:-1])
    weight = rng.uniform(0.3, 2, n)
    target = np.eye(n_outputs, dtype=np.float32)[classes]
    return MemoryRows(x, frozen, target, (weight / weight.mean()).astype(np.float32))


def settings(**changes):
    return TuningSettings(**({"loss": "mse", "batch_size": 20} | ONE_EPOCH | changes))


def start_for(rows, n_neurons=5, seed=0):
    sizes = rows.n_inputs, n_neurons, rows.n_accepted, rows.n_outputs
    return draw_start(*sizes, 0.8, np.random.default_rng(seed))


def nothing(*arguments):
    return None


def train(
    members,
    rows,
    tuning,
    start=None,
    criterion="loss",
    seed=7,
    validation=None,
    report=nothing,
    group_size=100,
    draft=None,
    results=nothing,
):
    """Train a population as the POP family does; ``results`` hears of each group's."""
    start = start or start_for(rows)

    def train_groups(groups, drafts, ended):
        for group, part in zip(groups, drafts, strict=True):
            if ended():
                yield None
                continue
            candidates = candidates_of(group, start, tuning.dropout)
            training = Training(
                NativeEngine(tuning.n_threads).trainer(candidates, rows, tuning, criterion),
                candidates,
                rows,
                validation or rows,
                tuning,
                criterion,
                np.random.default_rng(seed),
                exact=False,
                on_epoch=nothing,
                draft=part,
            )
            trained = train_candidates(training)
            results(training, trained)
            yield trained.outcomes, trained.theta

    return train_members(members, start, group_size, train_groups, report, draft or Draft())


def parameters_of(trained, n_frozen):
    layers = [Layer([trained.block])]
    return Shape(layers, trained.head, n_frozen).flatten(layers, trained.head)


def untrained(member, start):
    """Shape and flat parameters of a candidate that nobody has touched."""
    block, head, shape = modules_of(member, start)
    return shape, shape.flatten([Layer([block])], head)


def follow(member, start, rows, tuning, validation=None, seed=7):
    """The same in double precision."""
    block, head, _ = modules_of(member, start)
    return plain_training([Layer([block])], head, rows, tuning, validation, seed, exact=False)


def squared_error(outputs, target):
    return ((outputs - target) ** 2).mean(dim=1)


def cross_entropy(outputs, target):
    return nn.functional.cross_entropy(outputs, target, reduction="none")


CUSTOM = {"mse": squared_error, "cross_entropy": cross_entropy}


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


@pytest.mark.parametrize("custom", [False, True], ids=["native", "reference"])
@pytest.mark.parametrize("member", PAIRS, ids=lambda m: f"{m.hidden}-{m.head}")
def test_a_candidate_takes_the_steps_of_double_precision(member, custom):
    rows, start = data(), start_for(data())
    loss = "cross_entropy" if member.head is None else "mse"
    tuning = settings(epochs=(2,), loss=CUSTOM[loss] if custom else loss, weight_decay=0.01, max_norm=1.2)
    expected = follow(member, start, rows, tuning, seed=2)
    trained, [outcome] = train([member], rows, tuning, seed=2)
    assert (outcome.best_epoch, outcome.epochs, outcome.skipped_batches) == (2, 2, 0)
    assert expected.best_epoch == 2
    moved = np.abs(expected.theta - untrained(member, start)[1])
    assert expected.clear.mean() > 0.2
    assert np.median(moved[expected.clear]) > 0.003  # six steps of 0.002
    actual = parameters_of(trained, 2)
    np.testing.assert_allclose(actual[expected.clear], expected.theta[expected.clear], atol=3e-6)
    # All parameters together, those included that only rounding moves.
    assert outcome.score.value == pytest.approx(expected.scores[-1], rel=1e-4)


@pytest.mark.parametrize("n", [1, 31, 150, 700])
@pytest.mark.parametrize("trainer", TRAINERS)
def test_statistics_and_scores_are_those_of_the_networks(trainer, n):
    rows, start = data(n=n), start_for(data())
    for group in ([m for m in PAIRS if m.head is None], [m for m in PAIRS if m.head is not None]):
        candidates = candidates_of(group, start, 0.0)
        noise = np.random.default_rng(1).normal(0, 0.3, candidates.theta.shape).astype(np.float32)
        candidates = Candidates(candidates.shapes, candidates.theta + noise, candidates.dropouts)
        made = TRAINERS[trainer](candidates, rows, settings(), "brier")
        moments = statistics(made, candidates, rows)
        values, losses = score(made, moments, rows)
        for k, member in enumerate(group):
            block, head, shape = modules_of(member, start)
            shape.restore(candidates.theta[k], moments[:, k], [Layer([block])], head)
            raw = block.features(rows.x).astype(np.float64)
            mean = np.average(raw, axis=0, weights=rows.weight)
            variance = np.average((raw - mean) ** 2, axis=0, weights=rows.weight)
            np.testing.assert_allclose(moments[0, k], mean, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(moments[1, k], variance, rtol=1e-3, atol=1e-6)
            if n > 1:  # one row is a constant; divided by its deviation, rounding is all there is
                features = np.concatenate([rows.accepted, block.outputs(rows.x)], axis=1)
                outputs = head.outputs(features).astype(np.float32)
                expected = evaluate("brier", "mse", outputs, rows.target, rows.weight)
                assert (values[k], losses[k]) == pytest.approx((expected.value, expected.loss), rel=1e-3)


# --- what is kept ---


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize(
    "member", [Member(HARMONIC), Member(HARMONIC, OperatorSet("harmonic", "correlation1", "elu"))], ids=str
)
def test_the_state_that_is_kept_has_the_score_that_is_told(member, held, criterion):
    rows, validation, seen = data(n=90), data(n=55, seed=1) if held else None, []
    tuning = settings(learning_rates=(0.03, 0.003), epochs=(9, 4), dropout=0.2)
    trained, [outcome] = train(
        [member], rows, tuning, None, criterion, 7, validation, results=lambda *actual: seen.append(actual)
    )
    assert outcome.epochs == 13
    assert 0 < outcome.best_epoch <= 13
    [(training, actual)] = seen
    training.trainer.use_best()
    scored = validation or rows
    told = outcome.score.value, outcome.score.loss
    assert told == pytest.approx(score(training.trainer, actual.moments, scored)[:, 0], rel=1e-6)
    block, head = trained.block, trained.head
    block.norm.mean, block.norm.variance = actual.moments[:, 0]
    features = np.concatenate([scored.accepted, block.outputs(scored.x)], axis=1)
    outputs = head.outputs(features).astype(np.float32)
    now = evaluate(criterion, "mse", outputs, scored.target, scored.weight)
    assert told == pytest.approx((now.value, now.loss), rel=1e-4)
    # Statistics of an epoch's batches are near those of all rows.
    exact = score(training.trainer, statistics(training.trainer, training.candidates, rows), scored)
    assert exact[0, 0] == pytest.approx(outcome.score.value, rel=0.1)


def test_the_best_of_all_epochs_is_kept():
    """Longer trainings start like shorter ones, so their best score can only be better."""
    rows, validation = data(n=60), data(n=40, seed=1)
    outcomes = []
    for epochs in range(25):
        tuning = settings(learning_rates=(0.1,), epochs=(epochs,))
        outcomes += train([Member(HARMONIC)], rows, tuning, validation=validation)[1]
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
    exact = follow(Member(HARMONIC), start, rows, settings(learning_rates=(), epochs=()), validation)
    assert outcome.score.value == pytest.approx(exact.scores[0], rel=1e-5)


@pytest.mark.parametrize("loss", ["mse", "custom"])
@pytest.mark.parametrize("held", [False, True])
def test_patience_ends_a_learning_rate_that_no_longer_helps(held, loss):
    rows, validation = data(), data(n=30, seed=1) if held else None
    tuning = {"loss": squared_error if loss == "custom" else loss}
    hopeless = tuning | {"learning_rates": (1e3, 1e4), "epochs": (20, 20)}
    _, [outcome] = train([Member(HARMONIC)], rows, settings(patience=3, **hopeless), validation=validation)
    assert (outcome.best_epoch, outcome.epochs) == (0, 6)
    _, [patient] = train([Member(HARMONIC)], rows, settings(**hopeless), validation=validation)
    assert (patient.best_epoch, patient.epochs) == (0, 40)
    helpful = tuning | {"learning_rates": (1e-4,), "epochs": (12,)}
    _, [outcome] = train([Member(HARMONIC)], rows, settings(patience=3, **helpful))
    assert (outcome.best_epoch, outcome.epochs) == (12, 12)


OVERFLOWING = OperatorSet("quadratic", "sum", "inverse_absolute")


def huge(n=40):
    """Inputs whose squares are not finite in single precision."""
    rows = data(n=n)
    return replace(rows, x=rows.x * np.float32(1e30))


@pytest.mark.parametrize("loss", ["mse", "custom"])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_candidate_that_is_not_finite_never_wins(criterion, loss):
    members = [Member(OVERFLOWING), Member(PERCEPTRON), Member(OVERFLOWING)]
    tuning = settings(loss=squared_error if loss == "custom" else loss, epochs=(3,))
    trained, outcomes = train(members, huge(), tuning, criterion=criterion)
    assert trained.outcome is outcomes[1]
    assert np.isfinite(trained.outcome.score.value)
    assert np.isnan([outcomes[0].score.value, outcomes[2].score.value]).all()
    assert outcomes[0].skipped_batches == outcomes[2].skipped_batches == 6
    assert outcomes[1].skipped_batches == 0


@pytest.mark.parametrize("loss", ["mse", "custom"])
def test_no_finite_candidate_is_an_error_that_says_so(loss):
    reported = []
    tuning = settings(loss=squared_error if loss == "custom" else loss)
    with pytest.raises(
        FloatingPointError, match="^none of the 2 candidates had a finite score; .*scale"
    ) as e:
        train([Member(OVERFLOWING)] * 2, huge(), tuning, report=reported.append)
    assert "\n" not in str(e.value)
    assert len(reported) == 2


@pytest.mark.parametrize("loss", ["mse", "custom"])
def test_batches_with_gradients_that_are_not_finite_are_skipped_and_counted(loss):
    rows, held = data(n=60), data(n=50, seed=1)
    rows.target[5] = np.inf
    tuning = settings(
        loss=squared_error if loss == "custom" else loss,
        epochs=(4,),
        learning_rates=(0.01,),
        weight_decay=0.1,
    )
    member, start = Member(HARMONIC, HARMONIC), start_for(rows)
    trained, [outcome] = train([member], rows, tuning, validation=held)
    assert outcome.skipped_batches == 4  # one of the three batches of every epoch
    assert outcome.best_epoch == 4
    expected = follow(member, start, rows, tuning, held)
    assert (expected.skipped, expected.best_epoch) == (4, 4)
    actual = parameters_of(trained, 2)
    np.testing.assert_allclose(actual[expected.clear], expected.theta[expected.clear], atol=1e-4)


def test_a_candidate_that_sits_a_step_out_does_not_move():
    register_activation("fragile", lambda x: x + 0 * torch.sqrt((50 - x) * (x < 50)))  # no slope above 50
    try:
        rows, held = data(n=60), data(n=50, seed=1)
        rows.x[5] = 1e3
        members = [Member(OperatorSet("multiplication", "sum", "fragile")), Member(HARMONIC)]
        tuning = settings(epochs=(5,), learning_rates=(0.01,), weight_decay=0.3, batch_size=60)
        _, [still, moving] = train(members, rows, tuning, validation=held)
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

        tuning = settings(n_threads=n_threads, dropout=0.1, epochs=(3,))
        trained, outcomes = train(members, rows, tuning, validation=validation, report=report)
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
    for group_size in (2, 3):
        _, outcomes = train(members, rows, settings(dropout=0.2, epochs=(3,)), group_size=group_size)
        assert outcomes == together


def test_the_seed_counts_and_so_does_dropout():
    rows, member = data(), [Member(HARMONIC)]
    tuning = settings(epochs=(3,), learning_rates=(0.01,))
    scores = [train(member, rows, tuning, seed=seed)[1][0].score for seed in (1, 1, 2)]
    assert scores[0] == scores[1] != scores[2]
    for name in ("dropout", "input_dropout"):
        dropped = settings(epochs=(3,), learning_rates=(0.01,), **{name: 0.3})
        assert train(member, rows, dropped, seed=1)[1][0].score != scores[0]


# --- groups, ends and drafts ---


def test_no_group_is_begun_after_the_end():
    members, reported = [Member(s) for s in HIDDENS], []

    def report(outcome):
        reported.append(outcome)
        return len(reported) == 3

    trained, outcomes = train(members, data(), settings(), report=report, group_size=2)
    assert [outcome.member for outcome in outcomes] == members[:4]  # the group of the third one is finished
    assert reported == outcomes
    _, everyone = train(members[:4], data(), settings())
    assert outcomes == everyone
    assert not any(outcome.score.better_than(trained.outcome.score) for outcome in outcomes)


def test_an_end_waits_for_a_candidate_that_is_valid():
    members = [Member(OVERFLOWING), Member(OVERFLOWING), Member(PERCEPTRON), Member(HARMONIC)]
    trained, outcomes = train(members, huge(), settings(), report=lambda outcome: True, group_size=1)
    assert [outcome.member for outcome in outcomes] == members[:3]
    assert trained.outcome is outcomes[2]


class _Cut(Exception):
    pass


class FileLike(Draft):
    """Drafts as files keep them: cut off at some offer, and begun again from what was saved."""

    def __init__(self, cut_at=None, saved=None, place="whole"):
        self.cut_at = cut_at if isinstance(cut_at, list) else [cut_at]
        self.saved, self.place = {} if saved is None else saved, place

    def part(self, number):
        return FileLike(self.cut_at, self.saved, f"part {number}")

    def recall(self, kind):
        if self.place not in self.saved:
            return None
        plain, arrays = self.saved[self.place]
        return decode(kind, plain, {name: array.copy() for name, array in arrays.items()})

    def offer(self, state):
        self._save(state())
        if self.cut_at[0] is not None:
            self.cut_at[0] -= 1
            if self.cut_at[0] == 0:
                raise _Cut

    def finish(self, state):
        self._save(state())

    def _save(self, value):
        plain, arrays = encode(value)
        self.saved[self.place] = plain, {name: array.copy() for name, array in arrays.items()}


@pytest.mark.parametrize("loss", ["mse", squared_error], ids=["native", "reference"])
def test_a_population_that_was_cut_off_goes_on_to_the_same_bits(loss):
    rows, held, members = data(), data(n=40, seed=1), [Member(s) for s in HIDDENS[:5]]
    tuning = settings(
        loss=loss, learning_rates=(0.1, 0.01), epochs=(3, 2), patience=1, dropout=0.2, input_dropout=0.1
    )

    def run(draft, trained_groups):
        return train(
            members,
            rows,
            tuning,
            validation=held,
            group_size=2,
            draft=draft,
            results=lambda training, trained: trained_groups.append(training),
        )

    whole, outcomes = run(Draft(), [])
    cut_at, groups = 0, []
    while True:
        cut_at += 1
        draft = FileLike(cut_at)
        try:
            run(draft, [])
            break
        except _Cut:
            pass
        trained, again = run(FileLike(saved=draft.saved), groups)
        assert again == outcomes
        assert parameters_of(trained, 2).tobytes() == parameters_of(whole, 2).tobytes()
    assert cut_at > 3 * 3  # within groups, and between them
    assert len(groups) < 3 * (cut_at - 1)  # groups that were done are not done again


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tally: tally.numbers.__setitem__(0, 9), "does not belong to these candidates"),
        (lambda tally: tally.numbers.__setitem__(0, 1), "does not belong to these candidates"),
        (lambda tally: tally.outcomes.pop(), "does not belong to these candidates"),
        (lambda tally: setattr(tally, "best", 2), "does not belong to these candidates"),
        (lambda tally: tally.outcomes.reverse(), "does not belong to these candidates"),
        (lambda tally: setattr(tally, "theta", tally.theta[1:]), "the array 'theta' is of shape"),
    ],
)
def test_a_tally_of_other_candidates_is_refused(change, message):
    members, draft = [Member(s) for s in HIDDENS[:3]], FileLike()
    train(members[:2], data(), settings(), draft=draft)
    tally = draft.recall(Tally)
    change(tally)
    draft.finish(lambda: tally)
    with pytest.raises(ValueError, match=message) as error:
        train(members, data(), settings(), draft=draft)
    assert "\n" not in str(error.value)


# --- the reference, for what a user brings ---


@pytest.mark.parametrize("loss", CUSTOM)
@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("criterion", ["loss", "brier"])
def test_the_reference_scores_like_the_engine(held, loss, criterion):
    rows, validation = data(n=50), data(n=40, seed=1) if held else None
    members = PAIRS if loss == "mse" else PAIRS[-len(HIDDENS) :]
    linear = [m for m in members if m.head is None]
    neurons = [m for m in members if m.head is not None]
    for group in filter(None, (linear, neurons)):
        results = []
        for function in (loss, CUSTOM[loss]):
            # A custom loss has no name that says how outputs become probabilities but as logits.
            judged = "loss" if function is squared_error or loss == "mse" else criterion
            tuning = settings(loss=function, batch_size=50, epochs=(5,), weight_decay=0.01, max_norm=1.2)
            results.append(train(group, rows, tuning, criterion=judged, validation=validation))
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


@pytest.mark.parametrize("trainer", TRAINERS)
def test_statistics_of_batches_make_those_of_all_rows(trainer):
    """Where nothing moves, means and variances of equal batches add up to those of their rows."""
    rows = replace(data(n=60), weight=np.ones(60, np.float32))
    candidates = candidates_of([Member(HARMONIC), Member(PERCEPTRON)], start_for(rows), 0.0)
    made = TRAINERS[trainer](candidates, rows, settings(batch_size=5), "loss")
    made.epoch(np.full(2, 1e-30), np.random.default_rng(0))
    exact = statistics(made, candidates, rows)
    actual = made.batch_moments()
    np.testing.assert_allclose(actual[0], exact[0], atol=1e-5)
    np.testing.assert_allclose(actual[1], exact[1], rtol=1e-4)


def test_both_trainers_choose_the_same_operators_on_a_clear_problem():
    rng = np.random.default_rng(0)

    def rows(n):
        x = rng.uniform(-2, 2, (n, 1)).astype(np.float32)
        target = np.sin(3 * x)
        return MemoryRows(x, np.zeros((n, 0), np.float32), target, np.ones(n, np.float32))

    train_rows, held = rows(200), rows(100)
    members = [Member(OperatorSet(nodal, "sum", "identity")) for nodal in ("multiplication", "harmonic")]
    start = draw_start(1, 12, 0, 1, 3.0, np.random.default_rng(0))
    for loss in ("mse", squared_error):
        tuning = settings(loss=loss, learning_rates=(0.01,), epochs=(30,))
        trained, outcomes = train(members, train_rows, tuning, start, validation=held)
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
    tuning = {"epochs": (3,), "learning_rates": (0.01,), "batch_size": 60}
    trained, outcomes = train(members, rows, settings(**tuning))
    compiled, known = train(theirs, rows, settings(**tuning))
    for a, b in zip(outcomes, known, strict=True):
        assert a.best_epoch == 3
        assert a.score.value == pytest.approx(b.score.value, rel=1e-3)
    best = outcomes.index(trained.outcome)
    assert trained.block.operator_set == members[best].hidden
    assert trained.head.operator_set == members[best].head
    assert best == known.index(compiled.outcome)
    _, linear = train([Member(own), Member(mixed)], rows, settings(**tuning))
    assert all(outcome.best_epoch == 3 for outcome in linear)


def test_one_custom_operator_takes_its_group_along(twins):
    """Who trains a candidate does not matter: all see the same batches."""
    rows, own = data(), OperatorSet("wave", "sum", "tanh")
    members = [Member(PERCEPTRON), Member(own), Member(HARMONIC)]
    tuning = settings(epochs=(3,), learning_rates=(0.01,), dropout=0.2)
    kinds = {}
    for group_size in (3, 1):
        trainers = kinds[group_size] = []
        _, outcomes = train(
            members,
            rows,
            tuning,
            group_size=group_size,
            results=lambda training, trained, trainers=trainers: trainers.append(type(training.trainer)),
        )
        assert outcomes[1].score.value == pytest.approx(outcomes[2].score.value, rel=1e-4)
        _, [alone] = train(members[:1], rows, tuning)
        assert outcomes[0].score.value == pytest.approx(alone.score.value, rel=1e-4)
    assert kinds == {3: [ReferenceTrainer], 1: [NativeTrainer, ReferenceTrainer, NativeTrainer]}


def test_a_custom_optimizer_trains():
    rows, members = data(), [Member(s, HARMONIC) for s in HIDDENS]
    tuning = {"loss": squared_error, "weight_decay": 0.01, "epochs": (3,)}
    named = train(members, rows, settings(**tuning))[1]
    adam = train(
        members, rows, settings(optimizer=lambda groups: torch.optim.Adam(groups, eps=1e-7), **tuning)
    )[1]
    for a, b in zip(adam, named, strict=True):
        assert a.score.value == pytest.approx(b.score.value, rel=1e-5)
    gradient = train(
        members, rows, settings(optimizer=lambda groups: torch.optim.SGD(groups, lr=1.0), **tuning)
    )[1]
    assert all(a.score != b.score for a, b in zip(gradient, named, strict=True))
    tuning["learning_rates"] = (0.05,)
    quicker = train(
        members, rows, settings(optimizer=lambda groups: torch.optim.SGD(groups, lr=1.0), **tuning)
    )[1]
    assert all(outcome.best_epoch > 0 for outcome in quicker)


@pytest.mark.parametrize("head", [None, HARMONIC], ids=str)
def test_groups_of_candidates_change_nothing(head):
    rows, members = data(n=300), [Member(s, head) for s in HIDDENS]
    tuning = settings(loss=squared_error, dropout=0.2, input_dropout=0.1, epochs=(3,))
    whole, first = train(members, rows, tuning)
    parts, second = train(members, rows, tuning, group_size=2)
    for a, b in zip(first, second, strict=True):
        assert (a.member, a.best_epoch, a.epochs) == (b.member, b.best_epoch, b.epochs)
        assert b.score.value == pytest.approx(a.score.value, rel=1e-5)
    np.testing.assert_allclose(parameters_of(parts, 2), parameters_of(whole, 2), atol=1e-5)


def test_the_reference_holds_few_evaluations_at_once(monkeypatch):
    """However many rows there are: scores and statistics are taken piece by piece."""
    rows, sizes = data(n=2000), []

    def watched(y, w):
        z = torch.sin(w * y)
        sizes.append(z.numel())
        return z

    register_nodal("watched", watched)
    try:
        members = [Member(OperatorSet("watched", "sum", a), HARMONIC) for a in ACTIVATIONS]
        bound = len(members) * 20 * 4 * 5  # those of a step
        monkeypatch.setattr(reference, "_EVALUATIONS", bound)
        train(members, rows, settings(), validation=data(n=1000, seed=1))
    finally:
        unregister("nodal", "watched")
    assert 0 < max(sizes) <= bound
