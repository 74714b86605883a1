"""What `opgrow bench speed` runs inside the library: kernels, searches and tuning steps, ready to be timed.

`opgrow bench speed --against` runs the same work in an earlier commit; for
commits without this file, it is in ``earlier_workloads.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..common.threads import map_rows, single_threaded_libraries
from ..engine.blocks import ACTIVATIONS
from ..engine.native import native
from ..growth.search import SearchSettings, search
from ..network import Block, Layer, Linear
from ..operators import OperatorSet, library
from ..rows.memory import MemoryRows
from ..training.candidates import Candidates
from ..training.native import NativeTrainer
from ..training.settings import TuningSettings

__all__ = [
    "FORWARD_SIZE",
    "STEPS",
    "TUNED",
    "forward",
    "large_search",
    "prepared",
    "random_rows",
    "small_search",
    "tuning_steps",
]

Function = Callable[[], Any]

#: Rows, inputs and neurons of `forward`.
FORWARD_SIZE = 8192, 512, 40
#: Operator sets of `tuning_steps`, and the steps that its first function takes.
TUNED = (("multiplication", "sum", "sigmoid"), ("gaussian", "correlation2", "tanh"))
STEPS = 600
_EPOCH_ROWS, _BATCH = 480, 32


def prepared(name: str, n_threads: int) -> Function:
    """One of the functions below by the name that it has in `opgrow bench speed --against`."""
    kind, _, which = name.partition(" ")
    functions: dict[str, Callable[..., Function]] = {
        "forward": lambda: forward(which, n_threads),
        "search": lambda: {"small": small_search, "large": large_search}[which](n_threads),
        "tuning": lambda: tuning_steps(which.split("-"))[0],
    }
    return functions[kind]()


def forward(nodal: str, n_threads: int) -> Function:
    """All pools of a nodal operator."""
    rng = np.random.default_rng(0)
    n, n_inputs, n_neurons = FORWARD_SIZE
    x = rng.normal(size=(n, n_inputs)).astype(np.float32)
    weight = rng.uniform(-1, 1, size=(n_inputs, n_neurons)).astype(np.float32)
    identity = ACTIVATIONS.index("identity")
    code = OperatorSet(nodal, "sum", "relu").nodal_operator.code
    assert code is not None

    def rows(start: int, stop: int) -> None:
        native().search_features(code, range(4), [identity] * 4, x[start:stop], weight)

    return lambda: map_rows(rows, n, 256, n_threads)


def random_rows(n: int, n_inputs: int, n_accepted: int, n_classes: int) -> MemoryRows:
    """Rows without any meaning, of the given sizes."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, n_inputs)).astype(np.float32)
    accepted = rng.normal(size=(n, n_accepted)).astype(np.float32)
    target = np.eye(n_classes, dtype=np.float32)[rng.integers(0, n_classes, n)]
    return MemoryRows(x, accepted, target, np.ones(n, np.float32))


def _search(rows: MemoryRows, n_neurons: int, n_threads: int) -> None:
    settings = SearchSettings(ridges=(0.1, 1.0, 10.0), n_threads=n_threads)
    with single_threaded_libraries():  # as in a fit
        search(rows, library(), n_neurons, settings, np.random.default_rng(0))


def small_search(n_threads: int) -> Function:
    """All operator sets, 40 neurons, 460 x 8."""
    return partial(_search, random_rows(460, 8, 0, 2), 40, n_threads)


def large_search(n_threads: int) -> Function:
    """All operator sets, 20 neurons beside 160 accepted ones, 36,000 x 512."""
    return partial(_search, random_rows(36_000, 512, 160, 10), 20, n_threads)


def tuning_steps(operators: Any) -> tuple[Function, Function]:
    """Steps with batches of 32, 8 inputs, 40 + 40 features; and an epoch of 15 such steps by torch."""
    rng = np.random.default_rng(0)
    x, frozen = (rng.normal(size=(_EPOCH_ROWS, k)).astype(np.float32) for k in (8, 40))
    target = np.eye(2, dtype=np.float32)[rng.integers(0, 2, _EPOCH_ROWS)]
    rows = MemoryRows(x, frozen, target, np.ones(_EPOCH_ROWS, np.float32))
    layers, head = [Layer([Block(8, 40, OperatorSet(*operators))])], Linear(80, 2)
    candidates = Candidates.of_networks([(layers, head)], 40, [0.0])
    settings, rates = TuningSettings(batch_size=_BATCH), np.array([1e-3])
    native_trainer = NativeTrainer(candidates, rows, settings, "loss")

    def steps() -> None:
        for _ in range(STEPS * _BATCH // _EPOCH_ROWS):
            native_trainer.epoch(rates, rng)

    def by_torch() -> None:
        from ..training.reference import ReferenceTrainer

        ReferenceTrainer(candidates, rows, settings, "loss").epoch(rates, rng)

    return steps, by_torch
