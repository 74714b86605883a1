"""Networks with arbitrary values, and what torch says of them, for several test files."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.base import is_classifier

from opgrow import Network
from opgrow.network import Linear
from opgrow.network.tensors import from_tensors, to_tensors


def randomized(network: Network, seed: int = 0, *, constants: bool = True) -> Network:
    """The network with arbitrary parameters and statistics, and constants too, as after training."""
    rng = np.random.default_rng(seed)
    tensors = to_tensors(network)
    for name, array in tensors.items():
        if array.dtype.kind == "f" and (constants or name.startswith(("layers", "head"))):
            tensors[name] = rng.uniform(-1, 1, array.shape)
            if name.endswith(("running_var", "input_scale", "output_scale")):
                tensors[name] = np.abs(tensors[name]) + 0.5
    from_tensors(network, tensors)
    return network


def limited(network: Network, x: np.ndarray) -> Network:
    """The network with limits that cut off the least and the largest features of rows, a fifth each."""
    network.head_low, network.head_high = np.quantile(network.features(x), (0.2, 0.8), axis=0).astype("f4")
    return network


def in_double_with_limits(network: Network, x: np.ndarray) -> np.ndarray:
    """Outputs of a linear head in double precision, with the limits of features and outputs by numpy."""
    assert network.head_low is not None
    shown = network.copy()
    shown.n_outputs, shown.head = network.head_width, Linear(network.head_width, network.head_width)
    shown.head.weight[:] = np.eye(network.head_width)
    for name in ("head_low", "head_high", "output_mean", "output_scale", "output_low", "output_high"):
        setattr(shown, name, None)
    read = in_double(shown, x).clip(network.head_low, network.head_high)
    out = read @ network.head.weight.astype(np.float64) + network.head.bias
    if network.output_scale is not None:
        out = out * network.output_scale + network.output_mean
    return out if network.output_low is None else out.clip(network.output_low, network.output_high)


def in_double(network: Network, x: np.ndarray) -> np.ndarray:
    """Outputs by torch in double precision."""
    with torch.no_grad():
        return network.to_torch().double()(torch.from_numpy(np.asarray(x, np.float64))).numpy()


def outputs_of(estimator: Any, x: Any) -> np.ndarray:
    """What speaks for each class, or the predicted values, of rows as users give them."""
    return estimator.decision_function(x) if is_classifier(estimator) else estimator.predict(x)


def are_same(first: Any, second: Any) -> bool:
    """Whether two networks are the same to the last bit."""
    return first.digest() == second.digest() and repr(first) == repr(second)


def as_modules(layers: Any, head: Any) -> tuple[Any, Any]:
    """Layers and a head, which may see further features, as torch modules."""
    network = Network(layers[0].blocks[0].n_inputs, head.weight.shape[1], layers)
    network.head = head
    module = network.to_torch()
    return module.layers, module.head


def with_random_parameters(layers: Any, head: Any, seed: int) -> tuple[Any, Any]:
    """Layers and a head with parameters between -1 and 1."""
    generator = torch.Generator().manual_seed(seed)

    def drawn(array: np.ndarray) -> np.ndarray:
        return (torch.rand(array.shape, generator=generator) * 2 - 1).numpy()

    for block in (block for layer in layers for block in layer):
        block.weight[:], block.bias[:] = drawn(block.weight), drawn(block.bias)
        block.norm.scale[:], block.norm.shift[:] = drawn(block.norm.scale), drawn(block.norm.shift)
    if isinstance(head, Linear):
        head.weight[:], head.bias[:] = drawn(head.weight.T).T, drawn(head.bias)
    else:
        head.weight[:], head.bias[:] = drawn(head.weight), drawn(head.bias)
    return layers, head
