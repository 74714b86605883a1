"""Very many rows through `partial_fit`: what a row costs, and how memory follows the number of rows.

Rows are generated chunk by chunk and are never in memory together. Each model learns in a process of its own,
so that the memory resident there is its own. The time is that of learning alone, in seconds of CPU.
"""

from __future__ import annotations

import multiprocessing
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from .prequential import MODELS

__all__ = ["LONG_MODELS", "chunk_of_rows", "learn_long", "measure_long"]

#: Models that learn the long stream unless others are named.
LONG_MODELS = ("HeMLGOP", "BLS", "SGDClassifier")
#: Share of wrong labels, and rows of the test chunk, which is not learned.
_NOISE, _TEST_ROWS = 0.05, 20_000


def chunk_of_rows(number: int, n_rows: int, n_inputs: int) -> tuple[np.ndarray, np.ndarray]:
    """A chunk of the stream: uniform inputs, and two classes by a ring and a plane that never change."""
    rng = np.random.default_rng([7, number])
    x = rng.uniform(-1, 1, (n_rows, n_inputs))
    y = (x[:, :2] ** 2).sum(axis=1) + 0.5 * x[:, 2] > 0.6
    return x, (y ^ (rng.random(n_rows) < _NOISE)).astype(int)


def measure_long(
    n_rows: int, n_inputs: int, chunk: int, models: Sequence[str], known: Sequence[dict[str, Any]] = ()
) -> Iterator[dict[str, Any]]:
    """One line for each model; those that ``known`` lines of this commit have measured are left out."""
    from .provenance import commit, machine

    origin = {"commit": commit(), "machine": machine()}
    for model in models:
        asked = {"stream": "long", "model": model, "rows": n_rows, "inputs": n_inputs, "chunk": chunk}
        wanted = asked | {"commit": origin["commit"]}
        if any(wanted.items() <= line.items() for line in known):
            continue
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            yield origin | asked | pool.submit(learn_long, model, n_rows, n_inputs, chunk).result()


def learn_long(name: str, n_rows: int, n_inputs: int, chunk: int) -> dict[str, Any]:
    """Let a model learn the stream in this process."""
    model, seconds = MODELS[name](), 0.0
    resident: list[tuple[int, int]] = []
    first = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rows outside of the first ones are to be expected
        for number, start in enumerate(range(0, n_rows, chunk)):
            x, y = chunk_of_rows(number, min(chunk, n_rows - start), n_inputs)
            began = time.process_time()
            model.partial_fit(x, y, classes=[0, 1])
            seconds += time.process_time() - began
            if number == 0:
                first = seconds
            learned = start + len(x)
            if learned == n_rows or learned >= 10 * (resident[-1][0] if resident else chunk // 10):
                resident.append((learned, _mib("VmRSS")))
        x, y = chunk_of_rows(-(-n_rows // chunk), _TEST_ROWS, n_inputs)
        accuracy = float((model.predict(x) == y).mean())
    later = max(n_rows - chunk, 1)
    return {
        "first_seconds": round(first, 2),
        "microseconds_a_row": round(1e6 * (seconds - first) / later, 2),
        "resident_mib": resident,
        "peak_mib": _mib("VmHWM"),
        "accuracy": round(accuracy, 4),
    }


def _mib(field: str) -> int:
    """Memory of this process, in MiB: now (VmRSS) or at most (VmHWM); 0 where /proc is missing."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith(f"{field}:")), 0)
