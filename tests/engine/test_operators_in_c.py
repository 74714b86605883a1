"""The elementary functions of operators.h in units in the last place, and what they do with extremes."""

from __future__ import annotations

import numpy as np
import pytest

from opgrow.engine.arrays import pointer
from opgrow.engine.functions import INTEGER, POINTER

WHICH = {
    "exp": 0,
    "expm1_bounded": 1,
    "exp_bounded": 2,
    "log": 3,
    "sin_half_turns": 4,
    "cos_half_turns": 5,
    "tanh": 6,
    "sigmoid": 7,
    "softplus": 8,
    "log1p_unit": 9,
    "exp2m1_reduced": 10,
}


def values(engine, name, x):
    function = engine.library.function("elementary", (INTEGER, POINTER, POINTER, INTEGER))
    padded = np.zeros(-(-len(x) // 16) * 16, np.float32)
    padded[: len(x)] = x
    out = np.empty_like(padded)
    function(WHICH[name], pointer(padded), pointer(out), len(padded))
    return out[: len(x)]


def ulps(actual, expected):
    """Errors in units in the last place of the right value, which is in double precision."""
    spacing = np.spacing(np.abs(expected).astype(np.float32)).astype(np.float64)
    return np.abs(actual.astype(np.float64) - expected) / spacing


def around(low, high, n=200_001, seed=0):
    """Evenly spread values, and as many whose logarithms are."""
    rng = np.random.default_rng(seed)
    small = np.exp(rng.uniform(np.log(1e-30), np.log(max(abs(low), abs(high))), n)) * rng.choice(
        [-1.0, 1.0], n
    )
    both = np.concatenate([rng.uniform(low, high, n), small])
    return both[(both >= low) & (both <= high)].astype(np.float32)


def wide(x):
    return x.astype(np.float64)


CASES = {
    "exp": (around(-87, 88.7), np.exp, 1.5),
    "expm1_bounded": (around(-80, 80), np.expm1, 1.5),
    "exp_bounded": (around(-80, 80), np.exp, 1.5),
    "exp2m1_reduced": (around(-0.5, 0.5), lambda x: np.expm1(x * np.log(2)), 2.0),
    "log": (np.concatenate([around(1e-37, 1e38), around(0.5, 2.0)]), np.log, 2.0),
    "log1p_unit": (around(0, 1), np.log1p, 2.0),
    "tanh": (around(-9, 9), np.tanh, 2.5),
    "sigmoid": (around(-80, 80), lambda x: 1 / (1 + np.exp(-x)), 2.5),
    "softplus": (around(-80, 80), lambda x: np.maximum(-x, 0) + np.log1p(np.exp(-np.abs(x))), 2.5),
    "sin_half_turns": (around(-0.5, 0.5), lambda x: np.sin(np.pi * x), 2.5),
}


@pytest.mark.parametrize("name", CASES)
def test_elementary_functions_are_right_to_about_two_units_in_the_last_place(engine, name):
    x, exact, most = CASES[name]
    error = ulps(values(engine, name, x), exact(wide(x)))
    assert error.max() <= most, f"{name}: {error.max():.2f} at {x[error.argmax()]!r}"


def test_cosines_are_right_in_absolute_terms(engine):
    x = around(-0.5, 0.5)
    assert np.abs(values(engine, "cos_half_turns", x) - np.cos(np.pi * wide(x))).max() < 1.6e-7


@pytest.mark.parametrize("name", WHICH)
def test_what_is_not_a_number_stays_so(engine, name):
    assert np.isnan(values(engine, name, np.full(16, np.nan, np.float32))).all()


def test_infinite_arguments_have_their_limits(engine):
    both = np.float32([np.inf, -np.inf])
    assert values(engine, "exp", both).tolist() == [np.inf, 0.0]
    assert values(engine, "tanh", both).tolist() == [1.0, -1.0]
    np.testing.assert_allclose(values(engine, "sigmoid", both), [1.0, 0.0], atol=1e-37)
    np.testing.assert_allclose(values(engine, "softplus", both), [0.0, np.inf], atol=1e-37)
    assert values(engine, "log", np.float32([np.inf])).tolist() == [np.inf]


def test_every_instruction_set_gives_the_same_bits(engines):
    for name, (x, _, _) in CASES.items():
        results = {isa: values(engine, name, x[::7]).tobytes() for isa, engine in engines.items()}
        assert len(set(results.values())) == 1, name
