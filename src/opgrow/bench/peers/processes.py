"""Runs in processes of their own: one core each, several at a time, ended when their time is over."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..runs import FAILED, OVER_BUDGET

__all__ = ["Request", "run_all"]

_ONE_THREAD = dict.fromkeys(
    (
        *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"),
        *("VECLIB_MAXIMUM_THREADS", "RAYON_NUM_THREADS"),
    ),
    "1",
)


@dataclass(frozen=True)
class Request:
    """A model on a split of a table; ``data`` is an absolute folder, or None.

    ``folds`` is the folder of a table that was cut into folds (`opgrow.bench.peers.folds`), and ``split`` the
    number of one of them; ``table`` is then a name only.
    """

    table: str
    split: int
    model: str
    max_rows: int | None = None
    data: str | None = None
    folds: str | None = None


def run_all(
    requests: Sequence[Request], n_jobs: int, budget: float | None, total: float | None = None
) -> Iterator[tuple[Request, dict[str, Any]]]:
    """What came of each request, as they finish. If the caller stops listening, all processes end.

    ``budget`` is in seconds for a request, ``total`` for all of them.
    """
    running = _Running(None if total is None else time.monotonic() + total)
    pool = ThreadPoolExecutor(n_jobs, thread_name_prefix="opgrow-peers")
    try:
        waiting = {pool.submit(running.answer, request, budget): request for request in requests}
        for future in as_completed(waiting):
            yield waiting[future], future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        running.end()
        pool.shutdown()


class _Running:
    """The processes that run now, so that they can be ended together."""

    def __init__(self, deadline: float | None) -> None:
        self._deadline = deadline
        self._processes: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._ended = False

    def answer(self, request: Request, budget: float | None) -> dict[str, Any]:
        """Run a request to its end, or until its time is over."""
        if self._deadline is not None:
            left = self._deadline - time.monotonic()
            budget = left if budget is None else min(left, budget)
            if budget <= 0:
                return {"status": OVER_BUDGET, "message": "not begun, as the time was over"}
        with tempfile.TemporaryDirectory(prefix="opgrow-") as folder:
            process = self._start(request, folder)
            if process is None:
                return {"status": FAILED, "message": "interrupted"}
            try:
                out, errors = process.communicate(timeout=budget)
            except subprocess.TimeoutExpired:
                _kill(process)
                process.communicate()
                return {"status": OVER_BUDGET, "message": f"not finished within {budget:.4g} s"}
            finally:
                with self._lock:
                    self._processes.discard(process)
        if process.returncode == 0 and out:
            answer: dict[str, Any] = json.loads(out)
            return answer
        return {"status": FAILED, "message": _reason(process.returncode, errors)}

    def _start(self, request: Request, folder: str) -> subprocess.Popen[str] | None:
        here = str(Path(__file__).parents[3])  # the package need not be installed
        paths = os.pathsep.join(path for path in (here, os.environ.get("PYTHONPATH", "")) if path)
        with self._lock:
            if self._ended:
                return None
            process = subprocess.Popen(
                [sys.executable, "-m", "opgrow.bench.peers.one_run", json.dumps(asdict(request))],
                cwd=folder,  # some models write files
                env=os.environ | _ONE_THREAD | {"PYTHONPATH": paths, "CUDA_VISIBLE_DEVICES": ""},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,  # a kill reaches what the model has started
            )
            self._processes.add(process)
            return process

    def end(self) -> None:
        with self._lock:
            self._ended = True
            for process in self._processes:
                _kill(process)


def _kill(process: subprocess.Popen[str]) -> None:
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def _reason(code: int, errors: str) -> str:
    if code < 0:
        return f"ended by signal {-code}" + (" (out of memory?)" if code == -9 else "")
    last = [line.strip() for line in errors.splitlines() if line.strip()][-1:] or ["no message"]
    return f"ended with code {code}: {last[0]}"
