"""What training promises, of whatever candidates: the best state, its statistics, the same bits again."""

from __future__ import annotations

import gc
import json
import weakref
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from opgrow import PERCEPTRON, OperatorSet
from opgrow.growth.checkpoints.codec import decode, encode
from opgrow.operators import register_activation, unregister
from opgrow.training.candidates import Candidates
from opgrow.training.draft import Draft
from opgrow.training.native import NativeTrainer
from opgrow.training.schedule import TrainingState
from opgrow.training.scores import evaluate
from opgrow.training.train import score, statistics, train
from tests.plain_training import plain_training
from tests.training.problems import HARMONIC, TRAINERS, data, network, settings, training_of

pytestmark = pytest.mark.cpu

TWO_LAYERS = [[HARMONIC, OperatorSet("gaussian", "maximum", "elu")], [PERCEPTRON]]
#: Networks of equal sizes.
ALIKE = [
    network([[s]], seed=seed, width=4)
    for seed, s in enumerate(
        (
            HARMONIC,
            PERCEPTRON,
            OperatorSet("dog", "correlation1", "relu"),
            OperatorSet("gaussian", "sum", "elu"),
        )
    )
]


def squared_error(outputs, target):
    return ((outputs - target) ** 2).mean(dim=1)


def cross_entropy(outputs, target):
    return nn.functional.cross_entropy(outputs, target, reduction="none")


def outputs_of(layers, head, rows):
    x = rows.x
    for layer in layers:
        x = layer.outputs(x)
    return head.outputs(np.concatenate([rows.accepted, x], axis=1)).astype(np.float32)


def run(sets, rows, criterion="loss", validation=None, seed=0, on_epoch=lambda epoch: None, **changes):
    """Train one network: its layers and head in their best state, and what came of it."""
    layers, head = network(sets, n_frozen=rows.n_accepted)
    training = training_of(
        [(layers, head)], rows, settings(**changes), validation, seed, criterion, on_epoch=on_epoch
    )
    trained = train(training)
    training.candidates.shapes[0].restore(trained.theta[0], trained.moments[:, 0], layers, head)
    return layers, head, trained.outcomes[0]


def bits(trained):
    """All of a result, to the last bit."""
    return trained.theta.tobytes(), trained.moments.tobytes(), repr(trained.outcomes)


# --- whole trainings ---


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("trainer", TRAINERS)
def test_a_training_is_that_of_double_precision(trainer, exact, held):
    rows, scored = data(n=130), data(n=70, seed=1) if held else None
    tuning = settings(
        learning_rates=(0.004, 0.001), epochs=(4, 3), dropout=0.2, weight_decay=0.01, max_norm=1.3
    )
    for sets in ([[HARMONIC]], [[HARMONIC, PERCEPTRON], [HARMONIC]]):
        layers, head = network(sets)
        expected = plain_training(layers, head, rows, tuning, scored, seed=3, exact=exact)
        trained = train(training_of([(layers, head)], rows, tuning, scored, 3, exact=exact, trainer=trainer))
        [outcome] = trained.outcomes
        assert [outcome.start.value, *(epoch.score.value for epoch in outcome.curve)] == pytest.approx(
            expected.scores, rel=1e-5
        )
        assert [epoch.train_loss for epoch in outcome.curve] == pytest.approx(expected.losses, rel=1e-5)
        assert outcome.best_epoch == expected.best_epoch
        np.testing.assert_allclose(
            trained.theta[0][expected.clear], expected.theta[expected.clear], atol=2e-5
        )


@pytest.mark.parametrize("trainer", TRAINERS)
def test_an_epoch_can_be_scored_as_training_sees_it(trainer):
    """Before the first step, a batch of all rows without dropout has the outputs of the start."""
    rows = data(n=90, weighted=False)  # the statistics of batches have no weights
    networks = [network([[HARMONIC]], seed=seed) for seed in range(3)]
    during = settings(epochs=(2,), batch_size=90, epoch_score="during")
    trained = train(training_of(networks, rows, during, criterion="accuracy", trainer=trainer))
    for outcome in trained.outcomes:
        first, second = outcome.curve
        assert first.score.value == pytest.approx(outcome.start.value, rel=1e-6)
        assert first.score.loss == first.train_loss
        assert outcome.best_epoch == (2 if second.score.better_than(first.score) else 1)
    by_loss = train(training_of(networks, rows, during, trainer=trainer)).outcomes[0]
    assert [epoch.score.value for epoch in by_loss.curve] == [epoch.train_loss for epoch in by_loss.curve]


