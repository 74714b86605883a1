"""How weights are stored: what is rounded is a level, and what is a level already stays what it is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opgrow.export.c_storage import STORAGES, Storage
from tests.export.compiled import needs_compiler

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("stored", [s for s in STORAGES.values() if s.limit], ids=lambda s: s.name)
def test_what_is_stored_already_does_not_change(stored: Storage) -> None:
    numbers = RNG.choice(stored.levels or range(-stored.limit, stored.limit + 1), (200, 7))
    numbers[:, 0] = stored.limit  # the unit is that of the largest
    weight = RNG.lognormal(0, 3, (200, 1)) * numbers
    units = stored.units(weight)
    assert np.array_equal(stored.rounded(weight / units[:, None]), numbers)
    for row in np.ldexp(numbers, -5):
        assert stored.fraction(row) == 5


def test_four_bits_take_the_closest_of_sixteen_levels() -> None:
    stored = STORAGES["int4"]
    assert len(set(stored.levels)) == 16
    assert 0 in stored.levels  # what is not connected stays so
    values = RNG.uniform(-150, 150, 500)
    closest = [min(stored.levels, key=lambda level: abs(level - value)) for value in values]
    assert np.array_equal(stored.rounded(values), closest)


def test_units_of_four_bits_lose_no_more_than_the_largest_weight_as_the_unit() -> None:
    stored, weight = STORAGES["int4"], RNG.standard_t(2, (300, 20))

    def lost(units: np.ndarray) -> np.ndarray:
        units = units[:, None]
        return np.square(weight - units * stored.rounded(weight / units)).sum(axis=1)

    plain = lost(np.abs(weight).max(axis=1) / stored.limit)
    chosen = lost(stored.units(weight))
    assert (chosen <= plain * (1 + 1e-9)).all()
    assert np.mean(chosen / plain) < 0.96
    powers = np.array([stored.fraction(row) for row in weight])
    whole = np.floor(np.log2(stored.limit / np.abs(weight).max(axis=1))).astype(int)
    losses = [lost(np.ldexp(1.0, -whole + shift)) for shift in (-1, 0, 1)]
    np.testing.assert_allclose(lost(np.ldexp(1.0, -powers)), np.min(losses, axis=0))
    assert stored.fraction(np.zeros(3)) == 0
    assert stored.units(np.zeros((1, 3))) == 0


@needs_compiler
@pytest.mark.parametrize("arithmetic", ["float", "integer"])
def test_two_weights_share_a_byte(arithmetic: str, fitted: dict[str, Any], tmp_path: Path) -> None:
    model = fitted["BLSClassifier"]
    sizes = {}
    for weights in ("int8", "int4"):
        model.export_c(tmp_path / "model.c", weights=weights, arithmetic=arithmetic, min_agreement=0)
        source = (tmp_path / "model.c").read_text()
        found = re.findall(r"^static const (?:u?int8_t|weight_t) (\w+)\[(\d+)\]", source, re.MULTILINE)
        sizes[weights] = {name: int(size) for name, size in found}
    whole = sum(sizes["int8"].values())
    assert sizes["int4"]["levels"] == 16
    assert whole / 2 <= sizes["int4"]["packed"] <= whole / 2 + len(sizes["int8"])
    assert "int4 (one of 16 levels)" in " ".join(source.replace("\n *", "").split())


def test_many_weights_are_counted_by_more_than_an_int_of_16_bits() -> None:
    from opgrow.export.c_weights import weight_tables

    few, many = ([np.zeros(size, np.int8)] for size in (1000, 40_000))
    assert "typedef int weights_t;" in weight_tables("int4", {"head": few}, [])
    text = weight_tables("int4", {"1_1": many, "head": few}, [])
    assert "typedef int32_t weights_t;" in text
    assert "#define weights_head 40000\n" in text
