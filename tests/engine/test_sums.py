"""Sums and scores against numpy and scipy in double precision."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special


def normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize(("n", "p", "q"), [(1, 1, 1), (127, 5, 17), (300, 40, 33), (1000, 3, 64), (0, 4, 5)])
def test_gram_matrices_agree_with_double_precision(engine, n, p, q):
    left, right = (normal(i, n, c).astype(np.float32) for i, c in enumerate((p, q)))
    weight = np.random.default_rng(2).uniform(0, 3, n).astype(np.float32)
    scale = np.sqrt(max(n, 1))
    expected = left.astype(np.float64).T @ right.astype(np.float64)
    assert np.abs(engine.gram(left, right) - expected).max() < 1e-6 * scale
    turned = engine.gram(np.ascontiguousarray(left.T).T, np.asfortranarray(right))
    assert np.array_equal(turned, engine.gram(left, right))
    expected = (left * weight[:, None]).astype(np.float64).T @ right.astype(np.float64)
    assert np.abs(engine.gram(left, right, weight) - expected).max() < 4e-6 * scale
    itself = engine.gram(left, left)
    assert np.array_equal(itself, engine.gram(left, left.copy()))


def test_sums_over_blocks_of_rows_are_sums_over_all(engine):
    x = normal(0, 512, 9).astype(np.float32)
    parts = [engine.gram(x[i : i + 128], x[i : i + 128]) for i in range(0, 512, 128)]
    assert np.array_equal(sum(parts[1:], parts[0]), engine.gram(x, x))


@pytest.mark.parametrize(
    ("k", "m", "n", "p", "outputs"),
    [
        (3, 5, 300, 0, 2),
        (2, 20, 129, 27, 4),
        (1, 16, 700, 13, 3),
        (4, 33, 64, 5, 1),
        (2, 40, 1100, 15, 16),
        (0, 3, 9, 2, 2),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_of_candidates_agree_with_double_precision(engine, k, m, n, p, outputs, weighted):
    h, accepted, target = (
        normal(i, *shape).astype(np.float32) for i, shape in enumerate([(k, m, n), (n, p), (n, outputs)])
    )
    shift, scale = normal(3, k, m).astype(np.float32), np.exp(normal(4, k, m)).astype(np.float32)
    weight = np.random.default_rng(5).uniform(0, 3, n).astype(np.float32) if weighted else None
    results = engine.search_sums(h, shift, scale, weight, accepted, target)
    # The standardised features are rounded to single precision, as those that the network computes.
    features = ((h - shift[:, :, None]) * scale[:, :, None]).astype(np.float64)
    heavy = features if weight is None else features * weight
    expected = (
        heavy.sum(2),
        heavy @ features.transpose(0, 2, 1),
        np.einsum("kmn,np->pkm", heavy, accepted),
        heavy @ target,
    )
    size = np.abs(heavy).max(initial=1.0) * np.abs(features).max(initial=1.0) * np.sqrt(n)
    for result, oracle in zip(results, expected, strict=True):
        assert result.shape == oracle.shape
        assert np.abs(result - oracle).max(initial=0.0) < 1e-6 * size
    assert np.array_equal(results[1], results[1].transpose(0, 2, 1))


def test_sums_of_a_candidate_do_not_depend_on_the_others_nor_on_the_blocks_of_rows(engine):
    h, accepted, target = (
        normal(i, *s).astype(np.float32) for i, s in enumerate([(5, 20, 640), (640, 9), (640, 3)])
    )
    shift, scale = normal(3, 5, 20).astype(np.float32), np.exp(normal(4, 5, 20)).astype(np.float32)
    together = engine.search_sums(h, shift, scale, None, accepted, target)
    alone = engine.search_sums(h[3:4], shift[3:4], scale[3:4], None, accepted, target)
    for axis, whole, one in zip((0, 0, 1, 0), together, alone, strict=True):
        assert np.array_equal(whole.take([3], axis), one)
    parts = [
        engine.search_sums(h[:, :, rows].copy(), shift, scale, None, accepted[rows], target[rows])
        for rows in (slice(start, start + 128) for start in range(0, 640, 128))
    ]
    for whole, *pieces in zip(together, *parts, strict=True):
        assert np.array_equal(whole, sum(pieces[1:], pieces[0]))


def test_products_agree_with_double_precision(engine):
    a, b = normal(0, 50, 200).astype(np.float32), normal(1, 200, 23).astype(np.float32)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    assert np.abs(engine.product(a, b) - expected).max() < 2e-5


def test_moments_are_those_of_double_precision(engine):
    x, weight = normal(0, 400, 6).astype(np.float32) + 100, np.random.default_rng(1).uniform(0, 2, 400)
    weight = weight.astype(np.float32)
    mean, variance = engine.moments(x, weight)
    wide = x.astype(np.float64)
    expected = np.average(wide, axis=0, weights=weight)
    np.testing.assert_allclose(mean, expected, rtol=1e-13)
    np.testing.assert_allclose(
        variance, np.average((wide - expected) ** 2, axis=0, weights=weight), rtol=1e-11
    )


def shares(outputs):
    positive = np.maximum(outputs, 0.0)
    return np.where(positive.any(axis=1, keepdims=True), positive, special.softmax(outputs, axis=1))


@pytest.mark.parametrize("loss", ["mse", "cross_entropy"])
@pytest.mark.parametrize("criterion", ["accuracy", "brier", "loss"])
def test_scores_agree_with_double_precision(engine, criterion, loss):
    outputs = (normal(0, 300, 4) * 3).astype(np.float32)
    target = np.eye(4, dtype=np.float32)[np.random.default_rng(1).integers(0, 4, 300)]
    weight = np.random.default_rng(2).uniform(0.1, 2, 300).astype(np.float32)
    wide = outputs.astype(np.float64)
    if loss == "mse":
        losses, evidence = ((wide - target) ** 2).mean(axis=1), shares(wide)
    else:
        losses, evidence = (
            -(target * special.log_softmax(wide, axis=1)).sum(axis=1),
            special.softmax(wide, axis=1),
        )
    chances = evidence / evidence.sum(axis=1, keepdims=True)
    values = {
        "accuracy": wide.argmax(axis=1) == target.argmax(axis=1),
        "brier": ((chances - target) ** 2).sum(axis=1),
        "loss": losses,
    }
    value, mean_loss = engine.score(criterion, loss, outputs, target, weight)
    expected = [np.average(of_rows, weights=weight) for of_rows in (values[criterion], losses)]
    np.testing.assert_allclose([value, mean_loss], expected, rtol=1e-12)
    outputs[7, 2] = np.inf
    assert np.isnan(engine.score(criterion, loss, outputs, target, weight)[0])
    assert engine.score(criterion, loss, outputs[:7], target[:7]) is not None


def test_cross_entropy_of_extreme_logits_is_right(engine):
    outputs, target = np.float32([[1e4, -1e4, 0.0], [300.0, 0.0, -300.0]]), np.float32([[0, 1, 0], [1, 0, 0]])
    _, loss = engine.score("loss", "cross_entropy", outputs, target)
    assert loss == pytest.approx(1e4)


def test_every_instruction_set_gives_the_same_bits(engines):
    x, weight = (
        normal(0, 200, 21).astype(np.float32),
        np.random.default_rng(2).uniform(0, 3, 200).astype(np.float32),
    )
    target = np.eye(21, dtype=np.float32)[np.arange(200) % 21]
    constants = normal(3, 3, 7).astype(np.float32), normal(4, 3, 7).astype(np.float32)
    results = set()
    for engine in engines.values():
        arrays = [engine.gram(x, x[:, :7]), engine.gram(x, x, weight), *engine.moments(x, weight)]
        arrays += engine.search_sums(
            x.T.reshape(3, 7, 200).copy(), *constants, weight, x[:, :5].copy(), target
        )
        arrays += [np.array(engine.score(c, "cross_entropy", x, target)) for c in ("brier", "accuracy")]
        results.add(b"".join(a.tobytes() for a in arrays))
    assert len(results) == 1


def test_wrong_arrays_are_refused(engine):
    x = np.zeros((5, 3), np.float32)
    with pytest.raises(ValueError, match="left has 5 rows, and right 4"):
        engine.gram(x, x[:4])
    with pytest.raises(ValueError, match="left must be a float32 matrix, got float64 of shape"):
        engine.gram(np.zeros((5, 3)), x)
    with pytest.raises(ValueError, match=r"accepted must be a contiguous array of shape \(4, 'any'\)"):
        engine.search_sums(np.zeros((1, 2, 4), np.float32), *np.ones((2, 1, 2), np.float32), None, x, x)
    with pytest.raises(ValueError, match="criterion must be one of"):
        engine.score("auc", "mse", x, x)
