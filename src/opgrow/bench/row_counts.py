"""Growth from generated data of any size: how time and memory depend on the number of rows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

from ..estimators import HeMLGOPClassifier
from ..rows.device.budget import indexed
from .one_layer import block_steps, one_layer, phase_seconds
from .speed import Row

__all__ = ["measure_rows"]


def measure_rows(
    device: torch.device, counts: list[int], n_inputs: int, memory: float | None
) -> Iterator[Row]:
    """Growth of two blocks with one epoch of tuning each on generated data of each size."""
    device = indexed(device)
    if memory is not None and device.type == "cuda":
        total = torch.cuda.get_device_properties(device).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, memory * 2**30 / total), device)
    for count in counts:
        x, y = _generated(count, n_inputs)
        if device.type == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(device)
        model = HeMLGOPClassifier(
            **one_layer(40, 20, n_blocks=2),
            epochs=(1,),
            batch_size=4096,
            fine_tune_epochs=0,
            device=str(device),
        )
        started = time.perf_counter()
        model.fit(x, y)
        seconds = time.perf_counter() - started
        searching, tuning = phase_seconds(block_steps(model.history_))
        peak = torch.cuda.max_memory_allocated(device) / 2**30 if device.type == "cuda" else 0.0
        yield Row(
            f"HeMLGOP, 40 + 20 neurons, one epoch a block, {count:,} x {n_inputs}",
            1e9 * seconds / count,
            "ns a row",
            note=f"{seconds:.1f} s in all: search {searching:.1f}, tuning {tuning:.1f}; "
            f"{x.nbytes / 2**30:.1f} GiB of inputs, at most {peak:.1f} GiB on the device; "
            f"accuracy {model.score(x[:10_000], y[:10_000]):.3f}",
        )
        del x, y, model


def _generated(n_rows: int, n_inputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal inputs and three classes of a simple rule, made by threads in pieces."""
    x, y = np.empty((n_rows, n_inputs), np.float32), np.empty(n_rows, np.int64)
    size = 1 << 18

    def fill(start: int) -> None:
        rows = x[start : start + size]
        rng = np.random.default_rng([0, start])
        rng.standard_normal(dtype=np.float32, out=rows)
        value = rows[:, 0] * rows[:, 1] + np.sin(2 * rows[:, 2]) + 0.5 * rows[:, 3]
        y[start : start + size] = np.digitize(value, (-0.5, 0.5))

    with ThreadPoolExecutor() as pool:
        list(pool.map(fill, range(0, n_rows, size)))
    return x, y
