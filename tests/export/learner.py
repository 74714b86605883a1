"""An exported program that learns on, as a compiler makes it, for tests of exports and of chips."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np

from opgrow import export_c
from tests.export.compiled import compiled


def _place(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


class Learner:
    """The functions with a state of ``model.c``, and a state that has been started."""

    def __init__(self, model: Any, folder: Path, *flags: str, **options: Any) -> None:
        export_c(model, folder / "model.c", **{"learn": True, **options})
        self.classifies = hasattr(model, "classes_")
        self.n_outputs = len(model.classes_) if self.classifies else 1
        made = folder / f"library_{len(list(folder.glob('*.so')))}.so"
        compiled("-O2", "-shared", "-fPIC", *flags, folder / "model.c", "-o", made)
        self.functions = ctypes.CDLL(str(made))
        self.state = np.zeros(state_bytes(folder / "model.h") // 4, np.float32)
        self.functions.model_start(_place(self.state))

    def learn(self, x: np.ndarray, y: np.ndarray) -> list[int]:
        """What the function returns for each row; ``y`` are indices of classes, or target values."""
        rows, learn = np.ascontiguousarray(x, np.float32), self.functions.model_learn
        if self.classifies:
            return [learn(_place(self.state), _place(row), int(t)) for row, t in zip(rows, y, strict=True)]
        targets = np.ascontiguousarray(y, np.float32).reshape(len(rows), -1)
        pairs = zip(rows, targets, strict=True)
        return [learn(_place(self.state), _place(row), _place(target)) for row, target in pairs]

    def scores(self, x: np.ndarray) -> np.ndarray:
        rows = np.ascontiguousarray(x, np.float32)
        out = np.empty((len(rows), self.n_outputs), np.float32)
        for row, values in zip(rows, out, strict=True):
            self.functions.model_scores_with(_place(self.state), _place(row), _place(values))
        return out.astype(np.float64)

    def predict(self, x: np.ndarray) -> np.ndarray:
        rows = np.ascontiguousarray(x, np.float32)
        return np.array([self.functions.model_predict_with(_place(self.state), _place(row)) for row in rows])


def state_bytes(header: Path) -> int:
    """What a header says of the state's size."""
    line = next(line for line in header.read_text().splitlines() if line.startswith("#define MODEL_STATE"))
    return int(line.split()[-1])
