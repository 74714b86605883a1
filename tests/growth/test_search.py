"""The operator search against brute force: refitting, scikit-learn, counting."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge

from opgrow import OperatorSet, operator_sets
from opgrow.engine import reference
from opgrow.growth.search import SearchSettings, search, solved_again
from opgrow.network import NORM_EPSILON, Block
from opgrow.operators import register_nodal, unregister
from opgrow.rows import search_sums as statistics
from opgrow.rows.draws import DrawSettings, draw_weights
from opgrow.rows.memory import MemoryRows

pytestmark = pytest.mark.cpu

RIDGE = 0.5
M = 5
SETS = [OperatorSet("harmonic", p, a) for p in ("sum", "correlation1", "maximum") for a in ("tanh", "elu")]


def rows(n=90, p=0, seed=0, weighted=True):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4)).astype(np.float32)
    labels = (x[:, 0] > 0).astype(int) + (x[:, 1] * x[:, 2] > 0)
    weight = rng.uniform(0.3, 2, n) if weighted else np.ones(n)
    weight = (weight / weight.mean()).astype(np.float32)
    accepted = np.tanh(x @ rng.normal(size=(4, p))) + 0.1 * rng.normal(size=(n, p))
    accepted = accepted - np.average(accepted, axis=0, weights=weight)
    accepted = accepted / np.sqrt(np.average(accepted**2, axis=0, weights=weight))
    return MemoryRows(x, accepted.astype(np.float32), np.eye(3, dtype=np.float32)[labels], weight)


def run(data, sets=SETS, seed=3, n_neurons=M, validation=None, **settings):
    settings = SearchSettings(**({"ridges": (RIDGE,)} | settings))
    return search(data, sets, n_neurons, settings, np.random.default_rng(seed), validation)


def standard_features(data, winner, x=None):
    """The winner's design matrix in double precision: accepted features and standardised new ones."""
    tensors = (torch.from_numpy(np.asarray(a, np.float64)) for a in (data.x, winner.weight, np.zeros(M)))
    raw = reference.features(*tensors, winner.candidate.operator_set).numpy()
    mean = np.average(raw, axis=0, weights=data.weight)
    variance = np.average((raw - mean) ** 2, axis=0, weights=data.weight)
    np.testing.assert_allclose(winner.mean, mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(winner.variance, variance, rtol=1e-3)
    if x is not None:
        tensors = (torch.from_numpy(np.asarray(a, np.float64)) for a in (x.x, winner.weight, np.zeros(M)))
        raw = reference.features(*tensors, winner.candidate.operator_set).numpy()
        data = x
    return np.concatenate([data.accepted, (raw - mean) / np.sqrt(variance + NORM_EPSILON)], axis=1)


def ridge(features, data, keep=slice(None), c=RIDGE):
    return Ridge(alpha=c).fit(features[keep], data.target[keep], sample_weight=data.weight[keep])


def leave_one_out(features, data):
    """Negative weighted squared error of refitting without each row; the standardisation stays."""
    total = 0.0
    for i in range(data.n_rows):
        others = np.arange(data.n_rows) != i
        error = data.target[i] - ridge(features, data, others).predict(features[i : i + 1])[0]
        total += data.weight[i] * float((error**2).sum())
    return -total / data.weight.sum()


def squared_error(features, data, c=RIDGE):
    error = ((data.target - ridge(features, data, c=c).predict(features)) ** 2).sum(axis=1)
    return np.average(error, weights=data.weight)


def generalized(features, data):
    x = np.concatenate(
        [np.ones((data.n_rows, 1)), features - np.average(features, axis=0, weights=data.weight)], axis=1
    )
    penalty = RIDGE * np.eye(x.shape[1])
    penalty[0, 0] = 0
    weighted = x * data.weight[:, None]
    freedom = np.trace(np.linalg.solve(x.T @ weighted + penalty, x.T @ weighted))
    return -squared_error(features, data) / (1 - freedom / data.weight.sum()) ** 2


def accuracy(features, data, fitted_on=None, fit_features=None):
    model = ridge(features if fit_features is None else fit_features, fitted_on or data)
    hit = model.predict(features).argmax(axis=1) == data.target.argmax(axis=1)
    return np.average(hit, weights=data.weight)


BRUTE_FORCE = {
    "loo": leave_one_out,
    "gcv": generalized,
    "loss": lambda features, data: -squared_error(features, data),
    "accuracy": accuracy,
}


@pytest.mark.parametrize("p", [0, 6])
@pytest.mark.parametrize("score", BRUTE_FORCE)
def test_scores_of_all_candidates_equal_brute_force(score, p):
    data = rows(p=p)
    together = {c.operator_set: c for c in run(data, score=score).candidates}
    assert set(together) == set(SETS)
    for operator_set in SETS:  # all of them share the draw that each gets when it is alone
        winner = run(data, [operator_set], score=score).winner
        features = standard_features(data, winner)
        expected = BRUTE_FORCE[score](features, data)
        assert winner.candidate.score == pytest.approx(expected, rel=1e-3)
        assert together[operator_set].score == pytest.approx(expected, rel=1e-3)
        assert together[operator_set].loss == pytest.approx(squared_error(features, data), rel=1e-3)


@pytest.mark.parametrize("p", [0, 4])
def test_accuracy_is_taken_on_validation_data(p):
    data, held = rows(p=p), rows(n=70, p=p, seed=1)
    for operator_set in SETS[::2]:
        winner = run(data, [operator_set], score="accuracy", validation=held).winner
        features, seen = standard_features(data, winner, held), standard_features(data, winner)
        expected = accuracy(features, held, fitted_on=data, fit_features=seen)
        assert winner.candidate.score == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("p", [0, 6])
@pytest.mark.parametrize("score", BRUTE_FORCE)
def test_the_winners_head_gives_the_ridge_predictions(score, p):
    data = rows(p=p)
    winner = run(data, operator_sets(), score=score).winner
    features = standard_features(data, winner)
    actual = features @ winner.head + winner.intercept
    np.testing.assert_allclose(actual, ridge(features, data).predict(features), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("score", BRUTE_FORCE)
def test_the_best_candidate_wins_and_equal_scores_go_to_the_lower_loss(score):
    for seed in range(3):
        actual = run(rows(seed=seed), operator_sets(), score=score)
        best = max(c.score for c in actual.candidates)
        assert actual.winner.candidate.score == best
        assert actual.winner.candidate.loss == min(c.loss for c in actual.candidates if c.score == best)
        assert actual.candidates[0] == actual.winner.candidate
        ranks = [(-c.score, c.loss) for c in actual.candidates]
        assert ranks == sorted(ranks)


def test_equal_accuracies_do_occur_and_are_decided_by_the_loss():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 4)).astype(np.float32)
    x[:, 0] = np.sign(x[:, 0]) * (2 + np.abs(x[:, 0]))
    target = np.eye(2, dtype=np.float32)[(x[:, 0] > 0).astype(int)]
    data = MemoryRows(x, np.zeros((60, 0), np.float32), target, np.ones(60, np.float32))
    actual = run(data, operator_sets(), score="accuracy", n_neurons=20)
    perfect = [c for c in actual.candidates if c.score == 1.0]
    assert len(perfect) > 1
    assert actual.winner.candidate == min(perfect, key=lambda c: c.loss)


