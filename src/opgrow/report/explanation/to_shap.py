"""Contributions of columns as the `Explanation` of the package shap, whose plots take it."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

import numpy as np

from .columns import MISSING, Axis
from .views import Views
from .way import Way

__all__ = ["to_shap"]


def to_shap(explanation: Views, rows: Iterable[int]) -> Any:
    """The contributions to some rows; `Explanation.to_shap` describes them."""
    try:
        shap = import_module("shap")
    except ImportError as error:
        raise ImportError("Explanation.to_shap needs shap: pip install shap") from error
    ways = [explanation.row(number) for number in rows]
    axes = [explanation.axis(j) for j in range(len(explanation.columns))]
    if not ways:
        raise ValueError("rows is empty; at least one row is needed")
    values = np.stack([way.columns.values for way in ways])
    base = np.stack([way.columns.base for way in ways])
    single = len(explanation.outputs) == 1
    return shap.Explanation(
        values=values[..., 0] if single else values,
        base_values=base[:, 0] if single else base,
        data=np.array([[_value(axis, way, j) for j, axis in enumerate(axes)] for way in ways], dtype=object),
        display_data=np.array([way.texts for way in ways], dtype=object),
        feature_names=explanation.columns,
        output_names=None if single else explanation.outputs,
    )


def _value(axis: Axis, way: Way, column: int) -> float | str:
    """A value of a row: numbers as such, for shap colours points by them, NaN for gaps, levels as texts."""
    text = way.texts[column]
    if axis.kind == "number":
        return np.nan if text == MISSING else float(way.inputs[axis.start])
    return text
