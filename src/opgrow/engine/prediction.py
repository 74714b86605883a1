"""A network compiled for prediction: plain arrays, laid out once, and one call for any number of rows."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np

from .arrays import check, matrix, pointer, room
from .batch_norm import deviation
from .blocks import check_codes
from .functions import INTEGER, POINTER, Functions
from .wiring import Members, block_spans, check_members, head_spans

__all__ = ["BlockArrays", "CompiledNetwork", "NetworkArrays", "PredictionFunctions"]

_LANES = 16
_NORMS = (None, "batch", "unit")
#: Rows that a thread takes at once: whole batches of the C code.
ROWS = 1024


@dataclass(frozen=True)
class BlockArrays:
    """One block as plain arrays.

    Attributes
    ----------
    codes : nodal, pool and activation operator
    weight : (n_inputs, n_neurons); bias : (n_neurons,) or None
    norm : "batch", "unit" or None
    moments : for "batch": mean, variance, scale and shift, (4, n_neurons)
    """

    codes: tuple[int, int, int]
    weight: np.ndarray
    bias: np.ndarray | None = None
    norm: str | None = None
    moments: np.ndarray | None = None


@dataclass(frozen=True)
class NetworkArrays:
    """A network as plain arrays.

    Attributes
    ----------
    n_inputs : int; layers : blocks of each layer
    head : a block without norm, or weight (n_features, n_outputs) and bias (n_outputs,) of a linear head
    input_mean, input_scale : (n_inputs,) in double precision; input_bound : squashes inputs, or None
    output_scale, output_mean, output_low, output_high : (n_outputs,) in double precision, or None
    head_low, head_high : (n_features,) in single precision, limits of what a linear head reads, or None
    broad : whether the head sees all layers
    members : of an average, the blocks in each layer of each network
    """

    n_inputs: int
    layers: Sequence[Sequence[BlockArrays]]
    head: BlockArrays | tuple[np.ndarray, np.ndarray]
    input_mean: np.ndarray | None = None
    input_scale: np.ndarray | None = None
    input_bound: float | None = None
    output_scale: np.ndarray | None = None
    output_mean: np.ndarray | None = None
    output_low: np.ndarray | None = None
    output_high: np.ndarray | None = None
    broad: bool = False
    members: Members | None = None
    head_low: np.ndarray | None = None
    head_high: np.ndarray | None = None

    @property
    def widths(self) -> list[list[int]]:
        return [[np.shape(block.weight)[1] for block in layer] for layer in self.layers]


class _Network(ctypes.Structure):
    """``og_network`` of ``network.h``."""

    _fields_ = (
        *((name, INTEGER) for name in ("n_inputs", "n_outputs", "n_layers", "n_features", "n_spans")),
        *((name, POINTER) for name in ("layers", "plan", "spans", "values", "head_weight", "head_bias")),
        *((name, POINTER) for name in ("head_low", "head_high")),
        *((name, POINTER) for name in ("input_mean", "input_scale")),
        *((name, POINTER) for name in ("output_scale", "output_mean", "output_low", "output_high")),
        ("input_bound", ctypes.c_double),
    )


_NETWORK = ctypes.POINTER(_Network)


def _row(values: Any, size: int, padding: float = 0.0) -> np.ndarray:
    """A vector of neurons, padded to whole lanes."""
    out = np.full(-(-size // _LANES) * _LANES, padding, np.float32)
    out[:size] = values
    return out


def _pack_block(block: BlockArrays, first: int, offset: int) -> tuple[list[int], list[np.ndarray]]:
    """A row of the plan, and what it refers to, which begins at ``offset``."""
    weight = np.asarray(block.weight, np.float32)
    n_inputs, n_neurons = weight.shape
    padded = -(-n_neurons // _LANES) * _LANES
    mean, factor, shift = (_row(0, n_neurons) for _ in range(3))
    if block.norm == "batch":
        center, variance, scale, addend = np.asarray(block.moments, np.float64)
        with np.errstate(all="ignore"):  # what is not finite shows in the outputs
            factor = _row(scale / deviation(variance), n_neurons)
        mean, shift = _row(center, n_neurons), _row(addend, n_neurons)
    lanes = np.zeros((n_inputs, padded), np.float32)
    lanes[:, :n_neurons] = weight
    lanes = lanes.reshape(n_inputs, -1, _LANES).transpose(1, 0, 2)
    bias = _row(0 if block.bias is None else block.bias, n_neurons)
    parts = [weight.T, bias, mean, factor, shift, lanes]
    flat = [np.ascontiguousarray(part).reshape(-1) for part in parts]
    lanes_offset = offset + sum(part.size for part in flat[:-1])
    codes = check_codes(block.codes)
    return [*codes, n_inputs, n_neurons, _NORMS.index(block.norm), offset, lanes_offset, first], flat


class CompiledNetwork:
    """A network, laid out for the C code; it keeps its arrays alive and is never changed."""

    def __init__(self, network: NetworkArrays) -> None:
        rows: list[list[int]] = []
        flat: list[np.ndarray] = []
        widths = _check_widths(network)
        blocks = [block for layer in network.layers for block in layer]
        linear = not isinstance(network.head, BlockArrays)
        reads = block_spans(network.n_inputs, network.widths, network.members)
        firsts = [span.start for layer in reads for span in layer]
        if not linear:
            blocks, firsts = [*blocks, network.head], [*firsts, 0]  # type: ignore[list-item]
        for block, first in zip(blocks, firsts, strict=True):
            row, parts = _pack_block(block, first, sum(part.size for part in flat))
            rows.append(row)
            flat += parts
        n_features, n_outputs = widths
        if linear:
            rows.append([-1, 0, 0, n_features, n_outputs, 0, 0, 0, 0])
        self.n_inputs, self.n_outputs = network.n_inputs, n_outputs
        self.plan = np.array(rows, np.int64)
        self.layers = np.array([len(layer) for layer in network.layers], np.int64)
        self.spans = _places_seen(network)
        self.values = np.concatenate(flat) if flat else np.zeros(1, np.float32)
        weight, bias = network.head if linear else (None, None)  # type: ignore[misc]
        self.head = [
            None if part is None else np.ascontiguousarray(np.asarray(part).T, np.float32)
            for part in (weight, bias)
        ]
        self.limits = [_vector(part, n_features, dtype=np.float32) for part in _limits(network)]
        self.doubles = [
            _vector(network.input_mean, network.n_inputs, 0.0),
            _vector(network.input_scale, network.n_inputs, 1.0),
            *(
                _vector(getattr(network, name), n_outputs)
                for name in ("output_scale", "output_mean", "output_low", "output_high")
            ),
        ]
        self.structure = _Network(
            self.n_inputs,
            n_outputs,
            len(self.layers),
            n_features,
            len(self.spans),
            *(pointer(array) for array in (self.layers, self.plan, self.spans, self.values)),
            *(pointer(array) for array in (*self.head, *self.limits, *self.doubles)),
            network.input_bound or 0.0,
        )


def _places_seen(network: NetworkArrays) -> np.ndarray:
    """Where the head's features begin among those of all layers, and how many they are, (n_spans, 2)."""
    widths = network.widths
    if not widths:
        return np.array([[0, network.n_inputs]], np.int64)
    begin = [0, *accumulate(map(sum, widths))]
    places: list[list[int]] = []
    for layer, start, stop in head_spans(widths, network.members, network.broad):
        first = begin[layer] + start
        if places and sum(places[-1]) == first:
            places[-1][1] += stop - start
        else:
            places.append([first, stop - start])
    return np.array(places, np.int64)


