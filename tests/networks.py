"""Networks with arbitrary values, and what torch says of them, for several test files."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from opgrow import Network
from opgrow.network.tensors import from_tensors, to_tensors


def randomized(network: Network, seed: int = 0) -> Network:
    """The network with arbitrary parameters and statistics, as after training."""
    rng = np.random.default_rng(seed)
    tensors = to_tensors(network)
    for name, array in tensors.items():
        if array.dtype.kind == "f":
            tensors[name] = rng.uniform(-1, 1, array.shape)
            if name.endswith(("running_var", "input_scale", "output_scale")):
                tensors[name] = np.abs(tensors[name]) + 0.5
    from_tensors(network, tensors)
    return network


def in_double(network: Network, x: np.ndarray) -> np.ndarray:
    """Outputs by torch in double precision."""
    with torch.no_grad():
        return network.to_torch().double()(torch.from_numpy(np.asarray(x, np.float64))).numpy()


def are_same(first: Any, second: Any) -> bool:
    """Whether two networks are the same to the last bit."""
    return first.digest() == second.digest() and repr(first) == repr(second)
