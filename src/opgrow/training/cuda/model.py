"""Candidates of equal shape on a device: where their parameters lie, and what they compute.

The parameters of each candidate are a row of one matrix, laid out as `opgrow.training.candidates.Shape` says.
Neurons with the same nodal and pool operators, of a run of candidates, are one launch; those of different
operators run side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
import triton
from torch import Tensor

from ...engine.batch_norm import deviation
from ...engine.cuda import pools as cuda
from ...engine.cuda import triton_training
from ...engine.cuda.triton_pools import MAXIMUM
from ..candidates import Shape
from .side_streams import side_streams

__all__ = ["DeviceLayer", "Model", "Norm", "Piece", "finish", "rows_at_once"]

#: Rows that a program activates where there is no batch norm; a multiple of what it takes at once.
_SHARE_ROWS = 8192


@dataclass(frozen=True)
class Piece:
    """Neurons of one nodal and pool operator: a run of candidates, a run of a layer's neurons."""

    nodal: int
    pool: int
    candidates: slice
    neurons: slice
    n_inputs: int
    place: int  # of the weights in a row of theta

    def weight(self, theta: Tensor) -> Tensor:
        d = self.neurons.stop - self.neurons.start
        flat = theta[self.candidates, self.place : self.place + self.n_inputs * d]
        return flat.unflatten(1, (self.n_inputs, d))


class DeviceLayer:
    """Where a layer's parameters lie, and which operators its neurons have."""

    def __init__(self, plans: Sequence[np.ndarray], width: int, n_inputs: int, device: torch.device) -> None:
        self.width, self.n_inputs = width, n_inputs
        codes = np.zeros((len(plans), width), np.int32)
        places = np.zeros((width, 3), np.int32)
        self.pieces: list[Piece] = []
        for b in range(len(plans[0])):
            _, _, _, n_in, d, at, _, row = plans[0][b]
            places[row : row + d, 0] = at + n_in * d + np.arange(d)
            places[row : row + d, 1:] = d, n_in
            first = 0
            for (nodal, pool), run in groupby(plans, key=lambda plan: (plan[b][0], plan[b][1])):
                count = len(list(run))
                span = slice(first, first + count)
                neurons = slice(row, row + d)
                self.pieces.append(Piece(int(nodal), int(pool), span, neurons, int(n_in), int(at)))
                operators = nodal * triton_training.NODAL_UNIT.value + pool * triton_training.POOL_UNIT.value
                for k in range(first, first + count):
                    codes[k, row : row + d] = operators + plans[k][b][2]
                first += count
        self.codes, self.places = (torch.from_numpy(a).to(device) for a in (codes, places))
        self.has_maximum = any(piece.pool == MAXIMUM.value for piece in self.pieces)


