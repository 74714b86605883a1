"""The work of ``workloads.py`` for commits that do not have that file, by their interface.

Run by file name with such a commit as ``opgrow``, so nothing else of this package can be imported here. Up to
9700977 the kernels are compiled by numba, which takes a minute: `warm_up` does it before anything is timed.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import torch

Function = Callable[[], Any]


def _of(module: str) -> Any:
    """A module of the commit that is measured, of which this package knows nothing."""
    return import_module(f"opgrow.{module}")


def _all_pools() -> Callable[..., None]:
    """The kernel for all pools: from its code, x and weight to out (4, neurons, rows)."""
    try:
        compiled: Callable[..., None] = _of("kernels.cpu").all_pools
        return compiled
    except ImportError:
        native = _of("engine.native").native()
        identity = [_of("engine.blocks").ACTIVATIONS.index("identity")] * 4
        return lambda code, x, weight, out: native.search_features(code, range(4), identity, x, weight, out)


def warm_up() -> None:
    """Compile the kernels, if this commit does so on the user's machine."""
    try:
        _of("kernels.warmup").warm_up("fit")
    except ImportError:
        return


def prepared(name: str, n_threads: int) -> Function:
    """As in ``workloads.py``."""
    kind, _, which = name.partition(" ")
    rng = np.random.default_rng(0)
    if kind == "forward":
        return _forward(rng, which, n_threads)
    if kind == "search":
        return _search(rng, which == "large", n_threads)
    return _tuning_steps(rng, which.split("-"))


def _forward(rng: np.random.Generator, nodal: str, n_threads: int) -> Function:
    x = rng.normal(size=(8192, 512)).astype(np.float32)
    weight = rng.uniform(-1, 1, size=(512, 40)).astype(np.float32)
    all_pools = _all_pools()
    code = _of("operators").OperatorSet(nodal, "sum", "relu").nodal_operator.code

    def rows(start: int, stop: int) -> None:
        all_pools(code, x[start:stop], weight, np.empty((4, 40, stop - start), np.float32))

    return lambda: _of("kernels.threads").map_rows(rows, 8192, 256, n_threads)


def _search(rng: np.random.Generator, large: bool, n_threads: int) -> Function:
    n, n_inputs, n_accepted, n_classes, n_neurons = (
        (36_000, 512, 160, 10, 20) if large else (460, 8, 0, 2, 40)
    )
    x = rng.normal(size=(n, n_inputs)).astype(np.float32)
    accepted = rng.normal(size=(n, n_accepted)).astype(np.float32)
    target = np.eye(n_classes, dtype=np.float32)[rng.integers(0, n_classes, n)]
    rows = _of("statistics").Rows(x, accepted, target, np.ones(n, np.float32))
    search, sets = _of("search"), _of("operators").library()
    settings = search.SearchSettings(ridges=(0.1, 1.0, 10.0), n_threads=n_threads)

    def run() -> None:
        with _of("kernels.threads").single_threaded_libraries():
            search.search(rows, sets, n_neurons, settings, np.random.default_rng(0))

    return run


def _tuning_steps(rng: np.random.Generator, operators: list[str]) -> Function:
    engines, network = _of("engines"), _of("network")
    x, frozen = (rng.normal(size=(480, k)).astype(np.float32) for k in (8, 40))
    target = np.eye(2, dtype=np.float32)[rng.integers(0, 2, 480)]
    data = engines.TuningData(x, frozen, target, np.ones(480, np.float32))
    order = rng.permutation(480)
    block = network.Block(8, 40, _of("operators").OperatorSet(*operators))
    layers, head = [network.Layer([block])], torch.nn.Linear(80, 2)
    shape = engines.Shape(layers, head, 40)
    settings = engines.TuningSettings(batch_size=32)
    engine = engines.CompiledEngine(shape, shape.flatten(layers, head), data, settings)
    return lambda: [engine.epoch(order, 1e-3, 1) for _ in range(40)]
