"""The whole training of one candidate of a population: epochs, scores and the best state, without Python."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .arrays import check, pointer, room
from .functions import INTEGER, POINTER, Functions
from .sums import CRITERIA, code_of
from .training import Rows, Settings, Shape, _Training, check_batches, structure

__all__ = ["EVERY", "Candidate", "CandidateFunctions", "Schedule"]

#: Epochs between two scores on training rows, as in ``candidate.c``.
EVERY = 5


@dataclass(frozen=True)
class Schedule:
    """``rates[i]`` for ``epochs[i]`` epochs, or until ``patience`` epochs of it were no better (0: never)."""

    rates: Sequence[float]
    epochs: Sequence[int]
    patience: int
    criterion: str
    bounds: np.ndarray


@dataclass
class Candidate:
    """Where a candidate stands.

    Attributes
    ----------
    theta, moments : the best state so far; scores : its criterion and loss
    current, first, second : the parameters as they are, and Adam's moments
    counts : stage of the schedule (-1 before the first score), epochs there, those of them without a better
        score, epochs in all, the epoch of the best state (0: the start), steps, batches skipped
    draws : where the random numbers stand
    """

    theta: np.ndarray
    moments: np.ndarray
    current: np.ndarray
    first: np.ndarray
    second: np.ndarray
    counts: np.ndarray
    scores: np.ndarray
    draws: np.ndarray

    @classmethod
    def begin(cls, theta: np.ndarray, n_neurons: int, seed: int) -> Candidate:
        """A candidate that was not trained yet."""
        zeros = np.zeros_like(theta), np.zeros_like(theta)
        counts = np.array([-1, 0, 0, 0, 0, 0, 0], np.int64)
        moments = np.zeros((2, n_neurons), np.float32)
        draws = np.array([seed], np.uint64)
        return cls(theta.copy(), moments, theta.copy(), *zeros, counts, np.full(2, np.nan), draws)


class _Candidate(ctypes.Structure):
    """``og_candidate`` of ``candidate.h``."""

    _fields_ = (
        ("training", _Training),
        *((name, POINTER) for name in ("held_x", "held_frozen", "held_target", "held_weight")),
        ("n_held", INTEGER),
        ("bounds", POINTER),
        ("n_batches", INTEGER),
        ("rates", POINTER),
        ("epochs", POINTER),
        *((name, INTEGER) for name in ("n_stages", "patience", "criterion")),
    )


class _State(ctypes.Structure):
    """``og_candidate_state`` of ``candidate.h``."""

    _fields_ = tuple(
        (name, POINTER)
        for name in ("theta", "moments", "current", "first", "second", "counts", "scores", "draws")
    )


class CandidateFunctions(Functions):
    """The training of candidates."""

    def train_candidate(
        self,
        shape: Shape,
        rows: Rows,
        held: Rows | None,
        settings: Settings,
        schedule: Schedule,
        candidate: Candidate,
        most: int = 1 << 40,
    ) -> bool:
        """Train for at most ``most`` epochs, changing ``candidate``; whether the schedule is at its end.

        A candidate is one hidden block with a head. Scores are taken on ``held`` rows with the statistics of
        the epoch's batches; without such rows on the training rows, with their own, every few epochs.
        """
        if len(shape.plan) != 1 or rows.x.shape[1] != shape.plan[0, 3]:
            raise ValueError("a candidate is one block that sees all columns of x")
        largest = check_batches(schedule.bounds, len(rows.x))
        held = held or Rows(*(a[:0] for a in (rows.x, rows.frozen, rows.target, rows.weight)))
        for name in ("x", "frozen", "target"):
            check(f"held {name}", getattr(held, name), (None, getattr(rows, name).shape[1]))
        _check_candidate(shape, schedule, candidate)
        rates, epochs = np.array(schedule.rates, np.float64), np.array(schedule.epochs, np.int64)
        given = _Candidate(
            structure(shape, rows, settings, largest),
            *(pointer(array) for array in (held.x, held.frozen, held.target, held.weight)),
            *(len(held.x), pointer(schedule.bounds), len(schedule.bounds) - 1),
            *(pointer(rates), pointer(epochs), len(rates), schedule.patience),
            code_of("criterion", schedule.criterion, CRITERIA),
        )
        moving = _State(*(pointer(array) for array in vars(candidate).values()))
        arguments = ctypes.POINTER(_Candidate), ctypes.POINTER(_State), INTEGER, POINTER, POINTER
        scratch = room(self._bind("candidate_room", arguments[:1], INTEGER)(given))
        order = np.empty(len(rows.x), np.int64)
        call = self._bind("train_candidate", arguments, INTEGER)
        return bool(call(given, moving, most, pointer(order), pointer(scratch)))

    def shuffle(self, n: int, seed: int) -> np.ndarray:
        """A permutation of 0 .. n - 1 that follows from the seed."""
        order = np.empty(n, np.int64)
        self._bind("shuffle", (POINTER, INTEGER, ctypes.c_uint64))(pointer(order), n, seed)
        return order


def _check_candidate(shape: Shape, schedule: Schedule, candidate: Candidate) -> None:
    n = shape.n_parameters
    for name in ("theta", "current", "first", "second"):
        check(name, getattr(candidate, name), (n,))
    check("moments", candidate.moments, (2, int(shape.plan[0, 4])))
    check("counts", candidate.counts, (7,), np.int64)
    check("scores", candidate.scores, (2,), np.float64)
    check("draws", candidate.draws, (1,), np.uint64)
    stages = len(schedule.rates)
    if len(schedule.epochs) != stages or not -1 <= candidate.counts[0] <= stages:
        raise ValueError(
            f"the schedule has {stages} rates and {len(schedule.epochs)} numbers of epochs, and the "
            f"candidate is at stage {candidate.counts[0]}"
        )
    if (candidate.counts[1:] < 0).any() or schedule.patience < 0:
        raise ValueError(f"counts and patience must not be negative, got {candidate.counts.tolist()}")
