"""How many cycles a prediction of exported C takes on a processor, estimated from what it computes.

The operations of a program are counted: weights by nodal operator, pool and storage, neurons by activation,
inputs, outputs. What each of them takes was measured in simulators, with networks of every operator, and
solved for by least squares (``python -m tests.chips.costs`` writes ``cycle_costs.json``). Simulators of Arm
and RISC-V count instructions, each of which takes a cycle or more.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from importlib import resources

from .c_operators import is_linear
from .program import Program

__all__ = ["TARGETS", "estimated_cycles", "measured_costs", "operations", "target_of"]

#: Processors by what a compiler's command has of them; the first that is found counts.
TARGETS = {
    "avr": r"\bavr-",
    "m0": r"cortex-m0",
    "m3": r"cortex-m3",
    "m4": r"cortex-m(4|7|33)",
    "riscv": r"\briscv",
}


def target_of(compiler: str | None) -> str:
    """The processor that a compiler's command is for."""
    found = next((name for name, mark in TARGETS.items() if re.search(mark, compiler or "")), None)
    if found is None or found not in measured_costs():
        raise ValueError(
            "Cycles are estimated for AVR, Cortex-M0, M3 and M4 and RISC-V: pass the compiler of one, such "
            f"as 'avr-gcc -mmcu=atmega328p' or 'arm-none-eabi-gcc -mthumb -mcpu=cortex-m4', got {compiler!r}."
        )
    return found


def operations(program: Program, weights: str, arithmetic: str) -> dict[str, int]:
    """How often a prediction does what: of names such as "psi harmonic" and "activation tanh"."""
    if program.window is not None:
        raise ValueError("Cycles of windows of signals are not estimated: limit flash and ram alone.")
    stored = "int16" if arithmetic == "integer" and weights == "float32" else weights
    counts = Counter({"call": 1, "input": program.n_inputs, "output": program.n_outputs})
    for step in program.steps:
        operators, size = step.operators, step.weight.size
        # Products that are only added up are quicker than those which other pools take one by one.
        products = f"products {operators.nodal}"
        counts[products if is_linear(operators) else f"psi {operators.nodal}"] += size
        counts[f"pool {operators.pool}"] += size
        counts[f"weight {stored}"] += size
        counts[f"activation {operators.activation}"] += step.n_neurons
        counts["neuron"] += step.n_neurons
    return dict(counts)


def estimated_cycles(program: Program, weights: str, arithmetic: str, target: str) -> int:
    """What a prediction takes on one of `TARGETS`; operators of users count as the dearest of their kind."""
    costs = measured_costs()[target][arithmetic]
    total = 0.0
    for name, count in operations(program, weights, arithmetic).items():
        kind = name.split()[0]
        dearest = max((cost for other, cost in costs.items() if other.split()[0] == kind), default=0.0)
        total += count * costs.get(name, dearest)
    return round(total)


@cache
def measured_costs() -> dict[str, dict[str, dict[str, float]]]:
    """What each operation takes, by target and arithmetic."""
    text = resources.files(__package__).joinpath("cycle_costs.json").read_text()
    costs: dict[str, dict[str, dict[str, float]]] = json.loads(text)
    return costs
