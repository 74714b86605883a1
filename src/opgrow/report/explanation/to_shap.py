"""Contributions of columns as the `Explanation` of the package shap, whose plots take it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...common.extras import require
from .views import Views

__all__ = ["to_shap"]


def to_shap(explanation: Views, rows: Iterable[int]) -> Any:
    """The contributions to some rows; `Explanation.to_shap` describes them."""
    shap = require("shap", "Explanation.to_shap", "shap")
    ways = [explanation.row(number) for number in rows]
    if not ways:
        raise ValueError("rows is empty; at least one row is needed")
    values = np.stack([way.columns.values for way in ways])
    base = np.stack([way.columns.base for way in ways])
    single = len(explanation.outputs) == 1
    return shap.Explanation(
        values=values[..., 0] if single else values,
        base_values=base[:, 0] if single else base,
        data=np.array([[_number(text) for text in way.texts] for way in ways], dtype=object),
        display_data=np.array([way.texts for way in ways], dtype=object),
        feature_names=explanation.columns,
        output_names=None if single else explanation.outputs,
    )


def _number(text: str) -> float | str:
    """A value as a number where it is one: shap colours points by them."""
    try:
        return float(text)
    except ValueError:
        return text
