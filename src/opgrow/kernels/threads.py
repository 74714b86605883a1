"""Rows spread over a pool of Python threads; the kernels release the GIL.

numba's own ``parallel=True`` is not used: its default threading layer ends the process when two threads
fit at the same time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

__all__ = ["map_rows", "run_all"]


@lru_cache(maxsize=8)
def _executor(n_threads: int, process: int) -> ThreadPoolExecutor:
    # Keyed by process: the threads of a pool do not survive a fork.
    return ThreadPoolExecutor(n_threads, thread_name_prefix="opgrow")


def run_all(tasks: Iterable[Callable[[], Any]], n_threads: int) -> list[Any]:
    """Run independent tasks on up to ``n_threads`` threads; results in their order."""
    tasks = list(tasks)
    if n_threads <= 1 or len(tasks) <= 1:
        return [task() for task in tasks]
    futures = [_executor(n_threads, os.getpid()).submit(task) for task in tasks]
    return [future.result() for future in futures]


def map_rows(function: Callable[[int, int], Any], n_rows: int, chunk: int, n_threads: int) -> list[Any]:
    """Call ``function(start, stop)`` for consecutive chunks of rows; results in row order."""
    spans = [(start, min(start + chunk, n_rows)) for start in range(0, n_rows, chunk)]
    return run_all([lambda span=span: function(*span) for span in spans], n_threads)
