"""The backend of a GPU: parts, tuning and populations on the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from threading import Event

import numpy as np
import torch

from ..backends import Problem
from ..checkpoints import Draft
from ..engines import TuningSettings, is_plain
from ..network import Head, Layer
from ..population import Member, Outcome, Start, Trained, collect, is_compilable, recall_tally
from ..population_torch import train_batched
from ..process import full_single_precision
from ..scaling import Scaling
from .matrices import DeviceMatrices
from .memory import indexed
from .population import train_members
from .rows import DevicePart, Source, device_moments
from .tuning import DeviceSession

__all__ = ["DeviceBackend"]


class DeviceBackend:
    """Rows on a torch device, or streamed through it; kernels in Triton.

    Triton compiles each kernel as it is first needed, and keeps it on disk.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = indexed(device)
        self.matrices = DeviceMatrices(self.device)
        self._sources: dict[int, tuple[Problem, Source]] = {}

    def running(self) -> AbstractContextManager[None]:
        return full_single_precision()

    def moments(
        self, x: np.ndarray, rows: np.ndarray | None, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        return device_moments(x, rows, weight, self.device)

    def problem(
        self,
        x: np.ndarray,
        rows: np.ndarray | None,
        target: np.ndarray,
        weight: np.ndarray,
        scaling: Scaling,
        validation: Problem | None,
    ) -> Problem:
        return Problem(x, target, weight, validation, rows, scaling)

    def part(self, problem: Problem) -> DevicePart:
        known = self._sources.get(id(problem))
        if known is None:
            scaling = problem.scaling or Scaling.nothing(problem.n_inputs)
            source = Source(problem.x, problem.target, problem.weight, problem.rows, scaling, self.device)
            known = self._sources[id(problem)] = problem, source
        return DevicePart(known[1])

    def forget(self, problem: Problem) -> None:
        for known in (problem, problem.validation):
            self._sources.pop(id(known), None)

    def session(
        self,
        layers: Sequence[Layer],
        head: Head,
        parts: Sequence[DevicePart],
        settings: TuningSettings,
        criterion: str,
    ) -> DeviceSession:
        validation = parts[1] if len(parts) > 1 else None
        return DeviceSession(layers, head, parts[0], validation, settings, criterion)

    def train_population(
        self,
        members: Sequence[Member],
        start: Start,
        parts: Sequence[DevicePart],
        settings: TuningSettings,
        criterion: str,
        seed: int,
        on_outcome: Callable[[Outcome], bool | None],
        on_epoch: Callable[[], bool | None],
        draft: Draft,
    ) -> tuple[Trained, list[Outcome]]:
        validation = parts[1] if len(parts) > 1 else None
        tally = recall_tally(draft, members, start)
        if is_plain(settings) and all(is_compilable(member, start) for member in members):
            rows = parts[0], validation
            train_members(members, start, rows, settings, criterion, seed, on_outcome, on_epoch, tally, draft)
        else:
            data = [part.tensors() for part in parts]
            held = data[1] if len(data) > 1 else None
            waiting, ended = [i for i in range(len(members)) if i not in tally.numbers], Event()
            rest = [members[i] for i in waiting]
            batched = train_batched(rest, start, data[0], settings, criterion, seed, held, on_epoch, ended)
            collect(members, waiting, batched, on_outcome, ended, tally, draft)
        return tally.winner(start), tally.in_order()
