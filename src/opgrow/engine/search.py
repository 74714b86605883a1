"""Scores of solved candidates of the search that need predictions for every row."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arrays import check, pointer, room
from .functions import INTEGER, POINTER, Functions

__all__ = ["SearchFunctions", "SolvedCandidates"]


@dataclass(frozen=True)
class SolvedCandidates:
    """k candidates of m neurons beside p accepted features, solved for C targets.

    Arrays are contiguous ones of numpy here; a device uses the same with tensors.

    Attributes
    ----------
    centre, factor : (k, m) float32, (h - centre) * factor is standardised
    projection : (p, k, m) float32, what the accepted features explain of the new ones
    whiten : (k, m, m) float32, lower triangular: what makes the rest uncorrelated
    reduced : (k, m, C) float32, the slope of the targets along the uncorrelated features
    accepted_mean, target_mean : (p,) and (C,) float32
    head : (p, C) float32, the solution with the accepted features alone
    base_whiten : (p, p) float64, the inverse Cholesky factor of the accepted features' problem
    total_weight : sum of the weights of all rows
    """

    centre: Any
    factor: Any
    projection: Any
    whiten: Any
    reduced: Any
    accepted_mean: Any
    target_mean: Any
    head: Any
    base_whiten: Any
    total_weight: float


class _Solutions(ctypes.Structure):
    _fields_ = [
        *(
            (name, POINTER)
            for name in ("h", "accepted", "target", "weight", "centre", "factor", "projection")
        ),
        *((name, POINTER) for name in ("whiten", "reduced", "accepted_mean", "target_mean", "head")),
        ("base_whiten", POINTER),
        *((name, INTEGER) for name in ("n_candidates", "n_neurons", "n_rows", "n_accepted", "n_targets")),
        ("total_weight", ctypes.c_double),
    ]


class SearchFunctions(Functions):
    """Candidates of the search."""

    def search_scores(
        self,
        solved: SolvedCandidates,
        h: np.ndarray,
        accepted: np.ndarray,
        target: np.ndarray,
        weight: np.ndarray,
        leave_one_out: bool,
    ) -> np.ndarray:
        """Scores summed over rows (k,): negative weighted squared errors, or the weight of right answers.

        ``h`` (k, m, n) are raw features, ``accepted`` (n, p), ``target`` (n, C) and ``weight`` (n,).
        """
        check("h", h, (None, None, None))
        (k, m, n), p, c = h.shape, accepted.shape[-1], target.shape[-1]
        data = (
            check("accepted", accepted, (n, p)),
            check("target", target, (n, c)),
            check("weight", weight, (n,)),
        )
        shapes = {
            "centre": (k, m),
            "factor": (k, m),
            "projection": (p, k, m),
            "whiten": (k, m, m),
            "reduced": (k, m, c),
            "accepted_mean": (p,),
            "target_mean": (c,),
            "head": (p, c),
        }
        arrays = [check(name, getattr(solved, name), shape) for name, shape in shapes.items()]
        base = check("base_whiten", solved.base_whiten, (p, p), np.float64) if leave_one_out else None
        places = (pointer(array) for array in (h, *data, *arrays, base))
        solutions = ctypes.byref(_Solutions(*places, k, m, n, p, c, solved.total_weight))
        out = np.empty(k)
        scratch = room(self._bind("search_scores_room", (POINTER,), INTEGER)(solutions))
        self._bind("search_scores", (POINTER,) * 3)(solutions, pointer(out), pointer(scratch))
        return out
