"""Predictions as the bytes of an answer, JSON or CSV."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from opgrow.cli.common import label_text

__all__ = ["Answer", "as_csv", "as_json"]


@dataclass(frozen=True)
class Answer:
    """Predictions of the rows of a request.

    Attributes
    ----------
    predictions : ndarray of shape (n_rows,) or (n_rows, n_targets)
    classes : the labels of a classifier, or None
    probabilities : ndarray of shape (n_rows, n_classes), or None
    low, high : bounds of the predictions, of the same shape, or None
    interval : the share of true numbers that should lie between them, or None
    notes : sentences on rows that are unlike those of the training
    """

    predictions: Any
    classes: list[Any] | None = None
    probabilities: np.ndarray | None = None
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    interval: float | None = None
    notes: list[str] = field(default_factory=list)


def as_json(answer: Answer) -> bytes:
    """An answer as one JSON object."""
    data: dict[str, Any] = {"predictions": _plain(answer.predictions)}
    if answer.probabilities is not None:
        data |= {"classes": answer.classes, "probabilities": _plain(answer.probabilities)}
    if answer.low is not None and answer.high is not None:
        data["intervals"] = {
            "coverage": answer.interval,
            "low": _plain(answer.low),
            "high": _plain(answer.high),
        }
    if answer.notes:
        data["notes"] = answer.notes
    return json.dumps(data, allow_nan=False, separators=(",", ":")).encode()


def _plain(values: np.ndarray) -> list[Any]:
    """An array as lists; JSON has no infinite numbers, so they become null."""
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        finite = np.isfinite(values)
        values = values.astype(object)
        values[~finite] = None
    plain: list[Any] = values.tolist()
    return plain


def as_csv(answer: Answer) -> bytes:
    """An answer as CSV, with the columns of ``opgrow predict``."""
    columns = _columns("prediction", answer.predictions)
    if answer.probabilities is not None and answer.classes is not None:
        names = [f"p_{label_text(label)}" for label in answer.classes]
        columns |= dict(zip(names, answer.probabilities.T.tolist(), strict=True))
    if answer.low is not None and answer.high is not None:
        columns |= _columns("low", answer.low) | _columns("high", answer.high)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue().encode()


def _columns(name: str, values: np.ndarray) -> dict[str, list[Any]]:
    if values.ndim == 1:
        return {name: values.tolist()}
    return {f"{name}_{i}": column for i, column in enumerate(values.T.tolist())}
