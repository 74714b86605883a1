"""What is measured of predictions: pure functions of true values and predictions."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import roc_auc_score

__all__ = ["LEAST_PROBABILITY", "METRICS", "of_classes", "of_numbers", "of_probabilities"]

#: Names of metrics by task, and whether higher is better.
METRICS: dict[str, dict[str, bool]] = {
    "classification": {"accuracy": True, "log_loss": False, "roc_auc": True, "brier": False},
    "regression": {"rmse": False, "mae": False, "r2": True, "nrmse": False},
}
#: A probability of zero costs as much as this one.
LEAST_PROBABILITY = 1e-7


def of_classes(y: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Accuracy of class codes."""
    return {"accuracy": float((y == predicted).mean())}


def of_probabilities(y: np.ndarray, probabilities: np.ndarray) -> dict[str, float]:
    """Log loss, area under the ROC curve and Brier score.

    Parameters
    ----------
    y : ndarray of shape (n_rows,)
        Class codes.
    probabilities : ndarray of shape (n_rows, n_classes)
        They are scaled to a sum of 1.

    Returns
    -------
    dict
        The Brier score is summed over classes. The area is that of the second of two classes, or else the
        mean of each class against the rest, over the classes that ``y`` has.
    """
    p = np.asarray(probabilities, dtype=np.float64)
    p = p / p.sum(axis=1, keepdims=True)
    one_hot = np.eye(p.shape[1])[y]
    scored = [1] if p.shape[1] == 2 else range(p.shape[1])
    areas = [roc_auc_score(y == c, p[:, c]) for c in scored if 0 < (y == c).sum() < len(y)]
    return {
        "log_loss": float(-np.log(np.clip(p[np.arange(len(y)), y], LEAST_PROBABILITY, 1)).mean()),
        "roc_auc": float(np.mean(areas)) if areas else float("nan"),
        "brier": float(((p - one_hot) ** 2).sum(axis=1).mean()),
    }


def of_numbers(y: np.ndarray, predicted: np.ndarray, y_train: np.ndarray) -> dict[str, float]:
    """Errors of numbers; ``nrmse`` is ``rmse`` in standard deviations of the training targets."""
    errors = y - predicted
    spread = float(np.square(y - y.mean()).sum())
    rmse, deviation = float(np.sqrt(np.square(errors).mean())), float(np.std(y_train))
    return {
        "rmse": rmse,
        "mae": float(np.abs(errors).mean()),
        "r2": 1 - float(np.square(errors).sum()) / spread if spread else float("nan"),
        "nrmse": rmse / deviation if deviation else float("nan"),
    }
