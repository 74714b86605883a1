"""A digest of what one instruction set of one library computes, to compare compilers and machines.

Usage: python -m tests.engine.digest LIBRARY ...
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import numpy as np

from opgrow.engine.library import Library
from opgrow.engine.native import Native
from opgrow.engine.prediction import BlockArrays, CompiledNetwork, NetworkArrays
from opgrow.engine.training import Rows, Settings, Shape, State


def digest(engine: Native, n: int = 83) -> str:
    """sha256 of features, gradients, sums, predictions and trained parameters for every operator."""
    rng = np.random.default_rng(0)
    result = hashlib.sha256()

    def add(*arrays: np.ndarray) -> None:
        for array in arrays:
            result.update(np.ascontiguousarray(array).tobytes())

    x = rng.uniform(-3, 3, (n, 9)).astype(np.float32)
    weight, bias = rng.uniform(-1, 1, (9, 18)).astype(np.float32), rng.uniform(-1, 1, 18).astype(np.float32)
    slope = rng.normal(size=(n, 18)).astype(np.float32)
    target = np.eye(3, dtype=np.float32)[rng.integers(0, 3, n)]
    ones = np.ones(n, np.float32)
    rows = Rows(x, x[:, :2].copy(), target, ones)
    bounds = np.array([0, 30, 60, n])
    for nodal in range(8):
        pools, activations = [0, 1, 2, 3] * 2, list(range(8))
        add(engine.search_features(nodal, pools, activations, x, weight))
        for pool, activation in zip(pools, activations, strict=True):
            codes = nodal, pool, activation
            add(engine.features(codes, x, weight, bias))
            for part in engine.gradients(codes, x, weight, bias, slope):
                add(part) if part is not None else None
            block = BlockArrays(codes, weight, bias, "batch", rng.uniform(0.5, 1, (4, 18)).astype(np.float32))
            network = NetworkArrays(9, [[block]], (weight[:, :2].repeat(2, 0), bias[:2]), input_bound=3.0)
            add(engine.predict(CompiledNetwork(network), x), engine.predict(CompiledNetwork(network), x[:2]))
            plan = np.array([[*codes, 9, 18, 0, 0, 0]])
            head = (-1, -1, -1) if pool % 2 else codes
            shape = Shape(plan, np.array([18]), head, 2, 3)
            theta = rng.uniform(-0.5, 0.5, shape.n_parameters).astype(np.float32)
            options = {"dropout": 0.2, "input_dropout": 0.1, "max_norm": 1.5}
            settings = Settings("cross_entropy", np.full_like(theta, 0.01), **options)
            state = State(theta.copy())
            epochs = engine.epochs(shape, rows, settings, state, bounds)
            engine.train_epoch(epochs, np.arange(n), 0.01, 5)
            add(state.theta, state.moments, np.float64(state.loss))
            prepared = engine.evaluation(shape, rows, settings, state.theta)
            add(engine.feature_sums(prepared, state.moments, 0))
            add(engine.score_sums(prepared, state.moments, "brier"))
    gram = engine.gram(x, x)
    factor = engine.cholesky(gram + np.eye(9))
    assert factor is not None
    add(
        gram,
        factor,
        engine.substitute(factor, engine.substitute(factor, gram), transposed=True),
        engine.gram(x, slope, ones),
        *engine.moments(slope, ones),
        *engine.search_sums(
            slope.T.reshape(3, 6, n).copy(), *rng.uniform(1, 2, (2, 3, 6)).astype(np.float32), ones, x, target
        ),
    )
    return result.hexdigest()


def main() -> None:
    for path in sys.argv[1:]:
        for isa, supported in Library(Path(path)).isas().items():
            if supported:
                print(digest(Native(Library(Path(path), isa)))[:16], isa, path, flush=True)


if __name__ == "__main__":
    main()