def test_dropout_is_felt_while_an_epoch_is_scored():
    rows, networks = data(n=400, weighted=False), [network([[HARMONIC], [PERCEPTRON]], width=9)]
    curves = [
        train(training_of(networks, rows, settings(epochs=(30,), dropout=0.5, epoch_score=when), seed=2))
        .outcomes[0]
        .curve
        for when in ("during", "after")
    ]
    during, after = ([epoch.score.loss for epoch in curve] for curve in curves)
    assert np.mean(during) > np.mean(after)


@pytest.mark.parametrize("trainer", TRAINERS)
def test_batches_count_what_they_get_right_with_the_weights_of_rows(trainer):
    rows = data(n=64)
    both = [
        training_of([network([[HARMONIC]])], rows, settings(epochs=(4,), epoch_score="during"), trainer=name)
        for name in (trainer, "native")
    ]
    for training in both:
        train(training)
    ours, native = (training.trainer.batch_accuracy() for training in both)
    assert 0 < ours[0] < 1
    np.testing.assert_allclose(ours, native, atol=1e-6)


@pytest.mark.parametrize("criterion", ["loss", "accuracy", "brier"])
@pytest.mark.parametrize("held", [False, True])
def test_the_trained_network_has_the_best_score_of_the_curve(criterion, held):
    rows = data(n=120)
    validation = data(n=60, seed=1) if held else None
    layers, head, actual = run(TWO_LAYERS, rows, criterion, validation, epochs=(12,))
    scored = validation or rows
    now = evaluate(criterion, "cross_entropy", outputs_of(layers, head, scored), scored.target, scored.weight)
    assert now.value == pytest.approx(actual.best.value, rel=1e-4, abs=1e-6)
    assert now.loss == pytest.approx(actual.best.loss, rel=1e-4)
    scores = [actual.start, *(epoch.score for epoch in actual.curve)]
    assert actual.best == scores[actual.best_epoch]
    assert not any(score.better_than(actual.best) for score in scores)
    assert actual.best_epoch > 0


