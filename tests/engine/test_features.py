"""Features and their gradients for every operator set, against plain torch in double precision."""

from __future__ import annotations

import numpy as np
import pytest

from opgrow.engine.blocks import ACTIVATIONS, NODALS, POOLS
from tests.engine import oracle
from tests.engine.oracle import CODES, name_of, problem, relative_error

#: Rows, inputs, neurons: around the borders of tiles and of partial sums; too few for correlations.
SHAPES = [(45, 7, 5), (1, 5, 3), (33, 1, 2), (32, 2, 1), (3, 12, 40), (17, 70, 17), (64, 3, 16)]


@pytest.mark.parametrize("codes", CODES, ids=name_of)
def test_features_and_gradients_agree_with_double_precision(engine, codes):
    for shape in SHAPES:
        x, weight, bias, slope = problem(*shape)
        actual = engine.features(codes, x, weight, bias)
        assert relative_error(actual, oracle.features(codes, x, weight, bias)) < 6e-6, shape
        by_x, by_weight, by_bias = oracle.gradients(codes, x, weight, bias, slope)
        got_weight, got_bias, got_x = engine.gradients(codes, x, weight, bias, slope)
        errors = [
            relative_error(*pair) for pair in ((got_weight, by_weight), (got_bias, by_bias), (got_x, by_x))
        ]
        assert max(errors) < 1e-5, (shape, errors)


@pytest.mark.parametrize("nodal", range(len(NODALS)))
def test_the_search_has_the_same_features(engine, nodal):
    x, weight, _, _ = problem(37, 70, 5)
    sets = [(p, a) for p in range(len(POOLS)) for a in range(len(ACTIVATIONS))]
    actual = engine.search_features(nodal, [p for p, _ in sets], [a for _, a in sets], x, weight)
    for (pool, activation), values in zip(sets, actual, strict=True):
        expected = engine.features((nodal, pool, activation), x, weight)
        assert np.array_equal(values.T, expected), (pool, activation)


@pytest.mark.parametrize("codes", [c for c in CODES if c[2] in (1, 7)], ids=name_of)
def test_a_row_does_not_depend_on_the_rows_beside_it(engine, codes):
    x, weight, bias, _ = problem(50, 70, 21)
    together = engine.features(codes, x, weight, bias)
    for rows in (slice(0, 1), slice(3, 8), slice(16, 49)):
        assert np.array_equal(engine.features(codes, x[rows], weight, bias), together[rows])


@pytest.mark.parametrize("codes", CODES, ids=name_of)
def test_a_missing_value_makes_the_features_of_its_row_missing(engine, codes):
    x, weight, bias, _ = problem(20, 5, 3)
    clean = engine.features(codes, x, weight, bias)
    x[4, 2], x[18, 0] = np.nan, np.nan
    actual = engine.features(codes, x, weight, bias)
    assert np.isnan(actual[[4, 18]]).all()
    rest = np.delete(np.arange(20), [4, 18])
    assert np.array_equal(actual[rest], clean[rest])
    by_search = engine.search_features(codes[0], [codes[1]], [codes[2]], x, weight)
    assert np.isnan(by_search[0][:, [4, 18]]).all()


@pytest.mark.parametrize("codes", CODES, ids=name_of)
def test_huge_inputs_give_what_the_formula_gives(engine, codes):
    x, weight, bias, slope = problem(20, 5, 3)
    x *= np.float32(1e3)
    if codes[0] == 2:  # sines of thousands: the rounding of the product is the error
        return
    expected = oracle.features(codes, x, weight, bias)
    assert relative_error(engine.features(codes, x, weight, bias), expected) < 1e-4
    grads = engine.gradients(codes, x, weight, bias, slope)
    assert all(np.isfinite(g).all() for g in grads)
    x[:] = np.float32(3e38)
    x[::2] = -np.inf
    engine.features(codes, x, weight, bias)
    engine.gradients(codes, x, weight, bias, slope)


