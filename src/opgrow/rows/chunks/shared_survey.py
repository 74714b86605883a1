"""The survey of ranks that read their rows in chunks.

Each rank goes through its own source and holds its own validation rows and sample.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

import numpy as np

from ...common.team import Alone
from ...network.scaling import Ranges
from .moments import ColumnMoments
from .survey import Survey

__all__ = ["shared_survey"]


def shared_survey(own: Survey, team: Alone) -> Survey:
    """What the first pass has seen in the sources of all ranks; the rows that are held are those here."""
    if team.alone:
        return own
    surveys = [json.loads(text) for text in team.texts(json.dumps(_plain(own)), "surveys")]
    kinds = [sorted({type(label).__name__ for label, _ in survey["counts"]}) for survey in surveys]
    for what, values in (("types of classes", kinds), ("dimensions of y", [s["y_ndim"] for s in surveys])):
        if any(value != values[0] for value in values):
            raise ValueError(f"the sources of the ranks differ in {what}: {', '.join(map(str, values))}")
    total = Survey(own.classification, validation=own.validation, sample=own.sample)
    for survey in surveys:
        total.extend(_survey(survey, own.classification))
    return total


def _plain(survey: Survey) -> dict[str, Any]:
    return {
        "counts": list(survey.counts.items()),
        "moments": [(label, _vector(moments)) for label, moments in survey.moments.items()],
        "target_moments": None if survey.target_moments is None else _vector(survey.target_moments),
        "ranges": None if survey.ranges is None else [v.tolist() for v in astuple(survey.ranges)],
        "n_train": survey.n_train,
        "y_ndim": survey.y_ndim,
        "weighted": survey.weighted,
    }


def _survey(plain: dict[str, Any], classification: bool) -> Survey:
    target = plain["target_moments"]
    return Survey(
        classification,
        counts=dict(plain["counts"]),
        moments={label: _moments(vector) for label, vector in plain["moments"]},
        target_moments=None if target is None else _moments(target),
        ranges=None if plain["ranges"] is None else Ranges(*map(np.array, plain["ranges"])),
        n_train=plain["n_train"],
        y_ndim=plain["y_ndim"],
        weighted=plain["weighted"],
    )


def _vector(moments: ColumnMoments) -> list[float]:
    return [moments.weight, *moments.mean.tolist(), *moments.squares.tolist()]


def _moments(vector: Sequence[float]) -> ColumnMoments:
    mean, squares = np.array(vector[1:]).reshape(2, -1)
    return ColumnMoments(float(vector[0]), mean, squares)
