"""Criteria, losses and their comparison."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import optimize, special
from sklearn.metrics import accuracy_score, log_loss, mean_squared_error

from opgrow.training.scores import (
    CRITERIA,
    Score,
    calibration_error,
    evaluate,
    nothing_left,
    probabilities,
    reliability,
    row_losses,
    temperature,
)

NAN, INF = math.nan, math.inf


@pytest.fixture
def classified():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 200)
    outputs = (rng.normal(size=(200, 4)) + 1.5 * np.eye(4)[labels]).astype(np.float32)
    return outputs, np.eye(4, dtype=np.float32)[labels], labels, rng.uniform(0.1, 3, 200).astype(np.float32)


def test_scores_compare_by_their_criterion():
    assert Score(0.9, 1.0, True).better_than(Score(0.8, 0.1, True))
    assert not Score(0.8, 0.1, True).better_than(Score(0.9, 1.0, True))
    assert Score(0.1, 1.0).better_than(Score(0.2, 0.1))
    assert not Score(0.2, 0.1).better_than(Score(0.1, 1.0))


@pytest.mark.parametrize("higher", [True, False])
def test_ties_are_decided_by_the_loss(higher):
    assert Score(0.5, 0.1, higher).better_than(Score(0.5, 0.2, higher))
    assert not Score(0.5, 0.2, higher).better_than(Score(0.5, 0.1, higher))
    assert not Score(0.5, 0.1, higher).better_than(Score(0.5, 0.1, higher))


@pytest.mark.parametrize("higher", [True, False])
@pytest.mark.parametrize("bad", [(NAN, 0.1), (0.1, NAN), (INF, 0.1), (-INF, 0.1), (0.1, INF)])
def test_what_is_not_finite_never_wins(bad, higher):
    bad, good = Score(*bad, higher), Score(0.5, 0.5, higher)
    assert not bad.better_than(good)
    assert not bad.better_than(None)
    assert not bad.better_than(bad)
    assert good.better_than(bad)
    assert good.better_than(None)


def test_relative_improvement():
    assert Score(0.9, 0, True).improvement_over(Score(0.8, 0, True)) == pytest.approx(0.125)
    assert Score(0.3, 0).improvement_over(Score(0.4, 0)) == pytest.approx(0.25)
    assert Score(0.4, 0).improvement_over(Score(0.3, 0)) == pytest.approx(-1 / 3)
    # A custom loss may be negative: what is won is still positive.
    assert Score(-3.0, 0).improvement_over(Score(-2.0, 0)) == pytest.approx(0.5)


def test_improvement_over_zero():
    assert Score(0.1, 0, True).improvement_over(Score(0.0, 0, True)) == INF
    assert Score(0.0, 0, True).improvement_over(Score(0.0, 0, True)) == 0
    assert Score(0.0, 0).improvement_over(Score(0.0, 0)) == 0
    assert Score(0.1, 0).improvement_over(Score(0.0, 0)) <= 0
    assert Score(NAN, 0).improvement_over(Score(0.5, 0)) == -INF


def test_nothing_is_left_to_gain_from_nearly_nothing():
    assert nothing_left("accuracy", 1.0)
    assert not nothing_left("accuracy", 0.9999)
    assert not nothing_left("accuracy", 0.0)
    assert nothing_left("brier", 5e-5)
    assert not nothing_left("brier", 1e-3)
    assert nothing_left("loss", 0.0)
    assert not nothing_left("loss", 1e-5)


def test_a_target_is_reached_from_the_side_of_the_worse():
    assert Score(0.9, 5.0, True).reaches(0.9)
    assert Score(0.95, 5.0, True).reaches(0.9)
    assert not Score(0.89, 0.0, True).reaches(0.9)
    assert Score(0.1, 5.0).reaches(0.1)
    assert Score(0.05, 5.0).reaches(0.1)
    assert not Score(0.11, 0.0).reaches(0.1)
    assert not Score(NAN, 0.0, True).reaches(0.0)
    assert not Score(NAN, 0.0).reaches(1.0)


def test_accuracy_is_scikit_learns(classified):
    outputs, target, labels, weight = classified
    actual = evaluate("accuracy", "cross_entropy", outputs, target, weight)
    assert actual.higher_is_better
    assert actual.value == pytest.approx(accuracy_score(labels, outputs.argmax(axis=1), sample_weight=weight))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_cross_entropy_is_scikit_learns(classified, criterion):
    outputs, target, labels, weight = classified
    actual = evaluate(criterion, "cross_entropy", outputs, target, weight)
    wanted = log_loss(labels, special.softmax(outputs.astype(np.float64), axis=1), sample_weight=weight)
    assert actual.loss == pytest.approx(wanted, rel=1e-5)
    if criterion == "loss":
        assert actual.value == actual.loss


def test_mean_squared_error_is_scikit_learns(classified):
    outputs, target, _, weight = classified
    actual = evaluate("loss", "mse", outputs, target, weight)
    assert actual.value == pytest.approx(mean_squared_error(target, outputs, sample_weight=weight), rel=1e-5)


def test_brier_is_the_squared_distance_of_probabilities(classified):
    outputs, target, _, weight = classified
    actual = evaluate("brier", "cross_entropy", outputs, target, weight)
    distance = ((special.softmax(outputs.astype(np.float64), axis=1) - target) ** 2).sum(axis=1)
    assert actual.value == pytest.approx(np.average(distance, weights=weight), rel=1e-6)
    assert not actual.higher_is_better


@pytest.mark.parametrize("loss", ["mse", "cross_entropy"])
def test_torch_and_numpy_losses_agree(classified, loss):
    outputs, target, _, weight = classified
    rows = row_losses(loss, torch.from_numpy(outputs), torch.from_numpy(target)).numpy()
    assert evaluate("loss", loss, outputs, target, weight).value == pytest.approx(
        np.average(rows, weights=weight), rel=1e-5
    )


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_outputs_that_are_not_finite_score_badly(classified, criterion, bad):
    outputs, target, _, weight = classified
    outputs[3, 1] = bad
    actual = evaluate(criterion, "cross_entropy", outputs, target, weight)
    assert not actual.better_than(Score(0.0, 100.0, CRITERIA[criterion]))
    assert not actual.better_than(None)


@pytest.mark.parametrize("loss", ["mse", "cross_entropy", lambda outputs, target: outputs[:, 0]])
def test_probabilities_are_probabilities(loss):
    rng = np.random.default_rng(0)
    outputs = np.concatenate([rng.normal(size=(50, 3)), -np.ones((1, 3)), np.eye(3) * 1e4, np.zeros((1, 3))])
    actual = probabilities(loss, outputs.astype(np.float32))
    assert (actual >= 0).all()
    np.testing.assert_allclose(actual.sum(axis=1), 1, rtol=1e-12)
    if loss != "mse":
        np.testing.assert_allclose(actual, special.softmax(outputs.astype(np.float32).astype(float), axis=1))


def test_least_squares_outputs_between_0_and_1_that_sum_to_1_are_the_probabilities():
    outputs = np.array([[0.2, 0.8], [0.5, 0.5], [1.0, 0.0]])
    np.testing.assert_allclose(probabilities("mse", outputs), outputs)


@pytest.mark.parametrize("loss", ["mse", "cross_entropy"])
def test_the_largest_output_is_the_most_probable_class_however_far_from_0_and_1(loss):
    rng = np.random.default_rng(0)
    sizes = np.repeat([1e-30, 1e-3, 1.0, 30.0, 1e30], 200)[:, None]
    outputs = (rng.normal(size=(1000, 4)) * sizes).astype(np.float32)
    # Above 1, below 0, and what clipping at 0 and 1 would make equal.
    made = np.array([[1.1, 1.2, 0, 0], [-3, -1, -2, -4], [0, 0, -1, -1], [2e38, 3e38, 3.3e38, 1]], np.float32)
    outputs = np.concatenate([outputs, made, outputs + 1, outputs - 1])
    actual = probabilities(loss, outputs)
    np.testing.assert_allclose(actual.sum(axis=1), 1, rtol=1e-12)
    at_its_best = np.take_along_axis(actual, outputs.argmax(axis=1)[:, None], axis=1)[:, 0]
    assert (at_its_best == actual.max(axis=1)).all()
    if loss == "mse":  # a softmax of logits that differ by less than 1e-16 is a tie
        told_apart = (outputs > 0).any(axis=1)
        assert (actual.argmax(axis=1) == outputs.argmax(axis=1))[told_apart].all()
        inside = ((outputs >= 0) & (outputs <= 1)).all(axis=1) & (outputs.max(axis=1) > 0)
        kept = outputs[inside].astype(float)
        np.testing.assert_allclose(actual[inside], kept / kept.sum(axis=1, keepdims=True))


def test_temperature_minimises_the_cross_entropy(classified):
    outputs, target, labels, weight = classified
    outputs = outputs / 5

    def cost(factor):
        return log_loss(labels, special.softmax(outputs.astype(float) * factor, axis=1), sample_weight=weight)

    best = optimize.minimize_scalar(cost, bounds=(0.4, 50), method="bounded")
    actual = temperature(outputs, target, weight)
    assert cost(actual) <= best.fun + 1e-6
    assert actual == pytest.approx(best.x, rel=2e-3)


def test_custom_losses_return_one_value_a_row(classified):
    outputs, target, _, weight = classified

    def absolute(outputs, target):
        return (outputs - target).abs().sum(dim=1)

    actual = evaluate("loss", absolute, outputs, target, weight)
    assert actual.value == pytest.approx(
        np.average(np.abs(outputs - target).sum(axis=1), weights=weight), rel=1e-5
    )
    for bad in (lambda o, t: (o - t).abs(), lambda o, t: (o - t).mean(), lambda o, t: 1.0):
        with pytest.raises(ValueError, match="one value per row"):
            row_losses(bad, torch.from_numpy(outputs), torch.from_numpy(target))


def test_unknown_losses_and_criteria_are_refused():
    outputs, weight = np.zeros((2, 2), np.float32), np.ones(2, np.float32)
    with pytest.raises(ValueError, match="criterion"):
        evaluate("nope", "mse", outputs, outputs, weight)
    with pytest.raises(ValueError, match="loss"):
        row_losses("nope", torch.zeros(2, 2), torch.zeros(2, 2))


def test_the_calibration_error_is_the_distance_of_confidence_and_accuracy():
    confidence = np.array([0.9, 0.9, 0.9, 0.9, 0.6, 0.6])
    right = np.array([1, 1, 1, 0, 0, 0], bool)
    expected = (4 * abs(0.9 - 0.75) + 2 * 0.6) / 6
    assert calibration_error(confidence, right) == pytest.approx(expected)
    assert calibration_error(np.ones(3), np.ones(3, bool)) == 0


def test_reliability_counts_every_row_once_and_keeps_empty_bins_at_zero():
    confidence = np.array([0.0, 0.55, 0.95, 1.0])
    count, sure, accuracy = reliability(confidence, np.array([False, True, False, True]), n_bins=10)
    assert count.tolist() == [1, 0, 0, 0, 0, 1, 0, 0, 0, 2]
    assert sure[[0, 1, 5, 9]] == pytest.approx([0, 0, 0.55, 0.975])
    assert accuracy[[0, 1, 5, 9]] == pytest.approx([0, 0, 1, 0.5])
