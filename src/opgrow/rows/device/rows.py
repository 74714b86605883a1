"""Rows on a device: whole where they fit, otherwise streamed from the host and computed again when needed.

All tensors are float32 with rows as the fastest dimension, (features, N), as the kernels want them. Raw
inputs that do not fit stay in the host's memory, as they were passed, and come chunk by chunk through
pinned memory, a chunk ahead of the work. What frozen layers and accepted blocks make of them is kept if
there is room, and otherwise computed again for every chunk: the kernels are quicker than the bus.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from ...network import NORM_EPSILON, Block
from ...network.scaling import Scaling, squash
from ...operators import OperatorSet
from ...operators.unit_norm import tensor_unit_rows
from ..preparation import are_extreme, moments, scale_of
from ..problem import sample_rows
from ..search_sums import Draw, Gathered, ScoreChunk, Share, Sums, as_they_are, constants_of, picked
from .memory import SUMMED_ROWS, Budget, free_bytes, shrinking

__all__ = ["Chunk", "DeviceBlock", "DevicePart", "Source", "block_outputs", "device_moments", "raw_features"]

#: Share of the free memory that inputs, targets and features of accepted blocks may take for good.
_RESIDENT_SHARE = 0.5
#: Rows that a streamed chunk has at most.
_STREAM_ROWS = 1 << 20
#: Copies into pinned memory are spread over threads in pieces of so many rows.
_COPY_ROWS = 1 << 14


@dataclass(frozen=True)
class Chunk:
    """Some rows as a layer sees them.

    Inputs are (D, n), features of accepted blocks (p, n), targets (C, n) and weights (n,).
    """

    span: slice
    x: Tensor
    accepted: Tensor
    target: Tensor
    weight: Tensor
    #: Rows are the last axis, unlike on the host.
    rows_last: ClassVar[bool] = True

    @property
    def n_rows(self) -> int:
        return self.x.shape[1]

    @property
    def frozen(self) -> Tensor:
        """The accepted features, which training does not change."""
        return self.accepted


@dataclass(frozen=True)
class DeviceBlock:
    """A block on the device.

    Attributes
    ----------
    weight : (n_inputs, n_neurons); bias : (n_neurons,)
    factor, offset : (n_neurons,) what the batch norm multiplies and shifts by, or None
    """

    operator_set: OperatorSet
    normalization: str | None
    weight: Tensor
    bias: Tensor
    factor: Tensor | None
    offset: Tensor | None

    @classmethod
    def of(cls, block: Block, device: torch.device) -> DeviceBlock:
        """A copy of a block's arrays."""

        def copied(array: np.ndarray) -> Tensor:
            return torch.tensor(array, device=device)

        factor, offset, norm = None, None, block.norm
        if norm is not None:
            factor = copied(norm.scale) / torch.sqrt(copied(norm.variance) + NORM_EPSILON)
            offset = copied(norm.shift) - copied(norm.mean) * factor
        arrays = copied(block.weight), copied(block.bias)
        return cls(block.operator_set, block.normalization, *arrays, factor, offset)

    @property
    def n_inputs(self) -> int:
        return self.weight.shape[0]

    @property
    def n_neurons(self) -> int:
        return self.weight.shape[1]


def spans_of(n_rows: int, size: int, order: np.ndarray | None = None) -> list[slice]:
    """Consecutive rows in pieces, in the given order of pieces."""
    spans = [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]
    return spans if order is None else [spans[i] for i in order]


