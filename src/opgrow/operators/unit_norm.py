"""Rows divided by their Euclidean norm, as some blocks do before their activation, in numpy and in torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["tensor_unit_rows", "unit_rows"]


def unit_rows(z: np.ndarray) -> np.ndarray:
    """Rows divided by their Euclidean norm; rows of zeros stay."""
    # Dividing by the largest entry first keeps the squares from overflowing or vanishing.
    largest = np.abs(z).max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):  # what is infinite becomes NaN
        z = z / np.where(largest == 0, 1, largest).astype(z.dtype)
    squares = np.square(z).sum(axis=1, keepdims=True)
    return z / np.sqrt(np.where(squares == 0, 1, squares).astype(z.dtype))


def tensor_unit_rows(z: Tensor) -> Tensor:
    """`unit_rows` of a tensor; the gradients of rows of zeros are finite."""
    # The result does not depend on the largest entry, so it takes no part in the gradient.
    largest = z.detach().abs().amax(dim=1, keepdim=True)
    z = z / largest.masked_fill(largest == 0, 1)
    squares = z.square().sum(dim=1, keepdim=True)
    return z / squares.masked_fill(squares == 0, 1).sqrt()
