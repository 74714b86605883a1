"""Growth from Parquet folders of any size, beside growth in memory: rate, resident memory, time a row.

The data is generated file by file with a fixed seed: normal inputs, three classes of a simple rule. In-memory
fits of the first rows, with the same settings, come before and after each fit of the folder.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..estimators import HeMLGOPClassifier, HeMLRNClassifier
from ..operators import OperatorSet, library
from ..report.charts import Point, scatter
from ..rows.chunks import Source, from_arrays, from_parquet
from .one_layer import block_steps, one_layer, phase_seconds
from .speed import Row

__all__ = ["StreamRow", "StreamRun", "figure", "generate", "measure_stream"]

#: Rows of a row group and of a file.
_GROUP, _FILE = 1 << 14, 1 << 17
#: Rows that are also fitted in memory, at most.
_IN_MEMORY = 100_000


@dataclass(frozen=True)
class StreamRow(Row):
    """A measurement of so many rows; ``busy``: microseconds of CPU time a row, of all threads."""

    n_rows: int = 0
    busy: float = 0.0

    def plain(self) -> dict[str, Any]:
        return {**super().plain(), "rows": self.n_rows, "cpu_us_a_row": self.busy}


@dataclass(frozen=True)
class StreamRun:
    """What is grown: three blocks of so many neurons, under a limit of memory.

    ``operators``: "few" for eight operator sets, or a name of `opgrow.operators.library`.
    """

    n_neurons: int
    operators: str
    memory_limit: str
    n_jobs: int | None = None

    @property
    def sets(self) -> list[OperatorSet]:
        """The operator sets that are searched."""
        return _few() if self.operators == "few" else library(self.operators)

    def model(self, tuned: bool, memory_limit: str | None) -> Any:
        cls = HeMLGOPClassifier if tuned else HeMLRNClassifier
        return cls(
            preset=None,
            **one_layer(self.n_neurons, self.n_neurons, n_blocks=3),
            operators=self.sets,
            epochs=(1,),
            batch_size=256,
            loss="mse",  # the closed-form head is the start as it is, without a temperature
            fine_tune_epochs=0,
            tune_perceptron=False,
            search_score="gcv",
            memory_limit=memory_limit,
            device="cpu",
            n_jobs=self.n_jobs,
        )


def _few() -> list[OperatorSet]:
    """Eight operator sets."""
    return [
        OperatorSet(nodal, "sum", activation)
        for nodal in ("multiplication", "harmonic")
        for activation in ("sigmoid", "relu", "tanh", "softplus")
    ]


def generate(folder: Path, n_rows: int, n_inputs: int) -> None:
    """Write a Parquet folder; files that are there from an earlier call are left as they are."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)

    def write(number: int) -> None:
        path = folder / f"part{number:05d}.parquet"
        if path.exists():
            return
        count = min(_FILE, n_rows - number * _FILE)
        rng = np.random.default_rng([0, number])
        x = rng.standard_normal((n_inputs, count), dtype=np.float32)
        value = x[0] * x[1] + np.sin(2 * x[2]) + 0.5 * x[3] + 0.1 * rng.standard_normal(count)
        columns: dict[str, Any] = {f"x{i}": x[i] for i in range(n_inputs)}
        columns["y"] = np.digitize(value, (-0.5, 0.5)).astype(np.int8)
        part = path.with_suffix(".tmp")
        pq.write_table(
            pa.table(columns),
            part,
            row_group_size=_GROUP,
            use_dictionary=False,
            compression="none",
            write_statistics=False,
        )
        part.replace(path)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, range(-(-n_rows // _FILE))))


def measure_stream(
    folder: Path, counts: list[int], n_inputs: int, run: StreamRun, keep: bool, tell: Callable[[str], None]
) -> Iterator[StreamRow]:
    """For each number of rows, fits of HeMLRN and HeMLGOP from a folder and in memory."""
    import shutil

    for count in counts:
        place = folder / f"{count}x{n_inputs}"
        started = time.perf_counter()
        generate(place, count, n_inputs)
        tell(f"{place}: generated in {time.perf_counter() - started:.0f} s")
        source = from_parquet(place, "y")
        x, y = _first(source, _IN_MEMORY)
        run.model(True, None).fit(x[:1000], y[:1000])  # compiles what is not compiled yet
        for tuned in (False, True):
            yield _measured(source, x, y, run, tuned)
        if not keep:
            shutil.rmtree(place)


def _first(source: Source, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    parts: list[Any] = []
    for chunk in source:
        parts.append((chunk.x, chunk.y))
        if sum(len(x) for x, _ in parts) >= n_rows:
            break
    xs, ys = zip(*parts, strict=True)
    return np.concatenate(xs)[:n_rows], np.concatenate(ys)[:n_rows]


def _measured(source: Source, x: np.ndarray, y: np.ndarray, run: StreamRun, tuned: bool) -> StreamRow:
    in_memory = [_seconds(partial(run.model(tuned, None).fit, x, y))]
    _reset_peak()
    model = run.model(tuned, run.memory_limit)
    seconds, busy = _seconds(lambda: model.fit(source))
    peak = _peak()
    in_memory.append(_seconds(partial(run.model(tuned, None).fit, x, y)))
    rate = source.n_rows / seconds
    rate_in_memory, busy_in_memory = len(x) / np.mean(in_memory, axis=0)
    searching, tuning = phase_seconds(block_steps(model.history_))
    size = source.n_rows * source.n_features * source.dtype.itemsize / 1e9
    name = "HeMLGOP, one epoch a block" if tuned else "HeMLRN"
    return StreamRow(
        f"{name}, 3 blocks of {run.n_neurons} from {len(run.sets)} operator sets, "
        f"{source.n_rows:,} x {source.n_features}",
        rate,
        "rows/s",
        {f"in memory, {len(x):,} rows": float(rate_in_memory)},
        f"{size:.2f} GB; {seconds:.1f} s, {1e6 * seconds / source.n_rows:.2f} us a row: search "
        f"{searching:.1f} s, tuning {tuning:.1f} s; {source.n_rows / busy:,.0f} rows a second of CPU "
        f"time, in memory {busy_in_memory:,.0f}; memory_limit {run.memory_limit}, at most "
        f"{peak / 1e9:.2f} GB resident; accuracy {model.score(from_arrays(x[:20_000], y[:20_000])):.3f}",
        source.n_rows,
        1e6 * busy / source.n_rows,
    )


def _seconds(function: Callable[[], Any]) -> tuple[float, float]:
    """Seconds that pass, and seconds of CPU time of all threads: other programs hardly change these."""
    started, busy = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - started, time.process_time() - busy


def _reset_peak() -> None:
    """Let the kernel forget the largest resident memory so far."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak() -> int:
    """The largest resident memory since then, in bytes; 0 where /proc is missing."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


def figure(rows: list[StreamRow]) -> str:
    """CPU time a row against the number of rows: other programs on the machine hardly change it."""
    points = [Point(row.n_rows, row.busy, row.name, row.name.split(",")[0]) for row in rows]
    # An axis that begins at 0 shows how flat a line is.
    floor = [replace(point, y=0.0, label="", series="", radius=0.0) for point in points[:1]]
    return scatter([*points, *floor], "rows", "microseconds of CPU time a row", log_x=True)