class Source:
    """The rows of a problem as they were passed, and their standardised values on the device.

    Parameters
    ----------
    x : (M, D) array of floats, target : (N, C), weight : (N,)
    rows : (N,) which rows of ``x`` are meant, or None for all
    scaling : what is done to the inputs
    """

    def __init__(
        self,
        x: np.ndarray,
        target: np.ndarray,
        weight: np.ndarray,
        rows: np.ndarray | None,
        scaling: Scaling,
        device: torch.device,
        upload: bool = True,
    ) -> None:
        self.x, self.rows, self.device = x, rows, device
        self.n_rows, self.n_inputs, self.n_outputs = len(target), x.shape[1], target.shape[1]
        self._center = torch.from_numpy(scaling.center).to(device)
        self._scale = torch.from_numpy(scaling.scale).to(device)
        self._bound = scaling.bound
        self.target = torch.from_numpy(target)
        self.weight = torch.from_numpy(weight)
        self.total_weight = float(weight.sum(dtype=np.float64))
        self.resident: Tensor | None = None
        size = 4 * self.n_rows * (self.n_inputs + self.n_outputs + 1)
        if upload and size <= _RESIDENT_SHARE * free_bytes(device):
            self._upload()

    def _upload(self) -> None:
        """Bring everything to the device."""
        whole = torch.empty(self.n_inputs, self.n_rows, device=self.device)
        budget = Budget(self.device)

        def work() -> None:
            for span, x in self.stream(self.stream_rows(budget)):
                whole[:, span] = x

        shrinking(budget, work, "bringing the rows to the device")
        self.target, self.weight = self.target.to(self.device).T.contiguous(), self.weight.to(self.device)
        self.resident = whole

    def labels(self, span: slice) -> tuple[Tensor, Tensor]:
        """Targets (C, n) and weights (n,) of some rows."""
        if self.resident is not None:
            return self.target[:, span], self.weight[span]
        target = self.target[span].to(self.device, non_blocking=True).T.contiguous()
        return target, self.weight[span].to(self.device, non_blocking=True)

    def chunks(self, size: int, order: np.ndarray | None = None) -> Iterator[tuple[slice, Tensor]]:
        """Standardised inputs (D, n) in pieces, from the device or from the host."""
        if self.resident is None:
            yield from self.stream(size, order)
        else:
            for span in spans_of(self.n_rows, size, order):
                yield span, self.resident[:, span]

    def stream_rows(self, budget: Budget) -> int:
        """Rows to stream at once: this chunk as it came and in double precision, and the next one."""
        most = max(1, min(_STREAM_ROWS, (1 << 26) // self.n_inputs))
        return budget.rows(self.n_rows, self.n_inputs * (2 * self.x.itemsize + 24), most)

    def stream(
        self, size: int, order: np.ndarray | None = None, exact: bool = False
    ) -> Iterator[tuple[slice, Tensor]]:
        """Standardised chunks (D, n), ``exact`` ones in float64; while one is used, the next is copied."""
        spans = spans_of(self.n_rows, size, order)
        cuda = self.device.type == "cuda"
        dtype = torch.from_numpy(self.x[:0]).dtype
        buffers = [
            torch.empty(size, self.n_inputs, dtype=dtype, pin_memory=cuda) for _ in range(min(2, len(spans)))
        ]
        arrived = [torch.cuda.Event() if cuda else None for _ in buffers]
        copying = torch.cuda.Stream(self.device) if cuda else None

        def load(number: int) -> Tensor:
            """Fill a pinned buffer and start its way to the device."""
            span, slot = spans[number], number % len(buffers)
            if number >= len(buffers) and arrived[slot] is not None:
                arrived[slot].synchronize()  # type: ignore[union-attr]
            buffer = buffers[slot][: span.stop - span.start]
            self._fill(buffer.numpy(), span, pool)
            if copying is None:
                return buffer.clone()
            with torch.cuda.stream(copying):
                raw = buffer.to(self.device, non_blocking=True)
                arrived[slot].record(copying)  # type: ignore[union-attr]
            return raw

        with ThreadPoolExecutor(8) as pool, ThreadPoolExecutor(1) as loader:
            coming = loader.submit(load, 0)
            for number, span in enumerate(spans):
                raw = coming.result()
                if copying is not None:
                    current = torch.cuda.current_stream(self.device)
                    current.wait_event(arrived[number % len(buffers)])  # type: ignore[arg-type]
                    raw.record_stream(current)
                if number + 1 < len(spans):
                    coming = loader.submit(load, number + 1)
                x = squash((raw - self._center) / self._scale, self._bound)
                x = (x if exact else x.float()).T.contiguous()
                del raw
                yield span, x

    def _fill(self, buffer: np.ndarray, span: slice, pool: ThreadPoolExecutor) -> None:
        def copy(start: int) -> None:
            stop = min(start + _COPY_ROWS, len(buffer))
            rows = slice(span.start + start, span.start + stop)
            if self.rows is None:
                np.copyto(buffer[start:stop], self.x[rows])
            else:
                np.take(self.x, self.rows[rows], axis=0, out=buffer[start:stop], mode="clip")

        list(pool.map(copy, range(0, len(buffer), _COPY_ROWS)))


@dataclass
class DevicePart:
    """Training or validation rows on a device during the growth of one layer.

    Attributes
    ----------
    layers : frozen layers between the source's inputs and this layer's
    inputs : (D, N) what they make of the rows, or None where that is computed chunk by chunk
    blocks : accepted blocks of this layer; kept : (d, N) the outputs of each, or None
    """

    source: Source
    layers: list[list[DeviceBlock]] = field(default_factory=list)
    inputs: Tensor | None = None
    blocks: list[DeviceBlock] = field(default_factory=list)
    kept: list[Tensor | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.layers:
            self.inputs = self.source.resident
        self.budget = Budget(self.device)

    @property
    def device(self) -> torch.device:
        return self.source.device

    @property
    def n_rows(self) -> int:
        return self.source.n_rows

    @property
    def n_inputs(self) -> int:
        return sum(block.n_neurons for block in self.layers[-1]) if self.layers else self.source.n_inputs

    @property
    def n_accepted(self) -> int:
        return sum(block.n_neurons for block in self.blocks)

    @property
    def n_outputs(self) -> int:
        return self.source.n_outputs

    @property
    def total_weight(self) -> float:
        return self.source.total_weight

    # --- what a growing layer does with its rows ---

    def accept(self, block: Block) -> None:
        """Add a block to the layer."""
        copy = DeviceBlock.of(block, self.device)
        self.blocks.append(copy)
        size = 4 * self.n_rows * copy.n_neurons
        room = size <= _RESIDENT_SHARE * free_bytes(self.device)
        self.kept.append(self._outputs_of(copy) if room else None)

    def _outputs_of(self, block: DeviceBlock) -> Tensor:
        out = torch.empty(block.n_neurons, self.n_rows, device=self.device)

        def work() -> Tensor:
            for chunk in self.chunks(self.chunk_rows(16 * block.n_neurons), accepted=False):
                out[:, chunk.span] = block_outputs(block, chunk.x)
            return out

        return shrinking(self.budget, work, "computing the features of a block")

    def accept_computed(self, blocks: Sequence[Block], outputs: Tensor) -> None:
        """Add blocks to a layer without any; ``outputs`` (N, d) of all of them are known."""
        self.blocks = [DeviceBlock.of(block, self.device) for block in blocks]
        self.kept = list(outputs.T.split([block.n_neurons for block in blocks]))

    def next_layer(self) -> DevicePart:
        """The rows as the layer on top of the accepted blocks sees them."""
        layers = [*self.layers, self.blocks]
        kept = [k for k in self.kept if k is not None]
        room = 4 * self.n_rows * self.n_accepted <= _RESIDENT_SHARE * free_bytes(self.device)
        whole = torch.cat(kept) if room and len(kept) == len(self.kept) else None
        return DevicePart(self.source, layers, whole)

    def bare(self) -> DevicePart:
        """The rows without the accepted blocks."""
        return DevicePart(self.source, self.layers, self.inputs)

    def remember(self, blocks: Sequence[Block], before: DevicePart) -> None:
        """Put what blocks make of ``before``, the rows as the layer before sees them, beside the inputs."""
        added = [DeviceBlock.of(block, self.device) for block in blocks]
        self.layers = [*self.layers[:-1], [*self.layers[-1], *added]]
        if self.inputs is not None:
            size = 4 * self.n_rows * self.n_inputs
            room = size <= _RESIDENT_SHARE * free_bytes(self.device)
            seen = [before._outputs_of(block) for block in added] if room else []
            self.inputs = torch.cat([self.inputs, *seen]) if room else None

    # --- passes over the rows ---

    def chunk_rows(self, bytes_per_row: int) -> int:
        """Rows to take at once if each needs so many bytes besides inputs and accepted features."""
        own = 4 * (2 * self.source.n_inputs + self.n_inputs + self.n_accepted + 2 * self.n_outputs)
        most = (1 << 24) if self.inputs is not None else _STREAM_ROWS
        return self.budget.rows(self.n_rows, own + bytes_per_row, most)

    def chunks(self, size: int, accepted: bool = True, order: np.ndarray | None = None) -> Iterator[Chunk]:
        """The rows in pieces of ``size``, in the given order of pieces."""
        for span, x in self._inputs(size, order):
            target, weight = self.source.labels(span)
            seen = self._accepted(x, span) if accepted else x[:0]
            yield Chunk(span, x, seen, target, weight)

    def _inputs(self, size: int, order: np.ndarray | None) -> Iterator[tuple[slice, Tensor]]:
        if self.inputs is not None:
            for span in spans_of(self.n_rows, size, order):
                yield span, self.inputs[:, span]
            return
        for span, x in self.source.chunks(size, order):
            for layer in self.layers:
                x = torch.cat([block_outputs(block, x[: block.n_inputs]) for block in layer])
            yield span, x

    def _accepted(self, x: Tensor, span: slice) -> Tensor:
        parts = [
            block_outputs(block, x) if kept is None else kept[:, span]
            for block, kept in zip(self.blocks, self.kept, strict=True)
        ]
        return torch.cat(parts) if len(parts) > 1 else parts[0] if parts else x[:0]

    def first(self, n_rows: int) -> Chunk:
        """The first rows."""
        return next(self.chunks(min(n_rows, self.n_rows)))

    @property
    def sample_part(self) -> DevicePart:
        return self

    def sum(self, function: Callable[[Chunk], np.ndarray], n_candidates: int, width: int) -> np.ndarray:
        """The sum over all rows of a function of some of them."""

        def work() -> np.ndarray:
            size = self.chunk_rows(32 * n_candidates * (width + self.n_accepted + self.n_outputs))
            return sum(function(chunk) for chunk in self.chunks(size))  # type: ignore[return-value]

        return shrinking(self.budget, work, "taking statistics and scores")

    def windows(self, rng: np.random.Generator) -> Iterator[Chunk]:
        """All rows, as one window."""
        yield self.whole()

    def whole(self) -> Chunk:
        """All rows at once."""
        if self.inputs is None or self.source.resident is None:
            raise MemoryError(
                f"this needs all {self.n_rows} x {self.n_inputs} inputs on the GPU at once, and they do not "
                "fit: use device='cpu' or fewer rows"
            )
        return self.first(self.n_rows)

    def rows(self) -> DevicePart:
        """The rows as the search sees them."""
        return self

    def sample(
        self, block: Block, weight: np.ndarray, bias: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Outputs of a linear head on accepted and new features, targets and weights of the first rows."""
        chunk = self.first(sample_rows(self.n_outputs))
        features = torch.cat([chunk.accepted, block_outputs(DeviceBlock.of(block, self.device), chunk.x)])
        matrix, shift = (torch.from_numpy(a).float().to(self.device) for a in (weight, bias))
        outputs = features.T @ matrix + shift
        arrays = [t.cpu().numpy() for t in (outputs, chunk.target.T, chunk.weight)]
        return arrays[0], arrays[1], arrays[2]

    # --- the search ---

    def gather(self, draws: Sequence[Draw], n_threads: int = 1, share: Share = as_they_are) -> Gathered:
        """One pass over the rows that sums what the candidates' fits need."""
        k, m = sum(len(draw.sets) for draw in draws), draws[0].weight.shape[1]
        weights = [torch.from_numpy(draw.weight).to(self.device) for draw in draws]
        first = _candidate_features(self.first(64).x, draws, weights).double()
        constants = share(constants_of(first.mean(dim=2), first.var(dim=2, correction=0)))

        def work() -> Gathered:
            # Features, their shifted copy, and a nodal operator's pools; the features alone are kept.
            size = self.chunk_rows(4 * m * (2 * k + 8))
            cache: list[Tensor] | None = [] if size >= self.n_rows else None
            total: Sums | None = None
            for chunk in self.chunks(size):
                h = _candidate_features(chunk.x, draws, weights)
                if cache is not None:
                    cache.append(h)
                shifted = (h - constants.shift[:, :, None]).mul_(constants.scale[:, :, None])
                total = _add_chunk(total, shifted, chunk)
            assert total is not None
            return Gathered(total, constants, cache)

        return shrinking(self.budget, work, "a search")

    def score(
        self,
        draws: Sequence[Draw],
        chosen: np.ndarray,
        cache: list[Tensor] | None,
        function: ScoreChunk,
        n_threads: int = 1,
    ) -> Tensor:
        """The sum of a function of the chosen candidates' features over chunks of rows."""
        needed = picked(draws, chosen)
        weights = [torch.from_numpy(draw.weight).to(self.device) for draw in needed]
        index = torch.from_numpy(chosen).to(self.device)

        def work() -> Tensor:
            total = torch.zeros(len(chosen), dtype=torch.float64, device=self.device)
            size = self.chunk_rows(4 * len(chosen) * draws[0].weight.shape[1] * 5)
            for chunk in self.chunks(size):
                if cache is not None:
                    h = cache[0][:, :, chunk.span][index]
                else:
                    h = _candidate_features(chunk.x, needed, weights)
                total += function(h, chunk.accepted.T, chunk.target.T, chunk.weight)
            return total

        return shrinking(self.budget, work, "scoring the candidates of a search")


def device_moments(
    x: np.ndarray, rows: np.ndarray | None, weight: np.ndarray, device: torch.device
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and scale of each column, as `opgrow.rows.preparation.moments` has them, in one pass."""
    n_rows, n_columns = len(weight), x.shape[1]
    start = x[: 1 << 12] if rows is None else x[rows[: 1 << 12]]
    with np.errstate(all="ignore"):
        centre = start.mean(axis=0, dtype=np.float64)  # near the mean, so that squares do not cancel
    if not np.isfinite(centre).all():
        centre = np.zeros(n_columns)
    nothing, nobody = np.zeros((n_rows, 0), np.float32), np.zeros(n_rows, np.float32)
    source = Source(x, nothing, nobody, rows, Scaling(centre, np.ones(n_columns)), device, upload=False)
    share = torch.from_numpy(weight)
    budget = Budget(device)

    def work() -> Tensor:
        sums = torch.zeros(2, n_columns, dtype=torch.float64, device=device)
        for span, values in source.stream(source.stream_rows(budget), exact=True):
            part = share[span].to(device)
            sums[0] += values @ part
            sums[1] += values.square_() @ part
        return sums

    total = float(weight.sum(dtype=np.float64))
    mean, square = (shrinking(budget, work, "the moments of the columns") / total).cpu().numpy()
    with np.errstate(over="ignore", invalid="ignore"):
        variance = np.maximum(square - mean**2, 0.0)
    if are_extreme(x, centre + mean, variance).any():
        return moments(x if rows is None else x[rows], weight)
    return centre + mean, scale_of(centre + mean, variance, n_rows)


def _add_chunk(total: Sums | None, h: Tensor, chunk: Chunk) -> Sums:
    """Add the sums of a chunk; products are in single precision over a few thousand rows, then in double."""
    k, m, n = h.shape
    for start in range(0, n, SUMMED_ROWS):
        span = slice(start, min(start + SUMMED_ROWS, n))
        values, accepted, target, weight = (
            t[..., span] for t in (h, chunk.accepted, chunk.target, chunk.weight)
        )
        weighted = values * weight
        weighted_accepted = accepted * weight
        beside = torch.cat([accepted, target])
        products = (weighted.reshape(k * m, -1) @ beside.T).double()
        p = len(accepted)
        part = Sums(
            total=weighted.sum(dim=2, dtype=torch.float64),
            gram=torch.matmul(weighted, values.mT).double(),
            cross=products[:, :p].T.reshape(p, k, m).contiguous(),
            target=products[:, p:].reshape(k, m, -1).contiguous(),
            accepted_total=weighted_accepted.sum(dim=1, dtype=torch.float64),
            accepted_gram=(weighted_accepted @ accepted.T).double(),
            accepted_target=(weighted_accepted @ target.T).double(),
            target_total=(target * weight).sum(dim=1, dtype=torch.float64),
            target_square=(target.square() * weight).sum(dtype=torch.float64),
            weight=weight.sum(dtype=torch.float64),
        )
        if total is None:
            total = part
        else:
            total += part
    assert total is not None
    return total


def _candidate_features(x: Tensor, draws: Sequence[Draw], weights: Sequence[Tensor]) -> Tensor:
    """Raw features of all candidates for inputs (D, n): (k, m, n)."""
    k = sum(len(draw.sets) for draw in draws)
    out = torch.empty(k, weights[0].shape[1], x.shape[1], device=x.device)
    start = 0
    for draw, weight in zip(draws, weights, strict=True):
        _draw_features(x, draw.sets, weight, out[start : start + len(draw.sets)])
        start += len(draw.sets)
    return out


def _draw_features(x: Tensor, sets: Sequence[OperatorSet], weight: Tensor, out: Tensor) -> None:
    from ...engine.cuda import pools as cuda

    pools: Tensor | None = None
    by_activation: dict[str, list[int]] = {}
    for number, operator_set in enumerate(sets):
        if operator_set.codes is None:
            out[number] = raw_features(x, weight, torch.zeros(len(out[0]), device=x.device), operator_set)
        else:
            by_activation.setdefault(operator_set.activation, []).append(number)
    for numbers in by_activation.values():
        first = sets[numbers[0]]
        if pools is None:
            pools = cuda.all_pools(first.nodal_operator.code, x, weight)  # type: ignore[arg-type]
        wanted = [sets[number].pool_operator.code for number in numbers]
        step = numbers[1] - numbers[0] if len(numbers) > 1 else 1
        if wanted == [0, 1, 2, 3] and numbers == list(range(numbers[0], numbers[0] + 4 * step, step)):
            out[numbers[0] : numbers[-1] + 1 : step] = first.activation_operator.function(pools)
        else:
            for number, pool in zip(numbers, wanted, strict=True):
                out[number] = first.activation_operator.function(pools[pool])


def raw_features(x: Tensor, weight: Tensor, bias: Tensor, operator_set: OperatorSet) -> Tensor:
    """f(rho(psi(x, weight)) + bias) for inputs (D, n): (d, n)."""
    from ...engine import reference
    from ...engine.cuda import pools as cuda

    if operator_set.codes is None:
        with torch.no_grad():
            return reference.features(x.T, weight, bias, operator_set).T
    nodal, pool, _ = operator_set.codes
    pooled = cuda.pooled(nodal, pool, x[None], weight[None])[0]
    return operator_set.activation_operator.function(pooled.add_(bias[:, None]))


@torch.no_grad()
def block_outputs(block: DeviceBlock, x: Tensor) -> Tensor:
    """What a block on the device hands on for inputs (D, n): (d, n)."""
    if block.normalization == "unit":
        pooled = raw_features(x, block.weight, block.bias, replace(block.operator_set, activation="identity"))
        return block.operator_set.activation_operator.function(tensor_unit_rows(pooled.T).T)
    raw = raw_features(x, block.weight, block.bias, block.operator_set)
    if block.factor is None or block.offset is None:
        return raw
    return torch.addcmul(block.offset[:, None], raw, block.factor[:, None])
