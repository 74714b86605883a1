"""How much of the device's memory a piece of work may take, and what happens when that was too much."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

import torch

__all__ = ["SUMMED_ROWS", "Budget", "free_bytes", "indexed", "shrinking", "stays"]

Result = TypeVar("Result")

_log = logging.getLogger(__name__)
#: Share of the free memory that inputs, targets and features of accepted blocks may take for good.
RESIDENT_SHARE = 0.5
#: What a device without a fixed memory of its own, the CPU of the tests, may take.
_HOST_BYTES = 1 << 28
#: Rows of which single-precision products are summed before they are added in double precision.
SUMMED_ROWS = 8192


def free_bytes(device: torch.device) -> int:
    """Bytes that can still be allocated, those included which torch holds but does not use."""
    if device.type != "cuda":
        return _HOST_BYTES
    device = indexed(device)
    free, total = torch.cuda.mem_get_info(device)
    fraction = torch.cuda.get_per_process_memory_fraction(device)
    # memory_reserved and memory_allocated flatten all statistics first, which takes most of a millisecond.
    statistics = torch.cuda.memory_stats_as_nested_dict(device)
    reserved, allocated = (
        statistics[f"{kind}_bytes"]["all"]["current"] for kind in ("reserved", "allocated")
    )
    idle = reserved - allocated
    return max(0, min(free, int(fraction * total) - reserved)) + idle


def indexed(device: torch.device) -> torch.device:
    """The device with its number: "cuda" alone is the current one."""
    return torch.device("cuda", torch.cuda.current_device()) if str(device) == "cuda" else device


class Budget:
    """Bytes for temporary tensors: a share of what is free, less after the device has run out of memory."""

    def __init__(self, device: torch.device, share: float = 0.4) -> None:
        self.device, self.share = device, share

    def rows(self, n_rows: int, bytes_per_row: int, most: int = 1 << 20) -> int:
        """How many rows to take at once: chunks of nearly equal size.

        Large ones are multiples of the rows whose sums are added in one go, so that what is summed does
        not depend on how much memory was free; smaller ones are whole tiles of the kernels.
        """
        fit = int(self.share * free_bytes(self.device) / max(bytes_per_row, 1))
        fit = max(1, min(fit, most))
        if fit >= n_rows:
            return n_rows
        tile = next((tile for tile in (SUMMED_ROWS, 128) if fit >= tile), 1)
        n_chunks = -(-n_rows // (fit // tile * tile))
        return -(-n_rows // (n_chunks * tile)) * tile

    def shrink(self) -> bool:
        """Take half as much from now on; False if there is nothing left to give up."""
        if self.share < 1e-4:
            return False
        self.share /= 2
        return True


def shrinking(budget: Budget, work: Callable[[], Result], what: str) -> Result:
    """Do work that sizes its chunks by the budget; once more with smaller ones if the memory runs out."""
    while True:
        try:
            return work()
        except torch.cuda.OutOfMemoryError:
            reason = None if budget.shrink() else "even the smallest chunk of rows is too large"
        # Outside of the handler, so that the failed work's tensors are gone.
        if budget.device.type == "cuda":
            torch.cuda.empty_cache()
        if reason is not None:
            raise MemoryError(
                f"the GPU ran out of memory in {what}: {reason}; free some, ask for less at once (operators, "
                "n_min, n_step, batch_size), or use device='cpu'"
            )
        _log.info("out of memory on the device in %s: going on with half as many rows at once", what)


def stays(n_bytes: int, device: torch.device) -> bool:
    """Whether inputs, targets or features of so many bytes may stay on the device."""
    return n_bytes <= RESIDENT_SHARE * free_bytes(device)
