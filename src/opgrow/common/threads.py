"""Work spread over a pool of Python threads; the engine releases the GIL.

While a fit runs, BLAS and torch use one thread each, so that several fits in one process, or many processes
on one machine, do not compete: their threads wait for each other by spinning, which under
contention makes a microsecond's work take a second.
"""

from __future__ import annotations

import operator
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any, TypeVar

from .extras import loaded_torch
from .interruption import Interrupted
from .shared_change import SharedChange, Undo

__all__ = ["Cores", "default_threads", "map_rows", "run_all", "single_threaded_libraries", "stream"]

Result = TypeVar("Result")
#: Seconds that a thread waits for another before it looks up: no exception reaches one that only waits.
_LOOK_UP = 0.05


class Cores:
    """Cores of long tasks, each on a thread of its own: a task may spread work over those that are left.

    Where there are fewer tasks than cores, as when the last ones run, `stream` gives such a task threads
    of another pool.
    """

    def __init__(self, n_cores: int) -> None:
        self.n_cores, self._n_busy, self._lock = n_cores, 0, threading.Lock()

    @contextmanager
    def task(self) -> Iterator[None]:
        """What this thread does while one of the tasks runs on it."""
        before = _this_thread.cores
        with self._lock:
            self._n_busy += 1
        _this_thread.cores = self
        try:
            yield
        finally:
            _this_thread.cores = before
            with self._lock:
                self._n_busy -= 1

    @contextmanager
    def spare(self, n_wanted: int) -> Iterator[int]:
        """Take up to so many of the cores that are left, which may be none."""
        with self._lock:
            n_taken = max(0, min(n_wanted, self.n_cores - self._n_busy))
            self._n_busy += n_taken
        try:
            yield n_taken
        finally:
            with self._lock:
                self._n_busy -= n_taken


class _ThisThread(threading.local):
    """The cores that a task on this thread shares with others."""

    cores: Cores | None = None


_this_thread = _ThisThread()


@lru_cache(maxsize=8)
def _executor(n_threads: int, process: int, within_task: bool) -> ThreadPoolExecutor:
    # Keyed by process: the threads of a pool do not survive a fork. What a task spreads has another pool
    # than the tasks, which could keep all of its threads busy.
    return ThreadPoolExecutor(n_threads, thread_name_prefix="opgrow")


def stream(tasks: Iterable[Callable[[], Result]], n_threads: int) -> Iterator[Result]:
    """Results of independent tasks in their order, with few of them waiting at any time."""
    if n_threads <= 1:
        return map(operator.call, tasks)
    cores = _this_thread.cores
    if cores is None:
        return _streamed(tasks, n_threads, _executor(n_threads, os.getpid(), False))
    return _within_task(tasks, n_threads, cores)


def _within_task(tasks: Iterable[Callable[[], Result]], n_threads: int, cores: Cores) -> Iterator[Result]:
    with cores.spare(n_threads - 1) as n_more:
        if n_more == 0:
            yield from map(operator.call, tasks)
        else:
            yield from _streamed(tasks, 1 + n_more, _executor(cores.n_cores, os.getpid(), True))


def _streamed(
    tasks: Iterable[Callable[[], Result]], n_threads: int, pool: ThreadPoolExecutor
) -> Iterator[Result]:
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


def _begin_child() -> None:
    """In a forked child, OpenMP would wait for threads that are gone, wherever torch wants several."""
    torch = loaded_torch()
    if torch is not None:
        torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_child)
