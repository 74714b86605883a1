"""Exports on extreme rows: they say what Python says wherever that is finite and no tie, and never crash."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from outcomes import Wrong, check_sentence
from small_models import IRIS, MODELS, fitted

#: Scores that are closer than this, of 1, are a tie for single precision; outputs of a regression likewise.
TIE = 1e-3
C = {"c": {}, "integers": {"arithmetic": "integer"}}
COMPILER = next((name for name in ("gcc", "cc", "clang") if shutil.which(name)), None)
Run = Callable[[np.ndarray], np.ndarray]


def prepare(folder: Path) -> Callable[[Random], str]:
    cases: list[tuple[str, Any, str, Run]] = []
    for name in MODELS:
        model = fitted(name)
        for kind, make in (("c", _c), ("integers", _c), ("onnx", _onnx)):
            try:
                cases.append((name, model, kind, make(model, kind, folder / f"{name}_{kind}")))
            except ValueError as error:  # an export may refuse, in one sentence
                check_sentence(error)

    def attack(rng: Random) -> str:
        name, model, kind, run = rng.choice(cases)
        what, x = _rows(rng)
        found = run(x)
        usual = np.isfinite(x).all(axis=1)
        if kind == "integers":  # their inputs have a range: beyond it only the end of the process is wrong
            return f"{kind} answer"
        with np.errstate(all="ignore"):
            clear = usual.copy()
            clear[usual] = _clear(model, x[usual])
            expected = model.predict(x[clear]) if clear.any() else np.zeros(0)
        if hasattr(model, "classes_"):
            same = model.classes_[found[clear].astype(int)] == expected
        else:
            span = np.ptp(IRIS[1])
            same = np.abs(found[clear] - expected) <= TIE * np.maximum(span, np.abs(expected))
        if not same.all():
            at = int(np.flatnonzero(~same)[0])
            row, one, other = x[clear][at].tolist(), found[clear][at], expected[at]
            raise Wrong(f"{name} as {kind}, {what}: {one} instead of {other} for {row}")
        return f"{kind} agrees"

    return attack


def _clear(model: Any, x: np.ndarray) -> np.ndarray:
    """Rows whose answer Python is sure of: finite, and not within rounding of another one."""
    if not len(x):
        return np.zeros(0, bool)
    if not hasattr(model, "classes_"):
        near = [model.predict(x * np.float32(factor)) for factor in (1.0, 1.000001)]
        return np.isfinite(near[0]) & (np.abs(near[0] - near[1]) < TIE)
    scores = np.sort(model.predict_proba(x), axis=1)
    # Inputs that differ by rounding must not say something else either.
    same = model.predict(x) == model.predict(x * np.float32(1.000001))
    return np.isfinite(scores).all(axis=1) & (scores[:, -1] - scores[:, -2] > TIE) & same


def _rows(rng: Random) -> tuple[str, np.ndarray]:
    x = IRIS[0][[rng.randrange(len(IRIS[0])) for _ in range(8)]].astype(np.float32)
    what = rng.choice(["zeros", "huge", "denormals", "times", "one column", "random bits", "nan", "usual"])
    if what == "zeros":
        x[:] = rng.choice([0.0, -0.0])
    elif what == "huge":
        x *= np.float32(rng.choice([1e30, -1e30, 1e10, 3e37]))
    elif what == "denormals":
        x *= np.float32(rng.choice([1e-40, -1e-44, 1e-38]))
    elif what == "times":
        x *= np.float32(rng.choice([30.0, -30.0, 1000.0]))
    elif what == "one column":
        x[:, rng.randrange(4)] *= np.float32(rng.choice([30.0, -30.0, 1e6, 1e20]))
    elif what == "random bits":
        x = np.frombuffer(rng.randbytes(x.nbytes), np.float32).reshape(x.shape).copy()
    elif what == "nan":
        x[rng.randrange(len(x)), rng.randrange(4)] = rng.choice([np.nan, np.inf, -np.inf])
    return what, x


def _c(model: Any, kind: str, path: Path) -> Run:
    if COMPILER is None:
        raise ValueError("there is no C compiler.")
    source, library = path.with_suffix(".c"), path.with_suffix(".so")
    model.export_c(source, name="model", calibration=IRIS[0], **C[kind])
    flags = ["-std=c99", "-O1", "-shared", "-fPIC", "-DMODEL_FLOAT"]
    subprocess.run(
        [COMPILER, *flags, str(source), "-lm", "-o", str(library)], check=True, capture_output=True
    )
    functions = ctypes.CDLL(str(library))
    named = "model_predict" if hasattr(model, "classes_") else "model_scores"
    function = getattr(functions, named + ("_float" if hasattr(functions, f"{named}_float") else ""))

    def run(x: np.ndarray) -> np.ndarray:
        out = np.full(len(x), np.nan, np.float32)
        for i, row in enumerate(np.ascontiguousarray(x, np.float32)):
            inputs = row.ctypes.data_as(ctypes.c_void_p)
            if named == "model_predict":
                out[i] = function(inputs)
            else:
                function(inputs, out[i:].ctypes.data_as(ctypes.c_void_p))
        return out

    return run


def _onnx(model: Any, kind: str, path: Path) -> Run:
    import onnxruntime

    model.export_onnx(path.with_suffix(".onnx"))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path.with_suffix(".onnx")), options)
    [given] = session.get_inputs()
    labels = next(i for i, out in enumerate(session.get_outputs()) if "label" in out.name or i == 0)

    def run(x: np.ndarray) -> np.ndarray:
        return np.asarray(session.run(None, {given.name: x})[labels]).reshape(len(x), -1)[:, 0]

    return run
