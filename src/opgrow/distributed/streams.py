"""Ranks that read their rows in chunks: the survey of all of them.

Each rank goes through its own source and holds its own validation rows and sample.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from typing import Any

import numpy as np

from ..growth.chunk_backend import StreamProblem
from ..network.scaling import Ranges
from ..rows.chunks.moments import ColumnMoments
from ..rows.chunks.survey import Survey
from .backend import ShardProblem
from .group import Group

__all__ = ["ShardStreamProblem", "merged", "shared"]


@dataclass(frozen=True, kw_only=True)
class ShardStreamProblem(StreamProblem):
    """A rank's share of a problem whose rows are read in chunks; the arrays are its share of the sample.

    Attributes
    ----------
    numbers, first, total_rows, cuts : of the sample, as in `ShardProblem`
    n_training : training rows of all ranks
    """

    numbers: np.ndarray
    first: int
    total_rows: int
    n_training: int
    cuts: tuple[int, ...] = ()

    @property
    def n_rows(self) -> int:
        return self.n_training


def shared(problem: StreamProblem, group: Group) -> ShardStreamProblem:
    """A rank's problem as its share of that of all ranks."""
    validation = problem.validation
    if validation is not None:
        given = {entry.name: getattr(validation, entry.name) for entry in fields(validation)}
        validation = ShardProblem(**given, **_place(len(validation.x), group))
    given = {entry.name: getattr(problem, entry.name) for entry in fields(problem)}
    place = _place(len(problem.x), group)
    n_training = sum(group.numbers(problem.n_rows, "sizes"))
    return ShardStreamProblem(**given | place | {"validation": validation, "n_training": n_training})


def _place(n_rows: int, group: Group) -> dict[str, Any]:
    sizes = group.numbers(n_rows, "sizes")
    first = sum(sizes[: group.rank])
    return {"numbers": first + np.arange(n_rows), "first": first, "total_rows": sum(sizes)}


def merged(own: Survey, group: Group) -> Survey:
    """What all ranks have found; the rows that are held are those here."""
    said = [json.loads(text) for text in group.texts(json.dumps(_plain(own)), "surveys")]
    kinds = [sorted({type(label).__name__ for label, _ in survey["counts"]}) for survey in said]
    for what, values in (("types of classes", kinds), ("dimensions of y", [s["y_ndim"] for s in said])):
        if any(value != values[0] for value in values):
            raise ValueError(f"the sources of the ranks differ in {what}: {', '.join(map(str, values))}")
    total = Survey(own.classification, validation=own.validation, sample=own.sample)
    for survey in said:
        total.extend(_survey(survey, own.classification))
    return total


def _plain(survey: Survey) -> dict[str, Any]:
    return {
        "counts": list(survey.counts.items()),
        "moments": [(label, _vector(found)) for label, found in survey.moments.items()],
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
