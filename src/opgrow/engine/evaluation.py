"""Statistics of a candidate's features over rows, and its score: sums over rows in double precision."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .arrays import check, pointer, room
from .functions import INTEGER, POINTER, Functions
from .sums import CRITERIA, code_of
from .training import _TRAINING, Rows, Settings, Shape, _Training, structure

__all__ = ["Evaluation", "EvaluationFunctions"]


@dataclass(frozen=True)
class Evaluation:
    """A candidate with its parameters and some rows, prepared for many calls; nothing of them is copied.

    It is of use while the rows exist, and does not keep them in memory.
    """

    shape: Shape
    settings: Settings
    theta: np.ndarray
    c_training: _Training
    scratch: np.ndarray


class EvaluationFunctions(Functions):
    """What decides between candidates."""

    def evaluation(self, shape: Shape, rows: Rows, settings: Settings, theta: np.ndarray) -> Evaluation:
        """Prepare calls for a candidate on some rows; its parameters must stay where they are."""
        check("theta", theta, (shape.n_parameters,))
        c_training = structure(shape, rows, settings, 0)
        size = self._bind("evaluation_room", (_TRAINING,), INTEGER)(c_training)
        return Evaluation(shape, settings, theta, c_training, room(size))

    def feature_sums(self, candidate: Evaluation, moments: np.ndarray, layer: int) -> np.ndarray:
        """Weighted sums (2, width) of a layer's features before its norm, and of their squares.

        ``moments`` (2, neurons of all layers): means and variances that layers below are normalised with.
        """
        check("moments", moments, (2, candidate.shape.n_neurons))
        sums = np.empty((2, int(candidate.shape.widths[layer])))
        call = self._bind("feature_sums", (_TRAINING, POINTER, POINTER, INTEGER, POINTER, POINTER))
        theta, scratch = pointer(candidate.theta), pointer(candidate.scratch)
        call(candidate.c_training, theta, pointer(moments), layer, pointer(sums), scratch)
        return sums

    def score_sums(self, candidate: Evaluation, moments: np.ndarray, criterion: str) -> np.ndarray:
        """Sums (4,) over rows: weighted criterion, weighted loss, weight, rows without finite outputs."""
        check("moments", moments, (2, candidate.shape.n_neurons))
        sums = np.empty(4)
        call = self._bind("score_sums", (_TRAINING, POINTER, POINTER, INTEGER, POINTER, POINTER))
        code, scratch = code_of("criterion", criterion, CRITERIA), pointer(candidate.scratch)
        theta = pointer(candidate.theta)
        call(candidate.c_training, theta, pointer(moments), code, pointer(sums), scratch)
        return sums
