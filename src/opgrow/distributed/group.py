"""All communication between ranks goes through one small wrapper, which counts it.

The ranks get a process group of their own: its timeout is ours, and leaving it after an error ends the wait
of the others at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from ..engine.shards import pairwise_sum
from .shared_memory import MemoryLine, create_file, possible

__all__ = ["Group", "LostRank"]


class LostRank(ConnectionError):
    """Another rank has ended, or cannot be reached any more."""


class Group:
    """The ranks of a fit.

    Attributes
    ----------
    rank, size : int
    traffic : dict from purpose to [calls, bytes]; the bytes are those that this rank hands over in each call
    """

    def __init__(self, timeout: float) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.traffic: dict[str, list[int]] = {}
        mixed = "nccl" in dist.get_backend()
        self._line: MemoryLine | None = None
        self._group: Any = dist.new_group(
            backend="cpu:gloo,cuda:nccl" if mixed else "gloo", timeout=timedelta(seconds=timeout)
        )
        self._line = self._open_line(timeout)

    def _open_line(self, timeout: float) -> MemoryLine | None:
        """Shared memory, if all ranks are on this machine and find it."""
        name = create_file(self.size) if self.rank == 0 and self.size > 1 and possible() else None
        shared_name = self.content(None if name is None else name.encode(), "sizes")
        if shared_name is None:
            return None
        processes = self.numbers(os.getpid(), "sizes")
        line, sees = None, False
        with suppress(OSError):
            line = MemoryLine(shared_name.decode(), self.rank, self.size, timeout)
            line.watch([process for rank, process in enumerate(processes) if rank != self.rank])
            sees = True
        everywhere = all(self.numbers(sees, "sizes"))
        if name is not None:
            os.unlink(name)  # those who have it open keep it
        if line is not None and not everywhere:
            line.leave()
        return line if everywhere else None

    def close(self) -> None:
        """Leave; ranks that still wait for this one stop waiting."""
        if self._line is not None:
            self._line.leave()
        group, self._group, self._line = self._group, None, None
        with suppress(Exception):  # the connections may be broken already, and that is what has been reported
            dist.destroy_process_group(group)

    def sum_(self, tensor: Tensor, purpose: str) -> Tensor:
        """Add up a tensor over ranks, in place."""
        with self._sending(purpose, tensor):
            if not self._in_memory(tensor, pairwise_sum):
                dist.all_reduce(tensor, group=self._group)
        return tensor

    def sum(self, values: Any, purpose: str) -> Any:
        """The sum over ranks of an array, or of a number, as a new one in float64."""
        total = np.array(values, np.float64)
        self.sum_(torch.from_numpy(total.reshape(-1)), purpose)
        return total if total.ndim else float(total)

    def largest(self, values: Any, purpose: str) -> Any:
        """The largest over ranks of each value of an array, or of a number, in float64."""
        most = np.array(values, np.float64)
        tensor = torch.from_numpy(most.reshape(-1))
        with self._sending(purpose, tensor):
            if not self._in_memory(tensor, lambda parts: parts.max(axis=0)):
                dist.all_reduce(tensor, dist.ReduceOp.MAX, group=self._group)
        return most if most.ndim else float(most)

    def broadcast_(self, tensor: Tensor, purpose: str) -> Tensor:
        """Replace a tensor by that of rank 0, in place."""
        with self._sending(purpose, tensor):
            if not self._in_memory(tensor, lambda parts: parts[0]):
                dist.broadcast(tensor, group=self._group, group_src=0)
        return tensor

    def _in_memory(self, tensor: Tensor, function: Callable[[np.ndarray], np.ndarray]) -> bool:
        """Replace a tensor by a function of all ranks' values (ranks, values), if they share memory."""
        if self._line is None or tensor.device.type != "cpu" or not tensor.is_contiguous():
            return False
        values = tensor.detach().numpy().reshape(-1)
        done = 0
        for parts in self._line.exchange(values.view(np.uint8)):
            combined = function(parts.view(values.dtype))
            values[done : done + len(combined)] = combined
            done += len(combined)
        return True

    def content(self, content: bytes | None, purpose: str) -> bytes | None:
        """What rank 0 has, if it has something."""
        size = self.broadcast_(torch.tensor([-1 if content is None else len(content)]), purpose)
        if size < 0:
            return None
        room = torch.empty(int(size), dtype=torch.uint8)
        if content is not None and self.rank == 0:
            room[:] = torch.frombuffer(bytearray(content), dtype=torch.uint8)
        return self.broadcast_(room, purpose).numpy().tobytes()

    def numbers(self, number: int, purpose: str) -> list[int]:
        """The number of each rank."""
        return [int(part[0]) for part in self._gather(torch.tensor([number]), purpose)]

    def arrays(self, values: np.ndarray, purpose: str) -> list[np.ndarray]:
        """The array (n, ...) of each rank; lengths may differ, but not types and further dimensions."""
        lengths = self.numbers(len(values), purpose)
        if not any(lengths):
            return [values] * self.size
        padded = np.zeros((max(lengths), *values.shape[1:]), values.dtype)
        padded[: len(values)] = values
        parts = self._gather(torch.from_numpy(padded.reshape(-1).view(np.uint8)), purpose)
        return [
            p.numpy().view(values.dtype).reshape(padded.shape)[:n]
            for p, n in zip(parts, lengths, strict=True)
        ]

    def texts(self, text: str, purpose: str) -> list[str]:
        """The text of each rank."""
        encoded = self.arrays(np.frombuffer(text.encode(), np.uint8), purpose)
        return [part.tobytes().decode() for part in encoded]

    def _gather(self, tensor: Tensor, purpose: str) -> list[Tensor]:
        parts = [torch.empty_like(tensor) for _ in range(self.size)]
        with self._sending(purpose, tensor):
            if self._line is None:
                dist.all_gather(parts, tensor, group=self._group)
                return parts
            pieces = [piece.copy() for piece in self._line.exchange(tensor.numpy().view(np.uint8))]
            for part, values in zip(parts, np.concatenate(pieces, axis=1), strict=True):
                part.copy_(torch.from_numpy(values.view(tensor.numpy().dtype)))
        return parts

    @contextmanager
    def _sending(self, purpose: str, tensor: Tensor) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            raise LostRank(
                f"rank {self.rank} of {self.size} has lost another rank while it shared {purpose}: that one "
                "has ended, which its own output explains, or cannot be reached any more; the job ends here"
            ) from error
        count = self.traffic.setdefault(purpose, [0, 0])
        count[0] += 1
        count[1] += tensor.nbytes
