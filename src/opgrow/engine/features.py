"""The features of blocks, computed from numpy arrays.

`compiled_features` uses the engine in C or, for operators that users have registered, torch. Features of
torch tensors are in ``differentiable``; ``reference`` is plain torch and handles everything, and ``cuda`` is
Triton for the built-in operators in float32.
"""

from __future__ import annotations

import numpy as np

from ..common.extras import require_torch
from ..common.threads import map_rows
from ..operators import OperatorSet
from .native import native

__all__ = ["CHUNK_ROWS", "compiled_features"]

#: Rows handed to a thread at once.
CHUNK_ROWS = 4096


def compiled_features(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, operator_set: OperatorSet, n_threads: int = 1
) -> np.ndarray:
    """f(rho(psi(x, weight)) + bias) for float32 arrays, (N, D) to (N, d); any operator set."""
    codes = operator_set.codes
    weight, bias = np.ascontiguousarray(weight), np.ascontiguousarray(bias)
    if codes is None:
        return _registered_features(x, weight, bias, operator_set)
    out = np.empty((x.shape[0], weight.shape[1]), np.float32)

    def compute(start: int, stop: int) -> None:
        out[start:stop] = native().features(codes, x[start:stop], weight, bias)

    map_rows(compute, x.shape[0], CHUNK_ROWS, n_threads)
    return out


def _registered_features(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, operator_set: OperatorSet
) -> np.ndarray:
    torch = require_torch(f"The operator set {operator_set}, which is registered by a user,")
    from . import reference

    with torch.no_grad():
        inputs, w, b = (torch.from_numpy(np.ascontiguousarray(a)) for a in (x, weight, bias))
        return reference.features(inputs, w, b, operator_set).numpy()
