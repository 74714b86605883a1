"""Ranks that read their rows in chunks: the survey of all of them, and tuning on their windows.

Each rank goes through its own source and holds its own validation rows and sample. An epoch takes one window
of each rank at a time, and batches are drawn from all of these; a rank that has no window left takes part
with none of its rows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields, replace
from typing import Any

import numpy as np

from ..engines import Moments, TuningData, TuningSettings, fill
from ..network import Layer, Linear
from ..scaling import Ranges
from ..stream.backend import StreamProblem
from ..stream.moments import ColumnMoments
from ..stream.session import Windows, exact_moments, found_moments
from ..stream.survey import Survey
from .backend import ShardPart, ShardProblem
from .cells import CellPart
from .group import Group
from .session import ShardSession

__all__ = ["ShardStreamProblem", "ShardStreamSession", "merged", "shared"]


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


class ShardStreamSession(ShardSession):
    """As `ShardSession`, on windows of rows; until something is restored, statistics are of the sample."""

    def __init__(
        self,
        layers: Sequence[Layer],
        head: Linear,
        parts: Sequence[ShardPart],
        settings: TuningSettings,
        criterion: str,
        windows: Windows,
    ) -> None:
        self.stream, self.windows = parts[0].inner, windows
        held = [replace(parts[0], inner=self.stream.sample_rows), *parts[1:]]
        super().__init__(layers, head, held, settings, criterion)
        sample = self.stream.sample_rows.tuning_data()
        self.nothing = TuningData(*(array[:0] for array in vars(sample).values()))
        # The statistics that the search has found are those of all rows.
        self.given: list[Moments] | None = found_moments(layers)
        self._exact = True

    def epoch(self, rate: float, rng: np.random.Generator) -> tuple[float, int]:
        """Train for one epoch; the mean loss of its rows and the number of batches that were skipped."""
        self.given = None
        seeds = np.random.SeedSequence(int(rng.integers(1, 2**63)))
        mine, ours = seeds.spawn(self.group.size + 1)[self.group.rank], np.random.default_rng(seeds)
        windows = self.windows.shuffled(np.random.default_rng(mine))
        losses, rows, skipped = 0.0, 0, 0
        while True:
            data = next(windows, self.nothing)
            sizes = self.group.numbers(len(data.x), "sizes of windows")
            if not any(sizes):
                return losses / rows, skipped
            numbers = sum(sizes[: self.group.rank]) + np.arange(len(data.x))
            self.engine.use(data, numbers, sum(sizes))
            loss, skips = self.engine.epoch(rate, int(ours.integers(1, 2**63)))
            losses, rows, skipped = losses + loss * sum(sizes), rows + sum(sizes), skipped + skips

    def _find_moments(self, raw: np.ndarray, train: CellPart) -> Moments:
        if self.given is not None:
            return self.given[len(self._moments)]
        return super()._find_moments(raw, train)

    def keep(self) -> None:
        super().keep()
        self._exact = self.given is not None

    def restore(self) -> None:
        """Write what rank 0 remembers into the modules, with the statistics of all rows."""
        if not self._exact:
            assert self._best is not None
            theta, _ = self._best
            n_threads = self.settings.n_threads
            self._best = theta, exact_moments(self.shape, theta, self.stream, n_threads, self._merge)
            self._exact = True
        super().restore()

    def _merge(self, own: ColumnMoments) -> ColumnMoments:
        total = ColumnMoments.nothing(len(own.mean))
        for vector in self.group.arrays(np.array(_vector(own)), "statistics of features"):
            total.add(_moments(vector.tolist()))
        return total

    def kept(self) -> dict[str, np.ndarray]:
        return super().kept() | {"exact": np.array([self._exact])}

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        super().load(arrays)
        exact = np.zeros(1, bool)
        fill(exact, arrays, "exact")
        self._exact = bool(exact[0])
        if "theta" in arrays:
            self.given = None
