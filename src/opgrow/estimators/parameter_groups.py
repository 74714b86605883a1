"""The parameters of the estimators, each declared once, in groups that families put together.

A group is a class of typed fields with defaults. `declares_parameters` makes an estimator's ``__init__`` from
the fields of all its groups: it has an explicit signature and only assigns, as scikit-learn asks for. The
signature lists parameters from the last base class to the first, so run parameters stand first among bases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

from ..rows.tables import TableEncoder
from ..training.scores import Loss
from ..training.settings import Optimizer
from .listeners import Callback
from .parameters import ClassWeight, Folder, RandomState
from .stream.page_hinkley import Detector

__all__ = [
    "ChunkParameters",
    "ClassParameters",
    "MachineParameters",
    "RowParameters",
    "RunParameters",
    "StreamParameters",
    "TuningParameters",
    "declares_parameters",
]

Declared = TypeVar("Declared")


@dataclass_transform(kw_only_default=True, eq_default=False)
def declares_parameters(cls: type[Declared]) -> type[Declared]:
    """Give a class an ``__init__`` with a keyword for each of its fields; all else stays scikit-learn's."""
    return dataclass(kw_only=True, eq=False, repr=False)(cls)


@declares_parameters
class TuningParameters:
    """How blocks, layers and the whole network are tuned."""

    criterion: str = "auto"
    loss: Loss = "auto"
    learning_rates: str | Sequence[float] = (0.01, 0.001, 0.0001)
    epochs: Sequence[int] = (20, 40, 40)
    patience: int | None = 5
    keep_state: str = "best"
    batch_size: int | str = "auto"
    dropout: float | Sequence[float] = 0.1
    input_dropout: float = 0.0
    weight_decay: str | float = "auto"
    max_norm: float | None = None
    optimizer: Optimizer = "adam"
    fine_tune_epochs: int | str = 200
    fine_tune_learning_rate: float = 5e-5
    fine_tune_schedule: str = "constant"
    fine_tune_dropout: float | None = None


@declares_parameters
class RowParameters:
    """What becomes of the rows before a network grows."""

    validation_fraction: float = 0.2
    standardize: bool = True
    table: TableEncoder | None = None


@declares_parameters
class ClassParameters:
    """What only classifiers have."""

    class_weight: ClassWeight = None


@declares_parameters
class StreamParameters:
    """How an estimator goes on learning."""

    forgetting: float = 1.0
    buffer_rows: int = 500
    drift: str | Detector | None = None
    warm_start: bool = False


@declares_parameters
class MachineParameters:
    """Where a network grows."""

    device: str = "auto"
    n_jobs: int | None = None


@declares_parameters
class ChunkParameters:
    """What only families have that read rows in chunks."""

    memory_limit: int | str | None = None


@declares_parameters
class RunParameters:
    """Budgets, checkpoints, listeners and the seed of a fit."""

    max_parameters: int | None = None
    max_seconds: float | None = None
    checkpoint_dir: Folder = None
    checkpoint_seconds: float = 60.0
    callbacks: Sequence[Callback] | None = None
    verbose: int = 0
    random_state: RandomState = None
