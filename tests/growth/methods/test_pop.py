"""POP, its variants and PMLP: what they search, what they remember, and what they keep."""

from __future__ import annotations

import inspect
import io
from collections import Counter
from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from rich.console import Console
from scipy.linalg import subspace_angles
from sklearn.datasets import load_diabetes, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from torch import nn

import opgrow
from opgrow import Callback, OperatorSet, POPRegressor, operator_sets
from opgrow.estimators.listeners.progress import Progress
from opgrow.growth import methods
from opgrow.growth.events import CandidateFinished, EpochFinished, PhaseStarted
from opgrow.growth.methods import pop, population_pass
from opgrow.growth.methods.pop import POPSettings
from opgrow.network import Block
from opgrow.operators import register_activation, register_nodal, register_pool, unregister
from opgrow.rows.problem import Problem
from opgrow.training.population import Member, draw_start
from opgrow.training.scores import CRITERIA, evaluate
from opgrow.training.settings import TuningSettings
from tests.networks import are_same

pytestmark = [pytest.mark.cpu, pytest.mark.usefixtures("one_thread")]

FAMILY = {m.name: m for m in (methods.POP, methods.POPFAST, methods.POPMEMO, methods.POPMEMH, methods.PMLP)}
ESTIMATORS = [getattr(opgrow, name + kind) for name in FAMILY for kind in ("Classifier", "Regressor")]
CLASSIFIERS = [cls for cls in ESTIMATORS if cls.__name__.endswith("Classifier")]
SETS = tuple(
    operator_sets(
        nodal=("multiplication", "harmonic"), pool=("sum", "maximum"), activation=("tanh", "inverse_absolute")
    )
)
IDENTITY = OperatorSet("multiplication", "sum", "identity")
#: Every layer is kept, so that there is something to look at.
ALWAYS = {"layer_threshold": -np.inf}
QUICK = {
    "widths": (5, 4),
    "operators": [("harmonic", "sum", "tanh"), ("multiplication", "sum", "elu")],
    "learning_rates": (0.01,),
    "epochs": (4,),
    "fine_tune_epochs": 0,
    "random_state": 0,
}


def problem(n=100, n_inputs=4, n_outputs=3, seed=0, validation=None, weighted=True):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, n_inputs)).astype(np.float32)
    score = np.sin(2 * x[:, 0]) + 0.5 * x[:, 1] + 0.2 * rng.normal(size=n)
    classes = np.digitize(score, np.linspace(-1, 1, n_outputs + 1)[1:-1])
    weight = rng.uniform(0.5, 2, n) if weighted else np.ones(n)
    target = np.eye(n_outputs, dtype=np.float32)[classes]
    return Problem(x, target, (weight / weight.mean()).astype(np.float32), validation)


def settings(loss="mse", fine_tune=0, **changes):
    tuning = TuningSettings(loss=loss, learning_rates=(0.01,), epochs=(4,), batch_size=25)
    own = {field.name for field in fields(TuningSettings)} & set(changes) - {"n_threads"}
    tuning = replace(
        tuning, n_threads=changes.get("n_threads", 1), **{name: changes.pop(name) for name in own}
    )
    values = {
        "sets": SETS[:3],
        "tuning": tuning,
        "fine_tuning": replace(tuning, learning_rates=(1e-3,), epochs=(fine_tune,)),
        "widths": (6, 5),
        "max_layers": len(changes.get("widths", (6, 5))),
    }
    return POPSettings(**(values | changes))


def grow(method, data=None, seed=3, given=None, **changes):
    events = []
    method = FAMILY[method] if isinstance(method, str) else method
    if method.name == "PMLP":
        changes = {"sets": (opgrow.PERCEPTRON,)} | changes
    growth = method.growth(data or problem(), method, given or settings(**changes), seed, events.append)
    return growth.run(), growth, events


def outputs_of(network, x):
    return network.outputs(x)


def searches(steps):
    return [step for step in steps if step.kind == "search"]


def quick(cls, **changes):
    accepted_names = inspect.signature(cls).parameters
    return cls(**{name: value for name, value in (QUICK | changes).items() if name in accepted_names})


def iris():
    return load_iris(return_X_y=True)


def data_for(cls):
    return iris() if cls in CLASSIFIERS else load_diabetes(return_X_y=True)


def every(classes):
    return pytest.mark.parametrize("cls", classes, ids=lambda c: c.__name__)


# --- the search ---


class Counting(Callback):
    def __init__(self):
        self.candidates, self.phases = Counter(), []

    def on_candidate_end(self, event):
        self.candidates[event.layer, event.block] += 1

    def on_phase_start(self, event):
        self.phases.append((event.phase, event.layer, event.block, event.size))


@pytest.fixture
def trainings(monkeypatch):
    """Every candidate that is trained, in order, and the populations that they were part of."""
    members, populations = [], []
    one, many = pop.POPGrowth.training, population_pass.train_members

    def populating(given, *rest):
        populations.append(list(given))
        return many(given, *rest)

    def training(self, candidates, *rest, exact=True):
        if not exact:
            members.extend(Member(shape.sets[0], shape.head_set) for shape in candidates.shapes)
        return one(self, candidates, *rest, exact=exact)

    monkeypatch.setattr(pop.POPGrowth, "training", training)
    monkeypatch.setattr(population_pass, "train_members", populating)
    return members, populations


TINY = {
    "learning_rates": (0.01,),
    "epochs": (1,),
    "patience": None,
    "fine_tune_epochs": 0,
    "validation_fraction": 0.0,
    "n_jobs": 1,
    "random_state": 0,
    **ALWAYS,
}


def rows20():
    x, y = load_iris(return_X_y=True)
    return x[::8][:20], y[::8][:20]


