"""The rows of a problem as they were passed, and how they come to a device.

Inputs that do not fit there stay in the host's memory and come chunk by chunk through pinned memory, a chunk
ahead of the work.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from ...network.scaling import Scaling, squash
from ..preparation import are_extreme, moments, scale_of
from .budget import Budget, shrinking, stays

__all__ = ["STREAM_ROWS", "Source", "device_moments", "spans_of"]

#: Rows that a streamed chunk has at most.
STREAM_ROWS = 1 << 20
#: Copies into pinned memory are spread over threads in pieces of so many rows.
_COPY_ROWS = 1 << 14


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
        if upload and stays(size, device):
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
        most = max(1, min(STREAM_ROWS, (1 << 26) // self.n_inputs))
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
    weights = torch.from_numpy(weight)
    budget = Budget(device)

    def work() -> Tensor:
        sums = torch.zeros(2, n_columns, dtype=torch.float64, device=device)
        for span, values in source.stream(source.stream_rows(budget), exact=True):
            part = weights[span].to(device)
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
