"""Two commits side by side: each in a process of its own, warm, in turn, with the same threads and data."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from ..rows import datasets
from .checkout import Side, checked_out, here
from .speed import NODALS, Row
from .workloads import FORWARD_SIZE, STEPS, TUNED

__all__ = ["measure_against"]

_WORKER = Path(__file__).with_name("worker.py")
_FITS = ("pima", "digits", "scene15_gist512", "leaves100", "pendigits")
#: What each side runs in a round takes about this long, if it is short.
_SECONDS = 0.2


@dataclass(frozen=True)
class _Work:
    """Something to run: its name for the worker and for the reader, how often in one run, and its unit."""

    key: str
    title: str
    count: int = 1
    unit: str = "s"
    data: str | None = None
    slow: bool = False

    def value(self, seconds: float) -> float:
        return seconds / self.count * {"s": 1.0, "ms": 1e3, "us": 1e6}[self.unit]


def _works() -> list[_Work]:
    size = " x ".join(map(str, FORWARD_SIZE))
    works = [_Work(f"forward {name}", f"forward, {name}, all pools, {size}", unit="ms") for name in NODALS]
    works.append(_Work("search small", "search, 144 sets, 40 neurons, 460 x 8", unit="ms"))
    works += [_Work(f"tuning {'-'.join(s)}", f"tuning step, {', '.join(s)}", STEPS, "us") for s in TUNED]
    for n, unit in ((100_000, "ms"), (1, "us")):
        title = f"predict, {n:,} row{'s' if n > 1 else ''}, default fit on breast_cancer"
        works.append(_Work(f"predict {n}", title, unit=unit, data="breast_cancer"))
    large = "search, 144 sets, 160 + 20 neurons, 36,000 x 512"
    works.append(_Work("search large", large, slow=True))
    titles = {"equal": "fit of equal work", "default": "HeMLGOPClassifier().fit"}
    for kind, title in titles.items():
        works += [_Work(f"fit {kind}", f"{title}, {name}", data=name, slow=True) for name in _FITS]
    return works


class _Worker:
    """A process that runs one commit's work when it is told to."""

    def __init__(self, side: Side, n_threads: int) -> None:
        libraries = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
        variables = {**os.environ, **dict.fromkeys(libraries, str(n_threads)), **side.variables}
        self.name = side.name
        self._process = subprocess.Popen(
            [str(side.python), "-P", str(_WORKER), str(n_threads)],
            env={name: value for name, value in variables.items() if value},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, **order: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        except (OSError, ValueError):
            raise RuntimeError(f"the process of commit {self.name} has ended; its message is above") from None
        return answer

    def __enter__(self) -> _Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()


def measure_against(
    commit: str,
    data_home: str | None,
    repeats: int,
    quick: bool,
    n_threads: int,
    isa: str | None = None,
    folder: Path | None = None,
) -> Iterator[Row]:
    """Medians of this commit, and how many times as fast as another commit it is.

    Parameters
    ----------
    commit : the other commit
    data_home : folder with data sets; those that are missing are left out
    repeats : rounds; in each, every side runs once
    quick : leave out the large search and the fits
    n_threads : of both sides
    isa : instruction set of this commit, such as "v3"; by default the best
    folder : where the other commit and its environment are kept; by default they are removed again
    """
    with ExitStack() as stack:
        other = stack.enter_context(checked_out(commit, folder))
        temporary = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="opgrow-")))
        mine, theirs, peer = (
            stack.enter_context(_Worker(side, n_threads)) for side in (here(isa), other, here(isa))
        )
        for work in _works():
            file = None if work.data is None else _saved(work.data, data_home, temporary)
            if (quick and work.slow) or (work.data is not None and file is None):
                continue
            workers = {"this": mine, other.name: theirs}
            orders = dict.fromkeys(workers, work.key)
            if work.key.startswith("predict"):
                workers["MLPClassifier((200, 200))"] = peer
                orders["MLPClassifier((200, 200))"] = work.key.replace("predict", "mlp")
            rounds = max(3, repeats // 2) if work.slow else repeats
            seconds, notes = _in_turn(workers, orders, file, rounds)
            values = {name: work.value(value) for name, value in seconds.items()}
            note = "; ".join(f"{name}: {text}" for name, text in notes.items() if text)
            yield Row(work.title, values.pop("this"), work.unit, values, note)


def _saved(name: str, data_home: str | None, folder: Path) -> str | None:
    """A file with the data set for both sides, or None if there is no such data."""
    file = folder / f"{name}.npz"
    if not file.exists():
        try:
            bunch = datasets.load(name, data_home)
        except (FileNotFoundError, ValueError):
            return None
        np.savez(file, x=bunch.data, y=bunch.target)
    return str(file)


def _in_turn(
    workers: dict[str, _Worker], orders: dict[str, str], data: str | None, rounds: int
) -> tuple[dict[str, float], dict[str, str]]:
    notes, times = {}, {}
    for name, worker in workers.items():
        notes[name] = worker.ask(prepare=orders[name], data=data).get("note", "")
        times[name] = max(1, int(_SECONDS / max(worker.ask(run=1)["seconds"], 1e-6)))
    seconds: dict[str, list[float]] = {name: [] for name in workers}
    for _ in range(rounds):
        for name, worker in workers.items():
            time.sleep(0.1)  # threads of the side before wait for more work, at full speed
            seconds[name].append(worker.ask(run=times[name])["seconds"])
    return {name: float(np.median(values)) for name, values in seconds.items()}, notes
