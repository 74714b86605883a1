"""Reading ahead: a thread loads what comes next while the caller works on what it has."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["ahead"]

Item = TypeVar("Item")


def ahead(load: Callable[[int], Item], numbers: Iterable[int], depth: int = 1) -> Iterator[Item]:
    """What ``load`` gives for each number, in order; up to ``depth`` of them are loaded in advance."""
    waiting: deque[Future[Item]] = deque()
    with ThreadPoolExecutor(1, thread_name_prefix="opgrow-read") as pool:
        try:
            for number in numbers:
                waiting.append(pool.submit(load, int(number)))
                if len(waiting) > depth:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for item in waiting:
                item.cancel()