def test_pop_trains_four_times_every_operator_set_in_a_layer(trainings):
    counting = Counting()
    clf = opgrow.POPClassifier(widths=(3, 2), callbacks=[counting], **TINY).fit(*rows20())
    members, populations = trainings
    sets = operator_sets()
    assert len(sets) == 144
    passes = [(layer, count) for layer in (1, 2) for count in (1, 2, 3, 4)]
    assert len(members) == 2 * 4 * 144
    assert counting.candidates == dict.fromkeys(passes, 144)
    assert counting.phases == [("search", layer, count, 144) for layer, count in passes]
    steps = searches(clf.history_)
    assert [(step.layer, step.block) for step in steps] == passes
    assert [len(step.candidates) + step.invalid_candidates for step in steps] == [144] * 8
    assert members == [member for given in populations for member in given]
    for (layer, count), step, given in zip(passes, steps, populations, strict=True):
        varied, fixed = ("head", "hidden") if count % 2 else ("hidden", "head")
        assert [getattr(member, varied) for member in given] == sets
        assert len({getattr(member, fixed) for member in given}) == 1
        winner = step.candidates[0]
        assert (step.operator_set, step.head_operators) == (winner.operator_set, winner.head_operators)
        if count > 1:  # what the pass before has found stays where it is
            before = steps[4 * (layer - 1) + count - 2]
            actual = before.operator_set if fixed == "hidden" else before.head_operators
            assert getattr(given[0], fixed) == actual
        told = {(c.operator_set, c.head_operators) for c in step.candidates}
        assert told <= {(member.hidden, member.head) for member in given}


def test_pop_keeps_the_best_pair_of_all_passes():
    clf = opgrow.POPClassifier(widths=(3, 2), **TINY).fit(*rows20())
    for layer in (1, 2):
        steps = [step for step in searches(clf.history_) if step.layer == layer]
        pairs = [candidate for step in steps for candidate in step.candidates]
        best = min(pairs, key=lambda c: (-c.score, c.loss))
        block = list(clf.network_.layers[layer - 1])[-1]
        assert block.operator_set == best.operator_set
        if layer == 2:
            assert clf.network_.head.operator_set == best.head_operators
        kept = [step for step in steps if step.accepted]
        assert kept[0] is steps[0]
        assert all(b.score.better_than(a.score) for a, b in pairwise(kept))
        rejected = [step for step in steps if not step.accepted]
        assert not any(step.score.better_than(kept[-1].score) for step in rejected)
        assert (kept[-1].operator_set, kept[-1].head_operators) == (best.operator_set, best.head_operators)
        decided = next(s for s in clf.history_ if s.kind == "layer" and s.layer == layer)
        # Brier is better when lower. The search takes statistics of batches, a layer those of all rows.
        assert decided.score.value == pytest.approx(-best.score, rel=1e-2)


def test_a_worse_later_pass_does_not_replace_the_pair():
    """Some pass of some seed is rejected; then the network has the operators of an earlier one."""
    for seed in range(20):
        network, growth, _ = grow("POP", seed=seed, widths=(4,), sets=SETS[:4])
        steps = searches(growth.steps)
        if not steps[-1].accepted:
            kept = [step for step in steps if step.accepted][-1]
            assert network.layers[0].blocks[0].operator_set == kept.operator_set
            assert network.head.operator_set == kept.head_operators
            return
    pytest.fail("no seed rejects its last pass")


def test_the_first_hidden_set_is_random_but_seeded(trainings):
    _, populations = trainings

    def first(seed):
        populations.clear()
        grow("POP", seed=seed, sets=tuple(operator_sets()[::6]), widths=(2,), epochs=(), learning_rates=())
        return populations[0][0].hidden

    actual = [first(seed) for seed in (1, 1, 2, 3, 4, 5)]
    assert actual[0] == actual[1]
    assert len(set(actual)) > 3


@pytest.mark.parametrize("name", ["POPFast", "POPMemO", "POPMemH"])
def test_variants_train_every_operator_set_once_in_a_layer(name, trainings):
    counting = Counting()
    cls = getattr(opgrow, name + "Classifier")
    clf = cls(widths=(3, 2), callbacks=[counting], **TINY).fit(*rows20())
    members, populations = trainings
    assert len(members) == 2 * 144
    assert counting.candidates == {(1, 1): 144, (2, 1): 144}
    assert all([member.hidden for member in given] == operator_sets() for given in populations)
    assert all(member.head is None for member in members)
    steps = searches(clf.history_)
    assert [len(step.candidates) + step.invalid_candidates for step in steps] == [144, 144]
    for step, layer in zip(steps, clf.network_.layers, strict=True):
        neurons = [block for block in layer if block.operator_set != IDENTITY]
        assert [block.operator_set for block in neurons] == [step.candidates[0].operator_set]
        assert step.head_operators is None


def test_pmlp_trains_once_in_a_layer(trainings):
    counting = Counting()
    clf = opgrow.PMLPClassifier(widths=(3, 2), activation="relu", callbacks=[counting], **TINY).fit(*rows20())
    assert trainings == ([], [])
    assert counting.candidates == {}
    assert counting.phases == [("tune", 1, 1, 1), ("tune", 2, 1, 1)]
    relu = OperatorSet("multiplication", "sum", "relu")
    assert [[block.operator_set for block in layer] for layer in clf.network_.layers] == [[relu], [relu]]
    assert [(s.kind, len(s.curve)) for s in clf.history_] == [("block", 1), ("layer", 0)] * 2


# --- the same by hand ---


def hand_neurons(x, weight, bias, operator_set):
    """The paper's Table 1 for the operators of `SETS`."""
    product = x[:, :, None] * weight
    z = torch.sin(product) if operator_set.nodal == "harmonic" else product
    pooled = z.sum(dim=1) if operator_set.pool == "sum" else z.max(dim=1).values
    pooled = pooled + bias
    return torch.tanh(pooled) if operator_set.activation == "tanh" else pooled / (1 + pooled.abs())


