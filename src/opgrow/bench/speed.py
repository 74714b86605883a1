"""Speed, measured honestly: warm, interleaved with what it is compared to, medians of several runs.

Beside the kernels stands a limit of the machine, measured in the same run. A nodal operator with its pools
is about 20 float32 vector instructions an element. A matrix product shows how many multiply-adds the
machine starts in a second; a core of today starts at most twice as many vector instructions as
multiply-adds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from ..estimators import BLSClassifier, HeMLGOPClassifier, PLNClassifier, PMLPClassifier, POPClassifier
from ..operators import OperatorSet
from ..rows import datasets
from .workloads import FORWARD_SIZE, STEPS, TUNED, forward, large_search, small_search, tuning_steps

__all__ = ["NODALS", "Row", "measure"]

#: Vector instructions of psi and all four pools, counted from the formulas of the operators.
_INSTRUCTIONS = {"exponential": 20, "harmonic": 20, "gaussian": 20, "dog": 21}
#: The nodal operators with transcendental functions.
NODALS = tuple(_INSTRUCTIONS)


@dataclass(frozen=True)
class Row:
    """One measurement with what it is compared to."""

    name: str
    value: float
    unit: str
    peers: dict[str, float] = field(default_factory=dict)
    note: str = ""

    def plain(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "peers": self.peers,
            "note": self.note,
        }

    def text(self) -> str:
        """One line: the value, then each peer's value and how fast we are compared with it."""
        rate = self.unit.endswith("/s")
        others = "".join(
            f"; {name} {peer:.4g} ({self.value / peer if rate else peer / self.value:.2g} x as fast)"
            for name, peer in self.peers.items()
        )
        note = f"  [{self.note}]" if self.note else ""
        return f"{self.name}: {self.value:.4g} {self.unit}{others}{note}"


def _medians(functions: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Median seconds of each function, run in turn."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for function in functions.values():
        function()
    for _ in range(repeats):
        for name, function in functions.items():
            if len(functions) > 1:
                time.sleep(0.25)  # BLAS threads of the function before wait for more work, at full speed
            started = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - started)
    return {name: float(np.median(values)) for name, values in times.items()}


