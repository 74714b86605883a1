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

__all__ = ["KINDS", "warm_up"]

#: Kinds of work: every fit, the search of the POP family, ranks that share their rows.
KINDS = ("fit", "population", "shards")
_lock = threading.Lock()
_ready: set[str] = set()


def warm_up(*kinds: str) -> None:
    """Load the compiled kernels for some kinds of work from numba's cache, or compile them with a message."""
    with _lock:
        new = [kind for kind in kinds if kind not in _ready]
        if not new:
            return
        missing = not all(_cached(function) for kind in new for function in _needed(kind))
        started = time.perf_counter()
        if missing:
            print(
                "opgrow: compiling the kernels, once on this machine (one or two minutes) ...",
                file=sys.stderr,
            )
            _compile_in_child(new)
        _call(*new)
        if missing:
            print(f"opgrow: compiled in {time.perf_counter() - started:.0f} s", file=sys.stderr)
        _ready.update(new)


def _needed(kind: str) -> tuple[Any, ...]:
    """The functions that the kernels for a kind of work are called from."""
    from . import cpu, cpu_activation, cpu_population, cpu_shards, cpu_training

    return {
        "fit": (cpu.all_pools, cpu.one_pool, cpu_activation.activate, cpu_training.train_epoch),
        "population": (cpu_population.train_candidate,),
        "shards": (cpu_shards.update,),
    }[kind]


def _compile_in_child(kinds: list[str]) -> None:
    """Fill numba's cache from another process; if that fails, this process compiles for itself."""
    folders = [folder or os.getcwd() for folder in sys.path]
    script = f"from opgrow.kernels.warmup import _call; _call(*{kinds!r})"
    command = [sys.executable or "python", "-c", script]
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


def _call(*kinds: str) -> None:
    """Call the kernels for some kinds of work once, with the types that a fit uses."""
    for kind in kinds:
        {"fit": _call_fit, "population": _call_population, "shards": _call_shards}[kind]()


def _zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def _rows() -> tuple[np.ndarray, ...]:
    """Inputs, frozen features, targets and weights of two rows."""
    return _zeros(2, 2), _zeros(2, 0), _zeros(2, 2), np.ones(2, np.float32)


def _linear_network() -> tuple[np.ndarray, ...]:
    """Borders of batches, and a network of two neurons: its plan, its widths, its linear head."""
    return np.array([0, 2]), np.array([[0, 0, 0, 2, 2, 0, 0, 0]]), np.array([2]), np.full(3, -1)


def _call_fit() -> None:
    from . import cpu, cpu_activation, cpu_training

    x, off, seed = _zeros(2, 2), np.float32(0), np.uint64(1)
    cpu.all_pools(0, x, x, _zeros(4, 2, 2))
    cpu.one_pool(0, 0, x, x, _zeros(2, 2))
    cpu_activation.activate(0, x.reshape(-1), _zeros(4))
    parameters, regularisation = [_zeros(16) for _ in range(4)], (off, off, off, seed)
    network = _linear_network()
    cpu_training.train_epoch(
        *_rows(), np.arange(2), *network, *parameters, 0, 0.001, 0, *regularisation, _zeros(2, 2)
    )


def _call_population() -> None:
    from . import cpu_population

    off, counts = np.float32(0), np.array([-1, 0, 0, 0, 0, 0, 0])
    state = (_zeros(16), _zeros(2, 2), _zeros(16), _zeros(16), _zeros(16), counts)
    draws, decay = (np.zeros(2), np.ones(1, np.uint64)), _zeros(16)
    schedule = (np.array([0.001]), np.array([1]), 0)
    cpu_population.train_candidate(
        *_rows(), *_rows(), *_linear_network(), *state, *draws, decay, *schedule, 0, 0, off, off, off, 2
    )


def _call_shards() -> None:
    """Call the pieces of a step that is divided among processes."""
    from . import cpu_activation, cpu_batch, cpu_gradient, cpu_products, cpu_shards, cpu_training

    data = _rows()
    x = data[0]
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
