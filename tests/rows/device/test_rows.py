"""Rows on a device: resident or streamed, whole or in chunks, they are the same rows."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
import torch

from opgrow import Block, OperatorSet
from opgrow.growth.engine import NativeEngine
from opgrow.growth.search import SearchSettings, search
from opgrow.network.scaling import Scaling
from opgrow.operators import operator_sets
from opgrow.rows.preparation import moments
from opgrow.rows.problem import Problem

pytest.importorskip("triton", reason="the GPU kernels are written in Triton, which is not installed")

from opgrow.growth.cuda_engine import CudaEngine
from opgrow.rows.device import budget
from opgrow.rows.device import rows as gpu_rows
from opgrow.rows.device.budget import Budget, shrinking
from opgrow.rows.device.source import device_moments

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
#: Products with sums are matrix products, which need no slow interpreter.
SETS = operator_sets(("multiplication", "quadratic"), ("sum",), ("sigmoid", "tanh", "relu"))
SETTINGS = SearchSettings(ridges=(0.1, 1.0), weight_ranges=(0.8,))


@pytest.fixture(params=["resident", "streamed"])
def storage(request, monkeypatch):
    if request.param == "streamed":
        monkeypatch.setattr(budget, "RESIDENT_SHARE", 0.0)
        monkeypatch.setattr(budget, "free_bytes", lambda device: 60_000)
    return request.param


def problem(n=120, dtype=np.float64, weighted=True, seed=0):
    """A problem as the user passes it, and the same one scaled and without its unwanted rows."""
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=(2 * n, 5)) * 3 + 7).astype(dtype)
    chosen = np.sort(rng.permutation(2 * n)[:n])
    target = np.eye(3, dtype=np.float32)[rng.integers(0, 3, n)]
    weight = rng.uniform(0.5, 1.5, n).astype(np.float32) if weighted else np.ones(n, np.float32)
    scaling = Scaling(*moments(x[chosen], weight), 3.0)
    raw = Problem(x, target, weight, None, chosen, scaling)
    plain = Problem(scaling(x[chosen]).astype(np.float32), target, weight)
    return raw, plain


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_chunks_are_the_chosen_rows_scaled(storage, dtype):
    raw, plain = problem(dtype=dtype)
    part = CudaEngine(DEVICE).rows(raw)
    assert (part.inputs is None) == (storage == "streamed")
    for size in (1, 50, 1000):
        actual = list(part.chunks(size))
        x = torch.cat([chunk.x for chunk in actual], dim=1).T.cpu().numpy()
        np.testing.assert_allclose(x, plain.x, atol=2e-6)
        assert np.array_equal(torch.cat([c.target for c in actual], dim=1).T.cpu().numpy(), plain.target)
        assert np.array_equal(torch.cat([c.weight for c in actual]).cpu().numpy(), plain.weight)
        assert all(chunk.n_rows <= size for chunk in actual)


def test_chunks_come_in_the_order_that_is_asked_for(storage):
    raw, plain = problem()
    order = np.array([2, 0, 1])
    actual = list(CudaEngine(DEVICE).rows(raw).chunks(50, order=order))
    assert [chunk.span.start for chunk in actual] == [100, 0, 50]
    for chunk in actual:
        np.testing.assert_allclose(chunk.x.T.cpu().numpy(), plain.x[chunk.span], atol=2e-6)
        assert np.array_equal(chunk.target.T.cpu().numpy(), plain.target[chunk.span])


def test_accepted_blocks_and_next_layers_are_those_of_the_host(storage):
    raw, plain = problem()
    device, host = CudaEngine(DEVICE).rows(raw), NativeEngine().rows(plain)
    rng = np.random.default_rng(0)
    for n_inputs, count in ((5, 2), (7, 1)):
        for i in range(count):
            block = Block(n_inputs, 3 + i, OperatorSet("multiplication", "sum", "tanh"))
            block.weight[:], block.norm.mean[:] = (rng.uniform(-1, 1, n) for n in (block.weight.shape, 3 + i))
            device.accept(block)
            host.accept(block)
        chunks = list(device.chunks(70))
        actual = torch.cat([chunk.accepted for chunk in chunks], dim=1).T.cpu().numpy()
        np.testing.assert_allclose(actual, host.accepted, atol=1e-5)
        device, host = device.next_layer(), host.next_layer()
        assert device.n_inputs == host.n_inputs


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_moments_are_those_of_the_host(dtype):
    raw, _ = problem(dtype=dtype)
    raw.x[:, 2] = 4.0
    weight = raw.weight.astype(np.float64)
    actual = device_moments(raw.x, raw.rows, weight, DEVICE)
    expected = moments(raw.x[raw.rows], weight)
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    assert actual[1][2] == 1.0


def test_moments_whose_squares_overflow_or_vanish():
    x = np.random.default_rng(0).normal(size=(10, 4)) * [1e-310, 1e-200, 0.0, 1e300]
    weight = np.arange(1.0, 11.0)
    for a, b in zip(device_moments(x, None, weight, DEVICE), moments(x, weight), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    x[::2, 1] = 1.7e308
    with pytest.raises(ValueError, match="^the values of X are too large: column 1 reaches"):
        device_moments(x, None, weight, DEVICE)


@pytest.mark.parametrize("score", ["loo", "gcv", "loss", "accuracy"])
@pytest.mark.parametrize("n_accepted", [0, 4])
def test_the_search_is_that_of_the_host(storage, score, n_accepted):
    raw, plain = problem()
    device, host = CudaEngine(DEVICE).rows(raw), NativeEngine().rows(plain)
    if n_accepted:
        block = Block(5, n_accepted, OperatorSet("multiplication", "sum", "tanh"))
        device.accept(block)
        host.accept(block)
    settings = SearchSettings(**(vars(SETTINGS) | {"score": score}))
    actual, expected = (search(part, SETS, 3, settings, np.random.default_rng(0)) for part in (device, host))
    assert actual.winner.candidate.operator_set == expected.winner.candidate.operator_set
    scores = [
        {(c.operator_set, c.ridge): c.score for c in result.candidates} for result in (actual, expected)
    ]
    assert scores[0].keys() == scores[1].keys()
    rounding = 0.02 if score == "accuracy" else 1e-5  # a row at the border may fall either way
    for key in scores[0]:
        assert scores[0][key] == pytest.approx(scores[1][key], rel=1e-3, abs=rounding)
    np.testing.assert_allclose(actual.winner.head, expected.winner.head, rtol=1e-2, atol=1e-3)


def test_all_operators_of_a_search_are_those_of_the_host():
    raw, plain = problem(n=20)
    sets = operator_sets(("exponential", "gaussian"), activation=("tanh",))
    settings = SearchSettings(**(vars(SETTINGS) | {"score": "gcv", "ridges": (1.0,)}))
    actual, expected = (
        search(part, sets, 2, settings, np.random.default_rng(0))
        for part in (CudaEngine(DEVICE).rows(raw), NativeEngine().rows(plain))
    )
    scores = [{c.operator_set: c.score for c in result.candidates} for result in (actual, expected)]
    assert scores[0].keys() == scores[1].keys()
    for key in scores[0]:
        assert scores[0][key] == pytest.approx(scores[1][key], rel=1e-3)


# --- running out of memory ---


def test_after_running_out_of_memory_work_goes_on_with_smaller_chunks():
    budget, sizes = Budget(DEVICE), []

    def work():
        sizes.append(budget.rows(10**9, 1000, most=10**9))
        if len(sizes) < 4:
            raise torch.cuda.OutOfMemoryError("no memory")
        return "done"

    assert shrinking(budget, work, "a test") == "done"
    assert sizes[3] < sizes[2] < sizes[1] < sizes[0]


def test_where_nothing_is_small_enough_one_sentence_says_what_to_change():
    def work():
        raise torch.cuda.OutOfMemoryError("no memory")

    with pytest.raises(MemoryError, match="ran out of memory in a search: .* device='cpu'"):
        shrinking(Budget(DEVICE), work, "a search")


def test_a_search_that_runs_out_of_memory_gives_the_same_result(monkeypatch):
    raw, _ = problem()
    whole = search(CudaEngine(DEVICE).rows(raw), SETS, 3, SETTINGS, np.random.default_rng(0))
    features, failures = gpu_rows.candidate_features, []

    def scarce(x, *others):
        if x.shape[1] > 70:
            failures.append(x.shape[1])
            raise torch.cuda.OutOfMemoryError("no memory")
        return features(x, *others)

    monkeypatch.setattr(gpu_rows, "candidate_features", scarce)
    monkeypatch.setattr(budget, "free_bytes", lambda device: 500_000)
    actual = search(CudaEngine(DEVICE).rows(raw), SETS, 3, SETTINGS, np.random.default_rng(0))
    assert failures
    assert actual.winner.candidate.operator_set == whole.winner.candidate.operator_set
    assert actual.winner.candidate.score == pytest.approx(whole.winner.candidate.score, rel=1e-5)


def test_a_problem_that_is_forgotten_leaves_the_device():
    backend = CudaEngine(DEVICE)
    rng = np.random.default_rng(0)
    parts = [
        Problem(rng.normal(size=(20, 3)), np.ones((20, 1), np.float32), np.ones(20, np.float32))
        for _ in range(2)
    ]
    problem = replace(parts[0], validation=parts[1])
    sources = [weakref.ref(backend.rows(part).source) for part in (problem, parts[1])]
    assert all(source() is not None for source in sources)
    backend.forget(problem)
    gc.collect()
    assert all(source() is None for source in sources)
