"""How large everything inside a program gets on given rows, which is what fixed-point formats are made from.

The rows go through the program in double precision, by the torch formulas of the operators.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from ..network import unit_rows
from .program import Program, Step

__all__ = ["Ranges", "StepRange", "find_ranges"]

#: Elements of the N x D x d tensor that are held at once.
_CHUNK_ELEMENTS = 1 << 21


@dataclass
class StepRange:
    """Largest magnitudes in a step: of psi and of products of two neighbours among them, of the pooled values
    with their bias, and of the outputs.
    """

    psi: float = 0.0
    pair: float = 0.0
    pooled: float = 0.0
    output: float = 0.0


@dataclass
class Ranges:
    """Largest magnitudes: of each raw input, of all standardised ones, and in each step of the program."""

    raw: np.ndarray
    standardized: float
    steps: list[StepRange]


def find_ranges(program: Program, rows: np.ndarray) -> Ranges:
    """Run rows (n, n_inputs) through a program and note the largest magnitudes."""
    found = Ranges(np.abs(rows).max(axis=0), 0.0, [StepRange() for _ in program.steps])
    largest = max(step.weight.size for step in program.steps)
    size = max(1, _CHUNK_ELEMENTS // largest)
    for start in range(0, len(rows), size):
        x = torch.from_numpy((rows[start : start + size] - program.input_mean) / program.input_scale)
        found.standardized = max(found.standardized, float(x.abs().max()))
        _run(program, x, found.steps)
    for step in found.steps:
        if not np.isfinite([step.psi, step.pair, step.pooled, step.output]).all():
            raise ValueError("The calibration rows lead to values that are not finite: give typical inputs.")
    return found


def _run(program: Program, x: torch.Tensor, ranges: list[StepRange]) -> None:
    following, outputs = iter(ranges), [x] if program.head_sees_input else []
    for layer in program.layers:
        x = torch.cat([_apply(step, x[:, : step.n_inputs], next(following)) for step in layer], dim=1)
        outputs.append(x)
    _apply(program.head, torch.cat(outputs, dim=1) if program.broad and outputs else x, next(following))


def _apply(step: Step, x: torch.Tensor, found: StepRange) -> torch.Tensor:
    weight = torch.from_numpy(np.ascontiguousarray(step.weight.T))
    psi = step.operators.nodal_operator.function(x[:, :, None], weight[None])
    pooled = step.operators.pool_operator.function(psi)
    if step.bias is not None:
        pooled = pooled + torch.from_numpy(step.bias)
    out = step.operators.activation_operator.function(unit_rows(pooled) if step.unit else pooled)
    if step.scale is not None and step.shift is not None:
        out = out * torch.from_numpy(step.scale) + torch.from_numpy(step.shift)
    pair = psi[:, :-1] * psi[:, 1:]
    for name, values in (("psi", psi), ("pair", pair), ("pooled", pooled), ("output", out)):
        largest = float(values.abs().max()) if values.numel() else 0.0
        # A NaN is larger than everything, and comes to light.
        setattr(found, name, largest if not largest <= getattr(found, name) else getattr(found, name))
    return out
