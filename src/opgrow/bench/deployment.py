"""What a prediction costs where it is made: exported C beside ONNX Runtime, PyTorch and other models as C.

All models see the same rows. The others are sized by their training rows alone: the smallest that is within
half a point of the best of its kind in cross-validation. Every runtime gets one row at a time and one thread;
they are timed in turns, and the medians of their processor times are reported. Accuracy and agreement are
those of the labels that the runtime itself gave.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..common.threads import single_threaded_libraries
from .deployed_networks import OURS, network_candidates
from .deployed_peers import peer_candidates
from .runtimes import Candidate, Runtimes

__all__ = ["Deployment", "measure_deployment"]


@dataclass(frozen=True)
class Row:
    """A model in a runtime; its bytes are code and constants, or the file (None: no such thing)."""

    model: str
    runtime: str
    accuracy: float
    n_bytes: int | None
    microseconds: float
    agreement: float


@dataclass(frozen=True)
class Deployment:
    """All rows, and a line for each thing that was left out."""

    dataset: str
    n_train: int
    n_test: int
    n_inputs: int
    rows: list[Row]
    skipped: list[str]

    def plain(self) -> dict[str, Any]:
        return asdict(self)

    def markdown(self) -> str:
        """The table, in the order of the models."""
        head = ("Model", "Runtime", "Accuracy (%)", "Bytes", "µs a row", "Labels as in Python (%)")
        lines = [f"| {' | '.join(head)} |", "|---|---|--:|--:|--:|--:|"]
        for row in self.rows:
            size = "" if row.n_bytes is None else f"{row.n_bytes:,}"
            cells = (row.model, row.runtime, f"{100 * row.accuracy:.1f}", size, _figure(row.microseconds))
            lines.append(f"| {' | '.join(cells)} | {100 * row.agreement:.1f} |")
        rows = f"{self.n_train} rows to learn from and {self.n_test} to test"
        about = f"{self.dataset}: {self.n_inputs} inputs, {rows}"
        return "\n".join([about, "", *lines])


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def measure_deployment(
    name: str,
    data_home: str | None,
    repeats: int,
    seed: int,
    folder: Path,
    tell: Callable[[str], None] = lambda line: None,
    level: str = "O2",
) -> Deployment:
    """Fit, compile and time all models on a data set; files go to an empty folder.

    ``tell`` hears what is being done, which takes a minute or two; ``level`` is how far compilers optimise C
    that is timed.
    """
    runtimes = Runtimes(name, data_home, folder, seed, level)
    candidates: list[Candidate] = []
    for described, settings in OURS.items():
        tell(f"{described}: fitting and exporting")
        candidates += network_candidates(runtimes, described, settings)
    tell("others: choosing sizes, fitting and exporting")
    candidates += peer_candidates(runtimes)
    tell(f"timing {len(candidates)} rows {repeats} times, in turns")
    rows = _timed(candidates, runtimes.y_test, repeats)
    return Deployment(
        name, len(runtimes.x), len(runtimes.x_test), runtimes.x.shape[1], rows, runtimes.skipped
    )


def _timed(candidates: Sequence[Candidate], target: np.ndarray, repeats: int) -> list[Row]:
    times: list[list[float]] = [[] for _ in candidates]
    with single_threaded_libraries():
        for candidate in candidates:
            candidate.seconds()
        for _ in range(repeats):
            for taken, candidate in zip(times, candidates, strict=True):
                taken.append(candidate.seconds())
    return [
        Row(
            c.model,
            c.runtime,
            float(np.mean(c.labels == target)),
            c.n_bytes,
            1e6 * float(np.median(taken)),
            float(np.mean(c.labels == c.expected)),
        )
        for c, taken in zip(candidates, times, strict=True)
    ]