class HandCandidate(nn.Module):
    """A hidden layer with batch norm, and a head, as POP describes them."""

    def __init__(self, start, hidden, head):
        super().__init__()
        self.operators, self.head_operators = hidden, head
        n_neurons, n_outputs = start.hidden.shape[1], start.head.shape[1]
        self.weight = nn.Parameter(torch.tensor(start.hidden))
        self.bias = nn.Parameter(torch.zeros(n_neurons))
        self.scale = nn.Parameter(torch.ones(n_neurons))
        self.shift = nn.Parameter(torch.zeros(n_neurons))
        self.head_weight = nn.Parameter(torch.tensor(start.head))
        self.head_bias = nn.Parameter(torch.zeros(n_outputs))

    def raw(self, x):
        return hand_neurons(x, self.weight, self.bias, self.operators)

    def forward(self, raw, mean, variance):
        features = (raw - mean) / torch.sqrt(variance + 1e-8) * self.scale + self.shift
        if self.head_operators is None:
            return features @ self.head_weight + self.head_bias
        return hand_neurons(features, self.head_weight, self.head_bias, self.head_operators)


def hand_training(start, hidden, head, data, given, seed, criterion):
    """One candidate's best score, by torch alone; orders of rows are those that trainers draw."""
    candidate = HandCandidate(start, hidden, head)
    tuning = given.tuning
    optimizer = torch.optim.Adam(candidate.parameters(), eps=1e-7)
    x, target, weight = (torch.from_numpy(a) for a in (data.x, data.target, data.weight))
    scored = data.validation or data
    rng = np.random.default_rng(seed)

    def row_losses(outputs, rows):
        if tuning.loss == "mse":
            return ((outputs - target[rows]) ** 2).mean(dim=1)
        return nn.functional.cross_entropy(outputs, target[rows], reduction="none")

    def exact():
        raw, share = candidate.raw(x), weight / weight.sum()
        mean = share @ raw
        return mean, share @ (raw - mean) ** 2

    def score(moments):
        with torch.no_grad():
            outputs = candidate(candidate.raw(torch.from_numpy(scored.x)), *(moments or exact()))
        return evaluate(criterion, tuning.loss, outputs.numpy(), scored.target, scored.weight)

    best = score(None)
    for rate, count in zip(tuning.learning_rates, tuning.epochs, strict=True):
        for group in optimizer.param_groups:
            group["lr"] = rate
        for _ in range(count):
            order = rng.permutation(len(x))
            rng.integers(1, 2**63)  # the seed of dropout
            means, variances = [], []
            for rows in np.array_split(order, len(x) // tuning.batch_size):
                raw = candidate.raw(x[rows])
                moments = raw.mean(dim=0), raw.var(dim=0, correction=0)
                loss = (row_losses(candidate(raw, *moments), rows) * weight[rows]).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                means.append(moments[0].detach())
                variances.append(moments[1].detach())
            seen = torch.stack(means)
            seen = seen.mean(dim=0), torch.stack(variances).mean(dim=0) + seen.var(dim=0, correction=0)
            now = score(seen)
            best = now if now.better_than(best) else best
    return best


def hand_search(name, data, given, seed, criterion):
    """The first layer's passes as ALGORITHMS.md tells them: the scores of all pairs of each."""
    passes = []
    hidden, head = SETS[np.random.default_rng([seed, 1, 0]).integers(len(SETS))], None
    for count in range(1, (4 if name == "POP" else 1) + 1):
        rng = np.random.default_rng([seed, 1, count])
        sizes = data.n_inputs, given.widths[0], 0, data.n_outputs
        start = draw_start(*sizes, 1.5 / np.sqrt(data.n_inputs), rng)
        order_seed = int(rng.integers(1, 2**63))
        pairs = [(hidden, s) if name == "POP" and count % 2 else (s, head) for s in SETS]
        scores = {
            pair: hand_training(start, *pair, data, given, order_seed, criterion).value for pair in pairs
        }
        passes.append(scores)
        hidden, head = (max if CRITERIA[criterion] else min)(scores, key=scores.get)
    return passes


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize(("name", "loss"), [("POP", "mse"), ("POPFast", "mse"), ("POPFast", "cross_entropy")])
def test_the_search_chooses_what_plain_torch_chooses(name, loss, held):
    held_rows = problem(n=60, seed=1) if held else None
    data = problem(n=75, validation=held_rows)
    given = settings(loss, sets=SETS, widths=(5,), learning_rates=(0.01, 0.003), epochs=(6, 2))
    network, growth, _ = grow(name, data, given=given)
    expected = hand_search(name, data, given, 3, "loss")
    steps = searches(growth.steps)
    assert len(steps) == len(expected) == (4 if name == "POP" else 1)
    for step, scores in zip(steps, expected, strict=True):
        actual = {(c.operator_set, c.head_operators): c.loss for c in step.candidates}
        assert actual.keys() == scores.keys()
        discrepancy = max(abs(actual[pair] - scores[pair]) for pair in scores)
        best, second = sorted(scores.values())[:2]
        assert second - best > 3 * discrepancy  # or the winner would be an accident
        assert discrepancy < 2e-3 * best
        assert scores[step.operator_set, step.head_operators] == best
    _, pair = min(
        ((value, pair) for scores in expected for pair, value in scores.items()), key=lambda v: v[0]
    )
    assert network.layers[0].blocks[0].operator_set == pair[0]
    assert getattr(network.head, "operator_set", None) == pair[1]


# --- memory ---


def standard(values, weight):
    mean = np.average(values, axis=0, weights=weight)
    return (values - mean) / np.sqrt(np.average((values - mean) ** 2, axis=0, weights=weight))


def layer_inputs(network, x):
    """The inputs of every layer and of the head."""
    actual = [x]
    for layer in network.layers:
        actual.append(layer.outputs(actual[-1]))
    return actual


@pytest.mark.parametrize("kind", ["pca", "lda"])
def test_popmemo_puts_the_memory_beside_the_neurons(kind):
    network, growth, _ = grow("POPMemO", memory=kind, memory_energy=0.9, **ALWAYS)
    for layer, width in zip(network.layers, (6, 5), strict=True):
        memory, neurons = layer
        assert memory.operator_set == IDENTITY
        assert neurons.operator_set in SETS
        assert neurons.n_neurons == width
        assert memory.n_inputs == neurons.n_inputs
        assert 1 <= memory.n_neurons <= (2 if kind == "lda" else memory.n_inputs)
    assert network.head.n_inputs == memory.n_neurons + 5
    assert np.abs(network.head.weight[: memory.n_neurons]).min() > 0
    told = [step.n_parameters for step in growth.steps]
    first = network.layers[0]
    assert told[0] == sum(block.n_parameters() for block in first) + 3 * (first.n_neurons + 1)
    assert told[-1] == network.n_parameters()


@pytest.mark.parametrize("name", ["POPMemO", "POPMemH"])
@pytest.mark.parametrize("kind", ["pca", "lda"])
def test_the_memory_is_the_projection_of_standardised_features(name, kind):
    data = problem(n_inputs=6, weighted=False)
    # Inputs as `standardize=False` leaves them.
    data = replace(data, x=(data.x * np.float32([1, 2, 5, 0.1, 1, 3]) + 4).astype(np.float32))
    network, *_ = grow(name, data, memory=kind, memory_energy=0.8, memory_ridge=1e-6, **ALWAYS)
    inputs = layer_inputs(network, data.x)
    layers = network.layers if name == "POPMemO" else network.layers[:-1]
    for layer, x in zip(layers, inputs, strict=False):
        [memory] = (block for block in layer if block.operator_set == IDENTITY)
        features = standard(x.astype(np.float64), data.weight)
        if kind == "pca":
            expected = PCA(0.8, svd_solver="full").fit(features).components_.T
        else:
            model = LinearDiscriminantAnalysis(solver="eigen").fit(features, data.target.argmax(axis=1))
            expected = model.scalings_[:, :2]
        scale = x.std(axis=0, dtype=np.float64)
        actual = memory.weight * scale[:, None]
        assert actual.shape == expected.shape
        assert subspace_angles(actual, expected).max() < 1e-3
        out = memory.outputs(x).astype(np.float64)
        np.testing.assert_allclose(out.mean(axis=0), 0, atol=1e-4)
        np.testing.assert_allclose(out.var(axis=0), 1, rtol=1e-4)


@pytest.mark.parametrize("name", ["POPMemO", "POPMemH"])
def test_the_statistics_of_the_memory_are_weighted(name):
    data = problem(weighted=True)
    network, *_ = grow(name, data, **ALWAYS)
    [memory] = (block for block in network.layers[0] if block.operator_set == IDENTITY)
    out = memory.outputs(data.x).astype(np.float64)
    mean = np.average(out, axis=0, weights=data.weight)
    np.testing.assert_allclose(mean, 0, atol=1e-5)
    np.testing.assert_allclose(np.average((out - mean) ** 2, axis=0, weights=data.weight), 1, rtol=1e-4)
    assert np.abs(out.var(axis=0) - 1).max() > 1e-3


def test_popmemh_remembers_only_for_a_further_layer():
    kept, growth, _ = grow("POPMemH", widths=(6, 5, 4), **ALWAYS)
    names = [[block.operator_set == IDENTITY for block in layer] for layer in kept.layers]
    assert names == [[False, True], [False, True], [False]]
    assert [block.n_inputs for block in kept.layers[0]] == [4, 4]
    sizes = [layer.n_neurons for layer in kept.layers]
    assert kept.head.n_inputs == sizes[2] == 4
    assert [block.n_inputs for block in kept.layers[1]] == [sizes[0]] * 2
    assert growth.steps[-1].n_parameters == kept.n_parameters()
    rejected, growth, _ = grow("POPMemH", widths=(6, 5, 4), layer_threshold=np.inf)
    alone, *_ = grow("POPMemH", widths=(6,))
    fast, *_ = grow("POPFast", widths=(6,))
    assert [step.accepted for step in growth.steps if step.kind == "layer"] == [True, False]
    assert len(list(rejected.layers[0])) == 1
    assert are_same(rejected, alone)
    assert are_same(alone, fast)  # without a second layer there is nothing to remember


def test_popmemh_third_layer_rejected_leaves_the_second_without_memory():
    _, free, _ = grow("POPMemH", widths=(6, 5, 4), **ALWAYS)
    scores = [step.improvement for step in free.steps if step.kind == "layer"]
    assert scores[1] > scores[2], "choose another problem"
    network, *_ = grow("POPMemH", widths=(6, 5, 4), layer_threshold=(scores[1] + scores[2]) / 2)
    two, *_ = grow("POPMemH", widths=(6, 5), **ALWAYS)
    assert [len(list(layer)) for layer in network.layers] == [2, 1]
    assert are_same(network, two)


@pytest.mark.parametrize("name", ["POPMemO", "POPMemH"])
def test_with_one_class_lda_finds_nothing_to_remember(name):
    data = problem()
    data.target[:] = [0, 1, 0]
    network, *_ = grow(name, data, memory="lda", **ALWAYS)
    fast, *_ = grow("POPFast", data, **ALWAYS)
    assert are_same(network, fast)


@every([opgrow.POPMemORegressor, opgrow.POPMemHRegressor])
def test_lda_is_for_classes(cls):
    with pytest.raises(ValueError, match="^memory must be one of 'pca', got 'lda'$"):
        cls(memory="lda").fit(*load_diabetes(return_X_y=True))


# --- what is kept ---


@pytest.mark.parametrize("name", FAMILY)
def test_a_rejected_layer_leaves_no_trace(name):
    network, growth, _ = grow(name, layer_threshold=np.inf)
    alone, *_ = grow(name, widths=(6,))
    assert [step.accepted for step in growth.steps if step.kind == "layer"] == [True, False]
    assert are_same(network, alone)


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("held", [False, True])
def test_the_network_has_the_score_that_is_told(name, criterion, held):
    validation = problem(n=80, seed=1) if held else None
    data = problem(validation=validation)
    loss = "mse" if name == "POP" else "cross_entropy"
    network, growth, events = grow(name, data, loss=loss, criterion=criterion, fine_tune=2, **ALWAYS)
    scored = validation or data
    actual = evaluate(criterion, loss, outputs_of(network, scored.x), scored.target, scored.weight)
    assert growth.score.value == pytest.approx(actual.value, rel=1e-4)
    assert growth.score.loss == pytest.approx(actual.loss, rel=1e-4)
    assert events[-1].score == growth.score
    assert len(network.layers) == 2


@pytest.mark.parametrize("name", FAMILY)
def test_a_target_ends_the_growth(name):
    free = grow(name, widths=(4, 4, 4), criterion="brier", **ALWAYS)[1]
    scores = [step.score.value for step in free.steps if step.kind == "layer"]
    assert len(scores) == 3
    _, growth, _ = grow(name, widths=(4, 4, 4), criterion="brier", target=scores[0], **ALWAYS)
    assert len(growth.layers) == 1
    expected = min(scores[:2])
    _, growth, _ = grow(name, widths=(4, 4, 4), criterion="brier", target=expected, **ALWAYS)
    assert len(growth.layers) == 1 + scores.index(expected)
    _, growth, _ = grow(name, widths=(4, 4, 4), criterion="brier", target=0.0, **ALWAYS)
    assert len(growth.layers) == 3


@pytest.mark.parametrize("name", FAMILY)
def test_the_layer_threshold_decides(name):
    free = grow(name, **ALWAYS)[1]
    first, second = (step for step in free.steps if step.kind == "layer")
    gain = second.score.improvement_over(first.score)
    assert (first.improvement, second.improvement) == (None, gain)
    for threshold, depth in ((gain - 1e-6, 2), (gain + 1e-6, 1)):
        network, growth, _ = grow(name, layer_threshold=threshold)
        assert len(network.layers) == depth
        assert growth.score == (second if depth == 2 else first).score


def parameters_of(layer):
    """All parameters and statistics of a layer with one block, as bytes."""
    [block] = layer
    arrays = (
        block.weight,
        block.bias,
        *(getattr(block.norm, n) for n in ("scale", "shift", "mean", "variance")),
    )
    return [array.tobytes() for array in arrays]


def test_deeper_layers_are_frozen_until_fine_tuning():
    one, *_ = grow("POPFast", widths=(6,))
    two, *_ = grow("POPFast", widths=(6, 5), **ALWAYS)
    assert parameters_of(one.layers[0]) == parameters_of(two.layers[0])
    tuned, growth, _ = grow("POPFast", widths=(6, 5), fine_tune=3, **ALWAYS)
    assert growth.steps[-1].accepted
    assert parameters_of(two.layers[0]) != parameters_of(tuned.layers[0])


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("held", [False, True])
def test_fine_tuning_never_worsens_the_score(name, held):
    data = problem(validation=problem(n=60, seed=1) if held else None)
    plain = grow(name, data, **ALWAYS)[0]
    before = grow(name, data, **ALWAYS)[1].score
    _, growth, _ = grow(name, data, fine_tune=6, **ALWAYS)
    step = growth.steps[-1]
    assert step.kind == "fine-tune"
    assert len(step.curve) == 6
    assert step.accepted == growth.score.better_than(before)
    assert not before.better_than(growth.score)
    given = settings(sets=SETS[:3] if name != "PMLP" else (opgrow.PERCEPTRON,), **ALWAYS)
    ruinous = replace(given.fine_tuning, learning_rates=(1e3,), epochs=(2,))
    kept, growth, _ = grow(name, data, given=replace(given, fine_tuning=ruinous))
    assert not growth.steps[-1].accepted
    assert are_same(kept, plain)


def test_fine_tuning_a_head_of_neurons_helps():
    _, before, _ = grow("POP", **ALWAYS)
    network, growth, _ = grow("POP", fine_tune=10, **ALWAYS)
    assert isinstance(network.head, Block)
    assert growth.steps[-1].accepted
    assert growth.score.better_than(before.score)


# --- sizes ---


def layers_of(cls, widths, n_inputs, n_classes, **changes):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(3 * n_classes, n_inputs)), np.tile(np.arange(n_classes), 3)
    untrained = {"learning_rates": (), "epochs": (), "validation_fraction": 0.0}
    return quick(cls, widths=widths, **untrained, **ALWAYS, **changes).fit(x, y).network_


