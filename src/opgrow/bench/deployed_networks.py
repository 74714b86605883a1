"""Our networks where predictions are timed: exported as C, in ONNX Runtime, in PyTorch and as ``predict``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..estimators import HeMLGOPClassifier
from .c_programs import CFunction
from .runtimes import Candidate, Runtimes

__all__ = ["EXPORTS", "OURS", "export_network", "network_candidates"]

#: Our models: one as the paper's, of up to 60 neurons, and one that learned from an average.
OURS: dict[str, dict[str, Any]] = {
    "HeMLGOP, up to 60 neurons": {"n_min": 40, "n_step": 20, "max_neurons": 60, "max_layers": 1},
    "HeMLGOP, compact": {"preset": "compact"},
}
#: Exports to C, by what is said of them.
EXPORTS: dict[str, dict[str, str]] = {
    "C, float32": {},
    "C, int16 weights": {"weights": "int16"},
    "C, int8 weights": {"weights": "int8"},
    "C, int4 weights": {"weights": "int4"},
    "C, integers, int16 weights": {"arithmetic": "integer"},
    "C, integers, int8 weights": {"arithmetic": "integer", "weights": "int8"},
    "C, integers, int4 weights": {"arithmetic": "integer", "weights": "int4"},
}


def network_candidates(runtimes: Runtimes, name: str, settings: dict[str, Any]) -> Iterator[Candidate]:
    """A network of ours as C, in ONNX Runtime, in PyTorch and in Python."""
    model = HeMLGOPClassifier(random_state=runtimes.seed, **settings).fit(runtimes.x, runtimes.y)
    described = f"{name} ({model.network_.topology()}, {model.network_.n_parameters():,} parameters)"
    expected = runtimes.codes(model)
    for runtime, options in EXPORTS.items():
        yield from runtimes.compiled(
            described, runtime, expected, partial(export_network, runtimes, model, options)
        )
    if runtimes.has("onnx", "onnx") and runtimes.has("onnxruntime", "onnx"):
        yield _onnx(runtimes, described, model, expected)
    if runtimes.has("torch", "torch"):
        yield _torch(runtimes, described, model, expected)
    yield runtimes.predict(described, model, expected)


def _torch(runtimes: Runtimes, described: str, model: Any, expected: np.ndarray) -> Candidate:
    import torch

    network = model.network_.to_torch()

    def label(row: np.ndarray) -> int:
        with torch.no_grad():
            return int(network(torch.from_numpy(row)).argmax())

    return runtimes.python(described, "PyTorch", label, expected)


def export_network(runtimes: Runtimes, model: Any, options: dict[str, str], path: Path) -> CFunction:
    """Write a network of ours as C."""
    model.export_c(path, name="model", calibration=runtimes.x, min_agreement=0, **options)
    if "arithmetic" not in options:
        return CFunction(path, "model_predict")
    text = path.with_suffix(".h").read_text()
    bits = re.search(r"#define MODEL_INPUT_BITS \{?([-\d, ]+)", text)
    assert bits is not None
    return CFunction(path, "model_predict", "int32_t", tuple(map(int, bits[1].split(","))))


def _onnx(runtimes: Runtimes, described: str, model: Any, expected: np.ndarray) -> Candidate:
    import onnxruntime

    path = runtimes.folder / "model.onnx"
    model.export_onnx(path, min_agreement=0)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path.read_bytes(), options)

    def label(row: np.ndarray) -> int:
        return int(session.run(["label"], {"X": row})[0][0])

    return runtimes.python(described, "ONNX Runtime", label, expected, path.stat().st_size)