@pytest.mark.parametrize("nodal", [1, 2, 4, 5])
@pytest.mark.parametrize("size", [0.1, 3.0, 30.0])
def test_exponentials_and_sines_of_one_input_are_as_right_as_their_argument(engine, nodal, size):
    """One input, no activation: rounding an argument of size a costs a or two units in the last place."""
    rng = np.random.default_rng(3)
    x, weight = rng.uniform(-1, 1, (400, 1)) * size**0.5, rng.uniform(-1, 1, (1, 300)) * size**0.5
    x, weight = x.astype(np.float32), weight.astype(np.float32)
    expected = oracle.features((nodal, 0, 7), x, weight, np.zeros(300, np.float32))
    wide_x, wide_weight = x.astype(np.float64), weight.astype(np.float64)
    argument = np.abs(wide_x * wide_weight) if nodal in (1, 2) else np.abs(wide_weight) * wide_x**2
    bound = 1.2e-7 * (
        (np.abs(expected) if nodal != 1 else 1 + np.abs(expected)) * np.minimum(argument, 10) * 1.5
    )
    if nodal == 2:
        bound = 1.2e-7 * argument * 1.5
    actual = engine.features((nodal, 0, 7), x, weight)
    assert (np.abs(actual - expected) <= bound + 2.5e-7 * np.abs(expected) + 1e-37).all()


@pytest.mark.parametrize("size", [1e4, 1e20, 3e38])
def test_sines_of_huge_numbers_stay_within_bounds(engine, size):
    x, weight = np.float32([[size], [-size]]), np.float32([[1.0, 0.7]])
    assert np.abs(engine.features((2, 0, 7), x, weight)).max() <= 1.0


def test_every_instruction_set_gives_the_same_bits(engines):
    x, weight, bias, slope = problem(37, 70, 18)
    for codes in CODES[::3]:
        results = set()
        for engine in engines.values():
            arrays = engine.features(codes, x, weight, bias), *engine.gradients(codes, x, weight, bias, slope)
            results.add(b"".join(a.tobytes() for a in arrays))
        assert len(results) == 1, name_of(codes)


def test_rows_may_have_any_distance(engine):
    x, weight, bias, slope = problem(30, 6, 4)
    wider = np.zeros((30, 11), np.float32)
    wider[:, 2:8] = x
    codes = (1, 1, 1)
    assert np.array_equal(
        engine.features(codes, wider[:, 2:8], weight, bias), engine.features(codes, x, weight, bias)
    )
    turned = np.asfortranarray(x)
    assert np.array_equal(engine.features(codes, turned, weight), engine.features(codes, x, weight))
    for left, right in zip(
        engine.gradients(codes, wider[:, 2:8], weight, bias, slope),
        engine.gradients(codes, x, weight, bias, slope),
        strict=True,
    ):
        assert np.array_equal(left, right)


def test_no_rows_are_no_features(engine):
    _, weight, bias, _ = problem(1, 6, 4)
    empty = np.empty((0, 6), np.float32)
    assert engine.features((0, 0, 0), empty, weight, bias).shape == (0, 4)
    assert engine.search_features(1, [0], [0], empty, weight).shape == (1, 4, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"codes": (8, 0, 0)}, r"codes must be three numbers below \(8, 4, 8\), got \(8, 0, 0\)"),
        ({"x": np.zeros((3, 5), np.float32)}, "x must be a matrix with 6 columns"),
        ({"x": np.zeros((3, 6))}, "x must be a matrix with 6 columns of type float32, .* type float64"),
        ({"weight": np.zeros((6, 8), np.float32)[:, ::2]}, "weight must be a contiguous array"),
        ({"weight": np.zeros((6, 0), np.float32)}, "a block needs inputs and neurons"),
        ({"bias": np.zeros(3, np.float32)}, r"bias must be a contiguous array of shape \(4,\)"),
    ],
)
def test_wrong_arrays_are_refused(engine, change, message):
    arguments = {
        "codes": (0, 0, 0),
        "x": np.zeros((3, 6), np.float32),
        "weight": np.zeros((6, 4), np.float32),
        "bias": np.zeros(4, np.float32),
    }
    with pytest.raises(ValueError, match=message):
        engine.features(**(arguments | change))