@pytest.mark.parametrize("score", BRUTE_FORCE)
@pytest.mark.parametrize("p", [0, 3])
def test_chunks_and_cache_do_not_change_the_result(score, p, monkeypatch):
    data = rows(n=300, p=p)
    whole = run(data, operator_sets(), score=score)
    for name in ("CHUNK_BYTES", "CACHE_BYTES"):
        monkeypatch.setattr(statistics, name, 0)
        actual = run(data, operator_sets(), score=score)
        assert actual.winner.candidate.operator_set == whole.winner.candidate.operator_set
        np.testing.assert_array_equal(actual.winner.weight, whole.winner.weight)
        np.testing.assert_allclose(actual.winner.head, whole.winner.head, rtol=1e-3, atol=1e-3)
        by_set = {c.operator_set: c for c in actual.candidates}
        for candidate in whole.candidates[:20]:
            other = by_set[candidate.operator_set]
            assert other.score == pytest.approx(candidate.score, rel=1e-3, abs=1e-6)
            assert other.loss == pytest.approx(candidate.loss, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("score", BRUTE_FORCE)
def test_threads_do_not_change_the_result(score):
    data = rows(n=200, p=3)
    one, two = (run(data, operator_sets(), score=score, n_threads=n) for n in (1, 2))
    assert one.winner.candidate == two.winner.candidate
    np.testing.assert_array_equal(one.winner.weight, two.winner.weight)
    np.testing.assert_array_equal(one.winner.head, two.winner.head)


@pytest.mark.parametrize("score", ["gcv", "loss", "accuracy"])
def test_integer_weights_equal_repeated_rows(score):
    data = rows(n=120, p=3, weighted=False)
    count = np.random.default_rng(0).integers(1, 4, 120)
    weighted = replace(data, weight=count.astype(np.float32))
    repeated = MemoryRows(
        *(np.repeat(a, count, axis=0) for a in (data.x, data.accepted, data.target, data.weight))
    )
    a, b = run(weighted, score=score), run(repeated, score=score)
    assert a.winner.candidate.operator_set == b.winner.candidate.operator_set
    np.testing.assert_allclose(a.winner.head, b.winner.head, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(a.winner.intercept, b.winner.intercept, rtol=1e-4, atol=1e-5)
    for one, other in zip(a.candidates, b.candidates, strict=True):
        assert one.score == pytest.approx(other.score, rel=1e-3)


@pytest.mark.parametrize("score", ["gcv", "loss", "accuracy"])
def test_draws_ranges_and_ridges_multiply_the_candidates(score):
    ranges, ridges = (0.5, 1.0, 2.0), (0.1, 10.0)
    actual = run(rows(), score=score, n_draws=2, weight_ranges=ranges, ridges=ridges)
    assert len(actual.candidates) + actual.n_invalid == len(SETS) * 2 * len(ranges) * len(ridges)
    assert {c.weight_range for c in actual.candidates} == set(ranges)
    assert {c.ridge for c in actual.candidates} == set(ridges)
    winner = actual.winner
    assert np.abs(winner.weight).max() <= winner.candidate.weight_range
    features = standard_features(rows(), winner)
    assert winner.candidate.loss == pytest.approx(
        squared_error(features, rows(), c=winner.candidate.ridge), rel=1e-3
    )


def test_more_draws_cannot_worsen_the_best_score():
    one = run(rows(), score="gcv").winner.candidate
    many = run(rows(), score="gcv", n_draws=5).winner.candidate
    assert many.score >= one.score


@pytest.fixture
def spies():
    """Nodal operators that note the weights they are called with."""
    seen = {"spy_a": [], "spy_b": []}

    def spy(name):
        def psi(y, w):
            seen[name].append(w.detach().clone())
            return torch.sin(w * y)

        return psi

    for name in seen:
        register_nodal(name, spy(name))
    for notes in seen.values():
        notes.clear()
    yield seen
    for name in seen:
        unregister("nodal", name)


def distinct(tensors):
    return len({tuple(t.flatten().tolist()) for t in tensors})


@pytest.mark.parametrize("share", [True, False])
def test_sets_share_the_draw_of_their_nodal_operator_or_not(spies, share):
    sets = [OperatorSet(n, "sum", a) for n in spies for a in ("tanh", "elu", "relu")]
    run(rows(), sets, score="gcv", share_draws=share)
    assert [distinct(notes) for notes in spies.values()] == ([1, 1] if share else [3, 3])
    assert distinct([t for notes in spies.values() for t in notes]) == (2 if share else 6)


def test_ranges_of_one_draw_are_multiples_of_each_other(spies):
    run(rows(), [OperatorSet("spy_a", "sum", "tanh")], score="gcv", weight_ranges=(1.0, 3.0))
    ordered = sorted(spies["spy_a"], key=lambda w: float(w.abs().max()))
    small, large = ordered[0], ordered[-1]
    assert distinct(ordered) == 2
    torch.testing.assert_close(large, 3 * small)


def test_a_custom_operator_gets_the_score_of_the_compiled_one(spies):
    for p in (0, 4):
        data = rows(p=p)
        for score in BRUTE_FORCE:
            custom = run(data, [OperatorSet("spy_a", "sum", "tanh")], score=score).winner
            compiled = run(data, [OperatorSet("harmonic", "sum", "tanh")], score=score).winner
            assert custom.candidate.score == pytest.approx(compiled.candidate.score, rel=1e-3)
            np.testing.assert_array_equal(custom.weight, compiled.weight)
            np.testing.assert_allclose(custom.head, compiled.head, rtol=1e-2, atol=1e-3)


@pytest.fixture
def explosive():
    register_nodal("explosive", lambda y, w: (w * y).masked_fill(w.abs() > 2, torch.inf))
    yield "explosive"
    unregister("nodal", "explosive")


@pytest.mark.parametrize("score", BRUTE_FORCE)
@pytest.mark.parametrize("bad_first", [True, False])
def test_a_candidate_that_is_not_finite_never_wins(explosive, score, bad_first):
    good = [OperatorSet("harmonic", "sum", "tanh"), OperatorSet("dog", "sum", "sigmoid")]
    bad = [OperatorSet(explosive, pool, "relu") for pool in ("sum", "maximum", "correlation1")]
    actual = run(rows(p=2), bad + good if bad_first else good + bad, score=score, weight_ranges=(20.0,))
    assert actual.n_invalid == 3
    assert {c.operator_set for c in actual.candidates} == set(good)
    assert actual.winner.candidate.operator_set in good
    assert all(np.isfinite(a).all() for a in (actual.winner.head, actual.winner.mean, actual.winner.variance))


@pytest.mark.parametrize("score", BRUTE_FORCE)
def test_if_no_candidate_is_finite_the_error_says_so(explosive, score):
    with pytest.raises(FloatingPointError, match="none of the 1 candidate"):
        run(rows(), [OperatorSet(explosive, "sum", "relu")], score=score, weight_ranges=(20.0,))


@pytest.mark.parametrize("score", BRUTE_FORCE)
def test_constant_features_do_no_harm(score):
    data = rows()
    dead = OperatorSet("quadratic", "correlation2", "relu")
    single = replace(data, x=data.x[:, :1])  # a correlation over one input is 0: every feature is constant
    actual = run(single, [dead], score=score)
    np.testing.assert_allclose(actual.winner.head, 0, atol=1e-6)
    np.testing.assert_allclose(
        actual.winner.intercept, np.average(data.target, axis=0, weights=data.weight), atol=1e-5
    )


def test_the_same_seed_finds_the_same_and_another_seed_other_weights():
    a, b, c = (run(rows(), operator_sets(), seed=seed) for seed in (1, 1, 2))
    assert a.candidates == b.candidates
    np.testing.assert_array_equal(a.winner.weight, b.winner.weight)
    assert not np.array_equal(a.winner.weight, c.winner.weight)


def test_rows_far_from_the_first_chunk_are_no_problem(monkeypatch):
    """Shift and scale come from the first chunk; sorted data must not spoil the sums."""
    monkeypatch.setattr(statistics, "CHUNK_BYTES", 0)
    data = rows(n=256, weighted=False)
    order = np.argsort(data.x[:, 0])
    x = data.x * 0.01
    x[order[-64:]] *= 100
    data = MemoryRows(x[order], data.accepted, data.target[order], data.weight)
    winner = run(data, [OperatorSet("multiplication", "sum", "elu")], score="loss").winner
    features = standard_features(data, winner)
    assert winner.candidate.loss == pytest.approx(squared_error(features, data), rel=1e-3)


def test_few_neurons_decide_which_sets_are_searched_with_all():
    data = rows(n=120)
    sets = operator_sets(pool=["sum", "maximum"])
    perceptrons = frozenset(s for s in sets if (s.nodal, s.pool) == ("multiplication", "sum"))
    short = run(data, sets, n_neurons=9, few=2, rivals=perceptrons)
    first = run(data, sets, n_neurons=2, rivals=perceptrons)
    ranked = list(dict.fromkeys(c.operator_set for c in first.candidates))
    finalists = {*ranked[:8], *[s for s in ranked if s in perceptrons][:2]}
    n_last = len(finalists)
    assert {c.operator_set for c in short.candidates[:n_last]} == finalists
    assert len(short.candidates) > n_last  # those that came last, as a few neurons had them
    assert short.winner.weight.shape == (4, 9)
    assert short.winner.candidate == short.candidates[0]
    best = max((c for c in short.candidates if c.operator_set in perceptrons), key=lambda c: c.score)
    assert short.winner.candidate == best or short.rival.candidate == best


def test_blocks_of_few_neurons_and_few_sets_are_searched_as_ever():
    data = rows(n=120)
    sets = operator_sets(pool=["sum"])
    for wanted, n_neurons in ((sets, 3), (sets[:10], 9)):
        plain, short = (run(data, wanted, n_neurons=n_neurons, few=few) for few in (None, 3))
        assert plain.candidates == short.candidates
        np.testing.assert_array_equal(plain.winner.weight, short.winner.weight)


def test_neurons_of_every_second_draw_concentrate_on_few_inputs():
    sets = operator_sets(nodal=["multiplication", "harmonic"], pool=["sum"])
    settings = DrawSettings(weight_ranges=(0.5, 2.0), n_draws=4, focus=3)
    draws = draw_weights(12, 50, sets, settings, np.random.default_rng(0))
    assert [draw.weight_range for draw in draws] == [0.5, 2.0] * 8
    for number, draw in enumerate(draws):
        size = np.abs(draw.weight) / draw.weight_range
        if number // 4 % 2 == 0:
            assert size.max() <= 1
            continue
        large = np.sort(size, axis=0)[::-1]
        assert (large[3:] <= 0.05).all()
        assert np.median(large[:3]) > 0.5
        # The sums of inputs of unit variance vary as much.
        assert np.square(size).sum(axis=0).mean() == pytest.approx(12 / 3, rel=0.2)
    narrow = draw_weights(3, 50, sets, replace(settings, n_draws=2), np.random.default_rng(0))
    assert all(np.abs(draw.weight).max() <= draw.weight_range for draw in narrow)


@pytest.mark.parametrize("p", [0, 4])
def test_a_head_that_is_solved_again_is_that_of_ridge_regression(p):
    data = rows(p=p)
    block = Block(4, M, OperatorSet("harmonic", "sum", "tanh"))
    block.weight = np.random.default_rng(1).normal(size=(4, M)).astype(np.float32)
    solved = solved_again(data, block, RIDGE, 1)
    expected = ridge(standard_features(data, solved), data)
    np.testing.assert_allclose(solved.head, expected.coef_.T, atol=1e-4)
    np.testing.assert_allclose(solved.intercept, expected.intercept_, atol=1e-4)


def test_a_block_without_finite_features_is_not_solved_again():
    block = Block(4, M, OperatorSet("multiplication", "sum", "identity"))
    block.weight[:] = 1e30
    assert solved_again(rows(), block, RIDGE, 1) is None
