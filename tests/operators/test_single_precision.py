"""The functions that exported floats are computed with: how far they are from double precision."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from opgrow.operators import single_precision as single

RNG = np.random.default_rng(0)
LOG2 = np.log(2.0)


def numbers(low: float, high: float) -> np.ndarray:
    """Many numbers of a range, and some that are close to 0, if it is in it."""
    spread = RNG.uniform(low, high, 500_000)
    tiny = 10.0 ** RNG.uniform(-20, 0, 20_000)
    tiny = np.concatenate([tiny, -tiny])
    return np.concatenate([spread, tiny[(tiny >= low) & (tiny <= high)]]).astype(np.float32)


CASES: dict[str, tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]] = {
    "two_to": (numbers(-126, 126), np.exp2),
    "two_to_minus_1": (numbers(-15, 15), lambda t: np.expm1(t * LOG2)),
    "log_of_1_plus": (numbers(1e-30, 1), np.log1p),
    "inverse_root": (np.exp(numbers(-60, 60)), lambda v: 1 / np.sqrt(v)),
}


@pytest.mark.cpu
@pytest.mark.parametrize("name", CASES)
def test_relative_errors_are_those_that_are_stated(name: str) -> None:
    x, exact = CASES[name]
    expected = exact(x.astype(np.float64))
    actual = getattr(single, name)(x)
    assert actual.dtype == np.float32
    error = float(np.abs((actual - expected) / expected).max())
    assert 0.5 * single.ERRORS[name] < error <= single.ERRORS[name]


@pytest.mark.cpu
def test_the_error_of_sines_is_that_which_is_stated() -> None:
    t = numbers(-100, 100)
    error = np.abs(single.sine_of_half_turns(t) - np.sin(np.pi * t.astype(np.float64))).max()
    assert 0.5 * single.ERRORS["sine_of_half_turns"] < error <= single.ERRORS["sine_of_half_turns"]
    far = single.sine_of_half_turns(np.float32([1e8, -1e30, 3e38]))
    assert (np.abs(far) <= 1).all()


def test_bounds_and_numbers_that_are_none() -> None:
    x = np.float32([-np.inf, -1e30, 0, 1e30, np.inf, np.nan])
    with np.errstate(all="ignore"):
        assert single.exponential(x)[:5] == pytest.approx([2.0**-126, 2.0**-126, 1, 2.0**126, 2.0**126])
        for name in ("exponential", "two_to_minus_1", "sine_of_half_turns", "log_of_1_plus", "bounded"):
            assert np.isnan(getattr(single, name)(x))[5], name
    assert single.bounded(x)[:5].tolist() == [-10, -10, 0, 10, 10]
