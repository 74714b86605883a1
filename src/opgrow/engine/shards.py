"""Steps of back-propagation for batches whose rows are divided among processes, and into cells.

Each cell is computed by itself, and sums over cells are added in pairs, pairs of pairs and so on. Processes
that hold 8, 4 or 2 neighbouring cells of 8, and add what they have in the same way, get the same bits.
"""

from __future__ import annotations

import ctypes

import numpy as np

from .arrays import check, pointer, room
from .functions import INTEGER, POINTER, Functions
from .training import (
    _STATE,
    _TRAINING,
    Rows,
    Settings,
    Shape,
    State,
    _State,
    _Training,
    check_state,
    structure,
)

__all__ = ["ShardBatch", "ShardFunctions", "pairwise_sum"]

#: Whose random numbers dropout takes.
INPUTS, FROZEN, HIDDEN = range(3)


def pairwise_sum(parts: np.ndarray) -> np.ndarray:
    """The sum over the first axis: of neighbours, then of neighbouring sums, and so on."""
    while len(parts) > 1:
        paired = parts[: len(parts) // 2 * 2]
        parts = np.concatenate([paired[::2] + paired[1::2], parts[len(paired) :]])
    return parts[0]


class _Shard(ctypes.Structure):
    """``og_shard`` of ``shards.h``."""

    _fields_ = (
        ("training", _TRAINING),
        *((name, POINTER) for name in ("theta", "rows", "bounds", "numbers")),
        ("n_cells", INTEGER),
        ("count", ctypes.c_float),
        ("seed", ctypes.c_uint64),
        *((name, POINTER) for name in ("by_theta", "room")),
    )


_SHARD = ctypes.POINTER(_Shard)


class ShardBatch:
    """What is computed of a batch here; the steps are called in the order of the methods.

    Parameters
    ----------
    theta : parameters; numbers : of all rows here, from which their random numbers follow
    order, bounds : cell c of the batch has the rows ``order[bounds[c]:bounds[c + 1]]``, which may be none
    count : rows of the batch, wherever they are
    """

    def __init__(
        self,
        functions: ShardFunctions,
        shape: Shape,
        training: _Training,
        theta: np.ndarray,
        batch: tuple[np.ndarray, np.ndarray, np.ndarray],
        count: float,
        seed: int,
    ) -> None:
        self._functions, self._shape = functions, shape
        n_cells = len(batch[1]) - 1
        self._by_theta = np.empty((n_cells, shape.n_parameters), np.float32)
        size = functions._bind("train_room", (_TRAINING,), INTEGER)(training)
        self._kept = training, theta, *batch, room(size * n_cells)
        order, bounds, numbers = batch
        self._given = _Shard(
            ctypes.pointer(training),
            *(pointer(array) for array in (theta, order, bounds, numbers)),
            *(n_cells, count, seed, pointer(self._by_theta), pointer(self._kept[-1])),
        )
        functions._bind("shard_begin", (_SHARD,))(self._given)

    def _sums(self, step: str, layer: int) -> np.ndarray:
        sums = np.empty((len(self._by_theta), 2, int(self._shape.widths[layer])))
        self._functions._bind(step, (_SHARD, INTEGER, POINTER))(self._given, layer, pointer(sums))
        return pairwise_sum(sums)

    def _go_on(self, step: str, layer: int, values: np.ndarray) -> None:
        values = check(step, np.ascontiguousarray(values, np.float32), (2, int(self._shape.widths[layer])))
        self._functions._bind(step, (_SHARD, INTEGER, POINTER))(self._given, layer, pointer(values))

    def forward(self, layer: int) -> np.ndarray:
        """Sums (2, d) of a layer's raw features and of their squares."""
        return self._sums("shard_forward", layer)

    def normalise(self, layer: int, moments: np.ndarray) -> None:
        """Normalise them with the means and variances (2, d) of the whole batch."""
        self._go_on("shard_normalise", layer, moments)

    def head(self) -> float:
        """The share in the mean loss of the batch; begins the way back."""
        losses = np.empty(len(self._by_theta))
        self._functions._bind("shard_head", (_SHARD, POINTER))(self._given, pointer(losses))
        return float(pairwise_sum(losses))

    def slopes(self, layer: int) -> np.ndarray:
        """Sums (2, d) of the gradients by a layer's features and of their products with normalised ones."""
        return self._sums("shard_slopes", layer)

    def backward(self, layer: int, sums: np.ndarray) -> None:
        """Go back through a layer, with these sums of the whole batch."""
        self._go_on("shard_backward", layer, sums)

    def gradient(self) -> np.ndarray:
        """The share in the gradient by all parameters, in double precision."""
        return pairwise_sum(self._by_theta.astype(np.float64))


class ShardFunctions(Functions):
    """Batches of which others may hold a part."""

    def shard_batch(
        self,
        shape: Shape,
        rows: Rows,
        settings: Settings,
        theta: np.ndarray,
        batch: tuple[np.ndarray, np.ndarray, np.ndarray],
        count: float,
        seed: int,
    ) -> ShardBatch:
        """Begin a batch; ``batch`` are order, bounds and numbers, as `ShardBatch` has them."""
        order, bounds, numbers = batch
        check("theta", theta, (shape.n_parameters,))
        check("order", order, (None,), np.int64)
        check("numbers", numbers, (len(rows.x),), np.int64)
        check("bounds", bounds, (None,), np.int64)
        sizes = np.diff(bounds)
        if not len(sizes) or bounds[0] != 0 or bounds[-1] > len(order) or (sizes < 0).any():
            raise ValueError(f"bounds must not fall, from 0 to at most {len(order)}, got {bounds.tolist()}")
        if len(order) and (order.min() < 0 or order.max() >= len(rows.x)):
            raise ValueError(f"order must name rows below {len(rows.x)}, got {order.min()} to {order.max()}")
        if not count >= bounds[-1]:
            raise ValueError(f"the whole batch has {count} rows, and there are {bounds[-1]} of them here")
        training = structure(shape, rows, settings, int(sizes.max()))
        return ShardBatch(self, shape, training, theta, batch, count, seed)

    def train_update(
        self, shape: Shape, settings: Settings, state: State, gradient: np.ndarray, rate: float
    ) -> bool:
        """One step of Adam, changing ``state``, unless the gradient is not finite; whether it was taken."""
        check("gradient", gradient, (shape.n_parameters,))
        check_state(shape, state)
        n_inputs = int(shape.plan[:, 3].max(initial=1))
        x, frozen, target = (
            np.empty((0, n), np.float32) for n in (n_inputs, shape.n_frozen, shape.n_outputs)
        )
        nothing = Rows(x, frozen, target, np.empty(0, np.float32))
        c_state = _State(
            *(pointer(array) for array in (state.theta, state.first, state.second)),
            *(state.step, state.skipped, 0.0, 0.0, None),
        )
        scratch = room(int(shape.plan[:, 4].max(initial=1)))
        call = self._bind("train_update", (_TRAINING, _STATE, POINTER, ctypes.c_double, POINTER), INTEGER)
        c_training = structure(shape, nothing, settings, 0)
        taken = call(c_training, c_state, pointer(gradient), float(rate), pointer(scratch))
        state.step, state.skipped = c_state.step, c_state.skipped
        return bool(taken)

    def keep(
        self, seed: int, side: int, numbers: np.ndarray, columns: tuple[int, int], drop: float
    ) -> np.ndarray:
        """Factors (rows, features) of dropout for rows with these numbers; ``columns``: first and number."""
        check("numbers", numbers, (None,), np.int64)
        first, n_features = columns
        out = np.empty((len(numbers), n_features), np.float32)
        call = self._bind(
            "keep",
            (ctypes.c_uint64, INTEGER, INTEGER, ctypes.c_float, POINTER, INTEGER, INTEGER, POINTER),
        )
        call(seed, side, first, drop, pointer(numbers), len(numbers), n_features, pointer(out))
        return out
