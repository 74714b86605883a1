"""One pass of POP's search: a population that is trained in groups and reported candidate by candidate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...common.cluster import n_workers, spread
from ...rows.interface import WholeRows
from ...rows.memory import MemoryRows
from ...training.draft import Draft
from ...training.population import Member, MemberOutcome, Start, Trained, candidates_of, train_members
from ...training.schedule import Epoch, Outcome
from ...training.scores import Score
from ...training.settings import TuningSettings, scored_apart
from ...training.train import Training, train
from ..engine import NativeEngine
from ..events import CandidateFinished, PhaseStarted, PopulationEpochFinished
from ..loop import Growth

__all__ = ["PopulationPass"]

#: What came of each candidate of a group, and their best parameters (K, size).
_Group = tuple[list[Outcome], np.ndarray]


@dataclass
class PopulationPass:
    """Candidates that start from the same weights and see the same batches.

    Attributes
    ----------
    place : the layer, and the number of the pass
    best, n_done : the best score so far, and how many candidates have one
    """

    growth: Growth
    place: tuple[int, int]
    parts: list[WholeRows]
    members: Sequence[Member]
    start: Start
    tuning: TuningSettings
    seed: int
    best: Score | None = None
    n_done: int = 0

    def run(self) -> tuple[Trained, list[MemberOutcome]]:
        """Train all candidates; the best one, and what came of each."""
        growth, (layer, number) = self.growth, self.place
        growth.emit(PhaseStarted("search", layer, number, len(self.members)))
        width = self.start.hidden.shape[1]
        title = f"population {layer}.{number}, {len(self.members)} candidates, {width} neurons"
        draft = growth.journal.draft(title)
        one = candidates_of(self.members[:1], self.start, self.tuning.dropout)
        # Once the growth is to end, one candidate with a finite score is enough.
        size = growth.engine.group_size(one, self.parts[0], self.tuning) if growth.stopped is None else 1
        return train_members(self.members, self.start, size, self._train_groups, self._report, draft)

    def _report(self, outcome: MemberOutcome) -> bool:
        """Tell of a candidate; whether no others are to be trained."""
        self.n_done += 1
        if self.best is None or outcome.score.better_than(self.best):
            self.best = outcome.score
        event = CandidateFinished("search", *self.place, self.n_done, len(self.members), self.best)
        self.growth.emit(event)
        return self.growth.stopped is not None

    def _report_epoch(self, epoch: Epoch) -> bool:
        self.growth.emit(PopulationEpochFinished("search", *self.place))
        return self.growth.stopped is not None

    def _train_groups(
        self, groups: Sequence[Sequence[Member]], drafts: Sequence[Draft], ended: Callable[[], bool]
    ) -> Iterator[_Group | None]:
        """Train groups here, one after the other, or on the workers of a cluster that the user has."""
        if self.growth.engine.spreads_over_workers and n_workers():
            rows = self.start, self.parts, self.tuning, self.growth.settings.criterion, self.seed
            yield from spread(_train_apart, [(group, *rows) for group in groups], ended)
            return
        for group, draft in zip(groups, drafts, strict=True):
            yield None if ended() else self._train_group(group, draft)

    def _train_group(self, group: Sequence[Member], draft: Draft) -> _Group:
        """Train a group, or where there is not enough memory for it, its halves."""
        growth, rng = self.growth, np.random.default_rng(self.seed)
        candidates = candidates_of(group, self.start, self.tuning.dropout)
        try:
            training = growth.training(
                candidates, self.parts, self.tuning, rng, self._report_epoch, draft, exact=False
            )
            trained = growth.engine.train(training)
        except MemoryError:
            if len(group) == 1:
                raise
            middle = len(group) // 2
            halves = [self._train_group(half, Draft()) for half in (group[:middle], group[middle:])]
            return halves[0][0] + halves[1][0], np.concatenate([theta for _, theta in halves])
        return trained.outcomes, trained.theta


def _train_apart(
    members: Sequence[Member],
    start: Start,
    parts: Sequence[MemoryRows],
    tuning: TuningSettings,
    criterion: str,
    seed: int,
) -> tuple[list[Outcome], np.ndarray]:
    """Train candidates in another process, which is handed their rows."""
    candidates = candidates_of(members, start, tuning.dropout)
    tuning = replace(tuning if len(parts) == 1 else scored_apart(tuning), n_threads=1)
    training = Training(
        NativeEngine(1).trainer(candidates, parts[0], tuning, criterion),
        candidates,
        parts[0],
        parts[-1],
        tuning,
        criterion,
        np.random.default_rng(seed),
        exact=False,
        on_epoch=lambda epoch: None,
        draft=Draft(),
    )
    trained = train(training)
    return trained.outcomes, trained.theta
