"""The data that a network is grown from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..network.scaling import Scaling

__all__ = ["Problem", "sample_rows"]


def sample_rows(n_outputs: int) -> int:
    """Rows that decide how confident a closed-form head should be."""
    return max(500, min(20_000, 200_000 // n_outputs))


@dataclass(frozen=True)
class Problem:
    """Data to grow from: inputs (N, D), targets (N, outputs), weights (N,) with mean 1; all float32.

    Inputs are scaled, unless ``scaling`` is given: then they are as the user passed them, of any float type,
    and ``rows`` says which of them are meant (None: all).
    """

    x: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    validation: Problem | None = None
    rows: np.ndarray | None = None
    scaling: Scaling | None = None

    @property
    def n_rows(self) -> int:
        return len(self.target)

    @property
    def n_inputs(self) -> int:
        return self.x.shape[1]

    @property
    def n_outputs(self) -> int:
        return self.target.shape[1]
