"""What growth reports while it runs: events for listeners, and the record of every step.

Where several networks are grown for an average, every event says which of them it belongs to (``member``,
from 1); events of different networks may come in turns. A listener ends the growth by raising `StopGrowth`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ..network import Network
from ..operators import OperatorSet
from ..training.schedule import Epoch
from ..training.scores import Score
from .search import Candidate

__all__ = [
    "CandidateFinished",
    "EpochFinished",
    "Event",
    "FitFinished",
    "FitStarted",
    "GrowthFinished",
    "GrowthStarted",
    "GrowthStep",
    "PhaseStarted",
    "PopulationEpochFinished",
    "StepFinished",
    "StopGrowth",
    "of_member",
]


class StopGrowth(Exception):
    """Raised by a listener: growth is to end with what it has, for the reason that is given.

    The network is finished as always, and is valid: an epoch, a search or a candidate that is under way comes
    to its end, and then nothing is added, tuned or tried any more. The reason stands in the history.
    """


@dataclass(frozen=True)
class GrowthStep:
    """What one step tried and what came of it; an estimator's ``history_`` is a list of these.

    Attributes
    ----------
    kind : "block" (one growth step), "search" (one pass of POP's search over operator sets), "layer" (the
        decision on a finished layer) or "fine-tune"
    layer, block : position, from 1; block is 0 where a step concerns no single block, and the number of the
        pass for a "search"
    operator_set, n_neurons : of the new block; head_operators : of POP's output layer, else None
    candidates : the operator sets that the search scored, best first
    curve : epochs of the tuning; best_epoch is the one that was kept, 0 being the start
    invalid_candidates, skipped_batches, invalid_epochs : candidates without a finite score, batches whose
        gradients were not finite, in all that the step trained, and epochs of the curve with a score that
        was not finite; all of them are left out
    score : of the network with the new part; improvement : relative, None for a layer's first block
    accepted : whether the new part stays
    n_parameters : of the network with the new part
    train_loss : the loss on the training rows, where the method computes it in closed form
    member : which network of an average the step belongs to, from 1
    stopped : in a network's last step, why its growth was ended: by a budget or by a callback; else None
    """

    kind: str
    layer: int
    block: int
    accepted: bool
    score: Score
    improvement: float | None
    n_parameters: int
    operator_set: OperatorSet | None = None
    n_neurons: int = 0
    candidates: list[Candidate] = field(default_factory=list)
    invalid_candidates: int = 0
    curve: list[Epoch] = field(default_factory=list)
    best_epoch: int = 0
    skipped_batches: int = 0
    invalid_epochs: int = 0
    dropout: float = 0.0
    search_seconds: float = 0.0
    tuning_seconds: float = 0.0
    head_operators: OperatorSet | None = None
    train_loss: float | None = None
    member: int = 1
    stopped: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The step as plain data."""
        data = asdict(self)
        for name in ("operator_set", "head_operators"):
            data[name] = _text(getattr(self, name))
        for candidate, plain in zip(self.candidates, data["candidates"], strict=True):
            for name in ("operator_set", "head_operators"):
                plain[name] = _text(getattr(candidate, name))
        return data


def _text(operator_set: OperatorSet | None) -> str | None:
    return None if operator_set is None else str(operator_set)


@dataclass(frozen=True)
class FitStarted:
    """An estimator begins to grow ``n_networks``, which a student, one network more, may then replace.

    ``seconds`` have passed in earlier runs, where the fit goes on from a checkpoint.
    """

    estimator: str
    parameters: Mapping[str, Any]
    n_networks: int = 1
    student: bool = False
    seconds: float = 0.0


@dataclass(frozen=True)
class GrowthStarted:
    """A network, the ``member``-th of ``n_members``, begins to grow.

    It learns from ``n_rows``; ``n_validation`` others, if there are any, decide by ``criterion`` what stays.
    """

    method: str
    n_rows: int
    n_validation: int
    n_inputs: int
    n_outputs: int
    criterion: str
    member: int = 1
    n_members: int = 1


@dataclass(frozen=True)
class _InPhase:
    """What happens in a phase of the growth of a block."""

    phase: str
    layer: int
    block: int


@dataclass(frozen=True)
class PhaseStarted(_InPhase):
    """A "search", "tune" or "fine-tune" begins; ``size`` is the number of operator sets or epochs."""

    size: int
    operator_set: OperatorSet | None = None
    member: int = 1


@dataclass(frozen=True)
class EpochFinished(_InPhase):
    epoch: Epoch
    member: int = 1


@dataclass(frozen=True)
class CandidateFinished(_InPhase):
    """A candidate of a population has been trained: ``done`` of them are, ``best`` is the best so far."""

    done: int
    total: int
    best: Score
    member: int = 1


@dataclass(frozen=True)
class PopulationEpochFinished(_InPhase):
    """Candidates that are trained together have done an epoch; those trained one by one do not report it."""

    member: int = 1


@dataclass(frozen=True)
class StepFinished:
    step: GrowthStep


@dataclass(frozen=True)
class GrowthFinished:
    """A network is finished.

    ``stopped`` says why, where a budget or a callback has ended its growth.
    """

    network: Network
    score: Score
    seconds: float
    member: int = 1
    stopped: str | None = None


@dataclass(frozen=True)
class FitFinished:
    """The estimator has its network: the grown one, an average or a student.

    ``held_out`` is the score on validation rows, each predicted by a network that did not learn from it; None
    if there were no such rows, or a student has learned from all of them.
    """

    network: Network
    seconds: float
    held_out: Score | None = None


Event = (
    FitStarted
    | GrowthStarted
    | PhaseStarted
    | EpochFinished
    | CandidateFinished
    | PopulationEpochFinished
    | StepFinished
    | GrowthFinished
    | FitFinished
)


def of_member(event: Event, member: int, n_members: int) -> Event:
    """The event of a growth as that of one network of several."""
    if isinstance(event, FitStarted | FitFinished):
        return event
    if isinstance(event, StepFinished):
        return StepFinished(replace(event.step, member=member))
    if isinstance(event, GrowthStarted):
        return replace(event, member=member, n_members=n_members)
    return replace(event, member=member)
