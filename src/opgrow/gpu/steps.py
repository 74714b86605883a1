"""Mini-batch training of candidates of equal shape, all at once, without leaving the device.

The parameters of each candidate are a row of one matrix, laid out as `opgrow.engines.Shape` says. A step
is a dozen launches however many candidates there are; a few steps over a staged window of rows are
recorded as a CUDA graph and replayed. Tuning trains one candidate of any depth, a population hundreds
with one hidden layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import triton
from torch import Tensor

from ..kernels import cuda, triton_training
from ..training.candidates import fill
from ..training.settings import LOSS_CODES, TuningSettings
from .model import DeviceLayer, Model, Norm, Piece, finish, rows_at_once
from .rows import DevicePart
from .streams import recording_stream

__all__ = ["Trainer"]

#: Steps that are recorded, and replayed, together.
_WINDOW_STEPS = 16
_BLOCK = 1024
_CHECKED = 4096
#: Outputs up to which a linear head has a kernel of its own: cuBLAS takes ten times as long for some such
#: shapes.
_FEW_OUTPUTS = 32


class Trainer:
    """Trains all candidates of a model on windows of staged rows."""

    def __init__(
        self, model: Model, part: DevicePart, settings: TuningSettings, seed: int, graphs: bool | None = None
    ) -> None:
        self.model, self.part, self.settings = model, part, settings
        device = part.device
        self.graphs = device.type == "cuda" if graphs is None else graphs
        k = model.n_candidates
        self.first, self.second, self.grad = (torch.zeros_like(model.theta) for _ in range(3))
        self.decay = torch.from_numpy(model.shapes[0].decay(settings.weight_decay)).to(device)
        self.rate = torch.zeros(k, dtype=torch.float64, device=device)
        self.active = torch.ones(k, dtype=torch.int32, device=device)
        self.skipped = torch.zeros(k, dtype=torch.int32, device=device)
        self.taken = torch.zeros(1, dtype=torch.int64, device=device)
        self.generator = torch.Generator(device).manual_seed(seed)
        self.salt = seed % (1 << 30)
        self._plan_windows()
        self._allocate()
        self._graph: torch.cuda.CUDAGraph | None = None

    def with_candidates(self, model: Model, rows: Tensor) -> Trainer:
        """A trainer that goes on with some of the candidates."""
        other = Trainer(model, self.part, self.settings, 0, self.graphs)
        other.first, other.second = self.first[rows], self.second[rows]
        other.skipped, other.taken = self.skipped[rows], self.taken
        other.generator, other.salt = self.generator, self.salt
        return other

    def state(self) -> dict[str, np.ndarray]:
        """What an epoch goes on from, beside the parameters."""
        tensors = {name: getattr(self, name) for name in ("first", "second", "skipped", "taken")}
        found = {name: tensor.cpu().numpy() for name, tensor in tensors.items()}
        return found | {"generator": self.generator.get_state().numpy(), "salt": np.array([self.salt])}

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        """Go on from what `state` has said."""
        for name in ("first", "second", "skipped", "taken"):
            tensor = getattr(self, name)
            values = np.empty(tuple(tensor.shape), tensor.cpu().numpy().dtype)
            fill(values, arrays, name)
            tensor.copy_(torch.from_numpy(values))
        random = self.generator.get_state().numpy().copy()
        fill(random, arrays, "generator")
        self.generator.set_state(torch.from_numpy(random))
        salt = np.zeros(1, np.int64)
        fill(salt, arrays, "salt")
        self.salt = int(salt[0]) % (1 << 30)

    def _plan_windows(self) -> None:
        """Batches of equal size, a few of them a window: every row takes part once, a few twice."""
        n, settings = self.part.n_rows, self.settings
        if self.part.inputs is None:
            n = self.part.chunk_rows(0)
        n_batches = -(-n // settings.batch_size)
        n_windows = -(-n_batches // _WINDOW_STEPS)
        self.steps = -(-n_batches // n_windows)
        self.batch = -(-n // (self.steps * n_windows))
        self.chunk = n

    def _allocate(self) -> None:
        model, device, n = self.model, self.part.device, self.batch
        k, window = model.n_candidates, self.batch * self.steps
        self.x = torch.empty(model.layers[0].n_inputs, window, device=device)
        self.target = torch.empty(model.n_outputs, window, device=device)
        self.weight = torch.empty(window, device=device)
        # Frozen features, those of the last layer, and ones for the biases of a linear head.
        self.features = torch.ones(k, model.n_features + 1, window, device=device)
        self.outputs = torch.empty(k, model.n_outputs, n, device=device)
        self.losses = torch.zeros(self.steps, k, self._n_loss_tiles(), device=device)
        self.buffers = []
        for layer in [*model.layers, *([model.head] if model.head is not None else [])]:
            example = torch.empty(1, device=device).expand(1, layer.n_inputs, n)
            n_parts = model.count_parts(layer, example)
            shape = (k, layer.width, n)
            parts = torch.empty(n_parts, *shape, device=device)
            index = None
            if layer.has_maximum:
                index = (
                    torch.zeros(parts.shape, dtype=torch.int32, device=device),
                    torch.zeros(shape, dtype=torch.int32, device=device),
                )
            pre, normal, out, slope, by_pool = (torch.empty(shape, device=device) for _ in range(5))
            variance = torch.empty(k, layer.width, device=device)
            sums = torch.zeros(3, k, layer.width, dtype=torch.float64, device=device)
            self.buffers.append(_Buffers(parts, index, pre, normal, out, slope, by_pool, variance, sums))
        self.checks = torch.zeros(k, triton.cdiv(model.theta.shape[1], _CHECKED), device=device)

    def _n_loss_tiles(self) -> int:
        return triton.cdiv(self.batch, self._loss_tile()[1])

    def _loss_tile(self) -> tuple[int, int]:
        outputs = triton.next_power_of_2(self.model.n_outputs)
        return outputs, max(1, min(128, triton.next_power_of_2(self.batch), 4096 // outputs))

    # --- an epoch ---

    def epoch(self, rates: Tensor) -> Tensor:
        """Train for one epoch with each candidate's learning rate, 0 for those at rest; mean losses (K,)."""
        self.rate.copy_(rates)
        self.active.copy_(rates > 0)
        for buffers in self.buffers:
            buffers.sums.zero_()
        total = torch.zeros(self.model.n_candidates, dtype=torch.float64, device=self.part.device)
        self.n_steps = 0
        for sources, order in self._windows():
            self._stage(sources, order)
            self._run_window()
            total += self.losses.sum(dim=(0, 2), dtype=torch.float64)
            self.n_steps += self.steps
        return total / self.n_steps

    def batch_moments(self) -> list[tuple[Tensor, Tensor]]:
        """Mean and variance of each layer's features over the last epoch's batches."""
        found = []
        for buffers in self.buffers[: len(self.model.layers)]:
            mean, square, variance = buffers.sums / self.n_steps
            spread = (square - mean.square()).clamp_min(0.0)
            found.append((mean.float(), single(variance + spread)))
        return found

    def _windows(self) -> Iterator[tuple[list[Tensor], Tensor]]:
        """Tensors to take rows from, and which rows in which order."""
        part, window = self.part, self.batch * self.steps
        n_chunks = -(-part.n_rows // self.chunk)
        order = None
        if n_chunks > 1:
            order = torch.randperm(n_chunks, generator=self.generator, device=part.device).cpu().numpy()
        for chunk in part.chunks(self.chunk, order=order):
            n = chunk.n_rows
            rows = torch.randperm(n, generator=self.generator, device=part.device)
            count = max(1, round(n / window)) if n_chunks > 1 else -(-n // window)
            rows = rows.repeat(-(-count * window // n))[: count * window] if count * window > n else rows
            sources = [chunk.x, chunk.accepted, chunk.target, chunk.weight]
            for i in range(count):
                yield sources, rows[i * window : (i + 1) * window]

    def _stage(self, sources: list[Tensor], order: Tensor) -> None:
        x, frozen, target, weight = sources
        torch.index_select(x, 1, order, out=self.x)
        torch.index_select(target, 1, order, out=self.target)
        torch.index_select(weight, 0, order, out=self.weight)
        settings = self.settings
        if settings.input_dropout > 0:
            self.x.mul_(self._mask(self.x.shape, settings.input_dropout))
        if len(frozen):
            seen = frozen.index_select(1, order)
            if settings.dropout > 0:
                seen.mul_(self._mask(seen.shape, settings.dropout))
            self.features[:, : len(frozen)] = seen

    def _mask(self, shape: Sequence[int], drop: float) -> Tensor:
        chance = torch.rand(shape, generator=self.generator, device=self.part.device)
        return (chance >= drop).float().mul_(1 / (1 - drop))

    def _run_window(self) -> None:
        if self.graphs and self._graph is None:
            self._record()
        if self._graph is not None:
            self._graph.replay()
        else:
            self._steps()

    def _record(self) -> None:
        """Record a window; running it once before compiles the kernels, and its traces are wiped."""
        state = [self.model.theta, self.first, self.second, self.taken, self.skipped]
        state += [buffers.sums for buffers in self.buffers]
        before = [tensor.clone() for tensor in state]
        stream = recording_stream(self.part.device)
        stream.wait_stream(torch.cuda.current_stream(self.part.device))
        with torch.cuda.stream(stream):
            self._steps()
        torch.cuda.current_stream(self.part.device).wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, stream=stream, capture_error_mode="thread_local"):
            self._steps()
        for tensor, value in zip(state, before, strict=True):
            tensor.copy_(value)

    # --- a step ---

    def _steps(self) -> None:
        for number in range(self.steps):
            self._step(number)
        self.taken += self.steps

    @torch.no_grad()
    def _step(self, number: int) -> None:
        model, settings, n = self.model, self.settings, self.batch
        theta, grad = model.theta, self.grad
        span = slice(number * n, (number + 1) * n)
        last = len(model.layers) - 1
        inputs = [self.x[None, :, span]]
        for i, layer in enumerate(model.layers):
            b = self.buffers[i]
            out = b.out if i < last else self.features[:, self.model.n_frozen : -1, span]
            model.pool(layer, inputs[i], b.parts, b.index_parts)
            finish(layer, theta, b.parts, b.index, b.pre, out, self._norm(i, number))
            inputs.append(out)
        if model.head is None:
            seen = self.features[:, :, span]
            self._head_forward(seen)
        else:
            seen, b = self.features[:, :-1, span], self.buffers[-1]
            model.pool(model.head, seen, b.parts, b.index_parts)
            finish(model.head, theta, b.parts, b.index, b.pre, self.outputs, None)
        self._loss(number, span)
        slope = self.buffers[last].slope
        if model.head is None:
            _product(seen, self.outputs.mT, model.head_matrix(grad))
            _product(model.head_matrix(theta)[:, model.n_frozen : -1], self.outputs, slope)
        else:
            b = self.buffers[-1]
            self._finish_backward(model.head, b, self.outputs, None)
            self._pool_backward(model.head, b, seen, slope, model.n_frozen)
        for i in range(last, -1, -1):
            b = self.buffers[i]
            self._finish_backward(model.layers[i], b, b.slope, self._norm(i, number))
            below = self.buffers[i - 1].slope if i > 0 else None
            self._pool_backward(model.layers[i], b, inputs[i], below)
        self._adam(number)
        if settings.max_norm:
            self._limit_norms(settings.max_norm)

    def _head_forward(self, seen: Tensor) -> None:
        matrix, n = self.model.head_matrix(self.model.theta), self.batch
        if self.model.n_outputs > _FEW_OUTPUTS:
            _product(matrix.mT, seen, self.outputs)
            return
        grid = (triton.cdiv(n, 32), triton.cdiv(self.model.n_outputs, 16), self.model.n_candidates)
        triton_training.head_forward[grid](
            seen,
            matrix,
            self.outputs,
            n,
            seen.shape[1],
            self.model.n_outputs,
            seen.stride(0),
            seen.stride(1),
            matrix.stride(0),
            self.outputs.stride(0),
            FEATURES=32,
            OUTPUTS=16,
            ROWS=32,
            num_warps=2,
        )

    def _norm(self, layer: int, number: int) -> Norm:
        b = self.buffers[layer]
        salt = (self.salt + layer * 1_000_003) % (1 << 30)
        return Norm(b.normal, b.variance, b.sums, self.taken, number, salt, self.settings.dropout)

    def _loss(self, number: int, span: slice) -> None:
        outputs, rows = self._loss_tile()
        target, weight = self.target[:, span], self.weight[span]
        triton_training.loss_backward[(self._n_loss_tiles(), self.model.n_candidates)](
            self.outputs,
            target,
            weight,
            self.losses[number],
            self.batch,
            self.model.n_outputs,
            self.outputs.stride(0),
            target.stride(0),
            KIND=LOSS_CODES[self.settings.loss],  # type: ignore[index]
            OUTPUTS=outputs,
            ROWS=rows,
        )

    def _finish_backward(self, layer: DeviceLayer, b: _Buffers, slope: Tensor, norm: Norm | None) -> None:
        rows = rows_at_once(self.batch)
        triton_training.finish_backward[(layer.width, self.model.n_candidates)](
            slope,
            b.by_pool,
            b.pre,
            b.normal,
            b.variance,
            self.model.theta,
            self.grad,
            layer.places,
            layer.codes,
            self.taken,
            0 if norm is None else norm.step,
            0 if norm is None else norm.salt,
            0.0 if norm is None else norm.drop,
            self.batch,
            layer.width,
            self.model.theta.stride(0),
            slope.stride(0),
            NORM=norm is not None,
            DROP=norm is not None and norm.drop > 0,
            ROWS=rows,
            num_warps=4 if rows <= 1024 else 8,
        )

    def _pool_backward(
        self, layer: DeviceLayer, b: _Buffers, x: Tensor, below: Tensor | None, skip: int = 0
    ) -> None:
        """Gradients by a layer's weights and, into ``below``, by its inputs from number ``skip`` on."""
        model, index = self.model, None if b.index is None else b.index[1]
        collected: list[tuple[Piece, Tensor]] = []

        def task(piece: Piece) -> Callable[[], None]:
            grad = b.by_pool[piece.candidates, piece.neurons]
            where = None if index is None else index[piece.candidates, piece.neurons]
            inputs = (x if len(x) == 1 else x[piece.candidates])[:, : piece.n_inputs]
            weight = piece.weight(model.theta)
            by_input = None
            if below is not None:
                by_input = torch.empty(len(grad), *inputs.shape[1:], device=x.device)
                collected.append((piece, by_input))

            def run() -> None:
                out = piece.weight(self.grad)
                cuda.gradient_by_weight(piece.nodal, piece.pool, inputs, weight, grad, where, out)
                if by_input is not None:
                    cuda.gradient_by_input(piece.nodal, piece.pool, inputs, weight, grad, where, by_input)

            return run

        model.run_all([task(piece) for piece in layer.pieces])
        if below is not None:
            below.zero_()
            for piece, by_input in collected:
                below[piece.candidates] += by_input[:, skip:]

    def _adam(self, number: int) -> None:
        k, size = self.model.theta.shape
        n_checks = self.checks.shape[1]
        triton_training.check_sums[(n_checks, k)](
            self.grad, self.checks, size, self.grad.stride(0), BLOCK=_CHECKED, num_warps=8
        )
        triton_training.adam[(triton.cdiv(size, _BLOCK), k)](
            self.model.theta,
            self.grad,
            self.first,
            self.second,
            self.decay,
            self.checks,
            self.skipped,
            self.active,
            self.rate,
            self.taken,
            number,
            size,
            self.grad.stride(0),
            n_checks,
            BLOCK=_BLOCK,
            SUMS=triton.next_power_of_2(n_checks),
        )

    def _limit_norms(self, most: float) -> None:
        for layer in self.model.layers:
            for piece in layer.pieces:
                weight = piece.weight(self.model.theta)
                norms = weight.norm(dim=1, keepdim=True).clamp_min(1e-30)
                weight.mul_((most / norms).clamp_max(1.0))


def _product(a: Tensor, b: Tensor, out: Tensor) -> None:
    """Matrix products of all candidates. For a single one, the libraries choose better without a batch."""
    if len(out) == 1:
        torch.mm(a[0], b[0], out=out[0])
    else:
        torch.bmm(a, b, out=out)


@dataclass
class _Buffers:
    """What a layer computes for a batch: (K, width, n) unless said otherwise.

    Attributes
    ----------
    parts : (P, K, width, n) pooled over parts of the inputs
    index : indices of the maxima of the parts, and over all of them; None without a maximum
    pre, normal, out : before the activation, normalised, handed on
    slope, by_pool : gradients by what is handed on, and by the pooled values
    variance : (K, width) of the batch; sums : (3, K, width) over an epoch
    """

    parts: Tensor
    index: tuple[Tensor, Tensor] | None
    pre: Tensor
    normal: Tensor
    out: Tensor
    slope: Tensor
    by_pool: Tensor
    variance: Tensor
    sums: Tensor

    @property
    def index_parts(self) -> Tensor | None:
        return None if self.index is None else self.index[0]
