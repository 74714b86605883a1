"""Sums over rows, and scores, all added in a fixed order and without BLAS."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from .arrays import check, pointer, room
from .functions import INTEGER, POINTER, Functions

__all__ = ["CRITERIA", "LOSSES", "SumFunctions", "code_of"]

#: In the order of the codes.
LOSSES = ("mse", "cross_entropy")
CRITERIA = ("accuracy", "brier", "loss")


def code_of(what: str, name: str, names: tuple[str, ...]) -> int:
    """The code of a loss or criterion."""
    if name not in names:
        raise ValueError(f"{what} must be one of {names}, got {name!r}")
    return names.index(name)


def _strides(name: str, array: Any) -> tuple[int, int]:
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype != np.float32:
        what = (
            f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
        )
        raise ValueError(f"{name} must be a float32 matrix, got {what}")
    if any(stride % 4 or stride < 0 for stride in array.strides):
        raise ValueError(f"{name} must have strides of whole elements, got {array.strides} bytes")
    return array.strides[0] // 4, array.strides[1] // 4


class _SearchData(ctypes.Structure):
    _fields_ = [
        *((name, POINTER) for name in ("h", "shift", "scale", "weight", "accepted", "target")),
        *((name, INTEGER) for name in ("n_candidates", "n_neurons", "n_rows", "n_accepted", "n_targets")),
    ]


class SumFunctions(Functions):
    """Sums over rows."""

    def gram(self, left: np.ndarray, right: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
        """Sum over rows of weight left' right: (N, p) and (N, q), of any strides, to (p, q) of doubles.

        Products are added in single precision over 128 rows, those sums in double precision.
        """
        strides = *_strides("left", left), *_strides("right", right)
        if len(left) != len(right):
            raise ValueError(f"left has {len(left)} rows, and right {len(right)}")
        if weight is not None:
            check("weight", weight, (len(left),))
        p, q = left.shape[1], right.shape[1]
        out = np.empty((p, q))
        scratch = room(self._bind("gram_room", (INTEGER, INTEGER), INTEGER)(p, q))
        one = POINTER, INTEGER, INTEGER, INTEGER
        call = self._bind("gram", (*one, *one, POINTER, INTEGER, POINTER, POINTER))
        matrices = pointer(left), *strides[:2], p, pointer(right), *strides[2:], q
        call(*matrices, pointer(weight), len(left), pointer(out), pointer(scratch))
        return out

    def search_sums(
        self,
        h: np.ndarray,
        shift: np.ndarray,
        scale: np.ndarray,
        weight: np.ndarray | None,
        accepted: np.ndarray,
        target: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Weighted sums over rows of the features of candidates, standardised by (h - shift) * scale.

        Products are added in single precision over 128 rows, those sums in double precision.

        Parameters
        ----------
        h : (k, m, n), features of k candidates with m neurons for n rows
        shift, scale : (k, m)
        weight : (n,); None stands for ones
        accepted : (n, p)
        target : (n, C)

        Returns
        -------
        total, gram, cross, target : doubles (k, m), (k, m, m), (p, k, m) and (k, m, C)
            sums of features and of their products with each other, with accepted features and with targets
        """
        check("h", h, (None, None, None))
        k, m, n = h.shape
        for name, constants in (("shift", shift), ("scale", scale)):
            check(name, constants, (k, m))
        if weight is not None:
            check("weight", weight, (n,))
        check("accepted", accepted, (n, None))
        check("target", target, (n, None))
        p, outputs = accepted.shape[1], target.shape[1]
        arrays = (pointer(array) for array in (h, shift, scale, weight, accepted, target))
        data = ctypes.byref(_SearchData(*arrays, k, m, n, p, outputs))
        results = np.empty((k, m)), np.empty((k, m, m)), np.empty((p, k, m)), np.empty((k, m, outputs))
        scratch = room(self._bind("search_sums_room", (POINTER,), INTEGER)(data))
        call = self._bind("search_sums", (POINTER,) * 6)
        call(data, *(pointer(array) for array in results), pointer(scratch))
        return results

    def column_sums(
        self,
        x: np.ndarray,
        weight: np.ndarray | None = None,
        centre: np.ndarray | None = None,
        power: int = 1,
    ) -> np.ndarray:
        """Sum over rows of weight (x - centre)^power for each column, in doubles; power is 1 or 2."""
        if power not in (1, 2):
            raise ValueError(f"power must be 1 or 2, got {power!r}")
        check("x", x, (None, None))
        if weight is not None:
            check("weight", weight, (len(x),))
        if centre is not None:
            check("centre", centre, (x.shape[1],), np.float64)
        out = np.empty(x.shape[1])
        call = self._bind(
            "column_sums", (POINTER, INTEGER, INTEGER, INTEGER, POINTER, POINTER, INTEGER, POINTER)
        )
        n_rows, columns = x.shape
        call(pointer(x), columns, n_rows, columns, pointer(weight), pointer(centre), power, pointer(out))
        return out

    def moments(self, x: np.ndarray, weight: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Weighted mean and variance of each column, in double precision."""
        total = float(len(x)) if weight is None else float(self.column_sums(weight[:, None])[0])
        with np.errstate(all="ignore"):  # whoever needs finite moments tells
            mean = self.column_sums(x, weight) / total
            return mean, self.column_sums(x, weight, mean, 2) / total

    def score(
        self,
        criterion: str,
        loss: str,
        outputs: np.ndarray,
        target: np.ndarray,
        weight: np.ndarray | None = None,
    ) -> tuple[float, float]:
        """The criterion, NaN if an output is not finite, and the mean loss of outputs (N, C)."""
        codes = code_of("criterion", criterion, CRITERIA), code_of("loss", loss, LOSSES)
        check("outputs", outputs, (None, None))
        check("target", target, outputs.shape)
        if weight is not None:
            check("weight", weight, (len(outputs),))
        sums = np.zeros(4)
        call = self._bind("scores", (INTEGER, INTEGER, POINTER, POINTER, POINTER, INTEGER, INTEGER, POINTER))
        arrays = (pointer(array) for array in (outputs, target, weight))
        call(*codes, *arrays, *outputs.shape, pointer(sums))
        with np.errstate(all="ignore"):
            value, mean_loss = sums[:2] / sums[2]
        return (float("nan") if sums[3] else float(value)), float(mean_loss)
