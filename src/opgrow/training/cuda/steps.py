"""Mini-batch training of candidates of equal shape, all at once, without leaving the device.

The parameters of each candidate are a row of one matrix, laid out as `opgrow.training.candidates.Shape` says.
A small step is five launches however many candidates there are, and whatever their operators; a few steps
over a staged window of rows are recorded as a CUDA graph and replayed. Tuning trains one candidate of any
depth or several on rows of their own, a population hundreds with one hidden layer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import triton
from torch import Tensor

from ...engine.cuda import triton_adam
from ...rows.device.rows import DeviceRows
from ..candidates import fill
from ..settings import TuningSettings
from .heads import HeadPass
from .model import Model, Norm
from .passes import LayerPass
from .side_streams import recording_stream
from .staging import Staging

__all__ = ["DeviceSteps"]

_BLOCK = 1024
#: Parameters of which one program checks the gradients; as many or fewer are checked where they are used.
_CHECKED = 4096
#: What `DeviceSteps.state` holds.
_STATE = ("first", "second", "skipped", "taken")


class DeviceSteps:
    """Trains all candidates of a model on windows of staged rows.

    Parameters
    ----------
    model : candidates of equal shape
    rows : rows of all candidates, or a list with those of each: folds of a table, whose frozen features are
        the candidate's own; an epoch has the steps of the largest, and candidates with fewer rows take some
        of them twice
    settings : the loss, batches and regularisation
    seed : what dropout inside the layers is drawn from, beside the number of the step; a trainer that goes on
        from another's state needs the same one
    dropout : share that each candidate leaves out; by default the settings' for all
    graphs : whether windows are recorded; by default on a GPU
    """

    def __init__(
        self,
        model: Model,
        rows: DeviceRows | Sequence[DeviceRows],
        settings: TuningSettings,
        seed: int,
        dropout: Sequence[float] | None = None,
        graphs: bool | None = None,
    ) -> None:
        parts = [rows] if isinstance(rows, DeviceRows) else list(rows)
        k = model.n_candidates
        if not isinstance(rows, DeviceRows) and len(parts) != k:
            raise ValueError(f"{k} candidates need rows of their own for each, got {len(parts)} parts")
        device = parts[0].device
        self.model, self.parts, self.settings, self.seed = model, parts, settings, seed
        self.own_rows = not isinstance(rows, DeviceRows)
        self.dropout = [settings.dropout] * k if dropout is None else [float(share) for share in dropout]
        self.graphs = device.type == "cuda" if graphs is None else graphs
        self.first, self.second, self.grad = (torch.zeros_like(model.theta) for _ in range(3))
        self.decay = torch.from_numpy(model.shapes[0].decay(settings.weight_decay)).to(device)
        self.rate = torch.zeros(k, dtype=torch.float64, device=device)
        self.active = torch.ones(k, dtype=torch.int32, device=device)
        self.skipped = torch.zeros(k, dtype=torch.int32, device=device)
        self.staging = Staging(model, parts, settings.batch_size, self.dropout, settings.input_dropout)
        self.steps, self.batch = self.staging.steps, self.staging.batch
        # Steps taken and the row at which the next window begins, which a window moves on together.
        self._position = torch.zeros(2, dtype=torch.int64, device=device)
        self._advance = torch.tensor([self.steps, self.staging.window], device=device)
        self.taken, self.staging.at = self._position[:1], self._position[1:]
        self._drop = None
        if any(self.dropout):
            self._drop = torch.tensor(self.dropout, dtype=torch.float32, device=device)
        self._layers = [LayerPass(model, layer, self.batch) for layer in model.layers]
        self._head = HeadPass(model, self.batch, settings.loss)
        self._operators = None if model.head is None else LayerPass(model, model.head, self.batch)
        self._losses = torch.zeros(self.steps, k, self._head.n_loss_tiles, device=device)
        self._total = torch.zeros(k, dtype=torch.float64, device=device)
        self._checks = torch.zeros(k, triton.cdiv(model.theta.shape[1], _CHECKED), device=device)
        self._graph: torch.cuda.CUDAGraph | None = None

    def with_candidates(self, model: Model, places: Tensor) -> DeviceSteps:
        """A trainer that goes on with some of the candidates."""
        chosen = places.tolist()
        rows = [self.parts[i] for i in chosen] if self.own_rows else self.parts[0]
        dropout = [self.dropout[i] for i in chosen]
        other = DeviceSteps(model, rows, self.settings, self.seed, dropout, self.graphs)
        other.first, other.second = self.first[places], self.second[places]
        other.skipped = self.skipped[places]
        other.taken.copy_(self.taken)
        return other

    def state(self) -> dict[str, np.ndarray]:
        """What an epoch goes on from, beside the parameters and its seed."""
        return {name: getattr(self, name).cpu().numpy() for name in _STATE}

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        """Go on from what `state` has said."""
        for name in _STATE:
            tensor = getattr(self, name)
            values = np.empty(tuple(tensor.shape), tensor.cpu().numpy().dtype)
            fill(values, arrays, name)
            tensor.copy_(torch.from_numpy(values))

    # --- an epoch ---

    def epoch(self, rates: Tensor, seed: int) -> Tensor:
        """Train for one epoch with each candidate's learning rate, 0 for those at rest; mean losses (K,).

        The order of the rows, and what dropout leaves out of inputs and frozen features, depend on the seed.
        """
        self.rate.copy_(rates)
        self.active.copy_(rates > 0)
        self._total.zero_()
        for layer in self._layers:
            layer.sums.zero_()
        n_windows = 0
        for _ in self.staging.windows(seed):
            self._run_window()
            n_windows += 1
        self.n_steps = n_windows * self.steps
        return self._total / self.n_steps

    def batch_moments(self) -> list[tuple[Tensor, Tensor]]:
        """Mean and variance of each layer's features over the last epoch's batches."""
        moments = []
        for layer in self._layers:
            mean, square, variance = layer.sums / self.n_steps
            spread = (square - mean.square()).clamp_min(0.0)
            moments.append((mean.float(), (variance + spread).float()))
        return moments

    def _run_window(self) -> None:
        if self.graphs and self._graph is None:
            self._record()
        if self._graph is not None:
            self._graph.replay()
        else:
            self._steps(self.steps)

    def _record(self) -> None:
        """Record a window; taking steps before compiles the kernels, and their traces are wiped."""
        device = self.model.theta.device
        state = [self.model.theta, self.first, self.second, self.skipped, self._position, self._total]
        state += [layer.sums for layer in self._layers]
        before = [tensor.clone() for tensor in state]
        stream = recording_stream(device)
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            # The others are the same launches on other rows.
            self._steps(min(2, self.steps))
        torch.cuda.current_stream(device).wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, stream=stream, capture_error_mode="thread_local"):
            self._steps(self.steps)
        for tensor, value in zip(state, before, strict=True):
            tensor.copy_(value)

    # --- a step ---

    @torch.no_grad()
    def _steps(self, count: int) -> None:
        """Stage a window and take its first steps."""
        self.staging.stage()
        for number in range(count):
            self._step(number)
        self._total += self._losses.sum(dim=(0, 2), dtype=torch.float64)
        self._position += self._advance

    def _step(self, number: int) -> None:
        model, staged, n = self.model, self.staging, self.batch
        span = slice(number * n, (number + 1) * n)
        last = len(self._layers) - 1
        inputs = [staged.x[:, :, span]]
        for i, layer in enumerate(self._layers):
            out = layer.out if i < last else staged.features[:, model.n_frozen : -1, span]
            layer.forward(inputs[i], out, self._norm(i, number))
            inputs.append(out)
        target, weight, losses = staged.target[:, :, span], staged.weight[:, 0, span], self._losses[number]
        slope = self._layers[last].slope
        if self._operators is None:
            self._head.linear(staged.features[:, :, span], target, weight, losses, self.grad, slope)
        else:
            seen, outputs = staged.features[:, :-1, span], self._head.outputs
            self._operators.forward(seen, outputs, None)
            self._head.differentiate(target, weight, losses)
            self._operators.backward(seen, outputs, self.grad, None, slope, model.n_frozen)
        for i in range(last, -1, -1):
            below = self._layers[i - 1].slope if i > 0 else None
            self._layers[i].backward(
                inputs[i], self._layers[i].slope, self.grad, self._norm(i, number), below
            )
        self._adam(number)
        if self.settings.max_norm:
            self._limit_norms(self.settings.max_norm)

    def _norm(self, layer: int, number: int) -> Norm:
        salt = (self.seed + layer * 1_000_003) % (1 << 30)
        return self._layers[layer].norm(self.taken, number, salt, self._drop)

    def _adam(self, number: int) -> None:
        k, size = self.model.theta.shape
        checks = self.grad
        if size > _CHECKED:
            checks = self._checks
            triton_adam.check_sums[(checks.shape[1], k)](
                self.grad, checks, size, self.grad.stride(0), BLOCK=_CHECKED, num_warps=8
            )
        triton_adam.adam[(triton.cdiv(size, _BLOCK), k)](
            self.model.theta,
            self.grad,
            self.first,
            self.second,
            self.decay,
            checks,
            self.skipped,
            self.active,
            self.rate,
            self.taken,
            number,
            size,
            self.grad.stride(0),
            checks.shape[1],
            BLOCK=_BLOCK,
            SUMS=triton.next_power_of_2(checks.shape[1]),
        )

    def _limit_norms(self, most: float) -> None:
        for layer in self.model.layers:
            for piece in layer.pieces:
                weight = piece.weight(self.model.theta)
                norms = weight.norm(dim=1, keepdim=True).clamp_min(1e-30)
                weight.mul_((most / norms).clamp_max(1.0))