def _limits(network: NetworkArrays) -> tuple[np.ndarray | None, np.ndarray | None]:
    low, high = network.head_low, network.head_high
    if (low is None) != (high is None):
        raise ValueError("head_low and head_high go together: give both or none")
    if low is not None and isinstance(network.head, BlockArrays):
        raise ValueError("features have limits below a linear head alone")
    return low, high


def _vector(
    values: Any, size: int, default: float | None = None, dtype: Any = np.float64
) -> np.ndarray | None:
    if values is None:
        return None if default is None else np.full(size, default)
    out = np.ascontiguousarray(values, dtype)
    if out.shape != (size,):
        precision = "single" if dtype is np.float32 else "double"
        raise ValueError(f"expected {size} values of {precision} precision, got shape {out.shape}")
    return out


def _check_widths(network: NetworkArrays) -> tuple[int, int]:
    """Features that the head sees and outputs, if the arrays fit each other."""
    if not all(network.layers):
        empty = next(number for number, layer in enumerate(network.layers, 1) if not layer)
        raise ValueError(f"layer {empty} has no blocks")
    if network.members is not None:
        check_members(network.widths, network.members, network.broad)
    reads = block_spans(network.n_inputs, network.widths, network.members)
    for number, (layer, spans) in enumerate(zip(network.layers, reads, strict=True), 1):
        for block, span in zip(layer, spans, strict=True):
            n_inputs, n_neurons = np.shape(block.weight)
            width = span.stop - span.start
            fits = n_inputs == width or (network.broad and number > 1 and n_inputs < width)
            if not fits or n_inputs < 1 or n_neurons < 1:
                raise ValueError(f"a block of layer {number} has {n_inputs} inputs, expected {width}")
            if block.bias is not None and np.shape(block.bias) != (n_neurons,):
                raise ValueError(f"a block of layer {number} has biases of shape {np.shape(block.bias)}")
            if block.norm not in _NORMS:
                raise ValueError(f"norm must be one of {_NORMS}, got {block.norm!r}")
            shape = None if block.moments is None else block.moments.shape
            if block.norm == "batch" and shape != (4, n_neurons):
                raise ValueError(f"a block of layer {number} has moments of shape {shape}")
    seen = head_spans(network.widths, network.members, network.broad)
    width = sum(stop - start for _, start, stop in seen) if seen else network.n_inputs
    weight = network.head.weight if isinstance(network.head, BlockArrays) else network.head[0]
    bias = network.head.bias if isinstance(network.head, BlockArrays) else network.head[1]
    if np.ndim(weight) != 2 or len(weight) != width:
        raise ValueError(f"the head's weights have shape {np.shape(weight)}, expected {width} rows")
    n_outputs = np.shape(weight)[1]
    if bias is not None and np.shape(bias) != (n_outputs,):
        raise ValueError(f"the head has biases of shape {np.shape(bias)}, expected ({n_outputs},)")
    if isinstance(network.head, BlockArrays) and network.head.norm is not None:
        raise ValueError("a head of neurons has no norm")
    if isinstance(network.head, BlockArrays) and network.members is not None:
        raise ValueError("an average of networks has a linear head")
    return width, n_outputs


