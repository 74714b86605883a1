"""Cycles are estimated from what a program computes, for a processor that the compiler's command names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from opgrow.export import export_c_into
from opgrow.export.c import exported_program
from opgrow.export.cycles import TARGETS, estimated_cycles, operations, target_of
from opgrow.operators import registered
from tests.export.signals import pipeline, signals


def test_every_weight_neuron_and_input_is_counted(fitted: dict[str, Any]) -> None:
    for name, model in fitted.items():
        program = exported_program(model, "int8", "float")
        counts = operations(program, "int8", "float")
        weights = sum(step.weight.size for step in program.steps)
        assert counts["weight int8"] == weights, name
        for kind in (("psi", "products"), ("pool",)):
            assert sum(n for key, n in counts.items() if key.split()[0] in kind) == weights
        assert counts["input"] == model.network_.n_inputs
        assert counts["output"] == model.network_.n_outputs


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("arithmetic", ["float", "integer"])
def test_estimates_grow_with_the_network(target: str, arithmetic: str, fitted: dict[str, Any]) -> None:
    sizes = {}
    for name in ("HeMLGOPClassifier", "BLSClassifier", "PMLPClassifier"):
        program = exported_program(fitted[name], "int4", arithmetic)
        sizes[estimated_cycles(program, "int4", arithmetic, target)] = program
    assert min(sizes) > 500
    # Exponentials and divisions take a few hundred instructions at most, 2,000 without floating point.
    for cycles, program in sizes.items():
        assert cycles < 4000 * sum(step.weight.size + step.n_neurons for step in program.steps)


def test_every_operator_has_a_cost_that_was_measured() -> None:
    from opgrow.export.cycles import measured_costs

    for target in TARGETS:
        for arithmetic in ("float", "integer"):
            costs = measured_costs()[target][arithmetic]
            assert {f"pool {name}" for name in registered("pool")} <= set(costs)
            assert {f"activation {name}" for name in registered("activation")} <= set(costs)
            for name in registered("nodal"):
                assert costs.get(f"psi {name}", 0) + costs.get(f"products {name}", 0) > 0


def test_the_compiler_says_for_which_processor() -> None:
    assert target_of("avr-gcc -mmcu=atmega328p") == "avr"
    assert target_of("arm-none-eabi-gcc -mthumb -mcpu=cortex-m4 -mfpu=fpv4-sp-d16") == "m4"
    assert target_of("/opt/bin/arm-none-eabi-gcc -mcpu=cortex-m0plus") == "m0"
    assert target_of("riscv64-unknown-elf-gcc -march=rv32imac") == "riscv"
    for other in (None, "gcc", "arm-none-eabi-gcc"):
        with pytest.raises(ValueError, match="^Cycles are estimated for AVR, Cortex-M0, .*, got"):
            target_of(other)


def test_windows_of_signals_have_no_estimate(tmp_path: Path) -> None:
    x, y = signals(60, 32, 2)
    model = pipeline(x, y, n_channels=2)
    with pytest.raises(ValueError, match="^Cycles of windows of signals are not estimated"):
        export_c_into(model, tmp_path / "model.c", {"cycles": 1000}, compiler="avr-gcc")
    assert list(tmp_path.iterdir()) == []
