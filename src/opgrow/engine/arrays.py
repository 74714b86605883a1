"""Checks of arrays before they are passed to C, which checks nothing."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

__all__ = ["check", "matrix", "pointer", "room"]


def check(name: str, array: Any, shape: tuple[int | None, ...], dtype: Any = np.float32) -> np.ndarray:
    """The array itself, if it is contiguous and has the shape (None: any length) and the type."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name} must be an array, got a {type(array).__name__}")
    fits = array.shape == shape or (
        len(shape) == array.ndim
        and all(wanted in (None, size) for wanted, size in zip(shape, array.shape, strict=True))
    )
    if not fits or array.dtype != dtype or not array.flags.c_contiguous:
        wanted = tuple("any" if length is None else length for length in shape)
        layout = "" if array.flags.c_contiguous else ", not contiguous"
        raise ValueError(
            f"{name} must be a contiguous array of shape {wanted} and type {np.dtype(dtype)}, got shape "
            f"{array.shape} and type {array.dtype}{layout}"
        )
    return array


def matrix(
    name: str, array: Any, columns: int | None = None, dtype: Any = np.float32
) -> tuple[np.ndarray, int]:
    """A matrix whose rows are contiguous, and the distance of its rows in elements."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name} must be an array, got a {type(array).__name__}")
    fits = array.ndim == 2 and array.dtype == dtype and columns in (None, array.shape[-1])
    if not fits:
        wanted = "any number of" if columns is None else columns
        raise ValueError(
            f"{name} must be a matrix with {wanted} columns of type {np.dtype(dtype)}, got shape "
            f"{array.shape} and type {array.dtype}"
        )
    size = array.itemsize
    rows_contiguous = array.shape[1] <= 1 or array.strides[1] == size
    if not rows_contiguous or array.strides[0] % size or array.strides[0] < 0:
        array = np.ascontiguousarray(array)
    return array, array.strides[0] // size if len(array) > 1 else array.shape[1]


def room(n_floats: int) -> np.ndarray:
    """Memory for intermediate results, aligned for the widest registers."""
    memory = np.empty(4 * max(int(n_floats), 1) + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + 4 * max(int(n_floats), 1)].view(np.float32)


def pointer(array: np.ndarray | None) -> ctypes.c_void_p | None:
    """The address of an array; None is a null pointer."""
    # As array.ctypes.data, in a fraction of its time.
    return None if array is None else ctypes.c_void_p(array.__array_interface__["data"][0])