@pytest.mark.parametrize("loss", ["cross_entropy", "mse", squared_error])
def test_a_huge_learning_rate_leaves_the_start(loss):
    rows = data(n=100)
    layers, head, _ = run([[HARMONIC]], rows, epochs=(40,), loss=loss)
    tuning = settings(loss=loss, learning_rates=(1e3,), epochs=(3,))
    training = training_of([(layers, head)], rows, tuning)
    trained = train(training)
    [actual] = trained.outcomes
    assert actual.best_epoch == 0
    assert actual.best == actual.start
    np.testing.assert_array_equal(trained.theta, training.candidates.theta)
    np.testing.assert_allclose(trained.moments, training.candidates.moments, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("loss", ["cross_entropy", cross_entropy], ids=["native", "reference"])
@pytest.mark.parametrize("operator_set", [HARMONIC, OperatorSet("dog", "correlation1", "relu")], ids=str)
def test_statistics_are_those_of_the_whole_training_set(operator_set, loss):
    rows = data(n=130)
    layers, _, actual = run([[operator_set], [PERCEPTRON]], rows, validation=data(n=50, seed=1), loss=loss)
    assert actual.best_epoch > 0
    x = rows.x
    for layer in layers:
        for block in layer:
            raw = block.features(x).astype(np.float64)
            mean = np.average(raw, axis=0, weights=rows.weight)
            variance = np.average((raw - mean) ** 2, axis=0, weights=rows.weight)
            np.testing.assert_allclose(block.norm.mean, mean, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(block.norm.variance, variance, rtol=1e-3)
        x = layer.outputs(x)


def test_variances_beyond_single_precision_are_not_numbers():
    """Divided by an infinite deviation a feature would be 0, and a score would not show it."""
    rows = data(n=50)
    rows.x[:] *= np.float32(1e30)
    for name in TRAINERS:
        linear = [network([[OperatorSet("multiplication", "sum", "identity")]])]
        training = training_of(linear, rows, settings(), trainer=name)
        moments = statistics(training.trainer, training.candidates, rows)
        assert np.isfinite(moments[0]).all()
        assert np.isnan(moments[1]).all()
        assert np.isnan(score(training.trainer, moments, rows)[0]).all()


def test_scores_are_taken_on_validation_data():
    rows, held = data(n=80), data(n=40, seed=1)
    layers, head, actual = run([[HARMONIC]], rows, validation=held, epochs=(0,))
    start = evaluate("loss", "cross_entropy", outputs_of(layers, head, held), held.target, held.weight)
    assert actual.start.value == pytest.approx(start.value, rel=1e-5)
    other = evaluate("loss", "cross_entropy", outputs_of(layers, head, rows), rows.target, rows.weight)
    assert actual.start.value != pytest.approx(other.value, rel=1e-3)


def test_the_schedule_is_followed_and_every_epoch_reported():
    seen = []
    *_, actual = run([[HARMONIC]], data(), learning_rates=(0.1, 0.01), epochs=(2, 3), on_epoch=seen.append)
    assert [epoch.learning_rate for epoch in actual.curve] == [0.1, 0.1, 0.01, 0.01, 0.01]
    assert [epoch.number for epoch in actual.curve] == [1, 2, 3, 4, 5]
    assert seen == actual.curve


def test_epochs_at_a_rate_of_zero_are_left_out():
    *_, actual = run([[HARMONIC]], data(), learning_rates=(0.0, 0.01), epochs=(3, 2))
    assert [epoch.learning_rate for epoch in actual.curve] == [0.01, 0.01]
    *_, alone = run([[HARMONIC]], data(), learning_rates=(0.01,), epochs=(2,))
    assert actual == alone


@pytest.mark.parametrize("loss", ["cross_entropy", cross_entropy], ids=["native", "reference"])
def test_patience_ends_a_learning_rate_that_no_longer_helps(loss):
    hopeless = {"learning_rates": (1e3, 1e4), "epochs": (20, 20), "loss": loss}
    layers, head, _ = run([[HARMONIC]], data(), epochs=(30,), loss=loss)
    lengths = []
    for patience in (3, None):
        training = training_of([(layers, head)], data(), settings(patience=patience, **hopeless))
        [actual] = train(training).outcomes
        assert actual.best_epoch == 0
        lengths.append([epoch.learning_rate for epoch in actual.curve])
    assert lengths == [[1e3] * 3 + [1e4] * 3, [1e3] * 20 + [1e4] * 20]
    *_, helped = run([[HARMONIC]], data(), learning_rates=(1e-3,), epochs=(12,), patience=3, loss=loss)
    assert helped.best_epoch == len(helped.curve) == 12


@pytest.mark.parametrize("loss", ["mse", squared_error], ids=["native", "reference"])
def test_batches_with_gradients_that_are_not_finite_are_skipped_and_counted(loss):
    rows, held = data(n=96), data(n=50, seed=1)
    rows.target[5] = np.inf
    layers, head, actual = run([[HARMONIC]], rows, loss=loss, batch_size=32, epochs=(4,), validation=held)
    assert actual.skipped_batches == 4  # one of the three batches of every epoch
    assert all(np.isfinite(part.weight).all() for part in (*layers[0], head))
    assert np.isfinite(actual.best.value)
    assert actual.best_epoch > 0  # the other batches are learnt from
    expected = plain_training(*network([[HARMONIC]]), rows, settings(loss=loss, epochs=(4,)), held)
    assert (expected.skipped, expected.best_epoch) == (4, actual.best_epoch)
    assert [epoch.score.value for epoch in actual.curve] == pytest.approx(expected.scores[1:], rel=1e-3)


@pytest.mark.parametrize("trainer", TRAINERS)
def test_a_listener_ends_the_training_of_all_candidates(trainer):
    seen = []

    def stop(epoch):
        seen.append(epoch)
        return epoch.number == 3

    rows, tuning = data(), settings(epochs=(10,))
    trained = train(training_of(ALIKE, rows, tuning, on_epoch=stop, trainer=trainer))
    shorter = train(training_of(ALIKE, rows, replace(tuning, epochs=(3,)), trainer=trainer))
    assert bits(trained) == bits(shorter)
    assert seen == trained.outcomes[0].curve


def test_the_listener_hears_of_the_first_candidate_that_trains():
    rows, held = data(n=100), data(n=60, seed=1)
    seen = []
    tuning = settings(learning_rates=(0.3, 0.02), epochs=(15, 15), patience=2)
    outcomes = train(training_of(ALIKE[::-1], rows, tuning, held, on_epoch=seen.append)).outcomes
    lengths = [len(outcome.curve) for outcome in outcomes]
    assert lengths[0] < max(lengths)  # the first one rests before the last
    expected = []
    for number in range(1, max(lengths) + 1):
        leader = next(k for k, length in enumerate(lengths) if length >= number)
        expected.append(outcomes[leader].curve[number - 1])
    assert seen == expected


def test_zero_epochs_change_nothing_but_statistics():
    layers, head, actual = run([[HARMONIC]], data(), learning_rates=(), epochs=())
    fresh, fresh_head = network([[HARMONIC]])
    assert actual.curve == []
    assert np.array_equal(layers[0].blocks[0].weight, fresh[0].blocks[0].weight)
    assert np.array_equal(head.weight, fresh_head.weight)
    assert not np.allclose(layers[0].blocks[0].norm.mean, fresh[0].blocks[0].norm.mean)


# --- what a user brings ---


@pytest.mark.parametrize(("name", "function"), [("cross_entropy", cross_entropy), ("mse", squared_error)])
def test_a_custom_loss_gives_the_result_of_the_named_one(name, function):
    rows = data(n=100)
    first = run([[HARMONIC]], rows, loss=name, learning_rates=(0.003,), dropout=0.1, input_dropout=0.1)
    second = run([[HARMONIC]], rows, loss=function, learning_rates=(0.003,), dropout=0.1, input_dropout=0.1)
    for a, b in zip(first[2].curve, second[2].curve, strict=True):
        assert a.score.value == pytest.approx(b.score.value, rel=1e-3)
        assert a.train_loss == pytest.approx(b.train_loss, rel=1e-3)
    np.testing.assert_allclose(
        outputs_of(*first[:2], rows), outputs_of(*second[:2], rows), rtol=0.01, atol=0.01
    )


def test_a_custom_optimizer_gives_the_result_of_the_named_one():
    rows = data(n=100)
    tuning = {"loss": cross_entropy, "weight_decay": 0.01, "max_norm": 1.5}
    *_, named = run([[HARMONIC]], rows, **tuning)
    *_, custom = run(
        [[HARMONIC]], rows, optimizer=lambda groups: torch.optim.Adam(groups, eps=1e-7), **tuning
    )
    for a, b in zip(named.curve, custom.curve, strict=True):
        assert a.score.value == pytest.approx(b.score.value, rel=1e-5)
    *_, other = run([[HARMONIC]], rows, optimizer=lambda groups: torch.optim.SGD(groups, lr=1.0), **tuning)
    assert other.curve != custom.curve
    assert other.best.value < other.start.value


def test_what_is_no_optimizer_is_refused():
    with pytest.raises(ValueError, match="^optimizer must return a torch optimiser, and returned a list$"):
        run([[HARMONIC]], data(), optimizer=lambda groups: list(groups))


def test_custom_operators_are_tuned():
    register_activation("swish", nn.functional.silu)
    try:
        rows = data(n=100)
        *_, actual = run([[OperatorSet("multiplication", "sum", "swish")]], rows, epochs=(10,))
        assert actual.best.value < 0.95 * actual.start.value
    finally:
        unregister("activation", "swish")


@pytest.mark.parametrize("loss", ["cross_entropy", cross_entropy], ids=["native", "reference"])
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


# --- several candidates ---


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_candidates_side_by_side_are_what_each_is_alone(n_threads, exact):
    """To the last bit, on any number of threads, with dropouts of their own, at rest at their own times."""
    rows, held = data(n=90), data(n=70, seed=1, n_threads=n_threads)
    tuning = settings(
        learning_rates=(0.1, 0.01),
        epochs=(8, 6),
        patience=2,
        input_dropout=0.1,
        weight_decay=0.01,
        max_norm=1.4,
    )
    dropouts = [0.0, 0.3, 0.3, 0.1]
    rows = replace(rows, n_threads=n_threads)
    together = train(
        training_of(
            ALIKE,
            rows,
            replace(tuning, n_threads=n_threads),
            held,
            dropouts=dropouts,
            exact=exact,
            trainer="native",
        )
    )
    lengths = set()
    for k, (candidate, dropout) in enumerate(zip(ALIKE, dropouts, strict=True)):
        single = train(
            training_of([candidate], rows, tuning, held, dropouts=[dropout], exact=exact, trainer="native")
        )
        assert single.theta.tobytes() == together.theta[k].tobytes()
        assert single.moments.tobytes() == together.moments[:, k].tobytes()
        assert single.outcomes == [together.outcomes[k]]
        lengths.add(len(together.outcomes[k].curve))
    assert len(lengths) > 1


def test_threads_within_one_candidate_change_nothing():
    """Its statistics and scores are taken in pieces of rows."""
    tuning = settings(epochs=(2,), batch_size=500)
    results = []
    for n_threads in (1, 2):
        rows = data(n=9000, n_threads=n_threads)
        training = training_of([network(TWO_LAYERS)], rows, replace(tuning, n_threads=n_threads))
        results.append(bits(train(training)))
    assert results[0] == results[1]


def test_the_reference_trains_candidates_side_by_side_as_each_alone():
    """But for rounding, as tensors of other sizes are multiplied in another order."""
    rows, held = data(n=90), data(n=70, seed=1)
    tuning = settings(learning_rates=(0.003,), epochs=(4,), weight_decay=0.01, max_norm=1.4)
    dropouts = [0.0, 0.3, 0.3, 0.1]
    together = train(training_of(ALIKE, rows, tuning, held, dropouts=dropouts, trainer="reference"))
    for k, (candidate, dropout) in enumerate(zip(ALIKE, dropouts, strict=True)):
        single = train(training_of([candidate], rows, tuning, held, dropouts=[dropout], trainer="reference"))
        for a, b in zip(single.outcomes[0].curve, together.outcomes[k].curve, strict=True):
            assert a.score.value == pytest.approx(b.score.value, rel=1e-4)


# --- cut off, and resumed ---


class _Cut(Exception):
    pass


class CutDraft(Draft):
    """Ends the training after some epoch, with its state as a file would have it."""

    def __init__(self, after):
        self.after, self.count, self.state = after, 0, None

    def offer(self, state):
        self.count += 1
        if self.count == self.after:
            self.state = through_a_file(state())
            raise _Cut


class Recalled(Draft):
    """What a training is resumed from, and ends with."""

    def __init__(self, state):
        self.state, self.finished = state, None

    def recall(self, kind):
        assert kind is TrainingState
        return self.state

    def finish(self, state):
        self.finished = through_a_file(state())


def through_a_file(state):
    plain, arrays = encode(state)
    copies = {name: array.copy() for name, array in arrays.items()}
    return decode(TrainingState, json.loads(json.dumps(plain)), copies)


def adam(groups):
    return torch.optim.Adam(groups, eps=1e-7, amsgrad=True)


RESUMED = {
    "native": {"trainer": "native"},
    "native, statistics of batches": {"trainer": "native", "exact": False},
    "reference": {"trainer": "reference"},
    "reference, statistics of batches": {"trainer": "reference", "exact": False},
    "user's optimiser": {"trainer": "reference", "optimizer": adam},
}


def training_for_resuming(draft, trainer, exact=True, **more):
    rows, held = data(n=90), data(n=70, seed=1)
    tuning = settings(
        learning_rates=(0.1, 0.01),
        epochs=(5, 4),
        patience=2,
        batch_size=30,
        input_dropout=0.1,
        weight_decay=0.01,
        max_norm=1.4,
        **more,
    )
    dropouts = [0.0, 0.3, 0.3, 0.1]
    return training_of(
        ALIKE, rows, tuning, held, dropouts=dropouts, exact=exact, draft=draft, trainer=trainer
    )


@pytest.mark.parametrize("how", RESUMED.values(), ids=RESUMED)
def test_a_training_that_was_cut_off_goes_on_to_the_same_bits(how):
    whole = train(training_for_resuming(Draft(), **how))
    lengths = [len(outcome.curve) for outcome in whole.outcomes]
    assert min(lengths) < max(lengths)  # some candidates rest while others go on
    for after in range(1, max(lengths) + 1):
        draft = CutDraft(after)
        with pytest.raises(_Cut):
            train(training_for_resuming(draft, **how))
        resumed = train(training_for_resuming(Recalled(draft.state), **how))
        assert bits(resumed) == bits(whole), after


def test_a_training_that_was_finished_is_not_done_again():
    first = Recalled(None)
    whole = train(training_for_resuming(first, "native"))
    assert "theta" not in first.finished.arrays  # nothing is kept that a finished training does not need
    training = training_for_resuming(Recalled(first.finished), "native")
    training.trainer.epoch = lambda *arguments: pytest.fail("trained again")
    assert bits(train(training)) == bits(whole)


def test_a_training_that_was_ended_stays_so():
    rows, tuning = data(), settings(epochs=(10,))
    first = Recalled(None)
    stopped = train(training_of(ALIKE, rows, tuning, draft=first, on_epoch=lambda epoch: epoch.number == 3))
    training = training_of(ALIKE, rows, tuning, draft=Recalled(first.finished))
    assert bits(train(training)) == bits(stopped)


def test_what_cannot_be_saved_is_not():
    """An optimiser that remembers more than tensors like its parameters."""
    states = []

    class Asking(Draft):
        def offer(self, state):
            states.append(state())

    def lbfgs_like(groups):
        optimizer = torch.optim.SGD(groups, lr=0.1, momentum=0.9)
        parameter = optimizer.param_groups[0]["params"][0]
        optimizer.state[parameter]["history"] = torch.zeros(7)
        return optimizer

    train(training_of(ALIKE[:1], data(), settings(optimizer=lbfgs_like, epochs=(2,)), draft=Asking()))
    assert states == [None, None]


def saved_state(**how):
    draft = CutDraft(2)
    with pytest.raises(_Cut):
        train(training_for_resuming(draft, **how))
    return draft.state


def without(name):
    return lambda state: state.arrays.pop(name)


def put(name, values):
    return lambda state: state.arrays.__setitem__(name, values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without("best"), "the array 'best' is missing, expected shape"),
        (without("moments"), "the array 'moments' is missing"),
        (without("first"), "the array 'first' is missing"),
        (without("steps"), "the array 'steps' is missing"),
        (
            put("theta", np.zeros((4, 3), np.float32)),
            r"the array 'theta' is of shape \(4, 3\) and type float32",
        ),
        (put("second", np.zeros((4, 43))), "the array 'second' is of shape .* and type float64"),
        (put("moments", np.zeros((2, 3, 4), np.float32)), r"the array 'moments' is of shape \(2, 3, 4\)"),
        (lambda state: setattr(state, "rng", "{}"), "the state of the random numbers is not valid"),
        (lambda state: setattr(state, "rng", "no json"), "the state of the random numbers is not valid"),
        (lambda state: setattr(state, "rng", "[1]"), "the state of the random numbers is not valid"),
        (lambda state: setattr(state.schedule, "criterion", "beauty"), "the criterion is 'beauty'"),
        (lambda state: setattr(state.schedule, "stage", np.full(4, 7)), "the stages .* are not those"),
    ],
)
@pytest.mark.parametrize("trainer", TRAINERS)
def test_a_state_of_something_else_is_refused_in_one_sentence(change, message, trainer):
    state = saved_state(trainer=trainer)
    change(state)
    with pytest.raises(ValueError, match=message) as error:
        train(training_for_resuming(Recalled(state), trainer))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("key", "values", "message"),
    [
        ("optimizer.9.0.exp_avg", np.zeros((5, 4), np.float32), "belongs to no parameter"),
        ("optimizer.0.99.exp_avg", np.zeros((5, 4), np.float32), "belongs to no parameter"),
        ("optimizer.x", np.zeros(1, np.float32), "belongs to no parameter"),
        ("optimizer.0.0.exp_avg", np.zeros((4, 4), np.float32), r"has shape \(4, 4\), expected \(5, 4\)"),
    ],
)
def test_what_another_optimizer_remembers_is_refused(key, values, message):
    how = {"trainer": "reference", "optimizer": adam}
    state = saved_state(**how)
    state.arrays[key] = values
    with pytest.raises(ValueError, match=f"the array '{key}' {message}"):
        train(training_for_resuming(Recalled(state), **how))


# --- memory ---


def test_rows_that_have_been_summed_are_not_held():
    """Rows that are read in chunks pass through memory."""
    rows, tuning = data(), settings()
    candidates = Candidates.of_networks(ALIKE, rows.n_accepted, [0.0] * len(ALIKE))
    trainer = NativeTrainer(candidates, rows, tuning, "loss")
    chunk = rows.training_rows()
    trainer.feature_sums(chunk, candidates.moments, 0)
    trainer.score_sums(chunk, candidates.moments)
    gone = weakref.ref(chunk)
    del chunk
    gc.collect()
    assert gone() is None
