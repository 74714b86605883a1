"""From what users pass to what growth needs: arrays, weights, splits and standardisation.

Everything here works chunk by chunk in float64 and hands over float32, so a memory map is read but never
copied as a whole in double precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

__all__ = [
    "as_array",
    "moments",
    "one_hot",
    "scale_of",
    "split_rows",
    "standardized",
]

_CHUNK_ELEMENTS = 1 << 22


def as_array(data: Any) -> Any:
    """Torch tensors as numpy arrays; everything else unchanged."""
    if isinstance(data, torch.Tensor):
        data = data.detach().cpu()
        return (data.float() if data.dtype == torch.bfloat16 else data).numpy()
    return data


def _chunks(x: np.ndarray) -> Iterator[slice]:
    size = max(1, _CHUNK_ELEMENTS // max(1, x.shape[1]))
    for start in range(0, len(x), size):
        yield slice(start, start + size)


def moments(x: np.ndarray, weight: np.ndarray, what: str = "X") -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and scale of each column; the scale of a constant column is 1.

    They are summed in the same order whatever the layout of ``x``, so that it does not matter for rounding.
    """
    total = weight.sum(dtype=np.float64)
    mean = np.zeros(x.shape[1])
    for rows in _chunks(x):
        with np.errstate(over="ignore", invalid="ignore"):
            mean += weight[rows] @ x[rows].astype(np.float64, order="C") / total
    variance = np.zeros(x.shape[1])
    for rows in _chunks(x):
        with np.errstate(over="ignore", invalid="ignore"):
            variance += weight[rows] @ np.square(x[rows].astype(np.float64, order="C") - mean) / total
    return mean, scale_of(mean, variance, float(total), what)


def scale_of(mean: np.ndarray, variance: np.ndarray, total: float, what: str = "X") -> np.ndarray:
    """The scale of each column from its moments over rows of ``total`` weight; 1 for a constant column."""
    if not (np.isfinite(mean).all() and np.isfinite(variance).all()):
        column = int(np.flatnonzero(~np.isfinite(variance))[0])
        raise ValueError(
            f"the values of {what} are too large: the variance of column {column} overflows; rescale it"
        )
    # A constant column has a variance of rounding errors (the bound is scikit-learn's).
    epsilon = np.finfo(np.float64).eps
    noise = total * epsilon * variance + (total * mean * epsilon) ** 2
    scale = np.sqrt(variance)
    scale[(variance <= noise) | (scale == 0)] = 1.0
    return scale


def standardized(x: np.ndarray, mean: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """(x - mean) / scale as a new float32 array."""
    out = np.empty(x.shape, np.float32)
    for rows in _chunks(x):
        with np.errstate(over="ignore"):  # the growth refuses what does not fit into single precision
            out[rows] = (x[rows].astype(np.float64) - mean) / scale
    return out


def one_hot(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Class codes as rows of a float32 identity matrix."""
    target = np.zeros((len(codes), n_classes), np.float32)
    target[np.arange(len(codes)), codes] = 1.0
    return target


def split_rows(
    n_rows: int, fraction: float, codes: np.ndarray | None, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Rows for training and for validation, stratified by class codes where they are given.

    Every class keeps at least one training row. Both arrays are sorted, so training data keeps its order.
    """
    strata = [np.arange(n_rows)] if codes is None else [np.flatnonzero(codes == c) for c in np.unique(codes)]
    held: list[np.ndarray] = []
    owed = 0.0
    for rows in strata:
        # What rounding withheld from one class is owed to the next, so that small classes count too.
        owed += fraction * len(rows)
        count = min(int(owed + 0.5), len(rows) - 1)
        owed -= count
        held.append(rng.permutation(rows)[:count])
    validates = np.zeros(n_rows, bool)
    validates[np.concatenate(held)] = True
    return np.flatnonzero(~validates), np.flatnonzero(validates)
