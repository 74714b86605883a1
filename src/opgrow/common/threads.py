"""Work spread over a pool of Python threads; the engine releases the GIL.

While a fit runs, BLAS and torch use one thread each, so that several fits in one process, or many processes
on one machine, do not compete: their threads wait for each other by spinning, which under
contention makes a microsecond's work take a second.
"""

from __future__ import annotations

import operator
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import lru_cache, partial
from typing import Any, TypeVar

from .extras import loaded_torch
from .interruption import Interrupted
from .shared_change import SharedChange, Undo

__all__ = ["default_threads", "map_rows", "run_all", "single_threaded_libraries", "stream"]

Result = TypeVar("Result")
#: Seconds that a thread waits for another before it looks up: no exception reaches one that only waits.
_LOOK_UP = 0.05


@lru_cache(maxsize=8)
def _executor(n_threads: int, process: int) -> ThreadPoolExecutor:
    # Keyed by process: the threads of a pool do not survive a fork.
    return ThreadPoolExecutor(n_threads, thread_name_prefix="opgrow")


def stream(tasks: Iterable[Callable[[], Result]], n_threads: int) -> Iterator[Result]:
    """Results of independent tasks in their order, with few of them waiting at any time."""
    return map(operator.call, tasks) if n_threads <= 1 else _streamed(tasks, n_threads)


def _streamed(tasks: Iterable[Callable[[], Result]], n_threads: int) -> Iterator[Result]:
    pool = _executor(n_threads, os.getpid())
    waiting: deque[Future[Result]] = deque()
    try:
        for task in tasks:
            waiting.append(pool.submit(task))
            if len(waiting) > n_threads:
                yield _result(waiting.popleft())
        while waiting:
            yield _result(waiting.popleft())
    except Interrupted:  # the others save, too, where they are
        wait([future for future in waiting if not future.cancel()])
        raise


def _result(future: Future[Result]) -> Result:
    while not future.done():
        wait([future], _LOOK_UP)
    return future.result()


def run_all(tasks: Iterable[Callable[[], Any]], n_threads: int) -> list[Any]:
    """Run independent tasks on up to ``n_threads`` threads; results in their order."""
    tasks = list(tasks)
    return list(stream(tasks, n_threads if len(tasks) > 1 else 1))


def map_rows(function: Callable[[int, int], Any], n_rows: int, chunk: int, n_threads: int) -> list[Any]:
    """Call ``function(start, stop)`` for consecutive chunks of rows; results in row order."""
    spans = [(start, min(start + chunk, n_rows)) for start in range(0, n_rows, chunk)]
    return run_all([partial(function, *span) for span in spans], n_threads)


def default_threads() -> int:
    """As many threads as torch uses where it is imported, else as many as this process may use cores.

    The environment variable OMP_NUM_THREADS, which torch follows, says otherwise.
    """
    torch = loaded_torch()
    if torch is not None:
        return torch.get_num_threads()
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if wanted.isdecimal() and int(wanted) > 0:
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@lru_cache(maxsize=1)
def _controller(process: int) -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def _limit_libraries() -> Undo:
    torch, torch_threads = loaded_torch(), 1
    if torch is not None:
        torch_threads = torch.get_num_threads()
        torch.set_num_threads(1)
    blas = _controller(os.getpid()).limit(limits=1)
    blas.__enter__()

    def undo() -> None:
        blas.__exit__(None, None, None)
        if torch is not None:
            torch.set_num_threads(torch_threads)

    return undo


#: One thread for BLAS and torch, for as long as any fit of this process runs.
single_threaded_libraries = SharedChange(_limit_libraries)
