"""Models on the folds of one table: how good, fast and small each is, and which differences are noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..runs import DONE
from .results import Line
from .summary import corrected_t_test

__all__ = ["SHORT_NAMES", "Standing", "default_models", "full_name", "standings", "verdict"]

#: Names that are easier to type than those of the study.
SHORT_NAMES = {
    "default": "HeMLGOP",
    "compact": "HeMLGOP preset=compact",
    "accurate": "HeMLGOP preset=accurate",
    "linear": "logistic/ridge regression",
    "forest": "random forest",
    "svm": "RBF SVM (inner CV)",
    "mlp": "MLP 200-200",
    "boosting": "HistGradientBoosting",
    "lightgbm": "LightGBM",
    "catboost": "CatBoost",
    "realmlp": "RealMLP-TD",
    "tabm": "TabM-D",
}
_USUAL = ("linear", "boosting", "lightgbm", "default", "compact", "forest", "mlp", "accurate")
#: The score by which models are ranked, and what stands beside it.
_SCORES = {"classification": ("accuracy", "log_loss"), "regression": ("r2", "rmse")}
_WORDS = {"accuracy": "accuracy", "r2": "R²"}
#: The level of the tests between models.
_LEVEL = 0.05


@dataclass(frozen=True)
class Standing:
    """A model on the folds that it has finished; numbers are means over them, None where they are not known.

    Attributes
    ----------
    model : name
    folds : how many it has finished
    score : accuracy, or R²
    error : standard error of the score, which takes into account that folds share training rows
    loss : log loss, or root of the mean squared error
    fit_seconds : on one core, with the preparation of the inputs
    row_microseconds : of a prediction, for each row
    parameters : numbers that the model has learned
    p : p-value of its difference to the best model; None for that one
    behind : whether it is worse than the best model by more than noise
    message : why folds are missing
    """

    model: str
    folds: int
    score: float | None = None
    error: float | None = None
    loss: float | None = None
    fit_seconds: float | None = None
    row_microseconds: float | None = None
    parameters: int | None = None
    p: float | None = None
    behind: bool = False
    message: str | None = None


def default_models() -> list[str]:
    """What is compared if nothing else is said: ours and the usual peers, the quick ones first."""
    return [SHORT_NAMES[name] for name in _USUAL]


def full_name(name: str) -> str:
    """The name of the study for a short one; others stay as they are."""
    return SHORT_NAMES.get(name.strip().lower(), name.strip())


def standings(lines: Sequence[Line], models: Sequence[str], task: str) -> list[Standing]:
    """The models, the best one first and those without a result last."""
    found = [_standing([line for line in lines if line["model"] == model], model, task) for model in models]
    most = max((one.folds for one in found), default=0)
    done = [one for one in found if one.score is not None]
    if not done:
        return found
    best = max((one for one in done if one.folds == most), key=lambda one: one.score or 0.0)
    metric = _SCORES[task][0]
    scores = {one.model: _by_fold(lines, one.model, metric) for one in done}
    shares = [line["test_rows"] / line["rows"] for line in lines if line["status"] == DONE]
    compared = [one if one is best else _compared(one, best, scores, shares[0]) for one in done]
    compared.sort(key=lambda one: (one is not best, -(one.score or 0.0)))
    return compared + [one for one in found if one.score is None]


def _standing(lines: list[Line], model: str, task: str) -> Standing:
    finished = [line for line in lines if line["status"] == DONE]
    others = [line["message"] for line in lines if line["status"] != DONE]
    message = others[0] if others else None
    if not finished:
        return Standing(model, 0, message=message or "not begun, as the time was over")
    metric, loss = _SCORES[task]
    scores = np.array([line[metric] for line in finished])
    sizes = [line["parameters"] for line in finished if line.get("parameters") is not None]
    error = None
    if len(scores) > 1:
        share = finished[0]["test_rows"] / finished[0]["rows"]
        error = float(scores.std(ddof=1) * np.sqrt(1 / len(scores) + share))
    rows = sum(line["test_rows"] for line in finished)
    return Standing(
        model,
        len(finished),
        float(scores.mean()),
        error,
        _mean(finished, loss),
        _mean(finished, "fit_seconds"),
        1e6 * sum(line["predict_seconds"] for line in finished) / rows,
        round(float(np.mean(sizes))) if sizes else None,
        message=message,
    )


def _mean(lines: list[Line], what: str) -> float | None:
    values = [line[what] for line in lines if what in line]
    return float(np.mean(values)) if values else None


def _by_fold(lines: Sequence[Line], model: str, metric: str) -> dict[int, float]:
    return {
        line["split"]: line[metric] for line in lines if line["model"] == model and line["status"] == DONE
    }


def _compared(one: Standing, best: Standing, scores: dict[str, dict[int, float]], share: float) -> Standing:
    """A model beside the best one, on the folds that both have finished."""
    ours, theirs = scores[one.model], scores[best.model]
    differences = np.array([theirs[fold] - ours[fold] for fold in ours if fold in theirs])
    p = corrected_t_test(differences, share)
    behind = bool(p < _LEVEL and differences.mean() > 0)
    facts: dict[str, Any] = vars(one) | {"p": p, "behind": behind}
    return Standing(**facts)


def verdict(found: Sequence[Standing], task: str) -> str:
    """Which model is best within noise and which is smallest, in plain sentences."""
    done = [one for one in found if one.score is not None]
    if not done:
        return "No model has finished."
    best, others = done[0], done[1:]
    word = _WORDS[_SCORES[task][0]]
    error = "" if best.error is None else f" ± {best.error:.3f}"
    sentences = [f"{best.model} has the best {word}, {best.score:.3f}{error}."]
    if best.folds < 2:
        sentences.append("One fold cannot tell differences from noise.")
    else:
        level = [one.model for one in others if not one.behind]
        if level:
            sentences.append(f"Within noise of it: {', '.join(level)}.")
        elif others:
            sentences.append("All others are worse by more than noise.")
    sized = [one for one in done if not one.behind and one.parameters is not None]
    if sized and len(done) > 1:
        smallest = min(sized, key=lambda one: one.parameters or 0)
        sentences.append(f"The smallest of these is {smallest.model} with {smallest.parameters:,} parameters")
        times = (best.parameters or 0) / (smallest.parameters or 1)
        more = f", {times:.0f} times fewer than {best.model}" if smallest is not best and times >= 2 else ""
        sentences[-1] += f"{more}."
    return " ".join(sentences)
