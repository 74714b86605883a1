"""The growth loop: what is kept, what is thrown away, and what it tells."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from opgrow.growth import methods
from opgrow.growth.events import EpochFinished, GrowthFinished, GrowthStarted, PhaseStarted, StepFinished
from opgrow.growth.loop import GrownLayer, Growth, Method
from opgrow.growth.methods.hemlgop import BlockSettings
from opgrow.growth.search import SearchSettings
from opgrow.growth.settings import GrowthSettings
from opgrow.network import Block, Layer, Linear
from opgrow.operators import operator_sets
from opgrow.rows.problem import Problem
from opgrow.training.scores import Score, evaluate
from opgrow.training.settings import TuningSettings
from tests.networks import are_same

pytestmark = pytest.mark.cpu

SETS = tuple(
    operator_sets(
        nodal=("multiplication", "harmonic", "gaussian"), pool=("sum", "maximum"), activation=("tanh", "relu")
    )
)
FAMILY = [methods.HEMLGOP, methods.HOMLGOP, methods.HEMLRN, methods.HOMLRN]


def problem(n=150, seed=0, validation=None):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4)).astype(np.float32)
    labels = (x[:, 0] * x[:, 1] > 0).astype(int) + (np.sin(2 * x[:, 2]) + 0.3 * rng.normal(size=n) > 0.3)
    return Problem(x, np.eye(3, dtype=np.float32)[labels], np.ones(n, np.float32), validation)


def settings(loss="cross_entropy", fine_tune=0, fine_rate=1e-3, **changes):
    tuning = TuningSettings(loss=loss, learning_rates=(0.01,), epochs=(3,))
    values = {
        "sets": SETS,
        "search": SearchSettings(ridges=(0.1, 1.0)),
        "tuning": tuning,
        "fine_tuning": replace(tuning, learning_rates=(fine_rate,), epochs=(fine_tune,)),
        "logits": loss == "cross_entropy",
        "n_min": 6,
        "n_step": 3,
        "max_neurons": 12,
        "max_layers": 2,
    }
    return BlockSettings(**(values | changes))


def grow(growth_settings=None, method=methods.HEMLGOP, seed=5, data=None):
    events = []
    growth = method.growth(data or problem(), method, growth_settings or settings(), seed, events.append)
    network = growth.run()
    return network, growth, events


def widths(network):
    return [[block.n_neurons for block in layer] for layer in network.layers]


def score_of(network, data, criterion="loss", loss="cross_entropy"):
    outputs = network.outputs(data.x)
    return evaluate(criterion, loss, outputs, data.target, data.weight)


def steps(growth, kind):
    return [step for step in growth.steps if step.kind == kind]


@pytest.mark.parametrize("method", FAMILY, ids=lambda m: m.name)
def test_a_rejected_layer_leaves_no_trace(method):
    network, growth, _ = grow(settings(layer_threshold=np.inf), method)
    alone, _, _ = grow(settings(max_layers=1), method)
    assert [step.accepted for step in steps(growth, "layer")] == [True, False]
    assert len(network.layers) == 1
    assert are_same(network, alone)


@pytest.mark.parametrize("method", FAMILY, ids=lambda m: m.name)
def test_a_rejected_block_leaves_no_trace(method):
    network, growth, _ = grow(settings(block_threshold=np.inf, max_layers=1), method)
    alone, _, _ = grow(settings(max_neurons=6, max_layers=1), method)
    assert [step.accepted for step in steps(growth, "block")] == [True, False]
    assert widths(network) == [[6]]
    assert are_same(network, alone)


def test_infinite_thresholds_give_one_block_and_one_layer():
    network, growth, _ = grow(settings(block_threshold=np.inf, layer_threshold=np.inf))
    assert widths(network) == [[6]]
    assert [(s.kind, s.layer, s.block, s.accepted) for s in growth.steps] == [
        ("block", 1, 1, True),
        ("block", 1, 2, False),
        ("layer", 1, 0, True),
        ("block", 2, 1, True),
        ("block", 2, 2, False),
        ("layer", 2, 0, False),
    ]


@pytest.mark.parametrize("method", FAMILY, ids=lambda m: m.name)
@pytest.mark.parametrize("criterion", ["loss", "accuracy", "brier"])
def test_scores_of_accepted_blocks_are_monotone(method, criterion):
    """The paper's Eq. 12: every accepted block and layer improves by its threshold at least."""
    growth_settings = settings(criterion=criterion, max_neurons=24)
    _, growth, _ = grow(growth_settings, method)
    before_layer = None
    for number in {step.layer for step in growth.steps}:
        before = None
        for step in steps(growth, "block"):
            if step.layer != number:
                continue
            if before is None:
                assert step.accepted
                assert step.improvement is None
            else:
                assert step.improvement == pytest.approx(step.score.improvement_over(before))
                assert step.accepted == (step.improvement >= growth_settings.block_threshold)
            if step.accepted:
                assert before is None or step.score.better_than(before)
                before = step.score
        layer = next(s for s in steps(growth, "layer") if s.layer == number)
        assert layer.score == before
        assert layer.accepted == (before_layer is None or before.improvement_over(before_layer) >= 1e-4)
        before_layer = before


