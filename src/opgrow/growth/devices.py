"""Which device a fit runs on, from what the user asks for and what there is."""

from __future__ import annotations

from typing import Any

from ..common.extras import has, needs, require_torch
from .engine import Engine, NativeEngine

__all__ = ["check_device", "choose_device", "choose_engine", "prediction_device"]

#: Input values below which "auto" stays on the CPU: starting on a GPU, and its small steps, cost more than
#: they bring.
AUTO_VALUES = 1 << 20


def check_device(device: Any) -> None:
    """Complain unless ``device`` is "auto", "cpu", "cuda" or "cuda:N", and is there."""
    is_valid = isinstance(device, str) and (
        device in ("auto", "cpu", "cuda") or (device.startswith("cuda:") and device[5:].isdecimal())
    )
    if not is_valid:
        raise ValueError(f"device must be one of 'auto', 'cpu', 'cuda' or 'cuda:N', got {device!r}")
    if device in ("auto", "cpu"):
        return
    if not has("torch"):
        raise ValueError(needs(f"device={device!r}", "torch", "gpu"))
    torch = require_torch(f"device={device!r}")
    if not torch.cuda.is_available():
        raise ValueError(
            f"device={device!r} needs a GPU that torch can use, and torch {torch.__version__} sees none "
            "here: use device='auto' or 'cpu'"
        )
    if not has("triton"):
        raise ValueError(needs(f"device={device!r}", "the package triton", "gpu"))
    if ":" in device and int(device[5:]) >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        raise ValueError(f"device={device!r} is not there: torch sees {count} GPUs, from 0 on")


def choose_device(device: str, n_values: int | None = None) -> str:
    """The device for so many input values; "auto" takes a GPU where there is one and the data is large.

    Without a number of values it is taken to be large.
    """
    check_device(device)
    if device == "auto":
        large = n_values is None or n_values >= AUTO_VALUES
        return "cuda" if large and _has_gpu() else "cpu"
    return device


def _has_gpu() -> bool:
    return has("torch") and has("triton") and require_torch("a GPU").cuda.is_available()


def prediction_device(device: str, n_values: int) -> str:
    """Like `choose_device`, but the CPU where the GPU that a network was grown on is not there."""
    try:
        return choose_device(device, n_values)
    except ValueError:
        return "cpu"


def choose_engine(device: str, n_values: int, n_threads: int) -> Engine:
    """The engine that grows a network from so many input values."""
    chosen = choose_device(device, n_values)
    if chosen == "cpu":
        return NativeEngine(n_threads)
    from torch import device as torch_device

    from .cuda_engine import CudaEngine

    return CudaEngine(torch_device(chosen))
