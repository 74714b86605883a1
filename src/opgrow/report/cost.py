"""What a network costs: its size, and how long predictions take on this machine."""

from __future__ import annotations

import platform
import time
import warnings
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from ..common.errors import RangeWarning
from ..common.threads import default_threads
from .html import cards, escape, paragraph, table

__all__ = ["Latency", "cost_parts", "measure", "rows_for"]

BATCH = 1000
_REPEATS = 15
_SECONDS = 0.3  # for each size, at most


@dataclass(frozen=True)
class Latency:
    """Median seconds of ``predict`` for some rows, over some repeats."""

    n_rows: int
    seconds: float
    repeats: int


def rows_for(estimator: Any, x: np.ndarray | None) -> np.ndarray:
    """A batch of inputs: the given rows or those kept with the model, in turns; without any, random ones."""
    x = estimator.sample_ if x is None else x
    if x is not None:
        return np.asarray(x)[np.arange(BATCH) % len(x)]
    network = estimator.network_
    return network.input_mean + network.input_scale * np.random.default_rng(0).normal(
        size=(BATCH, network.n_inputs)
    )


def measure(estimator: Any, x: np.ndarray, n_rows: int) -> Latency:
    """Time ``predict`` on the first rows, after a call that is not counted."""
    part = x[:n_rows]
    taken: list[float] = []
    with warnings.catch_warnings():
        # Rows of a matrix have no names that could be compared.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        warnings.simplefilter("ignore", RangeWarning)
        estimator.predict(part)
        end = time.perf_counter() + _SECONDS
        while len(taken) < _REPEATS and (not taken or time.perf_counter() < end):
            started = time.perf_counter()
            estimator.predict(part)
            taken.append(time.perf_counter() - started)
    return Latency(len(part), median(taken), len(taken))


def cost_parts(estimator: Any, x: np.ndarray | None, file_bytes: int | None) -> list[str]:
    """Size, operations, bytes, measured times, and the network as text."""
    network = estimator.network_
    n = network.n_parameters()
    shown = [
        (f"{n:,}", "parameters"),
        (f"{network.flops():,}", "FLOPs a row"),
        (_bytes(4 * n), "as float32"),
    ]
    if file_bytes is not None:
        shown.append((_bytes(file_bytes), "model file"))
    rows, estimator = rows_for(estimator, x), estimator.of_rows()
    machine = f"{platform.machine()}, {platform.system()}, {default_threads()} threads"
    times = [measure(estimator, rows, size) for size in (1, BATCH)]
    return [
        cards(shown),
        paragraph(f"predict() on the machine that wrote this page ({machine}), medians of repeated calls:"),
        table(
            "latency",
            ("rows at once", "time", "time a row", "calls"),
            [(f"{t.n_rows:,}", _time(t.seconds), _time(t.seconds / t.n_rows), str(t.repeats)) for t in times],
        ),
        f"<pre>{escape(repr(network))}</pre>",
    ]


def _bytes(n: int) -> str:
    for unit, size in (("MB", 1e6), ("kB", 1e3)):
        if n >= size:
            return f"{n / size:.1f} {unit}"
    return f"{n} bytes"


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"