@pytest.mark.parametrize(
    ("n_min", "n_step", "max_neurons", "wanted"),
    [
        (6, 4, 13, [6, 4, 3]),
        (6, 3, 12, [6, 3, 3]),
        (6, 3, 4, [4]),
        (6, 3, 6, [6]),
        (1, 1, 3, [1, 1, 1]),
        (2, 9, 5, [2, 3]),
    ],
)
def test_widths_and_depth_are_bounded(n_min, n_step, max_neurons, wanted):
    growth_settings = settings(
        n_min=n_min,
        n_step=n_step,
        max_neurons=max_neurons,
        max_layers=3,
        block_threshold=-np.inf,
        layer_threshold=-np.inf,
        criterion="loss",
    )
    network, growth, _ = grow(growth_settings, methods.HOMLRN)
    assert widths(network) == [wanted] * 3
    assert all(step.accepted for step in growth.steps)


def test_a_perfect_fit_ends_the_growth():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 3)).astype(np.float32)
    x[:, 0] += 4 * np.sign(x[:, 0])
    data = Problem(x, np.eye(2, dtype=np.float32)[(x[:, 0] > 0).astype(int)], np.ones(100, np.float32))
    network, growth, _ = grow(settings(criterion="accuracy"), data=data)
    assert growth.score.value == 1.0
    assert [step.kind for step in growth.steps] == ["block", "layer"]
    assert widths(network) == [[6]]


def test_a_target_ends_the_growth():
    growth_settings = settings(
        criterion="accuracy", block_threshold=-np.inf, layer_threshold=-np.inf, max_layers=3
    )
    _, free, _ = grow(growth_settings)
    first = steps(free, "block")[0].score.value
    _, growth, _ = grow(replace(growth_settings, target=first))
    assert [(step.kind, step.layer) for step in growth.steps] == [("block", 1), ("layer", 1)]
    deeper = steps(free, "block")
    wanted = max(step.score.value for step in deeper if step.layer <= 2)
    _, growth, _ = grow(replace(growth_settings, target=wanted))
    assert growth.score.value >= wanted
    assert len(growth.layers) == next(step.layer for step in deeper if step.score.value >= wanted)
    _, growth, _ = grow(replace(growth_settings, target=1.01))
    assert [step.score for step in growth.steps] == [step.score for step in free.steps]


def always():
    return {"block_threshold": -np.inf, "layer_threshold": -np.inf}


@pytest.mark.parametrize("method", FAMILY, ids=lambda m: m.name)
def test_homogeneous_methods_search_only_a_layers_first_block(method):
    network, growth, _ = grow(settings(**always()), method)
    for step in steps(growth, "block"):
        searched = {c.operator_set for c in step.candidates}
        if method.search_every_block or step.block == 1:
            assert len(searched) > 1
        else:
            first = next(s for s in steps(growth, "block") if (s.layer, s.block) == (step.layer, 1))
            assert searched == {first.operator_set}
    if not method.search_every_block:
        assert all(len({block.operator_set for block in layer}) == 1 for layer in network.layers)


def test_heterogeneous_layers_can_mix_operators():
    mixed = [
        len({block.operator_set for block in layer}) > 1
        for seed in range(3)
        for layer in grow(settings(**always()), methods.HEMLRN, seed)[0].layers
    ]
    assert any(mixed)


