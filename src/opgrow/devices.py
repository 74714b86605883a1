"""Which device a fit runs on, from what the user asks for and what there is."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from .backends import Backend

__all__ = ["check_device", "choose_backend", "choose_device", "prediction_device"]

#: Input values below which "auto" stays on the CPU: starting on a GPU, and its small steps, cost more than
#: they bring.
AUTO_VALUES = 1 << 20


def check_device(device: Any) -> None:
    """Complain unless ``device`` is "auto", "cpu", "cuda" or "cuda:N", and is there."""
    known = isinstance(device, str) and (
        device in ("auto", "cpu", "cuda") or (device.startswith("cuda:") and device[5:].isdecimal())
    )
    if not known:
        raise ValueError(f"device must be one of 'auto', 'cpu', 'cuda' or 'cuda:N', got {device!r}")
    if device in ("auto", "cpu"):
        return
    if not torch.cuda.is_available():
        raise ValueError(
            f"device={device!r} needs a GPU that torch can use, and torch {torch.__version__} sees none "
            "here: use device='auto' or 'cpu'"
        )
    if find_spec("triton") is None:
        raise ValueError(f"device={device!r} needs the package triton: pip install 'opgrow[gpu]'")
    if ":" in device and int(device[5:]) >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        raise ValueError(f"device={device!r} is not there: torch sees {count} GPUs, from 0 on")


def choose_device(device: str, n_values: int | None = None) -> torch.device:
    """The device for so many input values; "auto" takes a GPU where there is one and the data is large.

    Without a number of values it is taken to be large.
    """
    check_device(device)
    if device == "auto":
        large = n_values is None or n_values >= AUTO_VALUES
        usable = large and torch.cuda.is_available() and find_spec("triton") is not None
        return torch.device("cuda" if usable else "cpu")
    return torch.device(device)


def prediction_device(device: str, n_values: int) -> torch.device:
    """Like `choose_device`, but the CPU where the GPU that a network was grown on is not there."""
    try:
        return choose_device(device, n_values)
    except ValueError:
        return torch.device("cpu")


def choose_backend(device: str, n_values: int, n_threads: int) -> Backend:
    """The backend that grows a network from so many input values."""
    chosen = choose_device(device, n_values)
    if chosen.type == "cpu":
        from .backends import HostBackend

        return HostBackend(n_threads)
    from .gpu.backend import DeviceBackend

    return DeviceBackend(chosen)