class Model:
    """Candidates of equal shape on a device: parameters, and outputs with given statistics."""

    def __init__(self, shapes: Sequence[Shape], theta: Tensor) -> None:
        self.shapes, self.theta = list(shapes), theta
        shape, device = shapes[0], theta.device
        self.n_frozen, self.n_outputs = shape.n_frozen, shape.n_outputs
        self.layers: list[DeviceLayer] = []
        n_inputs = int(shape.plan[0][3])
        for number, width in enumerate(shape.widths):
            plans = [s.plan[s.plan[:, 6] == number] for s in shapes]
            self.layers.append(DeviceLayer(plans, int(width), n_inputs, device))
            n_inputs = int(width)
        self.n_features = shape.n_features
        self.head_at = shape.head_at
        self.head: DeviceLayer | None = None
        if shape.head_set is not None:
            plans = [
                np.array([[*s.head_codes, s.n_features, s.n_outputs, s.head_at, 0, 0]], np.int64)
                for s in shapes
            ]
            self.head = DeviceLayer(plans, shape.n_outputs, shape.n_features, device)

    @property
    def n_candidates(self) -> int:
        return len(self.theta)

    def head_matrix(self, theta: Tensor) -> Tensor:
        """Weights of a linear head and, as the last row, its biases: (K, features + 1, C)."""
        return theta[:, self.head_at :].unflatten(1, (self.n_features + 1, self.n_outputs))

    def pool(self, layer: DeviceLayer, x: Tensor, parts: Tensor, where: Tensor | None = None) -> None:
        """Pool all pieces of a layer: x (1 or K, D, n) into parts (P, K, width, n), maxima's indices too."""

        def task(piece: Piece) -> Callable[[], None]:
            out, index = parts[:, piece.candidates, piece.neurons], None
            if where is not None and piece.pool == MAXIMUM.value:
                index = where[:, piece.candidates, piece.neurons]
            weight = piece.weight(self.theta)
            inputs = (x if len(x) == 1 else x[piece.candidates])[:, : piece.n_inputs]
            return lambda: cuda.pool_parts(piece.nodal, piece.pool, inputs, weight, out, index)

        self.run_all([task(piece) for piece in layer.pieces])

    def run_all(self, tasks: Sequence[Callable[[], None]]) -> None:
        """Launches that do not depend on each other, side by side."""
        if len(tasks) < 3 or self.theta.device.type != "cuda":
            for task in tasks:
                task()
            return
        current = torch.cuda.current_stream(self.theta.device)
        used = side_streams(self.theta.device)[: len(tasks)]
        for stream in used:
            stream.wait_stream(current)
        for number, task in enumerate(tasks):
            with torch.cuda.stream(used[number % len(used)]):
                task()
        for stream in used:
            current.wait_stream(stream)

    def count_parts(self, layer: DeviceLayer, x: Tensor) -> int:
        """Parts that the sums over a layer's inputs are cut into; a matrix product needs none."""
        if all(cuda.is_product(piece.nodal, piece.pool) for piece in layer.pieces):
            return 1
        d = max(piece.neurons.stop - piece.neurons.start for piece in layer.pieces)
        return cuda.count_parts(x, self.theta[:, : layer.n_inputs * d].unflatten(1, (layer.n_inputs, d)))

    def raw(self, number: int, x: Tensor) -> Tensor:
        """Features of a layer before its batch norm: (1 or K, D, n) to (K, width, n)."""
        return self._activated(self.layers[number], x)

    def _activated(self, layer: DeviceLayer, x: Tensor) -> Tensor:
        k, n = self.n_candidates, x.shape[-1]
        n_parts = self.count_parts(layer, x)
        parts = torch.empty(n_parts, k, layer.width, n, device=x.device)
        self.pool(layer, x, parts)
        finish(layer, self.theta, parts, None, parts[0], parts[0], None)
        return parts[0]

    def outputs(self, x: Tensor, frozen: Tensor, moments: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
        """Outputs (K, C, n) for inputs (D, n), frozen features (F, n) and statistics of each layer.

        With inputs (K, D, n) and features (K, F, n) each candidate has rows of its own.
        """
        x = x if x.ndim == 3 else x[None]
        for number in range(len(self.layers)):
            x = self.normalised(number, self.raw(number, x), moments[number])
        if self.n_frozen:
            x = torch.cat([frozen.expand(len(x), *frozen.shape[-2:]), x], dim=1)
        if self.head is not None:
            return self._activated(self.head, x)
        matrix = self.head_matrix(self.theta)
        return torch.baddbmm(matrix[:, -1, :, None], matrix[:, :-1].mT, x)

    def normalised(self, number: int, raw: Tensor, moments: tuple[Tensor, Tensor]) -> Tensor:
        """Batch norm with given statistics, in place."""
        mean, variance = moments
        places = self.layers[number].places.long()
        scale, shift = (self.theta[:, places[:, 0] + times * places[:, 1]] for times in (1, 2))
        factor = scale / deviation(variance)
        return raw.mul_(factor[:, :, None]).add_((shift - mean * factor)[:, :, None])


def rows_at_once(n_rows: int) -> int:
    """Rows of a batch that a program takes at once."""
    return min(triton.next_power_of_2(n_rows), 4096)


@dataclass
class Norm:
    """What a batch norm needs in training: buffers, and how dropout is drawn.

    ``drop`` (K,) are the shares that it leaves out; None if no candidate has dropout.
    """

    normal: Tensor
    variance: Tensor
    sums: Tensor
    base: Tensor
    step: int
    salt: int
    drop: Tensor | None


def norm_arguments(norm: Norm | None, integers: Tensor, numbers: Tensor) -> tuple[Tensor, int, int, Tensor]:
    """The arguments ``base, step, salt, drop`` of a kernel.

    ``integers`` and ``numbers`` take the places of ``base`` and ``drop`` where these have no meaning.
    """
    if norm is None:
        return integers, 0, 0, numbers
    return norm.base, norm.step, norm.salt, numbers if norm.drop is None else norm.drop


def norm_switches(norm: Norm | None) -> dict[str, bool]:
    """Whether a kernel normalises, and whether it leaves values out."""
    return {"NORM": norm is not None, "DROP": norm is not None and norm.drop is not None}


def finish(
    layer: DeviceLayer,
    theta: Tensor,
    parts: Tensor,
    where: tuple[Tensor, Tensor] | None,
    pre: Tensor,
    out: Tensor,
    norm: Norm | None,
) -> None:
    """Launch `finish_forward`: parts (P, K, width, n) to out (K, width, n)."""
    n_parts, k, width, n = parts.shape
    split = triton.next_power_of_2(n_parts)
    rows = min(rows_at_once(n), max(32, 8192 // split))
    share = n if norm is not None else max(rows, _SHARE_ROWS)
    index_parts, index = where if where is not None else (parts, parts)
    triton_training.finish_forward[(width, k, triton.cdiv(n, share))](
        parts,
        index_parts,
        index,
        theta,
        layer.places,
        layer.codes,
        pre,
        parts if norm is None else norm.normal,
        out,
        parts if norm is None else norm.variance,
        parts if norm is None else norm.sums,
        *norm_arguments(norm, layer.places, parts),
        n,
        width,
        n_parts,
        parts.stride(0),
        theta.stride(0),
        out.stride(0),
        out.stride(1),
        share,
        **norm_switches(norm),
        INDEX=where is not None,
        PARTS=split,
        ROWS=rows,
        SINGLE=n <= rows,
        num_warps=4 if rows * split <= 1024 else 8,
    )