def measure(data_home: str | None, repeats: int, quick: bool, pop: bool = False) -> Iterator[Row]:
    """All measurements, one after the other; the fit of POP only if it is asked for."""
    n_threads = torch.get_num_threads()
    yield from _forward(repeats, n_threads)
    yield _small_search(repeats, n_threads)
    yield from _tuning_step(repeats)
    if not quick:
        yield _large_search(max(1, repeats // 2), n_threads)
        yield from _fits(data_home, max(3, repeats // 2))
        yield from _other_fits(data_home, max(3, repeats // 2), pop)


def _forward(repeats: int, n_threads: int) -> Iterator[Row]:
    n, n_inputs, n_neurons = FORWARD_SIZE
    elements = n * n_inputs * n_neurons
    square = np.random.default_rng(0).normal(size=(1024, 1024)).astype(np.float32)
    source = torch.randn(n, n_inputs, n_neurons)
    target = torch.empty_like(source)
    for name in NODALS:
        seconds = _medians(
            {
                "kernel": forward(name, n_threads),
                "torch.exp": lambda: torch.exp(source, out=target),
                "matmul": lambda: square @ square,
            },
            repeats,
        )
        instructions = _INSTRUCTIONS[name]
        limit = 2 * 1024**3 / seconds["matmul"] / instructions
        rate = elements / seconds["kernel"]
        yield Row(
            f"forward, {name}, all pools, {n} x {n_inputs} x {n_neurons}",
            rate / 1e9,
            "G elements/s",
            {"torch.exp": elements / seconds["torch.exp"] / 1e9, "limit": limit / 1e9},
            f"{n_threads} threads; limit 2 x matmul's FMAs / {instructions}, {rate / limit:.0%} of it",
        )


def _small_search(repeats: int, n_threads: int) -> Row:
    seconds = _medians({"search": small_search(n_threads)}, max(repeats, 9))["search"]
    return Row("search, 144 sets, 40 neurons, 460 x 8", 1e3 * seconds, "ms", note="3 ridges, leave-one-out")


def _large_search(repeats: int, n_threads: int) -> Row:
    run = large_search(n_threads)
    before = _resident()
    peak = _Peak()
    seconds = _medians({"search": run}, repeats)["search"]
    above = peak.stop() - before
    return Row(
        "search, 144 sets, 160 + 20 neurons, 36,000 x 512",
        seconds,
        "s",
        note=f"3 ridges, leave-one-out; {above / 2**20:.0f} MiB above the data",
    )


def _tuning_step(repeats: int) -> Iterator[Row]:
    for operators in TUNED:
        compiled, epoch = tuning_steps(operators)
        seconds = _medians({"compiled": compiled, "torch": epoch}, repeats)
        yield Row(
            f"tuning step, {OperatorSet(*operators)}, batch 32, 8 inputs, 40 + 40 features",
            1e6 * seconds["compiled"] / STEPS,
            "us",
            {"torch autograd and Adam": 1e6 * seconds["torch"] / 15},
        )


def _fits(data_home: str | None, repeats: int) -> Iterator[Row]:
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    for name, published in (("pima", "paper 217 s"), ("digits", "PyGOP 263 s")):
        try:
            bunch = datasets.load(name, data_home)
        except FileNotFoundError:
            yield Row(f"fit, {name}", float("nan"), "s", note="no data: give --data or set OPGROW_DATA")
            continue

        def mlp(x: np.ndarray = bunch.data, y: np.ndarray = bunch.target) -> Any:
            model = make_pipeline(StandardScaler(), MLPClassifier((200, 200), random_state=0, max_iter=500))
            return model.fit(x, y)

        def ours(x: np.ndarray = bunch.data, y: np.ndarray = bunch.target) -> Any:
            return HeMLGOPClassifier(random_state=0).fit(x, y)

        seconds = _medians({"ours": ours, "mlp": mlp}, repeats)
        yield Row(
            f"HeMLGOPClassifier().fit, {name}, {bunch.data.shape[0]} x {bunch.data.shape[1]}",
            seconds["ours"],
            "s",
            {"MLPClassifier((200, 200))": seconds["mlp"]},
            published,
        )


#: Methods beside HeMLGOP in the paper's Table 5, with its seconds for PIMA and the widths it used there.
_OTHERS: tuple[tuple[type[Any], dict[str, Any], str], ...] = (
    (PMLPClassifier, {"widths": [200, 200]}, "paper 14 s"),
    (PLNClassifier, {}, "paper 0.85 s"),
    (BLSClassifier, {}, "paper 0.12 s"),
)


def _other_fits(data_home: str | None, repeats: int, pop: bool) -> Iterator[Row]:
    try:
        bunch = datasets.load("pima", data_home)
    except FileNotFoundError:
        return  # as `_fits` has said
    x, y = bunch.data, bunch.target
    where = f"pima, {x.shape[0]} x {x.shape[1]}"
    for cls, settings, published in _OTHERS:
        model = cls(random_state=0, **settings)
        seconds = _medians({"fit": lambda model=model: model.fit(x, y)}, repeats)["fit"]  # type: ignore[misc]
        changed = ", ".join(f"{name}={value}" for name, value in settings.items())
        yield Row(f"{cls.__name__}({changed}).fit, {where}", seconds, "s", note=_schedule(model) + published)
    if pop:
        yield _pop_fit(x, y, where)


def _pop_fit(x: np.ndarray, y: np.ndarray, where: str) -> Row:
    """One fit, in which every layer trains 4 x 144 candidates."""
    model = POPClassifier(widths=[200, 200], random_state=0)
    started = time.perf_counter()
    model.fit(x, y)
    seconds = time.perf_counter() - started
    accepted = [step.accepted for step in model.history_ if step.kind == "layer"]
    layers = f"one run; layers searched {len(accepted)}, kept {sum(accepted)}; "
    note = layers + _schedule(model) + "paper 183,362 s"
    return Row(f"POPClassifier(widths=[200, 200]).fit, {where}", seconds, "s", note=note)


def _schedule(model: Any) -> str:
    if not hasattr(model, "epochs"):
        return ""
    return f"at most {sum(model.epochs)} epochs a training, patience {model.patience}; "


def _resident() -> int:
    """Resident bytes of this process; 0 where /proc is missing."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


class _Peak:
    """Samples the resident memory in the background until stopped."""

    def __init__(self) -> None:
        import threading

        self.peak, self.done = _resident(), threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _watch(self) -> None:
        while not self.done.wait(0.01):
            self.peak = max(self.peak, _resident())

    def stop(self) -> int:
        self.done.set()
        self.thread.join()
        return max(self.peak, _resident())
