"""Probabilities and temperatures against scipy in double precision."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special


def normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize(("n", "c"), [(0, 3), (1, 1), (50, 4)])
def test_a_softmax_agrees_with_double_precision(engine, n, c):
    outputs = normal(0, n, c) * 10
    np.testing.assert_allclose(
        engine.probabilities(outputs, True), special.softmax(outputs, axis=1), rtol=1e-13
    )


def test_shares_are_those_of_the_positive_outputs(engine):
    result = engine.probabilities(
        np.array([[1.0, 3.0, -1.0], [-2.0, -1.0, -3.0], [1e308, 1e308, 0.0]]), False
    )
    np.testing.assert_allclose(result[0], [0.25, 0.75, 0.0], rtol=1e-15)
    np.testing.assert_allclose(result[1], special.softmax([-2.0, -1.0, -3.0]), rtol=1e-13)
    np.testing.assert_allclose(result[2], [0.5, 0.5, 0.0], rtol=1e-15)


@pytest.mark.parametrize("logits", [True, False])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_probabilities_of_what_is_no_number_are_none(engine, bad, logits):
    for place in range(3):
        outputs = np.ones((2, 3))
        outputs[0, place] = bad
        result = engine.probabilities(outputs, logits)
        assert np.isnan(result[0]).any()
        np.testing.assert_allclose(result[1], 1 / 3)


@pytest.mark.parametrize(("n", "factor"), [(40, 3.0), (333, 20.0)])
def test_the_temperature_has_the_least_cross_entropy(engine, n, factor):
    target = np.eye(3, dtype=np.float32)[np.random.default_rng(0).integers(0, 3, n)]
    outputs = ((normal(1, n, 3) * 1.5 + 2 * target) / factor).astype(np.float32)
    weight = np.random.default_rng(2).uniform(0.1, 2, n).astype(np.float32)

    def cost(value):
        return -(weight @ (target * special.log_softmax(outputs * value, axis=1)).sum(axis=1))

    best = min(np.exp(np.linspace(-1, 4, 5001)), key=cost)
    assert engine.temperature(outputs, target, weight) == pytest.approx(best, rel=5e-3)


def test_the_temperature_stays_within_its_bounds(engine):
    target = np.eye(2, dtype=np.float32)[[0, 1] * 20]
    one = np.ones(40, np.float32)
    assert engine.temperature(1e-2 * target, target, one) == pytest.approx(np.exp(4), rel=1e-3)
    assert engine.temperature(1e-2 * (1 - target), target, one) == pytest.approx(np.exp(-4), rel=1e-3)
    for bad in (np.nan, np.inf):
        assert np.exp(-4) <= engine.temperature(np.full_like(target, bad), target, one) <= np.exp(4) * 1.001
    assert engine.temperature(target[:0], target[:0], one[:0]) > 0


def test_every_instruction_set_gives_the_same_bits(engines):
    outputs = normal(0, 83, 3)
    target = np.eye(3, dtype=np.float32)[np.arange(83) % 3]
    weight = np.ones(83, np.float32)
    results = set()
    for engine in engines.values():
        chances = [engine.probabilities(outputs, logits).tobytes() for logits in (True, False)]
        results.add((*chances, engine.temperature(outputs.astype(np.float32), target, weight)))
    assert len(results) == 1
