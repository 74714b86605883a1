"""Exported C as a compiler makes it, for numpy arrays; used by the tests of this folder."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

COMPILER = next((name for name in ("gcc", "cc", "clang") if shutil.which(name)), None)
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler: gcc, cc or clang")
CLANG = shutil.which("clang")
FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Wdouble-promotion", "-Wconversion", "-Werror", "-pedantic"]
MODES: list[dict[str, str]] = [
    {},
    {"weights": "int16"},
    {"weights": "int8"},
    {"weights": "int4"},
    {"arithmetic": "integer"},
    {"arithmetic": "integer", "weights": "int8"},
    {"arithmetic": "integer", "weights": "int4"},
]
INTEGERS = [mode for mode in MODES if "arithmetic" in mode]


def name_of(mode: dict[str, str]) -> str:
    return "_".join(mode.values()) or "plain"


def compiled(*arguments: Any, flags: list[str] = FLAGS) -> None:
    command = [COMPILER, *flags, *map(str, arguments), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def read_by_clang(*arguments: Any) -> None:
    """Clang has no warning either; where it is not installed, that is not asked."""
    if CLANG is not None:
        done = subprocess.run(
            [CLANG, *FLAGS, "-fsyntax-only", *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")


class Library:
    """Exported files, compiled together."""

    def __init__(self, files: list[Path], level: str = "-O1", flags: tuple[str, ...] = ()) -> None:
        made = files[0].parent / f"library_{len(list(files[0].parent.glob('*.so')))}.so"
        floats = [f"-D{file.stem.upper()}_FLOAT" for file in files]
        compiled(level, "-shared", "-fPIC", *floats, *flags, *files, "-o", made)
        self.functions = ctypes.CDLL(str(made))

    def has(self, name: str) -> bool:
        return hasattr(self.functions, name)

    def scores(self, name: str, x: np.ndarray, n_outputs: int) -> np.ndarray:
        suffix = "_float" if self.has(f"{name}_scores_float") else ""
        return self._scores(f"{name}_scores{suffix}", np.asarray(x, np.float32), n_outputs).astype(np.float64)

    def raw_scores(self, name: str, x: np.ndarray, n_outputs: int) -> np.ndarray:
        """Scores, of the type of the inputs: floats, or integers as they are."""
        return self._scores(f"{name}_scores", x, n_outputs)

    def integer_scores(self, name: str, x: np.ndarray, n_outputs: int) -> np.ndarray:
        """Scores of integer inputs, as they are."""
        return self.raw_scores(name, np.asarray(x, np.int32), n_outputs)

    def _scores(self, name: str, x: np.ndarray, n_outputs: int) -> np.ndarray:
        function = getattr(self.functions, name)
        rows, out = np.ascontiguousarray(x), np.empty((len(x), n_outputs), x.dtype)
        for row, values in zip(rows, out, strict=True):
            function(row.ctypes.data_as(ctypes.c_void_p), values.ctypes.data_as(ctypes.c_void_p))
        return out

    def raw_predict(self, name: str, x: np.ndarray) -> np.ndarray:
        """Classes of inputs of the type that the program takes."""
        function, rows = getattr(self.functions, f"{name}_predict"), np.ascontiguousarray(x)
        return np.array([function(row.ctypes.data_as(ctypes.c_void_p)) for row in rows])

    def predict(self, name: str, x: np.ndarray) -> np.ndarray:
        suffix = "_float" if self.has(f"{name}_predict_float") else ""
        function = getattr(self.functions, f"{name}_predict{suffix}")
        rows = np.ascontiguousarray(x, np.float32)
        return np.array([function(row.ctypes.data_as(ctypes.c_void_p)) for row in rows])
