"""How large the values inside a program become on calibration rows: fixed-point formats are chosen by this.

The rows go through the program in double precision, by the numpy formulas of the operators. A few rows that
are far from all others, such as one with a sentinel for a missing value, do not count: a format that held
them would have no digits left for the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..operators.kinds import stated
from ..operators.unit_norm import unit_rows
from .program import Program, Step

__all__ = ["NARROW", "Ranges", "StepRange", "exact_outputs", "find_ranges", "usual_largest"]

#: Elements of the N x D x d tensor that are held at once.
_CHUNK_ELEMENTS = 1 << 21
#: The share of rows that may exceed a range, and how many times what the others reach a range holds at most:
#: values between layers have 16 bits, of which few are left to be spared, and all others 32.
_OUTLYING, NARROW, _WIDE = 0.02, 8.0, 256.0


@dataclass
class StepRange:
    """Magnitudes in a step, one for each row: of psi and of products of two neighbours among them, of the
    pooled values with their bias, and of the outputs; `usual_largest` makes one number of them.
    """

    psi: np.ndarray
    pair: np.ndarray
    pooled: np.ndarray
    output: np.ndarray


@dataclass
class Ranges:
    """Largest usual magnitudes: of each raw input, of all the network's inputs, and in each step."""

    raw: np.ndarray
    network_input: float
    steps: list[dict[str, float]]


def usual_largest(values: np.ndarray, headroom: float = NARROW) -> np.ndarray:
    """The largest of each column, or ``headroom`` times what all but 2 % of the rows reach, if less."""
    ordered = np.sort(np.abs(values), axis=0)
    outlying = int(np.ceil(_OUTLYING * len(ordered)))
    usual = ordered[-1 - outlying] if outlying < len(ordered) else ordered[-1]
    # Where almost all are zero, the others are no outliers.
    limit = np.where(usual > 0, headroom * np.where(usual > 0, usual, 1.0), np.inf)
    return np.minimum(ordered[-1], limit)


def find_ranges(program: Program, rows: np.ndarray, headroom: float = NARROW) -> Ranges:
    """Run rows (n, n_inputs) through a program and note the largest usual magnitudes."""
    wide = max(headroom, _WIDE)
    headrooms = {"psi": wide, "pair": wide, "pooled": wide, "output": headroom}
    parts: list[list[StepRange]] = []
    inputs = program.network_input(rows)
    for x in _chunks(program, inputs):
        ranges: list[StepRange] = []
        _run(program, x, ranges)
        parts.append(ranges)
    steps = []
    for step in zip(*parts, strict=True):
        values = {name: np.concatenate([getattr(part, name) for part in step]) for name in headrooms}
        largest = {name: float(usual_largest(values[name], room)) for name, room in headrooms.items()}
        if not np.isfinite(list(largest.values())).all():
            raise ValueError("The calibration rows lead to values that are not finite: give typical inputs.")
        steps.append(largest)
    largest_input = float(usual_largest(np.abs(inputs).max(axis=1), headroom))
    return Ranges(usual_largest(rows, headroom), largest_input, steps)


def exact_outputs(program: Program, rows: np.ndarray) -> list[np.ndarray]:
    """What each layer and, last, the head yield for rows (n, n_inputs), in double precision."""
    parts = [_run(program, x, []) for x in _chunks(program, program.network_input(rows))]
    return [np.concatenate(layer) for layer in zip(*parts, strict=True)]


def _chunks(program: Program, inputs: np.ndarray) -> list[np.ndarray]:
    size = max(1, _CHUNK_ELEMENTS // max(step.weight.size for step in program.steps))
    return [inputs[start : start + size] for start in range(0, len(inputs), size)]


def _run(program: Program, x: np.ndarray, ranges: list[StepRange]) -> list[np.ndarray]:
    inputs, outputs = x, []
    for layer in program.layers:
        x = np.concatenate([_apply(step, x[:, step.reads], ranges) for step in layer], axis=1)
        outputs.append(x)
    seen = program.read_by_head(program.seen_by_head(inputs, outputs))
    return [*outputs, _apply(program.head, seen, ranges)]


def _apply(step: Step, x: np.ndarray, ranges: list[StepRange]) -> np.ndarray:
    nodal, pool, activation = step.operators.operators
    with np.errstate(all="ignore"):  # what is not finite shows in the ranges
        psi = stated(nodal.formula)(x[:, :, None], step.weight.T[None])
        pooled = stated(pool.formula)(psi)
        if step.bias is not None:
            pooled = pooled + step.bias
        out = stated(activation.formula)(unit_rows(pooled) if step.unit else pooled)
        if step.scale is not None and step.shift is not None:
            out = out * step.scale + step.shift
        pair = psi[:, :-1] * psi[:, 1:]
    ranges.append(StepRange(*(_largest(values) for values in (psi, pair, pooled, out))))
    return out


def _largest(values: np.ndarray) -> np.ndarray:
    return np.abs(values).reshape(len(values), -1).max(axis=1, initial=0.0)
