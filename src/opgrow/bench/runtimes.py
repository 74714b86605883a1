"""Models in the runtimes that predictions are timed in: compiled C, and functions of Python."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..common.extras import has, needs
from ..export.c_size import find_compiler
from ..rows import datasets
from .c_programs import CFunction, build
from .protocols import draw_split

__all__ = ["Candidate", "Runtimes"]

#: Seconds that a runtime of Python is timed for in a turn.
_TURN = 0.05


@dataclass(frozen=True)
class Candidate:
    """A model in a runtime, before it is timed; ``labels`` are indices of classes."""

    model: str
    runtime: str
    n_bytes: int | None
    labels: np.ndarray
    expected: np.ndarray
    seconds: Callable[[], float]


class Runtimes:
    """The rows of a data set, a folder for files, a compiler, and what was left out.

    Bytes are those of a program linked by ``sizing``, a compiler and its flags; by default of an object file.
    """

    def __init__(
        self,
        name: str,
        data_home: str | None,
        folder: Path,
        seed: int,
        level: str = "O2",
        sizing: tuple[str, ...] | None = None,
    ) -> None:
        bunch = datasets.load(name, data_home)
        if bunch.task != "classification":
            raise ValueError(f"bench deploy compares classifiers, and {name!r} is a data set for regression")
        split = draw_split(bunch.target, seed)
        train = split.train if split.validation is None else np.concatenate([split.train, split.validation])
        x = np.asarray(bunch.data, np.float32)
        self.x, self.y = x[train], bunch.target[train]
        self.x_test, self.y_test = x[split.test], bunch.target[split.test]
        self.folder, self.seed, self.level, self.sizing = folder, seed, level, sizing
        self.skipped: list[str] = []
        self.compiler = find_compiler()
        if self.compiler is None:
            self.skipped.append("C: no C compiler was found; install gcc or clang, or set CC")

    def has(self, package: str, extra: str) -> bool:
        if has(package):
            return True
        line = needs("This peer", package, extra)
        if line not in self.skipped:
            self.skipped.append(line)
        return False

    def compiled(
        self, name: str, runtime: str, expected: np.ndarray, write: Callable[[Path], CFunction]
    ) -> Iterator[Candidate]:
        """A model as C; what another package or the compiler cannot do is left out with its reason."""
        if self.compiler is None:
            return
        folder = self.folder / f"{len(list(self.folder.iterdir()))}"
        folder.mkdir()
        try:
            program = build(write(folder / "model.c"), self.x_test, self.compiler, self.level, self.sizing)
        except (RuntimeError, NotImplementedError, TypeError, AttributeError, ValueError) as error:
            self.skipped.append(f"{name}, {runtime}: {' '.join(str(error).split())[:200]}")
            return
        yield Candidate(name, runtime, program.n_bytes, program.labels(), expected, program.seconds)

    def predict(self, name: str, model: Any, expected: np.ndarray) -> Candidate:
        return self.python(name, "predict, Python", lambda row: int(model.predict(row)[0]), expected)

    def python(
        self,
        name: str,
        runtime: str,
        label: Callable[[np.ndarray], int],
        expected: np.ndarray,
        n_bytes: int | None = None,
    ) -> Candidate:
        rows = [self.x_test[i : i + 1].copy() for i in range(len(self.x_test))]

        def seconds() -> float:
            started, calls = time.process_time(), 0
            while (taken := time.process_time() - started) < _TURN:
                for row in rows[:8]:
                    label(row)
                calls += len(rows[:8])
            return taken / calls

        return Candidate(name, runtime, n_bytes, np.array([label(row) for row in rows]), expected, seconds)

    def codes(self, model: Any) -> np.ndarray:
        return np.asarray(model.predict(self.x_test))
