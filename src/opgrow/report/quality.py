"""How good predictions are, as numbers: what `opgrow evaluate` prints and reports show."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from ..training.scores import calibration_error, reliability

__all__ = ["ClassQuality", "NumberQuality", "class_scores", "number_scores"]


def class_scores(codes: np.ndarray, probabilities: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Accuracy, balanced accuracy, macro F1 and log loss of predicted classes, all given as codes (n,)."""
    from sklearn import metrics

    labels = np.arange(probabilities.shape[1])
    with warnings.catch_warnings():
        # Few rows or absent classes are the user's choice, and the scores of those are still defined.
        warnings.simplefilter("ignore")
        values = {
            "accuracy": metrics.accuracy_score(codes, predicted),
            "balanced_accuracy": metrics.balanced_accuracy_score(codes, predicted),
            "macro_f1": metrics.f1_score(codes, predicted, average="macro", zero_division=0),
            "log_loss": metrics.log_loss(codes, probabilities, labels=labels),
        }
    return {name: float(value) for name, value in values.items()}


def number_scores(values: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """R2, mean absolute error and root mean squared error; means over several targets."""
    from sklearn import metrics

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = {
            "r2": metrics.r2_score(values, predicted),
            "mae": metrics.mean_absolute_error(values, predicted),
            "rmse": metrics.root_mean_squared_error(values, predicted),
        }
    return {name: float(value) for name, value in scores.items()}


@dataclass(frozen=True)
class ClassQuality:
    """How well classes are predicted.

    Attributes
    ----------
    scores : of `class_scores`, with the "calibration_error" and the "most_frequent" class's share
    confusion : counts (true, predicted)
    precision, recall, f1, support : for each class; 0 where nothing was predicted or nothing is there
    bins : of `scores.reliability`
    codes : of the true classes
    """

    scores: dict[str, float]
    confusion: np.ndarray
    precision: np.ndarray
    recall: np.ndarray
    f1: np.ndarray
    support: np.ndarray
    bins: tuple[np.ndarray, np.ndarray, np.ndarray]
    codes: np.ndarray

    @classmethod
    def of(cls, codes: np.ndarray, probabilities: np.ndarray, predicted: np.ndarray) -> ClassQuality:
        """From the codes (n,) of true and of predicted classes, and probabilities (n, classes)."""
        n_classes = probabilities.shape[1]
        confusion = np.zeros((n_classes, n_classes), np.int64)
        np.add.at(confusion, (codes, predicted), 1)
        hits, support, guesses = confusion.diagonal(), confusion.sum(axis=1), confusion.sum(axis=0)
        confidence, right = probabilities[np.arange(len(codes)), predicted], codes == predicted
        scores = class_scores(codes, probabilities, predicted) | {
            "calibration_error": calibration_error(confidence, right),
            "most_frequent": float(support.max() / len(codes)),
        }
        return cls(
            scores,
            confusion,
            hits / np.maximum(guesses, 1),
            hits / np.maximum(support, 1),
            2 * hits / np.maximum(guesses + support, 1),
            support,
            reliability(confidence, right),
            codes,
        )


@dataclass(frozen=True)
class NumberQuality:
    """How well numbers are predicted: scores over all targets and of each, and the values (n, targets)."""

    scores: dict[str, float]
    by_target: list[dict[str, float]]
    values: np.ndarray
    predicted: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, predicted: np.ndarray) -> NumberQuality:
        """From true and predicted values, both (n, targets)."""
        each = [number_scores(values[:, i], predicted[:, i]) for i in range(values.shape[1])]
        return cls(number_scores(values, predicted), each, values, predicted)
