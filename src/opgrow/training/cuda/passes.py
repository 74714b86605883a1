"""The forward and backward pass of a layer in a training step, with the buffers that a batch needs.

A layer of few inputs is one launch each way, whatever the operators of its blocks and candidates. A larger
one has its pools cut into tiles, a launch for each pair of operators, and launches that finish them.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import triton
from torch import Tensor

from ...engine.cuda import pools as cuda
from ...engine.cuda import triton_layers, triton_training
from .model import (
    DeviceLayer,
    Model,
    Norm,
    Piece,
    finish,
    norm_arguments,
    norm_switches,
    rows_at_once,
)

__all__ = ["LayerPass"]

#: Values of psi up to which a program computes all those of a neuron.
_FEW_VALUES = 8192
#: Neurons over which a program of a small layer sums the gradient by an input.
_NEURONS = 8
#: Values that a program of a small layer has at once, and how many warps it has for so many.
_TILE, _WARPS = 2048, 4


class LayerPass:
    """What a layer computes for a batch of training.

    Attributes
    ----------
    out : (K, width, n) what the layer hands on, if not elsewhere; slope : (K, width, n) the gradient by that
    sums : (3, K, width) means, squared means and variances of the batches so far
    """

    def __init__(self, model: Model, layer: DeviceLayer, batch: int) -> None:
        self.model, self.layer, self.batch = model, layer, batch
        k, device = model.n_candidates, model.theta.device
        shape = (k, layer.width, batch)
        self.out, self.slope = (torch.empty(shape, device=device) for _ in range(2))
        self.sums = torch.zeros(3, k, layer.width, dtype=torch.float64, device=device)
        self._pre, self._normal, self._by_pool = (torch.empty(shape, device=device) for _ in range(3))
        self._variance = torch.empty(k, layer.width, device=device)
        # Of the inputs that are the maxima, where there are such.
        self._index = torch.zeros(shape, dtype=torch.int32, device=device)
        self._is_small = batch <= 1024 and layer.n_inputs * triton.next_power_of_2(batch) <= _FEW_VALUES
        if not self._is_small:
            example = torch.empty(1, device=device).expand(1, layer.n_inputs, batch)
            self._parts = torch.empty(model.count_parts(layer, example), *shape, device=device)
            self._index_parts = None
            if layer.has_maximum:
                self._index_parts = torch.zeros(self._parts.shape, dtype=torch.int32, device=device)

    def norm(self, base: Tensor, step: int, salt: int, drop: Tensor | None) -> Norm:
        """A batch norm with dropout that is drawn for a step."""
        return Norm(self._normal, self._variance, self.sums, base, step, salt, drop)

    def _arguments(self, norm: Norm | None) -> tuple[Tensor | int, ...]:
        """Those of `norm_arguments`, and the sizes that follow them in all kernels."""
        of_norm = norm_arguments(norm, self.layer.places, self._pre)
        return *of_norm, self.batch, self.layer.width

    def _strides(self, x: Tensor) -> tuple[int, int, int]:
        """How far the groups of the inputs, the inputs, and the parameters of candidates are apart."""
        return cuda.group_stride(x), x.stride(1), self.model.theta.stride(0)

    def _constants(self, norm: Norm | None) -> dict[str, int]:
        """What the kernels of a small layer are compiled for."""
        rows = triton.next_power_of_2(self.batch)
        inputs = max(2, min(triton.next_power_of_2(self.layer.n_inputs), _TILE // rows))
        tile = {"INPUTS": inputs, "ROWS": rows, "num_warps": max(1, min(_WARPS, inputs * rows // 128))}
        return {**norm_switches(norm), "APPROX": cuda.COMPILED, **tile}

    def forward(self, x: Tensor, out: Tensor, norm: Norm | None) -> None:
        """From inputs (1 or K, D, n) to ``out`` (K, width, n)."""
        if self._is_small:
            self._forward_at_once(x, out, norm)
            return
        self.model.pool(self.layer, x, self._parts, self._index_parts)
        index = None if self._index_parts is None else (self._index_parts, self._index)
        finish(self.layer, self.model.theta, self._parts, index, self._pre, out, norm)

    def _forward_at_once(self, x: Tensor, out: Tensor, norm: Norm | None) -> None:
        layer, theta = self.layer, self.model.theta
        triton_layers.layer_forward[(layer.width, len(theta))](
            x,
            theta,
            layer.places,
            layer.codes,
            self._pre,
            self._normal,
            self._index,
            out,
            self._variance,
            self.sums,
            *self._arguments(norm),
            *self._strides(x),
            out.stride(0),
            out.stride(1),
            **self._constants(norm),
        )

    def backward(
        self,
        x: Tensor,
        slope: Tensor,
        grad: Tensor,
        norm: Norm | None,
        below: Tensor | None,
        skip: int = 0,
    ) -> None:
        """From the gradient by what was handed on to that by parameters, in ``grad`` (K, size).

        ``below`` receives the gradient by the inputs from number ``skip`` on.
        """
        if self._is_small:
            self._backward_at_once(x, slope, grad, norm)
            if below is not None:
                self._by_inputs_at_once(x, below, skip)
            return
        self._finish_backward(slope, grad, norm)
        self._by_weights(x, grad)
        if below is not None:
            self._by_inputs(x, below, skip)

    def _backward_at_once(self, x: Tensor, slope: Tensor, grad: Tensor, norm: Norm | None) -> None:
        layer, theta = self.layer, self.model.theta
        triton_layers.layer_backward[(layer.width, len(theta))](
            slope,
            x,
            self._pre,
            self._normal,
            self._index,
            self._variance,
            self._by_pool,
            theta,
            grad,
            layer.places,
            layer.codes,
            *self._arguments(norm),
            *self._strides(x),
            slope.stride(0),
            **self._constants(norm),
        )

    def _by_inputs_at_once(self, x: Tensor, below: Tensor, skip: int) -> None:
        layer, theta = self.layer, self.model.theta
        n_parts = triton.cdiv(layer.width, _NEURONS)
        out = below[None] if n_parts == 1 else torch.empty(n_parts, *below.shape, device=x.device)
        rows = min(32, triton.next_power_of_2(self.batch))
        inputs = min(16, triton.next_power_of_2(below.shape[1]))
        grid = (triton.cdiv(below.shape[1], inputs) * triton.cdiv(self.batch, rows), len(theta), n_parts)
        triton_layers.layer_by_input[grid](
            x,
            self._by_pool,
            self._index,
            theta,
            layer.places,
            layer.codes,
            out,
            self.batch,
            layer.width,
            x.shape[1],
            skip,
            _NEURONS,
            *self._strides(x),
            out.stride(0),
            out.stride(1),
            APPROX=cuda.COMPILED,
            INPUTS=inputs,
            ROWS=rows,
            num_warps=max(1, inputs * rows // 128),
        )
        if n_parts > 1:
            torch.sum(out, dim=0, out=below)

    def _finish_backward(self, slope: Tensor, grad: Tensor, norm: Norm | None) -> None:
        rows, layer, theta = rows_at_once(self.batch), self.layer, self.model.theta
        triton_training.finish_backward[(layer.width, len(theta))](
            slope,
            self._by_pool,
            self._pre,
            self._normal,
            self._variance,
            theta,
            grad,
            layer.places,
            layer.codes,
            *self._arguments(norm),
            theta.stride(0),
            slope.stride(0),
            **norm_switches(norm),
            ROWS=rows,
            num_warps=4 if rows <= 1024 else 8,
        )

    def _by_weights(self, x: Tensor, grad: Tensor) -> None:
        def task(piece: Piece) -> Callable[[], None]:
            gradients, out = self._gradients(piece, x), piece.weight(grad)

            def run() -> None:
                gradients.by_weight(out)

            return run

        self.model.run_all([task(piece) for piece in self.layer.pieces])

    def _by_inputs(self, x: Tensor, below: Tensor, skip: int) -> None:
        collected: list[tuple[Piece, Tensor]] = []

        def task(piece: Piece) -> Callable[[], None]:
            gradients = self._gradients(piece, x)
            out = torch.empty(len(gradients.grad), *gradients.x.shape[1:], device=x.device)
            collected.append((piece, out))

            def run() -> None:
                gradients.by_input(out)

            return run

        self.model.run_all([task(piece) for piece in self.layer.pieces])
        below.zero_()
        for piece, by_input in collected:
            below[piece.candidates, : piece.n_inputs - skip] += by_input[:, skip:]

    def _gradients(self, piece: Piece, x: Tensor) -> cuda.Gradients:
        """Those of a piece's pools, once the gradient by what they pool is there."""
        inputs = (x if len(x) == 1 else x[piece.candidates])[:, : piece.n_inputs]
        place, weight = (piece.candidates, piece.neurons), piece.weight(self.model.theta)
        return cuda.Gradients(
            piece.nodal, piece.pool, inputs, weight, self._by_pool[place], self._index[place]
        )
