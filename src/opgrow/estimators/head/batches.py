"""Rows in batches: those of a loader, such as a DataLoader of torch, or slices of what a user has.

A loader is a ``torch.utils.data.DataLoader``, or an iterator of batches. Everything else is rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_consistent_length

from ...common.extras import loaded_torch
from ...rows.preparation import as_array

__all__ = ["Batch", "batches_of", "first_batches", "first_inputs", "is_loader"]


class Batch(NamedTuple):
    """Some rows.

    Attributes
    ----------
    x : as the backbone takes them: a tensor, an array, a frame, a list of texts
    y : array of the n targets, or None
    weight : array of shape (n,), or None
    """

    x: Any
    y: np.ndarray | None = None
    weight: np.ndarray | None = None


def is_loader(x: Any) -> TypeGuard[Iterable[Any]]:
    """Whether something gives batches of rows, and is no rows itself."""
    torch = loaded_torch()
    return isinstance(x, Iterator) or (torch is not None and isinstance(x, torch.utils.data.DataLoader))


def batches_of(x: Any, y: Any, weight: Any, rows: int, targets: bool) -> Iterator[Batch]:
    """Batches of a loader as they come, or slices of so many rows.

    ``targets`` says whether they have to have targets, which the batches of a loader bring along.
    """
    if is_loader(x):
        if y is not None or weight is not None:
            raise ValueError("a loader has its targets in its batches: give neither y nor sample_weight")
        return (_loaded(batch, targets) for batch in x)
    if targets and y is None:
        raise ValueError(
            f"rows to learn from need y, or a DataLoader or iterator of batches (X, y), got X of type "
            f"{type(x).__name__} and y=None"
        )
    y, weight = (None if values is None else np.asarray(as_array(values)) for values in (y, weight))
    check_consistent_length(x, y, weight)
    return _slices(x, y, weight, rows)


def _slices(x: Any, y: np.ndarray | None, weight: np.ndarray | None, rows: int) -> Iterator[Batch]:
    for start in range(0, _num_samples(x), rows):
        span = slice(start, start + rows)
        parts = (None if values is None else values[span] for values in (y, weight))
        yield Batch(_safe_indexing(x, span), *parts)


def _loaded(batch: Any, targets: bool) -> Batch:
    """What a loader gives: the pair (X, y), or, where no targets are needed, X alone."""
    several = isinstance(batch, tuple | list) and not (batch and isinstance(batch[0], str))
    parts = list(batch) if several else [batch]
    if not targets and len(parts) in (1, 2):
        return Batch(parts[0])
    if len(parts) != 2:
        got = "X alone" if len(parts) == 1 else f"{len(parts)} parts"
        raise ValueError(f"a loader has to give pairs (X, y), and a batch of it has {got}")
    x, y = parts[0], np.asarray(as_array(parts[1]))
    if not y.ndim or len(y) != _num_samples(x):
        raise ValueError(f"a batch of the loader has {_num_samples(x)} rows, and targets of shape {y.shape}")
    return Batch(x, y)


def first_batches(batches: Iterator[Batch], rows: int | None) -> Iterator[Batch]:
    """The first batches, until they have so many rows; all of them without a number."""
    n_rows = 0
    for batch in batches:
        yield batch
        n_rows += _num_samples(batch.x)
        if rows is not None and n_rows >= rows:
            return


def first_inputs(x: Any, batches: list[Batch]) -> tuple[Any, np.ndarray]:
    """Inputs of the first batches as one, and their targets; of rows, as the user has them."""
    if not batches:
        raise ValueError("there are no rows")
    y = np.concatenate([batch.y for batch in batches if batch.y is not None])
    if not is_loader(x):
        return (x if len(y) == _num_samples(x) else _safe_indexing(x, slice(len(y)))), y
    parts = [as_array(batch.x) for batch in batches]
    if isinstance(parts[0], tuple | list):
        return [row for part in parts for row in part], y
    return (sparse.vstack(parts) if sparse.issparse(parts[0]) else np.concatenate(parts)), y
