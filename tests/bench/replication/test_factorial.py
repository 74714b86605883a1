"""Designs keep main effects apart, and least squares finds them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from opgrow.bench.replication.factorial import main_effects, resolution_four


@pytest.mark.parametrize("n_factors", range(1, 33))
def test_no_main_effect_is_mixed_up_with_another_or_with_an_interaction_of_two(n_factors):
    signs = resolution_four(n_factors)
    runs = len(signs)
    assert signs.shape == (runs, n_factors)
    assert set(signs.ravel().tolist()) == {-1, 1}
    assert runs == 2 or runs < 4 * n_factors
    np.testing.assert_array_equal(signs.sum(axis=0), 0)
    np.testing.assert_array_equal(signs.T @ signs, runs * np.eye(n_factors))
    for a, b in combinations(range(n_factors), 2):
        np.testing.assert_array_equal(signs.T @ (signs[:, a] * signs[:, b]), 0)


def test_a_design_has_factors():
    with pytest.raises(ValueError, match="n_factors must be at least 1, got 0"):
        resolution_four(0)


LEVELS = {"colour": ("red", "blue"), "size": ("small", "middle", "large"), "form": ("round", "square")}
CHANGES = {"blue": 2.0, "middle": -1.0, "large": 0.5, "square": 0.0}


def runs_of(n, seed=0):
    rng = np.random.default_rng(seed)
    return [{name: str(rng.choice(levels)) for name, levels in LEVELS.items()} for _ in range(n)]


def response_of(runs):
    return [7.0 + sum(CHANGES.get(level, 0.0) for level in run.values()) for run in runs]


def test_effects_are_those_that_were_put_in():
    runs = runs_of(40)
    effects = main_effects(runs, response_of(runs), LEVELS)
    assert {e.level: e.effect for e in effects} == pytest.approx(CHANGES, abs=1e-9)
    assert all(e.error < 1e-6 for e in effects)
    assert [e.factor for e in effects] == ["colour", "size", "size", "form"]


def test_errors_are_those_of_repeated_experiments():
    rng, runs = np.random.default_rng(1), runs_of(24)
    exact = np.array(response_of(runs))
    found = [main_effects(runs, exact + rng.normal(size=24), LEVELS) for _ in range(400)]
    for place in range(4):
        spread = np.std([effects[place].effect for effects in found])
        assert np.mean([effects[place].error for effects in found]) == pytest.approx(spread, rel=0.12)


def test_without_spare_runs_there_are_no_errors():
    runs = [{"colour": "red"}, {"colour": "blue"}]
    [effect] = main_effects(runs, [1.0, 4.0], {"colour": ("red", "blue")})
    assert effect.effect == pytest.approx(3.0)
    assert np.isnan(effect.error)


def test_too_few_runs_are_refused():
    with pytest.raises(ValueError, match="3 runs do not tell the effects of 4 levels apart"):
        main_effects(runs_of(3), [0.0] * 3, LEVELS)
