"""Statistics of features and scores of candidates, against numpy in double precision."""

from __future__ import annotations

import numpy as np
import pytest

from opgrow.engine.training import Rows, Settings, Shape


def problem(n=300, seed=0, n_frozen=2):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.5, 1.5, (n, 4)).astype(np.float32)
    target = np.eye(3, dtype=np.float32)[rng.integers(0, 3, n)]
    frozen = rng.normal(size=(n, n_frozen)).astype(np.float32)
    return Rows(x, frozen, target, rng.uniform(0.5, 1.5, n).astype(np.float32))


def candidate(head=(-1, -1, -1), seed=1, n_frozen=2):
    """Two blocks in the first layer, one in the second: codes, inputs, neurons, offset, layer, column."""
    sizes = [((2, 0, 1), 4, 5, 0, 0), ((4, 1, 4), 4, 3, 0, 5), ((0, 0, 1), 8, 6, 1, 0)]
    plan, offset = [], 0
    for codes, n_inputs, d, layer, column in sizes:
        plan.append([*codes, n_inputs, d, offset, layer, column])
        offset += d * (n_inputs + 3)
    shape = Shape(np.array(plan), np.array([8, 6]), head, n_frozen, 3)
    rng = np.random.default_rng(seed)
    theta = rng.uniform(-0.8, 0.8, shape.n_parameters).astype(np.float32)
    moments = rng.uniform(0.4, 1.2, (2, 14)).astype(np.float32)
    settings = Settings("cross_entropy", np.zeros(shape.n_parameters, np.float32))
    return shape, settings, theta, moments


def layer_features(engine, shape, theta, layer, x):
    """Features of a layer before its norm, and the parameters of that norm."""
    raws, scales, shifts = [], [], []
    for nodal, pool, activation, n, d, at, number, _ in shape.plan.tolist():
        if number == layer:
            weight, rest = theta[at : at + n * d].reshape(n, d), theta[at + n * d : at + n * d + 3 * d]
            bias, scale, shift = rest.reshape(3, d)
            raws.append(engine.features((nodal, pool, activation), x, weight, bias))
            scales.append(scale)
            shifts.append(shift)
    return np.concatenate(raws, axis=1), np.concatenate(scales), np.concatenate(shifts)


def forward(engine, shape, theta, moments, x, upto):
    first = 0
    for layer in range(upto):
        raw, scale, shift = layer_features(engine, shape, theta, layer, x)
        span = slice(first, first + raw.shape[1])
        mean, variance = moments[:, span].astype(np.float64)
        x = ((raw - mean) / np.sqrt(variance + 1e-8) * scale + shift).astype(np.float32)
        first = span.stop
    return x


@pytest.mark.parametrize("layer", [0, 1])
def test_sums_of_features_and_of_their_squares(engine, layer):
    rows, (shape, settings, theta, moments) = problem(), candidate()
    sums = engine.feature_sums(engine.evaluation(shape, rows, settings, theta), moments, layer)
    raw, *_ = layer_features(
        engine, shape, theta, layer, forward(engine, shape, theta, moments, rows.x, layer)
    )
    raw, weight = raw.astype(np.float64), rows.weight.astype(np.float64)
    np.testing.assert_allclose(sums[0], weight @ raw, rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(sums[1], weight @ raw**2, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("criterion", ["accuracy", "brier", "loss"])
@pytest.mark.parametrize("head", [(-1, -1, -1), (0, 0, 1)], ids=["linear", "neurons"])
def test_scores_are_those_of_the_outputs(engine, head, criterion):
    rows, (shape, settings, theta, moments) = problem(), candidate(head)
    sums = engine.score_sums(engine.evaluation(shape, rows, settings, theta), moments, criterion)
    x = forward(engine, shape, theta, moments, rows.x, 2)
    seen = np.concatenate([rows.frozen, x], axis=1).astype(np.float64)
    weight, bias = theta[-27:-3].reshape(8, 3).astype(np.float64), theta[-3:]
    outputs = seen @ weight + bias
    outputs = np.tanh(outputs) if head[0] >= 0 else outputs
    value, loss = engine.score(
        criterion, "cross_entropy", outputs.astype(np.float32), rows.target, rows.weight
    )
    total = rows.weight.sum(dtype=np.float64)
    np.testing.assert_allclose(sums[2], total)
    np.testing.assert_allclose(
        sums[:2] / total, [value, loss], rtol=1e-4, atol=0.004 if criterion == "accuracy" else 0
    )
    assert sums[3] == 0


def test_rows_without_a_finite_output_are_counted(engine):
    rows, (shape, settings, theta, moments) = problem(), candidate()
    x = rows.x.copy()
    x[7, 1] = np.nan
    spoilt = Rows(x, rows.frozen, rows.target, rows.weight)
    sums = engine.score_sums(engine.evaluation(shape, spoilt, settings, theta), moments, "brier")
    assert sums[3] == 1


def test_without_rows_all_sums_are_zero(engine):
    rows, (shape, settings, theta, moments) = problem(0), candidate()
    prepared = engine.evaluation(shape, rows, settings, theta)
    assert not engine.feature_sums(prepared, moments, 1).any()
    assert not engine.score_sums(prepared, moments, "loss").any()


def test_every_instruction_set_gives_the_same_bits(engines):
    rows, (shape, settings, theta, moments) = problem(57), candidate()
    answers = set()
    for engine in engines.values():
        prepared = engine.evaluation(shape, rows, settings, theta)
        parts = [engine.feature_sums(prepared, moments, layer) for layer in (0, 1)]
        parts.append(engine.score_sums(prepared, moments, "brier"))
        answers.add(b"".join(part.tobytes() for part in parts))
    assert len(answers) == 1


def test_wrong_arrays_are_refused(engine):
    rows, (shape, settings, theta, moments) = problem(), candidate()
    prepared = engine.evaluation(shape, rows, settings, theta)
    with pytest.raises(ValueError, match="theta must be a contiguous array of shape"):
        engine.evaluation(shape, rows, settings, theta[1:])
    with pytest.raises(ValueError, match="moments must be a contiguous array of shape"):
        engine.feature_sums(prepared, moments[:, 1:], 0)
