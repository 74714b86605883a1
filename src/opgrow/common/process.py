"""What fits share with the process they run in: settings of torch, threads, and locks.

Fits run at the same time in threads, and processes fork while they do. A child has only the thread that
forked: a lock that another thread held would stay locked for ever, and OpenMP would wait for threads that are
gone, at the first operation that torch spreads over several.
"""

from __future__ import annotations

import os
import threading

from .extras import loaded_torch
from .shared_change import SharedChange, Undo
from .threads import single_threaded_libraries

__all__ = ["full_single_precision"]


def _set_precision() -> Undo:
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    return lambda: torch.set_float32_matmul_precision(before)


#: Products in full single precision, whatever the process has set for its own.
full_single_precision = SharedChange(_set_precision)


def _locks() -> tuple[threading.Lock, ...]:
    return single_threaded_libraries.lock, full_single_precision.lock


def _close_locks() -> None:
    for lock in _locks():
        lock.acquire()


def _open_locks() -> None:
    for lock in _locks():
        lock.release()


def _begin_child() -> None:
    _open_locks()
    torch = loaded_torch()
    if torch is not None:
        torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_close_locks, after_in_parent=_open_locks, after_in_child=_begin_child)