@every([opgrow.POPClassifier, opgrow.POPFastClassifier, opgrow.PMLPClassifier, opgrow.POPMemHClassifier])
def test_sizes_are_those_of_the_papers_tables(cls):
    network = layers_of(cls, (200, 200), 8, 2, operators=[opgrow.PERCEPTRON], memory_energy=0.02)
    if cls is opgrow.POPMemHClassifier:
        assert network.topology() == "8-201-200-2"  # one principal direction, 11 parameters
        assert network.n_parameters() == 43_202 + (8 + 3) + 200
        return
    assert network.topology() == "8-200-200-2"
    assert network.n_parameters() == 43_202
    if cls is opgrow.PMLPClassifier:
        assert network.flops() == 85_602
    network = layers_of(cls, (200,) * 3, 512, 15, operators=[opgrow.PERCEPTRON])
    assert network.topology() == "512-200-200-200-15"
    assert network.n_parameters() == 187_215
    if cls is opgrow.PMLPClassifier:
        assert network.flops() == 373_215


def test_widths_may_be_a_number_or_any_sequence():
    for widths in (4, (4,), [4], np.array([4]), [np.int64(4)]):
        assert layers_of(opgrow.PMLPClassifier, widths, 3, 2).topology() == "3-4-2"


def test_templates_may_be_longer_than_what_grows():
    clf = quick(opgrow.POPFastClassifier, widths=(5,) * 9, layer_threshold=np.inf).fit(*iris())
    assert clf.network_.topology() == "4-5-3"
    assert [step.layer for step in clf.history_ if step.kind == "layer"] == [1, 2]


