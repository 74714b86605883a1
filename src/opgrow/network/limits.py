"""Limits of the features that a linear head reads, from what it has read of training rows.

Products of neighbours and exponentials grow without bound. Where the inputs of a row are unremarkable one by
one but never went together in training, features can come to hundreds of standard deviations, and one of
them decides the prediction. A head has learned nothing from such features, so it reads none far beyond what
training rows had.
"""

from __future__ import annotations

import numpy as np

from .blocks import Linear
from .network import Network

__all__ = ["head_limits"]

#: Part of the range that a feature has in training by which others may leave it, on either side.
_MARGIN = 1.0
_LARGEST = float(np.finfo(np.float32).max)


def head_limits(network: Network, x: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The least and the largest value of each feature that the head is to read, by rows (n, n_inputs).

    None for a head of neurons, which computes with what it reads as any block, and for broad networks and
    those without layers, whose head sees bounded inputs or linear features of these.
    """
    if not isinstance(network.head, Linear) or network.broad or not network.layers or not len(x):
        return None
    features = network.features(x).astype(np.float64)
    known = np.isfinite(features)
    low = np.where(known, features, np.inf).min(axis=0)
    high = np.where(known, features, -np.inf).max(axis=0)
    margin = np.where(known.any(axis=0), _MARGIN * (high - low), np.inf)
    low = np.where(known.any(axis=0), low, -np.inf) - margin
    high = np.where(known.any(axis=0), high, np.inf) + margin
    return low.clip(-_LARGEST).astype(np.float32), high.clip(None, _LARGEST).astype(np.float32)
