"""Scores of solved candidates against numpy in double precision."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from opgrow.engine.search import SolvedCandidates

SIZES = [(1, 1, 1, 0, 1), (3, 5, 16, 0, 2), (4, 20, 300, 7, 3), (2, 7, 129, 32, 8), (5, 6, 40, 1, 1)]


def problem(k, m, n, p, c, seed=0):
    rng = np.random.default_rng(seed)

    def draw(*shape):
        return rng.normal(size=shape).astype(np.float32)

    solved = SolvedCandidates(
        draw(k, m),
        rng.uniform(0.5, 1.5, (k, m)).astype(np.float32),
        draw(p, k, m) * 0.1,
        np.tril(draw(k, m, m)) * np.float32(0.05),
        draw(k, m, c) * 0.1,
        draw(p) * 0.1,
        draw(c),
        draw(p, c) * 0.1,
        np.tril(rng.normal(size=(p, p))) * 0.01,
        float(n),
    )
    weight = rng.uniform(0.2, 2, n).astype(np.float32)
    return solved, (draw(k, m, n), draw(n, p), np.eye(c, dtype=np.float32)[rng.integers(0, c, n)], weight)


def oracle(solved, rows, leave_one_out):
    h, accepted, target, weight = (a.astype(np.float64) for a in rows)
    s = replace(solved, **{n: a.astype(float) for n, a in vars(solved).items() if isinstance(a, np.ndarray)})
    accepted = accepted - s.accepted_mean
    standard = (h - s.centre[:, :, None]) * s.factor[:, :, None]
    standard -= np.einsum("pkm,np->kmn", s.projection, accepted)
    reach = s.whiten @ standard
    outputs = accepted @ s.head + s.target_mean + reach.swapaxes(1, 2) @ s.reduced
    if not leave_one_out:
        return (weight * (outputs.argmax(axis=2) == target.argmax(axis=1))).sum(axis=1)
    leverage = 1 / s.total_weight + ((accepted @ s.base_whiten.T) ** 2).sum(axis=1)
    left = np.maximum(1 - weight * (leverage + (reach**2).sum(axis=1)), 1e-2)
    return -(weight * ((target - outputs) ** 2).sum(axis=2) / left**2).sum(axis=1)


@pytest.mark.parametrize("leave_one_out", [True, False])
@pytest.mark.parametrize("sizes", SIZES)
def test_scores_agree_with_double_precision(engine, sizes, leave_one_out):
    solved, rows = problem(*sizes)
    actual = engine.search_scores(solved, *rows, leave_one_out)
    np.testing.assert_allclose(actual, oracle(solved, rows, leave_one_out), rtol=1e-4)


def test_without_rows_every_score_is_0(engine):
    solved, rows = problem(3, 4, 0, 2, 2)
    assert engine.search_scores(solved, *rows, True).tolist() == [0, 0, 0]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_candidate_that_is_not_finite_disturbs_no_other(engine, bad):
    solved, rows = problem(3, 4, 50, 2, 2)
    for leave_one_out in (True, False):
        expected = engine.search_scores(solved, *rows, leave_one_out)
        spoilt = rows[0].copy()
        spoilt[1, 2, 30] = bad
        actual = engine.search_scores(solved, spoilt, *rows[1:], leave_one_out)
        assert np.array_equal(actual[::2], expected[::2])
        assert not np.isfinite(actual[1]) if leave_one_out else actual[1] <= expected[1]


def test_every_instruction_set_gives_the_same_bits(engines):
    solved, rows = problem(4, 20, 300, 7, 3)
    for leave_one_out in (True, False):
        assert len({e.search_scores(solved, *rows, leave_one_out).tobytes() for e in engines.values()}) == 1


def test_wrong_arrays_are_refused(engine):
    solved, rows = problem(4, 20, 30, 7, 3)
    with pytest.raises(ValueError, match="projection must be a contiguous array"):
        engine.search_scores(replace(solved, projection=solved.projection[1:]), *rows, True)
    with pytest.raises(ValueError, match="weight must be a contiguous array"):
        engine.search_scores(solved, *rows[:3], rows[3][1:], True)
