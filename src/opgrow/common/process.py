"""What fits on a GPU share with the process they run in: the precision of torch."""

from __future__ import annotations

from .shared_change import SharedChange, Undo

__all__ = ["full_single_precision"]


def _set_precision() -> Undo:
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    return lambda: torch.set_float32_matmul_precision(before)


#: Products in full single precision, whatever the process has set for its own.
full_single_precision = SharedChange(_set_precision)