@pytest.mark.parametrize("method", FAMILY, ids=lambda m: m.name)
def test_randomised_methods_leave_the_weights_of_blocks_alone(method):
    network, growth, _ = grow(settings(**always()), method)
    for step in steps(growth, "block"):
        assert len(step.curve) == (3 if method.tune_blocks else 0)
    blocks = [block for layer in network.layers for block in layer]
    if method.tune_blocks:
        assert any(block.bias.any() for block in blocks)
    else:
        assert all(not block.bias.any() for block in blocks)
        assert all(np.abs(block.weight).max() <= 1 for block in blocks)


def test_operators_of_the_network_are_those_of_the_history():
    network, growth, _ = grow()
    accepted = {s.layer for s in steps(growth, "layer") if s.accepted}
    told = [s.operator_set for s in steps(growth, "block") if s.accepted and s.layer in accepted]
    assert told == [block.operator_set for layer in network.layers for block in layer]
    last = [s for s in growth.steps if s.accepted and s.layer in accepted][-1]
    assert last.n_parameters == network.n_parameters()


@pytest.mark.parametrize("method", FAMILY, ids=lambda m: m.name)
@pytest.mark.parametrize("held", [False, True])
def test_the_network_has_the_score_that_is_told(method, held):
    validation = problem(n=80, seed=1) if held else None
    data = problem(validation=validation)
    network, growth, events = grow(settings(fine_tune=3, criterion="brier"), method, data=data)
    actual = score_of(network, validation or data, "brier")
    assert growth.score.value == pytest.approx(actual.value, rel=1e-4)
    assert growth.score.loss == pytest.approx(actual.loss, rel=1e-4)
    assert events[-1].score == growth.score
    other = score_of(network, data if held else problem(n=80, seed=1), "brier")
    assert other.value != pytest.approx(actual.value, rel=1e-4)


def test_fine_tuning_is_kept_if_it_is_better():
    plain, before, _ = grow(settings())
    network, growth, _ = grow(settings(fine_tune=10))
    step = growth.steps[-1]
    assert step.kind == "fine-tune"
    assert step.accepted
    assert len(step.curve) == 10
    assert step.best_epoch > 0
    assert growth.score.better_than(before.score)
    assert score_of(network, problem()).value < score_of(plain, problem()).value


def test_fine_tuning_is_thrown_away_if_it_is_not():
    plain, _, _ = grow(settings())
    network, growth, _ = grow(settings(fine_tune=3, fine_rate=1e3))
    assert not growth.steps[-1].accepted
    assert are_same(network, plain)


def test_events_tell_the_story_in_order():
    _, growth, events = grow(settings(fine_tune=2))
    assert isinstance(events[0], GrowthStarted)
    assert (events[0].method, events[0].n_rows, events[0].n_validation) == ("HeMLGOP", 150, 0)
    assert isinstance(events[-1], GrowthFinished)
    expected = ["GrowthStarted"]
    for step in growth.steps:
        if step.kind == "block":
            expected += ["search", "tune"] + ["epoch"] * len(step.curve)
        elif step.kind == "fine-tune":
            expected += ["fine-tune"] + ["epoch"] * len(step.curve)
        expected.append("step")
    expected.append("GrowthFinished")

    def name(event):
        if isinstance(event, PhaseStarted):
            return event.phase
        return {EpochFinished: "epoch", StepFinished: "step"}.get(type(event), type(event).__name__)

    assert [name(event) for event in events] == expected
    assert [event.step for event in events if isinstance(event, StepFinished)] == growth.steps
    searches = [event for event in events if isinstance(event, PhaseStarted) and event.phase == "search"]
    assert all(event.size == len(SETS) for event in searches)


def test_the_same_seed_grows_the_same_network():
    (a, first, _), (b, second, _), (c, *_) = grow(seed=1), grow(seed=1), grow(seed=2)
    assert are_same(a, b)
    assert [s.score for s in first.steps] == [s.score for s in second.steps]
    assert not are_same(a, c)


