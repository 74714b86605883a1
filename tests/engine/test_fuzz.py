"""Calls with random sizes, strides and values: nothing outside of the arrays is touched, whatever is in them.

`make sanitize` runs this with AddressSanitizer and UBSan; OPGROW_FUZZ is the number of calls.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from opgrow.engine import blocks, calibration, evaluation, prediction, search, sums, training
from opgrow.engine.blocks import ACTIVATIONS, NODALS, POOLS
from opgrow.engine.prediction import BlockArrays, CompiledNetwork, NetworkArrays
from opgrow.engine.search import SolvedCandidates
from opgrow.engine.training import Rows, Settings, Shape, State

COUNT = int(os.environ.get("OPGROW_FUZZ", "300"))
SEED = int(os.environ.get("OPGROW_FUZZ_SEED", "0"))
_GUARD = np.float32(-1.5e-7)


class Guarded:
    """Memory for intermediate results with guards behind it."""

    def __init__(self):
        self.given = []

    def __call__(self, n_floats):
        memory = np.full(int(n_floats) + 32, _GUARD, np.float32)
        self.given.append((memory, int(n_floats)))
        return memory[: int(n_floats)]

    def check(self):
        for memory, size in self.given:
            assert (memory[size:] == _GUARD).all()
        self.given.clear()


@pytest.fixture
def guarded(monkeypatch):
    rooms = Guarded()
    for module in (blocks, calibration, evaluation, prediction, search, sums, training):
        monkeypatch.setattr(module, "room", rooms)
    monkeypatch.setattr(prediction._rooms, "of", rooms, raising=False)
    return rooms


def size(rng, most=40):
    return int(rng.choice([1, 2, 3, 4, 15, 16, 17, 31, 33, rng.integers(1, most)]))


def values(rng, *shape):
    """Floats of ordinary and extreme size, sometimes with NaN and infinities; sometimes not contiguous."""
    out = rng.normal(size=shape) * 10.0 ** rng.integers(-3, 4)
    if rng.random() < 0.3 and out.size:
        chosen = rng.integers(0, out.size, 3)
        out.flat[chosen] = rng.choice([np.nan, np.inf, -np.inf, 0.0, 3e38, -1e-40, 1e30], 3)
    return out.astype(np.float32)


def codes(rng):
    return tuple(int(rng.integers(0, len(names))) for names in (NODALS, POOLS, ACTIVATIONS))


def strided(rng, x):
    wider = np.zeros((len(x), x.shape[1] + int(rng.integers(0, 4))), np.float32)
    wider[:, : x.shape[1]] = x
    return wider[:, : x.shape[1]]


def call_block(engine, rng):
    n, d_in, d = size(rng, 90) - int(rng.random() < 0.05), size(rng, 150), size(rng)
    x, weight, bias = strided(rng, values(rng, n, d_in)), values(rng, d_in, d), values(rng, d)
    chosen = codes(rng)
    engine.features(chosen, x, weight, bias if rng.random() < 0.5 else None)
    sets = [codes(rng) for _ in range(int(rng.integers(0, 5)))]
    engine.search_features(chosen[0], [s[1] for s in sets], [s[2] for s in sets], x, weight)
    engine.gradients(chosen, x, weight, bias, values(rng, n, d), bool(rng.random() < 0.5))


def call_sums(engine, rng):
    n, p, q = size(rng, 300), size(rng), size(rng)
    left, right, weight = values(rng, n, p), values(rng, q, n).T, values(rng, n)
    engine.gram(strided(rng, left), right, weight if rng.random() < 0.5 else None)
    engine.gram(left, left)
    k = int(rng.integers(0, 4))
    others = weight if rng.random() < 0.5 else None, left, values(rng, n, size(rng))
    engine.search_sums(values(rng, k, q, n), *values(rng, 2, k, q), *others)
    engine.moments(left, weight)
    engine.score(
        str(rng.choice(["accuracy", "brier", "loss"])),
        str(rng.choice(["mse", "cross_entropy"])),
        left,
        left,
        weight,
    )
    matrix = engine.gram(left, left) + np.eye(p)
    factor = engine.cholesky(matrix)
    if factor is not None:
        engine.substitute(factor, values(rng, p, q).astype(np.float64), transposed=True)
    engine.whiten(np.stack([matrix, matrix]), 0.1)
    engine.eigen(matrix)
    engine.orthonormal(matrix)
    engine.unit_rows(left)
    engine.multiply(matrix, np.stack([left, left]).astype(np.float64).swapaxes(1, 2))


def call_predict(engine, rng):
    n_inputs, n_outputs, broad = size(rng), size(rng, 6), bool(rng.random() < 0.3)
    layers, width, total = [], n_inputs, 0
    for number in range(int(rng.integers(0, 4))):
        layer = []
        for _ in range(int(rng.integers(1, 4))):
            given = int(rng.integers(1, width + 1)) if broad and number else width
            norm = [None, "batch", "unit"][int(rng.integers(0, 3))]
            d = size(rng)
            layer.append(
                BlockArrays(codes(rng), values(rng, given, d), values(rng, d), norm, values(rng, 4, d))
            )
        width = sum(block.weight.shape[1] for block in layer)
        total += width
        layers.append(layer)
    features = total if broad and layers else width
    head = values(rng, features, n_outputs), values(rng, n_outputs)
    network = NetworkArrays(
        n_inputs,
        layers,
        BlockArrays(codes(rng), *head) if rng.random() < 0.4 else head,
        input_bound=3.0 if rng.random() < 0.5 else None,
        broad=broad,
    )
    x = values(rng, size(rng, 300) - 1, n_inputs)
    engine.predict(CompiledNetwork(network), x.astype(np.float64) if rng.random() < 0.5 else strided(rng, x))


def call_train(engine, rng):
    n, n_inputs, n_frozen, n_outputs = size(rng, 100), size(rng), int(rng.integers(0, 5)), size(rng, 6)
    plan, widths, width, offset = [], [], n_inputs, 0
    for layer in range(int(rng.integers(1, 3))):
        first = 0
        for _ in range(int(rng.integers(1, 3))):
            d = size(rng, 20)
            plan.append([*codes(rng), width, d, offset, layer, first])
            first, offset = first + d, offset + d * (width + 3)
        width = first
        widths.append(width)
    head = codes(rng) if rng.random() < 0.4 else (-1, -1, -1)
    shape = Shape(np.array(plan), np.array(widths), head, n_frozen, n_outputs)
    rows = Rows(*(values(rng, n, k) for k in (n_inputs, n_frozen, n_outputs)), np.abs(values(rng, n)))
    drop, most = float(rng.choice([0.0, 0.4])), float(rng.choice([0.0, 1.0]))
    decay = np.zeros(shape.n_parameters, np.float32)
    settings = Settings(str(rng.choice(["mse", "cross_entropy"])), decay, drop, drop / 2, most)
    state = State(values(rng, shape.n_parameters))
    bounds = np.unique([0, *rng.integers(1, n + 1, 3), n])
    epochs = engine.epochs(shape, rows, settings, state, bounds)
    engine.train_epoch(epochs, rng.permutation(n), 0.01, int(rng.integers(1, 2**62)))
    prepared, moments = engine.evaluation(shape, rows, settings, state.theta), values(rng, 2, sum(widths))
    engine.feature_sums(prepared, moments, int(rng.integers(0, len(widths))))
    engine.score_sums(prepared, moments, str(rng.choice(["accuracy", "brier", "loss"])))


def call_search(engine, rng):
    k, m, n, p, c = size(rng, 6), size(rng), size(rng, 300), int(rng.integers(0, 20)), size(rng, 9)
    shapes = (k, m), (k, m), (p, k, m), (k, m, m), (k, m, c), (p,), (c,), (p, c)
    base = values(rng, p, p).astype(np.float64)
    solved = SolvedCandidates(*(values(rng, *shape) for shape in shapes), base, float(n))
    rows = values(rng, k, m, n), values(rng, n, p), values(rng, n, c), values(rng, n)
    engine.search_scores(solved, *rows, bool(rng.random() < 0.5))
    engine.temperature(*rows[2:3] * 2, rows[3])
    engine.probabilities(rows[2].astype(np.float64), bool(rng.random() < 0.5))


CALLS = {
    "block": call_block,
    "search": call_search,
    "sums": call_sums,
    "predict": call_predict,
    "train": call_train,
}


@pytest.mark.parametrize("kind", CALLS)
def test_calls_stay_within_their_arrays(engine, guarded, kind):
    for number in range(-(-COUNT // len(CALLS))):
        rng = np.random.default_rng([SEED, number, list(CALLS).index(kind)])
        with np.errstate(all="ignore"):
            CALLS[kind](engine, rng)
        guarded.check()