# --- the story ---


@pytest.mark.parametrize("name", FAMILY)
def test_events_and_history_tell_the_same(name):
    network, growth, events = grow(name, fine_tune=2, **ALWAYS)
    passes = {"POP": 4, "PMLP": 0}.get(name, 1)
    kinds = ["search"] * passes + ["layer"] if passes else ["block", "layer"]
    assert [step.kind for step in growth.steps] == 2 * kinds + ["fine-tune"]
    phases = [event for event in events if isinstance(event, PhaseStarted)]
    assert [p.phase for p in phases] == 2 * (["search"] * passes or ["tune"]) + ["fine-tune"]
    candidates = [event for event in events if isinstance(event, CandidateFinished)]
    assert [event.done for event in candidates] == 2 * passes * [1, 2, 3]
    assert {event.total for event in candidates} == ({3} if passes else set())
    epochs = Counter(e.phase for e in events if isinstance(e, EpochFinished))
    assert epochs == {"fine-tune": 2} | ({"tune": 8} if name == "PMLP" else {})
    for step in searches(growth.steps):
        reported = [e for e in candidates if (e.layer, e.block) == (step.layer, step.block)]
        assert reported[-1].best == step.score
        assert not any(a.best.better_than(b.best) for a, b in pairwise(reported))
        order = [(-c.score, c.loss) for c in step.candidates]
        assert order == sorted(order)
        assert step.candidates[0].operator_set == step.operator_set
        assert [c.weight_range for c in step.candidates] == [
            pytest.approx(1.5 / np.sqrt(network.layers[step.layer - 1].blocks[-1].n_inputs))
        ] * 3
        assert step.n_neurons == (6, 5)[step.layer - 1]
        assert 0 <= step.best_epoch <= 4
        assert step.search_seconds > 0
        assert step.to_dict()["head_operators"] == (
            None if step.head_operators is None else str(step.head_operators)
        )
    last = growth.steps[-1]
    assert last.n_parameters == network.n_parameters()


