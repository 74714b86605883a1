"""What is said about models on the folds of a table."""

from __future__ import annotations

import numpy as np
import pytest

from opgrow.bench.peers import models
from opgrow.bench.peers.standings import SHORT_NAMES, default_models, full_name, standings, verdict


def lines(model, scores, parameters=None, **more):
    """A line for each fold; None is one that was not finished."""
    for fold, score in enumerate(scores):
        line = {"model": model, "split": fold, "status": "done", "rows": 80, "test_rows": 20}
        if score is None:
            yield line | {"status": "over budget", "message": "not begun, as the time was over"}
        else:
            known = {"accuracy": score, "log_loss": 1 - score, "fit_seconds": 2.0, "predict_seconds": 1e-3}
            yield line | known | {"parameters": parameters} | more


def test_the_best_is_first_and_only_what_is_clearly_worse_is_called_so():
    found = standings(
        [
            *lines("near", [0.91, 0.90, 0.92, 0.88, 0.90], 100),
            *lines("far", [0.71, 0.70, 0.72, 0.70, 0.71], 5),
            *lines("best", [0.90, 0.91, 0.92, 0.90, 0.92], 1000),
        ],
        ["far", "near", "best"],
        "classification",
    )
    assert [(one.model, one.behind) for one in found] == [("best", False), ("near", False), ("far", True)]
    best = found[0]
    assert best.score == pytest.approx(0.91)
    scores = np.array([0.90, 0.91, 0.92, 0.90, 0.92])
    assert best.error == pytest.approx(scores.std(ddof=1) * np.sqrt(1 / 5 + 20 / 80))
    assert (best.loss, best.row_microseconds) == (pytest.approx(0.09), pytest.approx(50.0))
    said = verdict(found, "classification")
    assert said == (
        "best has the best accuracy, 0.910 ± 0.007. Within noise of it: near. "
        "The smallest of these is near with 100 parameters, 10 times fewer than best."
    )


def test_a_model_with_fewer_folds_is_not_the_best_and_says_why():
    found = standings(
        [*lines("lucky", [1.0, None, None]), *lines("whole", [0.8, 0.8, 0.8]), *lines("late", [None] * 3)],
        ["lucky", "whole", "late"],
        "classification",
    )
    assert [(one.model, one.folds) for one in found] == [("whole", 3), ("lucky", 1), ("late", 0)]
    assert found[2].message == "not begun, as the time was over"
    assert found[1].p == 1.0  # one fold in common says nothing


def test_one_fold_cannot_tell():
    found = standings([*lines("a", [0.9]), *lines("b", [0.5])], ["a", "b"], "classification")
    assert "One fold cannot tell differences from noise." in verdict(found, "classification")


def test_short_names_are_models():
    for name in (*SHORT_NAMES.values(), *default_models()):
        models.check(name)
    assert full_name(" LightGBM ") == "LightGBM"
    assert full_name("Accurate") == "HeMLGOP preset=accurate"
    assert full_name("HeMLGOP n_min=20") == "HeMLGOP n_min=20"
