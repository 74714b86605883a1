"""The outputs of a network, computed where an estimator computes."""

from __future__ import annotations

import numpy as np

from ..growth.devices import prediction_device
from ..network import Network

__all__ = ["network_outputs"]


def network_outputs(network: Network, x: np.ndarray, device: str) -> np.ndarray:
    """Outputs of a network, on the device that the parameter ``device`` names if it is there."""
    chosen = prediction_device(device, x.size)
    if chosen == "cpu":
        return network.outputs(x)
    from ..network.torch import outputs_on

    return outputs_on(network, x, chosen)