@pytest.mark.parametrize("name", FAMILY)
def test_the_same_seed_grows_the_same_network(name):
    first, second, other = (
        grow(name, seed=seed, n_threads=threads, dropout=0.1, fine_tune=1, **ALWAYS)[0]
        for seed, threads in ((1, 1), (1, 2), (2, 1))
    )
    assert are_same(first, second)
    assert not are_same(first, other)


@every(ESTIMATORS)
def test_jobs_do_not_change_the_network(cls):
    x, y = data_for(cls)
    first, second = (quick(cls, n_jobs=jobs, fine_tune_epochs=2).fit(x, y) for jobs in (1, 2))
    assert are_same(first.network_, second.network_)
    assert [step.score for step in first.history_] == [step.score for step in second.history_]


@every(ESTIMATORS)
def test_rows_without_weight_are_not_there(cls):
    x, y = data_for(cls)
    keep = np.random.default_rng(0).uniform(size=len(x)) < 0.7
    weighted = quick(cls).fit(x, y, sample_weight=keep.astype(float))
    removed = quick(cls).fit(x[keep], y[keep])
    np.testing.assert_array_equal(weighted.network_.outputs(x), removed.network_.outputs(x))
    other = quick(cls).fit(x, y, sample_weight=np.where(keep, 1.0, 0.1))
    assert not np.array_equal(weighted.network_.outputs(x), other.network_.outputs(x))


@every(ESTIMATORS)
def test_the_network_alone_predicts_like_the_estimator(cls):
    x, y = data_for(cls)
    model = quick(cls).fit(x, y)
    outputs = model.network_.outputs(x)
    if cls in CLASSIFIERS:
        np.testing.assert_array_equal(model.classes_[outputs.argmax(axis=1)], model.predict(x))
    else:
        np.testing.assert_allclose(outputs[:, 0], model.predict(x), rtol=1e-5)


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("live", [True, False])
def test_progress_shows_the_family(name, live):
    console = Console(file=io.StringIO(), force_terminal=live, width=100)
    clf = quick(getattr(opgrow, name + "Classifier"), fine_tune_epochs=2, **ALWAYS)
    clf.set_params(callbacks=[Progress(console=console)]).fit(*iris())
    text = console.file.getvalue()
    assert f"{name} grew {clf.network_.topology()}" in text
    assert text.count("accepted") + text.count("rejected") == len(clf.history_)
    if name == "POP":
        assert "layer 2 pass 4" in text
        assert f"head {clf.network_.head.operator_set}" in text


# --- the estimators ---


def test_outputs_of_pop_are_no_logits():
    clf = quick(opgrow.POPClassifier).fit(*iris())
    assert clf.loss_ == "mse"
    outputs = clf.decision_function(iris()[0]).astype(np.float64)
    shares = np.clip(outputs, 0, None)
    shares = np.where(shares.any(axis=1, keepdims=True), shares, np.exp(outputs))  # nothing else to go by
    expected = shares / shares.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(clf.predict_proba(iris()[0]), expected)
    assert quick(opgrow.POPClassifier, loss="cross_entropy").fit(*iris()).loss_ == "cross_entropy"
    assert quick(opgrow.POPFastClassifier).fit(*iris()).loss_ == "cross_entropy"


