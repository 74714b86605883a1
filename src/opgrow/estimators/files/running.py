"""What a model file can hold of the rows that its estimator has seen: the sums of the head, and the buffer.

Numbers are written as JSON writes them and arrays as they are, so that learning goes on bit for bit as it
would have without the file. Files without sums are as they were before.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...closed_form.running_ridge import RunningRidge
from ...network.scaling import Ranges
from ..stream.buffer import Buffer
from ..stream.state import Running
from .format import as_number, of_type, require, size_of
from .watching import describe_watch, restore_watch

__all__ = ["RUNNING", "describe_running", "restore_running", "running_shapes", "running_tensors"]

#: How the names of these tensors begin.
RUNNING = "running."
_SUMS = ("mean", "target_mean", "gram", "cross")
_RANGES = ("low", "high", "target_low", "target_high")
_ROWS = ("x", "target", "weight", "number", "draw")


def describe_running(state: Running) -> dict[str, Any]:
    """The numbers, for the text of the file."""
    sums, buffer = state.sums, state.buffer
    return {
        "count": sums.count,
        "weight": sums.weight,
        "total": sums.total,
        "ridge": state.ridge,
        "factor": state.factor,
        "rows": state.n_rows,
        "features": sums.n_features,
        "buffer": {"size": buffer.size, "seen": buffer.seen, "rows": len(buffer.x)},
        **({} if state.watch is None else {"watch": describe_watch(state.watch)}),
        **({"files": list(state.files)} if state.files else {}),
    }


def running_tensors(state: Running) -> dict[str, np.ndarray]:
    """The arrays, by the names that they have in model files."""
    groups = (("sums", state.sums, _SUMS), ("ranges", state.ranges, _RANGES), ("buffer", state.buffer, _ROWS))
    return {
        f"{RUNNING}{group}.{name}": np.ascontiguousarray(getattr(holder, name))
        for group, holder, names in groups
        for name in names
    }


def running_shapes(record: dict[str, Any], width: int) -> dict[str, tuple[int, ...]]:
    """The shapes of these tensors in a file whose head sees ``width`` features."""
    data = record.get("running")
    if data is None:
        return {}
    require(isinstance(data, dict) and record.get("head") is None, "'running' is of a linear head")
    p = size_of(data, "features", "'running'")
    require(p == width, f"'running' has {p} features, and the head sees {width}")
    n_inputs, n_outputs = size_of(record, "n_inputs"), size_of(record, "n_outputs")
    n_rows = of_type(of_type(data, "buffer", dict), "rows", int)
    require(n_rows >= 0, "the buffer of 'running' has no number of rows")
    shapes: list[tuple[str, tuple[int, ...]]] = [
        *(zip(_SUMS, [(p,), (n_outputs,), (p, p), (p, n_outputs)], strict=True)),
    ]
    limits = [(n_inputs,), (n_inputs,), (n_outputs,), (n_outputs,)]
    rows = [(n_rows, n_inputs), (n_rows, n_outputs), (n_rows,), (n_rows,), (n_rows,)]
    return (
        {f"{RUNNING}sums.{name}": shape for name, shape in shapes}
        | {f"{RUNNING}ranges.{name}": shape for name, shape in zip(_RANGES, limits, strict=True)}
        | {f"{RUNNING}buffer.{name}": shape for name, shape in zip(_ROWS, rows, strict=True)}
    )


def restore_running(record: dict[str, Any], tensors: dict[str, np.ndarray]) -> Running | None:
    """The state that a file holds, whose tensors `running_shapes` has described; they are taken out."""
    data = record.get("running")
    if data is None:
        return None
    arrays = {name: tensors.pop(name) for name in list(tensors) if name.startswith(RUNNING)}
    for name, array in arrays.items():
        require(np.isfinite(array).all(), f"tensor {name!r} has values that are not finite")
    numbers = {name: as_number(data.get(name), repr(name)) for name in ("count", "weight", "ridge", "factor")}
    for name, number in numbers.items():
        require(0 < number < math.inf, f"{name!r} of 'running' is {number!r}, expected a number above 0")
    total = as_number(data.get("total"), "'total'")
    require(0 <= total < math.inf, f"'total' of 'running' is {total!r}, expected a number of at least 0")

    def group(prefix: str, names: tuple[str, ...]) -> list[np.ndarray]:
        found = [arrays[f"{RUNNING}{prefix}.{name}"] for name in names]
        return [np.array(array, array.dtype.newbyteorder("=")) for array in found]

    described = of_type(data, "buffer", dict)
    size, seen = of_type(described, "size", int), of_type(described, "seen", int)
    require(0 <= size < 2**31 and 0 <= seen < 2**62, "the buffer of 'running' has sizes that cannot be")
    mean, target_mean, gram, cross = (_double(array) for array in group("sums", _SUMS))
    sums = RunningRidge(numbers["count"], numbers["weight"], mean, target_mean, gram, cross, total)
    buffer = Buffer(size, seen, *group("buffer", _ROWS))
    ranges = Ranges(*group("ranges", _RANGES))
    n_rows = of_type(data, "rows", int)
    watch, files = restore_watch(data.get("watch")), data.get("files", [])
    texts = isinstance(files, list) and all(isinstance(name, str) for name in files)
    require(texts, "'files' of 'running' is not a list of names")
    return Running(sums, numbers["ridge"], numbers["factor"], ranges, n_rows, buffer, watch, tuple(files))


def _double(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float64, copy=False)