def test_the_first_block_chooses_among_dropouts():
    growth_settings = settings(dropouts=(0.0, 0.3, 0.6), fine_tune=2, **always())
    _, growth, _ = grow(growth_settings)
    chosen = growth.steps[0].dropout
    assert {step.dropout for step in growth.steps if step.kind != "layer"} == {chosen}
    scores = []
    for value in growth_settings.dropouts:
        _, alone, _ = grow(replace(growth_settings, dropouts=(value,), max_neurons=6, max_layers=1))
        scores.append(alone.steps[0].score)
    best = scores[growth_settings.dropouts.index(chosen)]
    assert not any(score.better_than(best) for score in scores)
    assert growth.steps[0].score == best


def test_steps_are_plain_data():
    _, growth, _ = grow(settings(fine_tune=1))
    for step in growth.steps:
        data = json.loads(json.dumps(step.to_dict()))
        assert data["kind"] == step.kind
        assert data["score"]["value"] == step.score.value
        if step.kind == "block":
            assert data["operator_set"] == str(step.operator_set)
            assert data["candidates"][0]["operator_set"].count("/") == 2


def squared_error(outputs, target):
    return (outputs - target).square().mean(dim=1)


@pytest.mark.parametrize("n_targets", [1, 2])
@pytest.mark.parametrize("method", [methods.HEMLRN, methods.HEMLGOP], ids=lambda m: m.name)
def test_a_custom_loss_for_numeric_targets_grows_like_the_named_one(method, n_targets):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 3)).astype(np.float32)
    target = np.stack([np.sin(x[:, 0]), x[:, 1] ** 2], axis=1)[:, :n_targets]
    target = ((target - target.mean(axis=0)) / target.std(axis=0)).astype(np.float32)
    data = Problem(x, target, np.ones(120, np.float32))
    _, named, _ = grow(settings("mse", max_layers=1), method, data=data)
    _, custom, _ = grow(settings(squared_error, max_layers=1), method, data=data)
    assert custom.steps[0].operator_set == named.steps[0].operator_set
    assert custom.steps[0].score.value == pytest.approx(named.steps[0].score.value, rel=0.02)


def test_weights_of_rows_count():
    """Rows with almost no weight hardly change the network; the same rows with full weight do."""
    data = problem()
    spoiled = data.target[:, [1, 2, 0]]
    x, target = np.concatenate([data.x, data.x]), np.concatenate([data.target, spoiled])

    def outputs(weight):
        rows = Problem(x, target, (weight / weight.mean()).astype(np.float32))
        network, *_ = grow(settings(max_layers=1), methods.HOMLRN, data=rows)
        return network.outputs(data.x)

    light = outputs(np.repeat([1.0, 1e-6], 150))
    heavy = outputs(np.repeat([1.0, 1.0], 150))
    truth = data.target.argmax(axis=1)
    assert (light.argmax(axis=1) == truth).mean() > (heavy.argmax(axis=1) == truth).mean() + 0.1


class Doubling(Growth):
    """Layers of one block, each twice as wide as the one before, with scores that halve."""

    def grow_layer(self, number, parts):
        block = Block(parts[0].x.shape[1], 2**number, SETS[0])
        for part in parts:
            part.accept(block)
        head = Linear(block.n_neurons, self.problem.n_outputs)
        return GrownLayer(Layer([block]), head, Score(0.5**number, 0.5**number))


@pytest.mark.parametrize(("target", "depth"), [(None, 4), (0.25, 2), (0.2, 3), (2.0, 1)])
def test_a_method_only_says_how_a_layer_grows(target, depth):
    growth_settings = GrowthSettings(fine_tuning=TuningSettings(epochs=()), max_layers=4, target=target)
    network, growth, events = grow(growth_settings, Method("Doubling", Doubling))
    assert widths(network) == [[2**number] for number in range(1, depth + 1)]
    assert growth.score.value == 0.5**depth
    assert [step.kind for step in growth.steps] == ["layer"] * depth
    assert events[0].method == "Doubling"


def test_rows_that_are_held_out_are_scored_after_an_epoch():
    def grown(when, held):
        first = settings(criterion="accuracy", fine_tune=2)
        parts = {
            n: replace(getattr(first, n), epoch_score=when, dropout=0.4) for n in ("tuning", "fine_tuning")
        }
        validation = problem(60, 1) if held else None
        return grow(replace(first, **parts), data=problem(validation=validation))

    for held in (True, False):
        first, other = (grown(when, held)[0] for when in ("after", "during"))
        assert are_same(first, other) == held