def test_pop_predicts_targets_far_below_the_mean():
    """No activation goes below -1, so targets that are farther from the mean are scaled."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3))
    y = 100 + 20 * (x @ [1.0, -2.0, 0.5])
    sets = [("multiplication", "sum", name) for name in ("tanh", "elu", "relu")]
    model = POPRegressor(widths=(10,), operators=sets, random_state=0).fit(x, y)
    assert model.score(x, y) > 0.95
    assert (y.mean() - model.predict(x).min()) / y.std() > 2
    both = np.stack([y, 7 - 50 * y], axis=1)
    model = POPRegressor(widths=(10,), operators=sets, validation_fraction=0.0, random_state=0).fit(x, both)
    assert model.score(x, both) > 0.95
    scale = np.abs(y - y.mean()).max() / 0.8
    np.testing.assert_allclose(model.network_.output_scale, [scale, 50 * scale])


@every([cls for cls in ESTIMATORS if cls not in CLASSIFIERS])
@pytest.mark.parametrize("constant", [7.5, 0.0, -1e-6, 1e9])
def test_constant_targets_are_predicted(cls, constant):
    x, _ = data_for(cls)
    model = quick(cls).fit(x, np.full(len(x), constant))
    np.testing.assert_allclose(model.predict(x), constant, rtol=1e-5, atol=1e-5 if constant == 0 else 0)
    beside = quick(cls, widths=(8,), epochs=(30,)).fit(x, np.stack([x[:, 2], np.full(len(x), constant)], 1))
    assert np.corrcoef(beside.predict(x)[:, 0], x[:, 2])[0, 1] > 0.7


@every([opgrow.POPClassifier, opgrow.POPFastClassifier, opgrow.POPMemOClassifier])
def test_custom_operators_in_a_search(cls, tmp_path):
    register_nodal("cosine", lambda y, w: torch.cos(w * y))
    register_pool("mean", lambda z: z.mean(dim=1))
    register_activation("swish", nn.functional.silu)
    try:
        x, y = iris()
        sets = [("cosine", "mean", "swish"), ("multiplication", "sum", "swish"), ("cosine", "sum", "tanh")]
        changes = {"operators": sets, "epochs": (15,), "fine_tune_epochs": 2}
        clf = quick(cls, **changes).fit(x, y)
        blocks = [block for layer in clf.network_.layers for block in layer]
        used = {block.operator_set for block in blocks if block.operator_set != IDENTITY}
        assert used <= {OperatorSet(*names) for names in sets}
        assert clf.score(x, y) > 0.7
        assert all(len(step.candidates) == 3 for step in searches(clf.history_))
        np.testing.assert_array_equal(
            quick(cls, **changes).fit(x, y).decision_function(x), clf.decision_function(x)
        )
        clf.save(tmp_path / "model.safetensors")
        np.testing.assert_array_equal(
            opgrow.load(tmp_path / "model.safetensors").decision_function(x), clf.decision_function(x)
        )
    finally:
        for kind, name in (("nodal", "cosine"), ("pool", "mean"), ("activation", "swish")):
            unregister(kind, name)


@every([opgrow.POPClassifier, opgrow.POPFastClassifier, opgrow.PMLPClassifier])
def test_a_custom_loss_and_optimizer(cls):
    def squared(outputs, target):
        return ((outputs - target) ** 2).mean(dim=1)

    # Without rows that are held out, nothing scales the outputs afterwards.
    changes = {"epochs": (30,), "criterion": "loss", "validation_fraction": 0.0}
    x, y = iris()
    custom = quick(cls, loss=squared, **changes).fit(x, y)
    named = quick(cls, loss="mse", **changes).fit(x, y)
    assert (custom.loss_, named.loss_) == ("custom", "mse")
    error = [np.square(clf.decision_function(x) - np.eye(3)[y]).mean() for clf in (custom, named)]
    assert error[0] == pytest.approx(error[1], rel=0.5)
    assert error[0] < 0.5 * np.var(np.eye(3)[y])
    sgd = quick(cls, optimizer=lambda groups: torch.optim.SGD(groups, lr=1.0), loss="mse", **changes)
    assert np.square(sgd.fit(x, y).decision_function(x) - np.eye(3)[y]).mean() < np.var(np.eye(3)[y])


@every([opgrow.POPClassifier, opgrow.PMLPRegressor])
def test_features_that_are_not_finite_are_an_error_that_says_so(cls):
    x, y = data_for(cls)
    sets = [("quadratic", "sum", "inverse_absolute")]
    if cls is opgrow.PMLPRegressor:
        model = quick(cls, standardize=False).fit(1e30 * x, y)  # activated, so finite all the same
        assert np.isfinite(model.network_.outputs(1e30 * x)).all()
    else:
        with pytest.raises(FloatingPointError, match="none of the 1 candidates had a finite score"):
            quick(cls, operators=sets, standardize=False).fit(1e30 * x, y)


def test_defaults_predict_held_out_rows():
    sets = [(nodal, "sum", "tanh") for nodal in ("multiplication", "harmonic", "gaussian")]
    x, y = load_wine(return_X_y=True)
    for cls in CLASSIFIERS:
        parameters = {} if cls is opgrow.PMLPClassifier else {"operators": sets}
        clf = cls(random_state=0, fine_tune_epochs=20, **parameters).fit(x[::2], y[::2])
        assert clf.score(x[1::2], y[1::2]) > 0.93, cls


def test_the_papers_settings():
    clf = opgrow.POPClassifier.paper()
    assert clf.widths == (200,) * 4
    assert (clf.criterion, clf.loss, clf.validation_fraction) == ("accuracy", "mse", 0.2)
    assert (tuple(clf.learning_rates), tuple(clf.epochs)) == ((0.01, 0.001, 0.0001), (20, 40, 40))
    assert (clf.fine_tune_epochs, clf.fine_tune_learning_rate, clf.patience) == (200, 5e-5, None)
    assert clf.layer_threshold == 1e-4
    assert len(opgrow.operators.library(clf.operators)) == 144
    large = opgrow.PMLPRegressor.paper("large", dropout=0.1)
    assert large.widths == (200,) * 8
    assert (large.criterion, large.validation_fraction, large.input_dropout) == ("loss", 0.25, 0.2)
    assert (large.dropout, tuple(large.epochs)) == (0.1, (100,) * 5)
    with pytest.raises(ValueError, match="^scale must be 'small' or 'large', got 'huge'$"):
        opgrow.POPFastClassifier.paper("huge")
    x, y = load_wine(return_X_y=True)
    changes = {"widths": (6, 6), "learning_rates": (0.01,), "epochs": (20,), "fine_tune_epochs": 2}
    for cls in (opgrow.POPFastClassifier, opgrow.PMLPClassifier):
        assert cls.paper(random_state=0, **changes).fit(x, y).score(x, y) > 0.9


@every(ESTIMATORS)
def test_parameters_reach_the_growth(cls, monkeypatch):
    seen, original = [], pop.POPGrowth.__init__

    def watching(self, problem, method, settings, *rest):
        seen.append((len(problem.x), method, settings))
        original(self, problem, method, settings, *rest)

    monkeypatch.setattr(pop.POPGrowth, "__init__", watching)
    tuning = {"batch_size": 7, "dropout": 0.2, "input_dropout": 0.1, "max_norm": 3.0, "patience": 2}
    tuning["keep_state"] = "last"
    given = {"widths": [3, 2], "weight_range": 0.3, "target": 0.25, "layer_threshold": 0.5, "n_jobs": 2}
    own = {"memory_energy": 0.5, "memory_ridge": 2.0, "weight_decay": "auto"}
    fine = {"fine_tune_epochs": 3, "fine_tune_learning_rate": 0.004}
    x, y = data_for(cls)
    quick(cls, **tuning, **given, **own, **fine, validation_fraction=0.0).fit(x, y)
    quick(cls, weight_decay=0.02).fit(x, y)
    (n_rows, method, actual), (_, _, other) = seen
    assert cls.__name__.startswith(method.name)
    assert actual.tuning == TuningSettings(
        loss="mse" if cls not in CLASSIFIERS or method is methods.POP else "cross_entropy",
        learning_rates=(0.01,),
        epochs=(4,),
        weight_decay=0.4 / n_rows,
        n_threads=2,
        **tuning,
    )
    assert actual.fine_tuning == replace(actual.tuning, learning_rates=(0.004,), epochs=(3,))
    assert (actual.widths, actual.max_layers, actual.weight_range) == ((3, 2), 2, 0.3)
    assert (actual.target, actual.layer_threshold, actual.n_threads) == (0.25, 0.5, 2)
    assert actual.criterion == ("brier" if cls in CLASSIFIERS else "loss")
    if method.memory:
        assert (actual.memory, actual.memory_energy, actual.memory_ridge) == ("pca", 0.5, 2.0)
    assert (other.target, other.weight_range) == (None, None)
    assert other.tuning.weight_decay == other.fine_tuning.weight_decay == 0.02


BAD = {
    "widths": [0, (), (5, 0), (5, 2.5), "5", None, (True,), {5}, np.array([[3]]), -1],
    "layer_threshold": ["no", None, np.nan],
    "target": ["best", np.nan],
    "weight_range": [0, -1.0, "wide", None, np.inf, (0.5, 1.0)],
    "operators": ["nope", [], [("a", "b", "c")], None, 3],
    "activation": ["nope", None, 3, ("tanh",)],
    "memory": ["ica", None, 3],
    "memory_energy": [0, 1.5, None, "most", np.nan],
    "memory_ridge": [0, -1.0, None, "some", np.inf],
    "criterion": ["f1", None, 3],
    "loss": ["hinge", None, 3],
    "learning_rates": [None, "fast", (0.1, 0.2, 0.3), (-0.1,), (np.nan,)],
    "epochs": [None, (1, 2), (1.5,), (-1,)],
    "patience": [0, 1.5, "long"],
    "keep_state": ["first", None, 1],
    "batch_size": [0, 32.0, None],
    "dropout": [1.0, -0.1, "high", (0.1, 0.3), None, np.nan],
    "input_dropout": [1.0, -0.1, None],
    "weight_decay": [-1.0, "heavy", None, np.nan],
    "max_norm": [0, -1.0, "unit"],
    "optimizer": ["sgd", None],
    "fine_tune_epochs": [-1, 1.5, None],
    "fine_tune_learning_rate": [-0.1, "slow", np.nan],
    "validation_fraction": [-0.1, 1.0, None],
    "device": ["tpu", None],
    "n_jobs": [0, -2, "all"],
    "callbacks": [3, [3]],
}


@pytest.mark.parametrize(
    ("name", "value"),
    [pytest.param(name, value, id=f"{name}={value!r}") for name in BAD for value in BAD[name]],
)
def test_bad_parameters_are_named_in_one_sentence(name, value):
    tested = 0
    for cls in ESTIMATORS:
        if name not in inspect.signature(cls).parameters:
            continue
        with pytest.raises(ValueError, match="got|registered|given|empty|holds|same length") as caught:
            quick(cls, **{name: value}).fit(*data_for(cls))
        message = str(caught.value)
        assert {"operators": "operator"}.get(name, name) in message
        assert "\n" not in message
        assert len(message) < 500
        tested += 1
    assert tested >= 2


@pytest.mark.parametrize("criterion", CRITERIA)
def test_scores_of_candidates_are_higher_if_better(criterion):
    _, growth, _ = grow("POPFast", criterion=criterion, loss="cross_entropy", widths=(6,))
    [step] = searches(growth.steps)
    assert step.candidates[0].score == (1 if CRITERIA[criterion] else -1) * step.score.value
    assert step.candidates[0].score >= step.candidates[-1].score
