"""Rows of the batches of an epoch: in which order they come, and their copies, a window of batches at a time.

Candidates take the same rows in the same order, or each of them rows of its own. One launch gathers a
window: inputs, targets, weights and frozen features of all candidates, with their dropout.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
import triton
from torch import Tensor

from ...engine.cuda import triton_staging
from ...rows.device.rows import Chunk, DeviceRows
from .model import Model

__all__ = ["Staging"]

#: Batches of a window at most, and rows that a program copies.
_WINDOW_STEPS, _ROWS = 16, 512


class Staging:
    """Batches of equal size, a few of them a window: every row takes part once in an epoch, a few twice.

    Parameters
    ----------
    model : candidates, whose numbers of features count
    parts : the rows of all candidates, or those of each
    batch_size : most rows of a batch
    drop : shares of the frozen features that each candidate leaves out
    input_drop : the share of the inputs that all of them leave out

    Attributes
    ----------
    steps, batch : batches of a window, rows of a batch
    x, target, weight : (G, D, window), (G, C, window) and (G, window), with a group for each part
    features : (K, F + d + 1, window) frozen features, room for those of the last layer, and ones
    at : (1,) row of the order at which the window to be staged begins; who stages one moves it on
    """

    def __init__(
        self,
        model: Model,
        parts: Sequence[DeviceRows],
        batch_size: int,
        drop: Sequence[float],
        input_drop: float,
    ) -> None:
        self.parts, self.device = list(parts), parts[0].device
        self._plan(batch_size)
        g, k, window, device = len(parts), model.n_candidates, self.window, self.device
        self.x = torch.empty(g, model.layers[0].n_inputs, window, device=device)
        self.target = torch.empty(g, model.n_outputs, window, device=device)
        self.weight = torch.empty(g, 1, window, device=device)
        # Frozen features, those of the last layer, and ones for the biases of a linear head.
        self.features = torch.ones(k, model.n_features + 1, window, device=device)
        self.order = torch.zeros(g, self._n_ordered(), dtype=torch.int32, device=device)
        self.at = torch.zeros(1, dtype=torch.int64, device=device)
        self.seed = torch.zeros(1, dtype=torch.int64, device=device)
        self._generator = torch.Generator(device)
        self._plan_jobs(model, drop, input_drop)
        self._sources: list[Tensor] = []

    def _plan(self, batch_size: int) -> None:
        """Chunks of the rows, the same number of them for each part, and windows of the largest."""
        sizes = [
            part.n_rows if part.inputs is not None else max(1, part.chunk_rows(0) // len(self.parts))
            for part in self.parts
        ]
        counts = [-(-part.n_rows // size) for part, size in zip(self.parts, sizes, strict=True)]
        self.n_chunks = max(counts)
        self.chunks = [-(-part.n_rows // self.n_chunks) for part in self.parts]
        largest = max(self.chunks)
        n_batches = -(-largest // batch_size)
        n_windows = -(-n_batches // _WINDOW_STEPS)
        self.steps = -(-n_batches // n_windows)
        self.batch = -(-largest // (self.steps * n_windows))
        self.window = self.batch * self.steps

    def _n_ordered(self) -> int:
        return -(-max(self.chunks) // self.window) * self.window

    def _plan_jobs(self, model: Model, drop: Sequence[float], input_drop: float) -> None:
        """What the launch copies: where to, in which order, with which dropout; `_find` says from where."""
        n_frozen, n_inputs = model.n_frozen, self.x.shape[1]
        self._frozen_owners = [k if len(self.parts) > 1 else 0 for k in range(model.n_candidates)]
        fields: list[tuple[Tensor, int, int, float]] = []  # rows, order, number of the first draw, share
        for g in range(len(self.parts)):
            fields += [
                (self.x[g], g, 0, input_drop),
                (self.target[g], g, 0, 0.0),
                (self.weight[g], g, 0, 0.0),
            ]
        for k, owner in enumerate(self._frozen_owners):
            fields.append((self.features[k, :n_frozen], owner, n_inputs, drop[k]))
        blocks = []
        for rows, order, number, _ in fields:
            block = np.zeros((len(rows), triton_staging.N_FIELDS.value), np.int64)
            block[:, 2], block[:, 3] = _addresses(rows), order
            block[:, 4] = number + np.arange(len(rows))
            blocks.append(block)
        self._jobs = np.concatenate(blocks)
        shares = np.repeat([share for *_, share in fields], [len(rows) for rows, *_ in fields])
        self._drops = bool((shares > 0).any())
        self.shares = torch.from_numpy(shares.astype(np.float32)).to(self.device)
        self.jobs = torch.from_numpy(self._jobs).to(self.device)

    def windows(self, seed: int) -> Iterator[None]:
        """Prepare what `stage` gathers for each window of an epoch, all of which follows from the seed."""
        self._generator.manual_seed(seed)
        self.seed.fill_(seed % (1 << 62))
        for counts in self._find_chunks(seed):
            n = max(counts)
            count = max(1, round(n / self.window)) if self.n_chunks > 1 else -(-n // self.window)
            self._shuffle(counts, count * self.window)
            self.at.zero_()
            for _ in range(count):
                yield

    def stage(self) -> None:
        """Launch the copies of the window that begins at ``at``."""
        grid = (len(self.jobs), triton.cdiv(self.window, _ROWS))
        triton_staging.stage_rows[grid](
            self.jobs,
            self.shares,
            self.order,
            self.at,
            self.seed,
            self.order.stride(0),
            self.window,
            DROP=self._drops,
            ROWS=_ROWS,
            num_warps=4,
        )

    def _find_chunks(self, seed: int) -> Iterator[list[int]]:
        """Make chunk after chunk of all parts the source of the copies; how many rows each part has there."""
        are_resident = all(part.inputs is not None and _are_kept(part) for part in self.parts)
        if self._sources and are_resident:
            yield [part.n_rows for part in self.parts]
            return
        order = np.random.default_rng(seed).permutation(self.n_chunks) if self.n_chunks > 1 else None
        passes = [
            part.chunks(size, accepted=not _are_kept(part), order=order)
            for part, size in zip(self.parts, self.chunks, strict=True)
        ]
        for chunks in zip(*passes, strict=True):
            self._find(chunks)
            yield [chunk.n_rows for chunk in chunks]
        if not are_resident:
            self._sources = []

    def _shuffle(self, counts: Sequence[int], n_ordered: int) -> None:
        """Draw the order of each part's rows; those that are fewer come again from the start."""
        for order, n in zip(self.order, counts, strict=True):
            rows = torch.randperm(n, generator=self._generator, dtype=torch.int32, device=self.device)
            order[:n_ordered] = (
                rows[:n_ordered] if n >= n_ordered else rows.repeat(-(-n_ordered // n))[:n_ordered]
            )

    def _find(self, chunks: Sequence[Chunk]) -> None:
        """Note where the rows lie."""
        sources = []
        for chunk in chunks:
            sources += [chunk.x[: self.x.shape[1]], chunk.target, chunk.weight[None]]
        frozen = [_frozen(part, chunk) for part, chunk in zip(self.parts, chunks, strict=True)]
        for owner in self._frozen_owners:
            sources += frozen[owner]
        self._jobs[:, 0] = np.concatenate([_addresses(rows) for rows in sources])
        self._jobs[:, 1] = np.concatenate([np.full(len(rows), rows.stride(1)) for rows in sources])
        self.jobs.copy_(torch.from_numpy(self._jobs))
        self._sources = sources  # which must outlive the launches


def _addresses(rows: Tensor) -> np.ndarray:
    """Of the first value of each row."""
    return rows.data_ptr() + rows.element_size() * rows.stride(0) * np.arange(len(rows), dtype=np.int64)


def _are_kept(part: DeviceRows) -> bool:
    return all(stored is not None for stored in part.stored)


def _frozen(part: DeviceRows, chunk: Chunk) -> list[Tensor]:
    """The features of accepted blocks, where they lie."""
    if _are_kept(part):
        return [stored[:, chunk.span] for stored in part.stored if stored is not None]
    return [chunk.accepted]
