"""Streams beside the current one, the same ones for all the work of a thread.

Torch keeps tens of megabytes of cuBLAS workspace for every stream that has seen a matrix product, for as
long as the process lives: new streams for every model would fill the device.
"""

from __future__ import annotations

import threading

import torch

__all__ = ["recording_stream", "side_streams"]

_N_SIDE_STREAMS = 8


class _Streams(threading.local):
    def __init__(self) -> None:
        self.by_device: dict[torch.device, list[torch.cuda.Stream]] = {}


_streams = _Streams()


def _all_of(device: torch.device) -> list[torch.cuda.Stream]:
    if device not in _streams.by_device:
        _streams.by_device[device] = [torch.cuda.Stream(device) for _ in range(1 + _N_SIDE_STREAMS)]
    return _streams.by_device[device]


def recording_stream(device: torch.device) -> torch.cuda.Stream:
    """The stream on which graphs are recorded."""
    return _all_of(device)[0]


def side_streams(device: torch.device) -> list[torch.cuda.Stream]:
    """Streams for launches that do not depend on each other."""
    return _all_of(device)[1:]
