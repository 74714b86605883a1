"""Integer programs: inputs from a table, sums in 32 bits, and the same bits from every optimisation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opgrow import Block, Layer, Network, OperatorSet
from opgrow.export import fixed_emulation
from opgrow.export.c_draft import FixedDraft
from opgrow.export.c_fixed import FixedProgram, fixed_program
from opgrow.export.c_fixed_inputs import KNEES, PLACE_BITS, fixed_inputs
from opgrow.export.c_fixed_source import fixed_source
from opgrow.export.c_header import header_source
from opgrow.export.fixed_arithmetic import squashed
from opgrow.export.program import program_of
from tests.export.compiled import Library, needs_compiler
from tests.export.test_measuring import around, emulated, extreme_integers
from tests.networks import randomized

SUMS = OperatorSet("multiplication", "sum", "tanh")


def network_of(n_inputs: int, n_neurons: int, **options: Any) -> Network:
    layers = [Layer([Block(n_inputs, n_neurons, SUMS)]), Layer([Block(n_neurons, 3, SUMS)])]
    return randomized(Network(n_inputs, 2, layers, input_bound=3.0, **options), constants=False)


def libraries(fixed: FixedProgram, folder: Path) -> list[Library]:
    """The program as it is for chips, and as it is where speed counts."""
    (folder / "model.c").write_text(fixed_source(fixed, "model", "model.h"))
    (folder / "model.h").write_text(header_source(fixed.program, "model", fixed, None))
    return [Library([folder / "model.c"], level) for level in ("-Os", "-O3")]


@pytest.mark.parametrize(("bound", "bits"), [(3.0, 13), (2.0, 14), (4.0, 13), (0.7, 15)])
def test_squashed_inputs_are_close_wherever_they_are(bound: float, bits: int) -> None:
    u = np.concatenate([np.linspace(-5, 5, 40_001), np.geomspace(5, 1e4, 5000)])
    places = np.rint(u * 24 * 2**PLACE_BITS).astype(np.int64)
    actual = squashed(places, round(bound * 2**bits)) / 2**bits
    error = actual - bound * u / np.sqrt(1 + u**2)
    assert np.abs(error).max() < 1.5e-4 * bound + 2.0**-bits
    assert np.array_equal(squashed(-places, 24576), -squashed(places, 24576))
    ordered = squashed(np.arange(KNEES[-1] << PLACE_BITS + 6, step=7), 24576)
    assert (np.diff(ordered) >= 0).all()
    assert ordered[-1] == 24576


@needs_compiler
@pytest.mark.parametrize(
    ("mean", "scale", "products"),
    [
        ([0.5, -20.0, 1e3, 0.0], [0.3, 5.0, 200.0, 1e-6], True),
        ([0.5, -20.0, 1.7e9, 0.0], [0.3, 5.0, 50.0, 1.0], False),  # seconds since 1970 within minutes
    ],
)
def test_raw_inputs_become_those_of_the_network(
    mean: list[float], scale: list[float], products: bool, tmp_path: Path
) -> None:
    centre, unit = np.array(mean), np.array(scale)
    rows = centre + unit * np.random.default_rng(0).normal(size=(200, 4))
    fixed = fixed_inputs(centre, unit, np.abs(rows).max(axis=0), 3.0, 13)
    assert fixed.by_products == products
    network = network_of(4, 5, input_mean=centre, input_scale=unit)
    draft = fixed_program(program_of(around(network)), rows, "int16")
    usual = fixed_emulation.as_inputs(draft, rows)
    inputs = fixed_emulation._network_input(draft, usual) / 2.0**13
    # Floats of 32 bits tell such seconds 128 apart.
    off = [0, 1, 3] if not products else [0, 1, 2, 3]
    assert np.abs(inputs - program_of(around(network)).network_input(rows))[:, off].max() < 1.5e-3
    x = np.concatenate([usual, extreme_integers(4)])
    for library in libraries(draft, tmp_path):
        scores = library.integer_scores("model", x, 2)
        assert np.array_equal(scores, emulated(FixedDraft(draft), x))


@needs_compiler
@pytest.mark.parametrize("weights", ["int16", "int8", "int4"])
@pytest.mark.parametrize(("n_inputs", "n_neurons"), [(3, 5), (31, 7), (4000, 5)])
def test_sums_take_32_bits_where_they_fit(
    n_inputs: int, n_neurons: int, weights: str, tmp_path: Path
) -> None:
    network = network_of(n_inputs, n_neurons)
    rows = np.random.default_rng(0).normal(size=(40, n_inputs))
    fixed = fixed_program(program_of(around(network)), rows, weights)
    assert fixed.narrow == (n_inputs < 4000)
    largest = np.abs(fixed.layers[0][0].weight).max(axis=1)
    if weights == "int16":  # at most four bits are given up for that, and none in vain
        assert (largest >= 2**10 if fixed.narrow else largest >= 2**14).all()
    x = np.concatenate([fixed_emulation.as_inputs(fixed, rows), extreme_integers(n_inputs)])
    for library in libraries(fixed, tmp_path):
        assert np.array_equal(library.integer_scores("model", x, 2), emulated(FixedDraft(fixed), x))
