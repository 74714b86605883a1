"""Training by back-propagation: whole epochs of one candidate in one call.

All parameters are one flat vector: for each block weight (D, d), bias, scale and shift; then the weight
(features, outputs) and bias of the head. ``plan`` has a row for each block: nodal, pool, activation, inputs,
neurons, offset of its parameters, layer, and its first feature in the layer. Random numbers follow from the
seed and a row's number, whatever batch it is in.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from .arrays import check, pointer, room
from .blocks import check_codes
from .functions import INTEGER, POINTER, Functions
from .sums import LOSSES, code_of

__all__ = ["Epochs", "Rows", "Settings", "Shape", "State", "TrainingFunctions"]

_COLUMNS = 8


@dataclass(frozen=True, eq=False)
class Rows:
    """x (N, D), frozen (N, F), target (N, C) and weight (N,), float32 and contiguous."""

    x: np.ndarray
    frozen: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    #: Whether rows are the last axis, as on a GPU.
    rows_last: ClassVar[bool] = False

    @property
    def n_rows(self) -> int:
        return len(self.x)

    def __post_init__(self) -> None:
        for name in ("x", "frozen", "target"):
            check(name, getattr(self, name), (len(self.x), None))
        check("weight", self.weight, (len(self.x),))


@dataclass(frozen=True)
class Shape:
    """Blocks and head: ``plan`` (blocks, 8), ``widths`` of the layers, codes of the head (-1: linear)."""

    plan: np.ndarray
    widths: np.ndarray
    head: tuple[int, int, int]
    n_frozen: int
    n_outputs: int

    def __post_init__(self) -> None:
        check("plan", self.plan, (None, _COLUMNS), np.int64)
        check("widths", self.widths, (None,), np.int64)
        offset = 0
        ends = np.zeros(len(self.widths), np.int64)
        for number, row in enumerate(self.plan.tolist()):
            n_inputs, n_neurons, start, layer, first = row[3:]
            check_codes(row[:3])
            fits = 0 <= layer < len(ends) and start == offset and n_inputs > 0 and n_neurons > 0
            if not fits or first != ends[layer] or (layer and n_inputs > self.widths[layer - 1]):
                raise ValueError(f"block {number + 1} of the plan does not fit the ones before it: {row}")
            offset += n_neurons * (n_inputs + 3)
            ends[layer] += n_neurons
        if (ends != self.widths).any():
            raise ValueError(f"the layers have {ends.tolist()} neurons, expected {self.widths.tolist()}")
        if (np.diff(self.plan[:, 6]) < 0).any():
            raise ValueError("the blocks of the plan are not in the order of their layers")
        if self.head[0] >= 0:
            check_codes(self.head)
        if self.n_features < 1 or self.n_outputs < 1 or self.n_frozen < 0:
            raise ValueError(f"the head has {self.n_features} features and {self.n_outputs} outputs")

    @cached_property
    def n_features(self) -> int:
        return self.n_frozen + (int(self.widths[-1]) if len(self.widths) else 0)

    @cached_property
    def n_neurons(self) -> int:
        return int(self.widths.sum())

    @cached_property
    def n_parameters(self) -> int:
        hidden = int((self.plan[:, 4] * (self.plan[:, 3] + 3)).sum())
        return hidden + (self.n_features + 1) * self.n_outputs


@dataclass(frozen=True)
class Settings:
    """What a step does; ``decay`` has a value for each parameter."""

    loss: str
    decay: np.ndarray
    dropout: float = 0.0
    input_dropout: float = 0.0
    max_norm: float = 0.0
    #: Whether an epoch says which part of its rows it classifies rightly.
    counts_right: bool = False


@dataclass
class State:
    """What an epoch goes on from: parameters, Adam's moments, steps taken, batches skipped.

    ``loss`` and ``right`` are the mean loss and accuracy of the epoch's batches, as training sees them; the
    accuracy only if the settings ask for it.
    ``moments`` (2, neurons) become the mean and variance of the features over the epoch's batches.
    """

    theta: np.ndarray
    first: np.ndarray = field(init=False)
    second: np.ndarray = field(init=False)
    step: int = 0
    skipped: int = 0
    loss: float = float("nan")
    right: float = float("nan")
    moments: np.ndarray = field(default_factory=lambda: np.empty((2, 0), np.float32))

    def __post_init__(self) -> None:
        self.first, self.second = np.zeros_like(self.theta), np.zeros_like(self.theta)


class _Training(ctypes.Structure):
    """``og_training`` of ``training.h``."""

    _fields_ = (
        *((name, POINTER) for name in ("x", "frozen", "target", "row_weight")),
        *((name, INTEGER) for name in ("n_rows", "n_inputs", "n_frozen", "n_outputs")),
        *((name, POINTER) for name in ("plan", "widths")),
        *((name, INTEGER) for name in ("n_blocks", "n_layers", "n_parameters")),
        *((name, INTEGER) for name in ("head_nodal", "head_pool", "head_activation")),
        *((name, INTEGER) for name in ("loss", "largest_batch")),
        ("decay", POINTER),
        *((name, ctypes.c_float) for name in ("dropout", "input_dropout", "max_norm")),
        ("counts_right", INTEGER),
    )


class _State(ctypes.Structure):
    """``og_state`` of ``training.h``."""

    _fields_ = (
        *((name, POINTER) for name in ("theta", "first", "second")),
        *((name, INTEGER) for name in ("step", "skipped")),
        ("loss", ctypes.c_double),
        ("right", ctypes.c_double),
        ("moments", POINTER),
    )


_TRAINING, _STATE = ctypes.POINTER(_Training), ctypes.POINTER(_State)


def structure(shape: Shape, rows: Rows, settings: Settings, largest_batch: int) -> _Training:
    """What the C code is given; the caller keeps the arrays alive."""
    check("frozen", rows.frozen, (None, shape.n_frozen))
    check("target", rows.target, (None, shape.n_outputs))
    check("decay", settings.decay, (shape.n_parameters,))
    n_inputs = rows.x.shape[1]
    wanted = {int(n) for n in shape.plan[shape.plan[:, 6] == 0, 3]}
    if any(n > n_inputs for n in wanted):
        raise ValueError(f"x has {n_inputs} columns, and a block of the first layer {max(wanted)} inputs")
    for name in ("dropout", "input_dropout"):
        if not 0 <= getattr(settings, name) < 1:
            raise ValueError(f"{name} must be at least 0 and below 1, got {getattr(settings, name)!r}")
    return _Training(
        *(pointer(array) for array in (rows.x, rows.frozen, rows.target, rows.weight)),
        *(len(rows.x), n_inputs, shape.n_frozen, shape.n_outputs),
        *(pointer(shape.plan), pointer(shape.widths)),
        *(len(shape.plan), len(shape.widths), shape.n_parameters),
        *(shape.head if shape.head[0] >= 0 else (-1, -1, -1)),
        *(code_of("loss", settings.loss, LOSSES), largest_batch),
        pointer(settings.decay),
        *(settings.dropout, settings.input_dropout, settings.max_norm, settings.counts_right),
    )


def check_batches(bounds: np.ndarray, n_rows: int) -> int:
    """The largest of the batches that ``bounds`` divide rows into."""
    check("bounds", bounds, (None,), np.int64)
    sizes = np.diff(bounds)
    if not len(sizes) or bounds[0] != 0 or bounds[-1] > n_rows or (sizes < 1).any():
        raise ValueError(f"bounds must rise from 0 to at most {n_rows}, got {bounds.tolist()[:6]} ...")
    return int(sizes.max())


@dataclass(frozen=True)
class Epochs:
    """A candidate and the rows that it is trained on, prepared for many epochs; nothing is copied.

    ``bounds``: batch b of an epoch is ``order[bounds[b]:bounds[b + 1]]``. ``c_training`` and ``c_state`` are
    the structures that the C code reads and changes.
    """

    rows: Rows
    settings: Settings
    state: State
    bounds: np.ndarray
    c_training: _Training
    c_state: _State
    scratch: np.ndarray


class TrainingFunctions(Functions):
    """Epochs of back-propagation."""

    def epochs(
        self, shape: Shape, rows: Rows, settings: Settings, state: State, bounds: np.ndarray
    ) -> Epochs:
        """Prepare epochs that change ``state``, whose arrays must stay where they are."""
        largest = check_batches(bounds, len(rows.x))
        c_training = structure(shape, rows, settings, largest)
        check_state(shape, state)
        c_state = _State(
            *(pointer(array) for array in (state.theta, state.first, state.second)),
            *(state.step, state.skipped, 0.0, 0.0, pointer(state.moments)),
        )
        scratch = room(self._bind("train_room", (_TRAINING,), INTEGER)(c_training))
        return Epochs(rows, settings, state, bounds, c_training, c_state, scratch)

    def train_epoch(self, epochs: Epochs, order: np.ndarray, rate: float, seed: int) -> None:
        """Train for one epoch, which takes the rows in the given order."""
        check("order", order, (None,), np.int64)
        if len(order) < epochs.bounds[-1]:
            raise ValueError(f"order has {len(order)} rows, and the batches {epochs.bounds[-1]}")
        if order.min() < 0 or order.max() >= len(epochs.rows.x):
            raise ValueError(
                f"order must name rows below {len(epochs.rows.x)}, got {order.min()} to {order.max()}"
            )
        state, c_state = epochs.state, epochs.c_state
        c_state.step, c_state.skipped = state.step, state.skipped
        call = self._bind(
            "train_epoch",
            (_TRAINING, _STATE, POINTER, POINTER, INTEGER, ctypes.c_double, ctypes.c_uint64, POINTER),
        )
        places = pointer(order), pointer(epochs.bounds), len(epochs.bounds) - 1
        call(epochs.c_training, c_state, *places, float(rate), int(seed), pointer(epochs.scratch))
        state.step, state.skipped = c_state.step, c_state.skipped
        state.loss, state.right = c_state.loss, c_state.right


def check_state(shape: Shape, state: State) -> None:
    """Complain about a state that does not fit; room for its moments is made where there is none."""
    arrays: Sequence[tuple[str, np.ndarray]] = [(n, getattr(state, n)) for n in ("theta", "first", "second")]
    for name, array in arrays:
        check(name, array, (shape.n_parameters,))
    width = int(shape.widths.sum())
    if state.moments.shape != (2, width):
        state.moments = np.zeros((2, width), np.float32)
    check("moments", state.moments, (2, width))