class _Rooms(threading.local):
    """Memory for intermediate results, kept for the next call of the same thread."""

    memory = np.empty(0, np.float32)

    def of(self, size: int) -> np.ndarray:
        if self.memory.size < size:
            self.memory = room(size)
        return self.memory


_rooms = _Rooms()


class PredictionFunctions(Functions):
    """Prediction of whole networks."""

    def unit_rows(self, x: np.ndarray) -> np.ndarray:
        """Rows (N, D) divided by their norm; rows of zeros stay."""
        out = check("x", x, (None, None)).copy()
        self._bind("unit_rows", (POINTER, INTEGER, INTEGER))(pointer(out), *out.shape)
        return out

    def predict(self, network: CompiledNetwork, x: np.ndarray, spread: Any = None) -> np.ndarray:
        """Outputs (N, C) in double precision for rows (N, D) in single or double precision.

        ``spread`` runs a list of independent calls, for example on threads; without it they run in turn.
        """
        dtype = x.dtype if isinstance(x, np.ndarray) and x.dtype == np.float64 else np.float32
        x, stride = matrix("x", x, network.n_inputs, dtype)
        out = np.empty((len(x), network.n_outputs))
        structure = network.structure
        size = self._bind("predict_room", (_NETWORK,), INTEGER)(structure)
        call = self._bind("predict", (_NETWORK, POINTER, INTEGER, INTEGER, INTEGER, POINTER, POINTER))
        is_double = int(dtype == np.float64)

        def compute(start: int, stop: int) -> None:
            places = pointer(x[start:]), is_double, stride, stop - start, pointer(out[start:])
            call(structure, *places, pointer(_rooms.of(size)))

        if spread is None or len(x) <= ROWS:
            compute(0, len(x))
        else:
            spans = ((start, min(start + ROWS, len(x))) for start in range(0, len(x), ROWS))
            spread([partial(compute, *span) for span in spans])
        return out
