"""Backbones that are modules of torch: their features, and the module of a backbone and its head."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...network.modules import NetworkModule
from ...rows.preparation import as_array

__all__ = ["HeadModule", "evaluating", "module_features", "place_of"]


class HeadModule(nn.Module):
    """A backbone followed by the network that has grown on its features.

    Attributes
    ----------
    backbone : nn.Module
    network : NetworkModule, which standardises the features as the estimator does
    """

    def __init__(self, backbone: nn.Module, network: NetworkModule) -> None:
        super().__init__()
        self.backbone, self.network = backbone, network

    def forward(self, x: Tensor) -> Tensor:
        features = self.backbone(x)
        features = features.flatten(1) if features.ndim > 1 else features[:, None]
        if features.dtype in (torch.float16, torch.bfloat16):
            features = features.float()
        outputs: Tensor = self.network(features)
        return outputs


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """A module and all its parts in evaluation mode; afterwards each part has the mode that it had."""
    modes = {part: part.training for part in module.modules()}
    module.eval()
    try:
        yield
    finally:
        for part, training in modes.items():
            part.training = training


def module_features(module: nn.Module, rows: Any) -> np.ndarray:
    """What a module gives for a batch, without gradients, on the device and in the type of its weights."""
    device, dtype = place_of(module)
    x = _tensor(rows)
    x = x.to(device, dtype if x.is_floating_point() else x.dtype)
    try:
        with torch.no_grad():
            features = module(x)
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:
        raise ValueError(
            f"the backbone fails on rows of shape {tuple(x.shape)} and type {x.dtype}: "
            f"{str(error).splitlines()[0]}"
        ) from error
    if not isinstance(features, Tensor):
        raise ValueError(
            f"the backbone has to return one tensor of features, and returns {type(features).__name__}: "
            "wrap it in a module that chooses one"
        )
    array: np.ndarray = as_array(features)
    return array


def _tensor(rows: Any) -> Tensor:
    if isinstance(rows, Tensor):
        return rows
    array = np.asarray(rows)
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"a torch module takes tensors and arrays of numbers, got {type(rows).__name__} of {array.dtype}"
        )
    return torch.as_tensor(array)


def place_of(module: nn.Module) -> tuple[torch.device, torch.dtype]:
    """Where the weights of a module are, and their type."""
    for tensor in chain(module.parameters(), module.buffers()):
        if tensor.is_floating_point():
            return tensor.device, tensor.dtype
    return torch.device("cpu"), torch.get_default_dtype()
