"""Who gets which threads."""

from __future__ import annotations

import operator
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from opgrow.common.threads import Cores, run_all

WAIT = 60


def threads_of(n_tasks: int, n_threads: int) -> set[int]:
    """The threads that tasks run on which wait for each other, as far as that is possible."""
    together = threading.Barrier(min(n_tasks, n_threads))

    def task() -> int:
        together.wait(WAIT)
        return threading.get_ident()

    return set(run_all([task] * n_tasks, n_threads))


def test_a_task_spreads_work_over_the_cores_that_no_other_task_has():
    cores, began, ends = Cores(2), threading.Event(), threading.Event()

    def other() -> None:
        with cores.task():
            began.set()
            assert ends.wait(WAIT)

    with ThreadPoolExecutor(1) as pool, cores.task():
        running = pool.submit(other)
        assert began.wait(WAIT)
        assert run_all([threading.get_ident] * 4, 2) == [threading.get_ident()] * 4
        ends.set()
        running.result(WAIT)
        assert len(threads_of(4, 2)) == 2


def test_results_keep_their_order_while_tasks_take_and_return_cores():
    cores = Cores(2)

    def task(number: int) -> list[list[int]]:
        with cores.task():
            return [run_all([partial(operator.add, number, k) for k in range(5)], 2) for _ in range(20)]

    expected = [[[number + k for k in range(5)]] * 20 for number in range(6)]
    assert run_all([partial(task, number) for number in range(6)], 2) == expected


def test_cores_are_given_back():
    cores = Cores(3)
    with cores.task(), cores.spare(8) as first, cores.spare(8) as second:
        assert (first, second) == (2, 0)
    with cores.spare(8) as all_of_them:
        assert all_of_them == 3
