"""Turning outputs into probabilities, and choosing how confident logits should be."""

from __future__ import annotations

import ctypes

import numpy as np

from .arrays import check, pointer, room
from .functions import INTEGER, POINTER, Functions

__all__ = ["CalibrationFunctions"]


class CalibrationFunctions(Functions):
    """What outputs of a classifier say."""

    def probabilities(self, outputs: np.ndarray, logits: bool) -> np.ndarray:
        """Probabilities (N, C) of outputs (N, C): a softmax of logits, or shares of the positive outputs.

        Of a row without any positive output, a softmax is taken too.
        """
        check("outputs", outputs, (None, None), np.float64)
        out = np.empty_like(outputs)
        call = self._bind("probabilities", (INTEGER, POINTER, INTEGER, INTEGER, POINTER))
        call(int(logits), pointer(outputs), *outputs.shape, pointer(out))
        return out

    def temperature(self, outputs: np.ndarray, target: np.ndarray, weight: np.ndarray) -> float:
        """The factor, within e^-4 and e^4, for outputs (N, C) that makes their cross-entropy least."""
        check("outputs", outputs, (None, None))
        check("target", target, outputs.shape)
        check("weight", weight, (len(outputs),))
        scratch = room(self._bind("temperature_room", (INTEGER, INTEGER), INTEGER)(*outputs.shape))
        call = self._bind(
            "temperature", (POINTER, POINTER, POINTER, INTEGER, INTEGER, POINTER), ctypes.c_double
        )
        arrays = (pointer(array) for array in (outputs, target, weight))
        return float(call(*arrays, *outputs.shape, pointer(scratch)))
