"""Pipelines of a `WindowFeatures` and an estimator: what is exported, and what that is compared with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

from ..common.places import evenly
from ..growth.model import GrownModel
from ..rows.signals import WindowFeatures, WindowForm
from .measuring import MOST_ROWS, Expected, ExportCheck, expected_of, expected_with
from .window_emulation import most_windows, window_features

__all__ = ["expected_by", "model_and_step", "remarked"]


def model_and_step(estimator: Any, arithmetic: str) -> tuple[Any, WindowFeatures | None]:
    """What is exported: an estimator and, of a pipeline, the step in front of it."""
    if not isinstance(estimator, Pipeline):
        return estimator, None
    steps = [step for _, step in estimator.steps]
    if len(steps) != 2 or not isinstance(steps[0], WindowFeatures) or not isinstance(steps[1], GrownModel):
        names = ", ".join(type(step).__name__ for step in steps)
        raise TypeError(
            "Pipelines that are exported as C have two steps, WindowFeatures and one of opgrow's estimators, "
            f"which standardise their inputs themselves, got {names}."
        )
    step, model = steps
    if not hasattr(step, "form_"):
        raise NotFittedError("This pipeline is not fitted: call fit before exporting it.")
    if arithmetic == "integer":
        raise ValueError(
            "Integer arithmetic has no WindowFeatures, as sums of squares of 32-bit samples exceed 64 bits: "
            "use arithmetic='float', or export the last step, which takes the features."
        )
    return model, step


def expected_by(model: Any, step: WindowFeatures | None, calibration: Any) -> Expected | None:
    """What an export is compared with; the features of windows are those that C computes of them."""
    if step is None or calibration is None:
        return expected_of(model, calibration)
    windows = np.asarray(calibration)
    windows = windows[evenly(len(windows), min(MOST_ROWS, most_windows(step.form_)))]
    rows = np.asarray(model.network_rows(step.transform(windows)), np.float64)
    windows = windows.reshape(len(windows), -1)
    given = window_features(step.form_, windows).astype(np.float64)
    return expected_with(model, rows, given, windows)


def remarked(check: ExportCheck, window: WindowForm | None, expected: Expected | None) -> ExportCheck:
    """A check that says what was compared, where there are windows."""
    if window is None or expected is None:
        return check
    what = (
        "of whole windows"
        if expected.windows is not None
        else "of the network on features of training windows"
    )
    return replace(check, how=f"{what}, {check.how}")
