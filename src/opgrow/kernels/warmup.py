"""Compile the CPU kernels before the first fit, and say so: it takes a while, once on every machine.

Compiling happens in a child process, and every process then reads the machine code from numba's cache. A
process that compiles may end up calling another copy of a function than the cache keeps, optimised in another
context, whose sums round differently: the first fit on a machine would not equal the second one.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np

__all__ = ["warm_up"]

_lock = threading.Lock()
_ready = False


def warm_up() -> None:
    """Load the compiled kernels from numba's cache, or compile them with a message on stderr."""
    global _ready
    with _lock:
        if _ready:
            return
        from . import cpu, cpu_activation, cpu_population, cpu_shards, cpu_training

        needed = (
            cpu.all_pools,
            cpu.one_pool,
            cpu_activation.activate,
            cpu_training.train_epoch,
            cpu_population.train_candidate,
            cpu_shards.update,
        )
        missing = not all(_cached(function) for function in needed)
        started = time.perf_counter()
        if missing:
            print(
                "opgrow: compiling the kernels, once on this machine (one or two minutes) ...",
                file=sys.stderr,
            )
            _compile_in_child()
        _call_all()
        if missing:
            print(f"opgrow: compiled in {time.perf_counter() - started:.0f} s", file=sys.stderr)
        _ready = True


def _compile_in_child() -> None:
    """Fill numba's cache from another process; if that fails, this process compiles for itself."""
    folders = [folder or os.getcwd() for folder in sys.path]
    command = [sys.executable or "python", "-c", "from opgrow.kernels.warmup import _call_all; _call_all()"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=900
        )


def _cached(dispatcher: Any) -> bool:
    """Whether numba has this function in memory or on disk; False where its cache cannot be asked."""
    if dispatcher.signatures:
        return True
    try:
        return bool(dispatcher._cache._cache_file._load_index())
    except Exception:  # numba's cache is not a public interface; a superfluous message is the worst
        return False


def _call_all() -> None:
    """Call each kernel once with the types that a fit uses."""
    from . import cpu, cpu_activation, cpu_population, cpu_training

    def zeros(*shape: int) -> np.ndarray:
        return np.zeros(shape, np.float32)

    x, off, seed = zeros(2, 2), np.float32(0), np.uint64(1)
    cpu.all_pools(0, x, x, zeros(4, 2, 2))
    cpu.one_pool(0, 0, x, x, zeros(2, 2))
    cpu_activation.activate(0, x.reshape(-1), zeros(4))
    data = (x, zeros(2, 0), zeros(2, 2), np.ones(2, np.float32))
    bounds, shape = np.array([0, 2]), (np.array([[0, 0, 0, 2, 2, 0, 0, 0]]), np.array([2]))
    linear, parameters = np.full(3, -1), [zeros(16) for _ in range(4)]
    regularisation = (off, off, off, seed)
    cpu_training.train_epoch(
        *data, np.arange(2), bounds, *shape, linear, *parameters, 0, 0.001, 0, *regularisation, zeros(2, 2)
    )
    counts = np.array([-1, 0, 0, 0, 0, 0, 0])
    schedule = (np.array([0.001]), np.array([1]), 0)
    cpu_population.train_candidate(
        *data,
        *data,
        bounds,
        *shape,
        linear,
        zeros(16),
        zeros(2, 2),
        *parameters[:3],
        counts,
        np.zeros(2),
        np.ones(1, np.uint64),
        zeros(16),
        *schedule,
        0,
        0,
        off,
        off,
        off,
        2,
    )
    _call_shards(x, data)


def _call_shards(x: np.ndarray, data: tuple[np.ndarray, ...]) -> None:
    """Call the pieces of a step that is divided among processes."""
    from . import cpu_activation, cpu_batch, cpu_gradient, cpu_products, cpu_shards, cpu_training

    stride, gaps = cpu_batch.TILE, np.arange(2, cpu_batch.TILE)

    def wide() -> np.ndarray:
        return np.zeros(2 * stride, np.float32)

    inputs, pre, raw, normal, out, grad = (wide() for _ in range(6))
    rows, seed, states, sums = np.arange(2), np.uint64(1), np.ones(2, np.uint64), np.zeros((2, 2))
    pair, off, where = np.zeros(2, np.float32), np.float32(0), np.zeros(2 * stride, np.int32)
    exact, nothing = np.zeros((2, 2)), np.zeros(0, np.float32)
    cpu_shards.draw_batches(rows, seed, 1, np.empty(2, np.int64))
    cpu_shards.seed_rows(rows, seed, states)
    cpu_shards.digest_rows(np.ones((2, 2), np.uint64), 0, np.zeros(1, np.int64))
    cpu_training.gather_rows(x, rows, stride, off, states, inputs)
    cpu_shards.drop_out(inputs, 2, stride, states, np.float32(0.5), out)
    cpu_shards.blank(inputs, 2, stride, gaps)
    cpu_batch.pool_forward(0, 0, inputs, stride, 2, x, pre, where)
    cpu_training.add_rows(pre, stride, pair)
    cpu_activation.activate(0, pre, raw)
    cpu_shards.feature_sums(raw, raw, stride, sums)
    cpu_shards.normalise(raw, stride, gaps, pair, pair, pair, pair, normal, out)
    padded = np.concatenate([rows, np.full(stride - 2, -1)])
    head = (x, pair, wide(), exact, np.zeros(2), grad)
    cpu_shards.linear_head(out, stride, data[2], data[3], padded, np.float32(2), 0, *head)
    cpu_shards.norm_backward(grad, normal, stride, gaps, 2.0, sums, pair, pair)
    cpu_activation.activation_backward(0, pre, grad)
    cpu_shards.add_totals(grad, stride, np.zeros(2))
    matrix, by_pool = inputs.reshape(2, stride), grad.reshape(2, stride)
    cpu_shards.product_gradient(0, 0, matrix, x, by_pool, exact)
    cpu_products.product_backward(0, 0, matrix, x, by_pool, x.copy(), np.zeros((0, stride), np.float32))
    cpu_gradient.weight_gradient(2, 0, inputs, stride, 2, x, grad, x.copy())
    cpu_gradient.input_gradient(2, 0, inputs, stride, 2, x, grad, wide())
    cpu_gradient.largest_backward(2, inputs, stride, 2, x, where, grad, x.copy(), nothing)
    plan = np.array([[0, 0, 0, 2, 2, 0, 0, 0]])
    cpu_shards.update(plan, *(np.zeros(16, np.float32) for _ in range(5)), 0.001, 1, off)
