"""A population trained on a device: all candidates take every step together, each by its own schedule.

A candidate whose patience is at an end moves on to its next learning rate, or rests; once half of them
rest, the others go on among themselves. Scores, best states and schedules of all candidates are one
comparison an epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ..checkpoints import Draft
from ..engine.candidates import EVERY
from ..engines import Shape, TuningSettings, fill
from ..population import Member, Outcome, Start, Tally, flat_start, modules_of
from ..scores import CRITERIA, Score
from .memory import free_bytes
from .model import Model
from .rows import Chunk, DevicePart
from .scoring import score_rows
from .steps import Trainer
from .tuning import exact_moments

__all__ = ["train_members"]

#: Share of the free memory that the candidates which are trained together may take.
_SHARE = 0.3
#: Arrays of a run that say where each candidate is in its schedule.
_SCHEDULE = ("stage", "used", "waited", "done", "best_epoch")
#: Takes the number of a candidate that is done, what came of it, and its best parameters.
_Finish = Callable[[int, Outcome, Tensor], None]


def train_members(
    members: Sequence[Member],
    start: Start,
    rows: tuple[DevicePart, DevicePart | None],
    settings: TuningSettings,
    criterion: str,
    seed: int,
    on_outcome: Callable[[Outcome], bool | None],
    on_epoch: Callable[[], bool | None],
    tally: Tally,
    draft: Draft,
) -> None:
    """Add to a tally what comes of the candidates that it lacks; ``on_outcome`` hears of each as it is done.

    Where ``on_epoch`` answers True, the candidates that are under way are done, and if one of them is valid,
    the others are left out. ``rows`` are for training and, where there are some, for validation.
    """
    shapes = [modules_of(member, start)[2] for member in members]
    # Candidates of equal operators beside each other: their pools are one launch.
    order = sorted(range(len(members)), key=lambda i: (*shapes[i].plan[0, :2], *shapes[i].head_codes[:2]))
    ended = False
    run: _Run | None = None

    def finish(i: int, outcome: Outcome, theta: Tensor) -> None:
        nonlocal ended
        tally.add(i, outcome, theta.cpu().numpy())
        ended = bool(on_outcome(outcome)) or ended

    def end_epoch() -> bool:
        nonlocal ended
        ended = bool(on_epoch()) or ended
        draft.offer(lambda: tally if run is None else replace(tally, arrays=run.state()))
        return ended

    size = len(order)
    while len(tally.numbers) < len(members) and not (ended and tally.best is not None):
        waiting = [i for i in order if i not in tally.numbers]
        size = max(1, min(size, _fitting(shapes[0], rows[0], settings)))
        try:
            kept, tally.arrays = tally.arrays, {}
            chosen = waiting[:size] if not kept else _chosen(kept, waiting)
            run = _Run(members, shapes, chosen, start, *rows, settings, criterion, seed)
            if kept:
                run.load(kept)
            run.train(finish, end_epoch)
            continue
        except torch.cuda.OutOfMemoryError:
            if size == 1:
                raise MemoryError(
                    "the GPU ran out of memory while it trained a single candidate; free some, lower "
                    "widths or batch_size, or use device='cpu'"
                ) from None
        run = None
        torch.cuda.empty_cache()
        size //= 2
    draft.finish(lambda: tally)


def _chosen(arrays: dict[str, np.ndarray], waiting: Sequence[int]) -> list[int]:
    """The candidates that were trained together when the training was cut off."""
    chosen = [int(i) for i in arrays.get("chosen", np.zeros(0, int)).ravel()]
    if not chosen or len(set(chosen)) < len(chosen) or not set(chosen) <= set(waiting):
        raise ValueError(f"the candidates {chosen} are not among those that wait")
    return chosen


def _fitting(shape: Shape, train: DevicePart, settings: TuningSettings) -> int:
    """How many candidates can be trained together."""
    window = min(16 * settings.batch_size, train.n_rows)
    widths = int(shape.widths.sum())
    numbers = 8 * shape.size + window * (shape.n_features + 1) + 24 * settings.batch_size * widths
    return int(_SHARE * free_bytes(train.device) / (4 * numbers))


class _Run:
    """Candidates that are trained together."""

    def __init__(
        self,
        members: Sequence[Member],
        shapes: Sequence[Shape],
        chosen: Sequence[int],
        start: Start,
        train: DevicePart,
        validation: DevicePart | None,
        settings: TuningSettings,
        criterion: str,
        seed: int,
    ) -> None:
        self.members, self.shapes, self.chosen, self.seed = members, shapes, list(chosen), seed
        self.train_rows, self.settings, self.criterion = train, settings, criterion
        self.scored, self.validates = validation or train, validation is not None
        theta = torch.from_numpy(flat_start(shapes[0], start)).to(train.device)
        self.model = Model([shapes[i] for i in chosen], theta.repeat(len(chosen), 1))
        self.trainer = Trainer(self.model, train, settings, seed)
        k = len(chosen)
        # Schedules, on the host: position in the schedule, epochs there, epochs without a better score.
        self.stage, self.used, self.waited = (np.zeros(k, int) for _ in range(3))
        self.done, self.best_epoch = np.zeros(k, int), np.zeros(k, int)
        self.best = np.full((2, k), np.nan)
        self.kept = self.model.theta.clone()
        self.begun = False

    def state(self) -> dict[str, np.ndarray]:
        """What the training goes on from, as arrays."""
        found = {name: getattr(self, name) for name in (*_SCHEDULE, "best")}
        tensors = {"theta": self.model.theta, "kept": self.kept}
        found |= {name: tensor.cpu().numpy() for name, tensor in tensors.items()}
        return found | {"chosen": np.array(self.chosen)} | self.trainer.state()

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        """Go on from what `state` has said of the same candidates."""
        for name in (*_SCHEDULE, "best"):
            fill(getattr(self, name), arrays, name)
        if not ((self.stage >= 0) & (self.stage <= len(self.settings.epochs))).all():
            raise ValueError(f"the stages {self.stage.tolist()} are not those of the schedule")
        for name, tensor in (("theta", self.model.theta), ("kept", self.kept)):
            values = np.empty(tuple(tensor.shape), np.float32)
            fill(values, arrays, name)
            tensor.copy_(torch.from_numpy(values))
        self.trainer.load(arrays)
        self.begun = True

    def train(self, finish: _Finish, end_epoch: Callable[[], bool]) -> None:
        if not self.begun:
            self._score(exact_moments(self.model, self.train_rows))
            self._advance()
        while len(self.chosen):
            resting = self.stage >= len(self.settings.epochs)
            if 2 * resting.sum() >= len(resting):
                self._leave(resting, finish)
                if not len(self.chosen):
                    break
                resting = self.stage >= len(self.settings.epochs)
            schedule = np.array([*self.settings.learning_rates, 0.0])
            # Epochs are numbered: candidates that are trained together have all been through the last one.
            seed = self.seed + int(self.done.max()) + 1
            self.trainer.epoch(torch.from_numpy(schedule[self.stage]).to(self.train_rows.device), seed)
            self.done[~resting] += 1
            self.used[~resting] += 1
            self.waited[~resting] += 1
            if self.validates:
                self._score(self.trainer.batch_moments())
            elif self.done.max() % EVERY == 0 or self._at_end().any():
                self._score(exact_moments(self.model, self.train_rows))
            self._advance()
            if end_epoch():
                self._leave(np.ones(len(self.chosen), bool), finish)

    def _at_end(self) -> np.ndarray:
        """Candidates whose learning rate has had its epochs or its patience."""
        epochs = np.array([*self.settings.epochs, np.iinfo(np.int64).max])
        over = self.used >= epochs[self.stage]
        if self.settings.patience is not None:
            over |= (self.waited >= self.settings.patience) & (self.stage < len(self.settings.epochs))
        return over

    def _advance(self) -> None:
        while (over := self._at_end()).any():
            self.stage[over] += 1
            self.used[over] = self.waited[over] = 0

    def _score(self, moments: list[tuple[Tensor, Tensor]]) -> None:
        """Score all candidates and keep the states that are better than before."""
        model = self.model
        k, width = len(self.chosen), int(self.shapes[0].widths.sum())

        def outputs(chunk: Chunk) -> Tensor:
            return model.outputs(chunk.x, chunk.accepted, moments)

        wanted = 16 * k * (width + model.n_features)
        found = score_rows(self.scored, self.criterion, self.settings.loss, outputs, k, wanted).cpu().numpy()
        now, before = (_ranked(values, CRITERIA[self.criterion]) for values in (found, self.best))
        better = (now[0] < before[0]) | ((now[0] == before[0]) & (now[1] < before[1]))
        first = self.done == 0
        better = (better & (self.stage < len(self.settings.epochs))) | first
        self.best[:, better] = found[:, better]
        self.best_epoch[better], self.waited[better] = self.done[better], 0
        mask = torch.from_numpy(better).to(model.theta.device)
        self.kept = torch.where(mask[:, None], model.theta, self.kept)

    def _leave(self, resting: np.ndarray, finish: _Finish) -> None:
        """Take the candidates that are done out of the run, and go on with the others."""
        skipped = self.trainer.skipped.cpu().numpy()
        for place in np.flatnonzero(resting):
            i = self.chosen[place]
            score = Score(float(self.best[0, place]), float(self.best[1, place]), CRITERIA[self.criterion])
            numbers = int(self.best_epoch[place]), int(self.done[place]), int(skipped[place])
            finish(i, Outcome(self.members[i], score, *numbers), self.kept[place].clone())
        stay = np.flatnonzero(~resting)
        self.chosen = [self.chosen[place] for place in stay]
        for name in _SCHEDULE:
            setattr(self, name, getattr(self, name)[stay])
        self.best = self.best[:, stay]
        if len(stay):
            rows = torch.from_numpy(stay).to(self.kept.device)
            self.kept = self.kept[rows]
            self.model = Model([self.shapes[i] for i in self.chosen], self.model.theta[rows])
            self.trainer = self.trainer.with_candidates(self.model, rows)


def _ranked(values: np.ndarray, higher_is_better: bool) -> np.ndarray:
    """Criterion and loss (2, K) as numbers of which less is better; infinite where one is not finite."""
    ranked = np.array([-values[0] if higher_is_better else values[0], values[1]])
    ranked[:, ~np.isfinite(values).all(axis=0)] = np.inf
    return ranked
