"""Sources of chunks that users provide: as a sequence, by a function, or one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..preparation import as_array
from .sources import Chunk, Source, as_matrix, as_numpy
from .spool import spooled

__all__ = ["from_chunks"]


def from_chunks(
    chunks: Any,
    *,
    n_chunks: int | None = None,
    sizes: Sequence[int] | None = None,
    feature_names: Sequence[str] | None = None,
) -> Source:
    """Make a source from anything that gives chunks: tuples (X,), (X, y) or (X, y, sample_weight).

    Parameters
    ----------
    chunks : sequence, callable or iterable
        A sequence gives chunk ``i`` as ``chunks[i]``. A callable of one argument gives it as ``chunks(i)``
        and needs ``n_chunks``; threads may call it at the same time. Any other iterable is gone through once
        and copied to a temporary file.
    n_chunks : int, optional
        The number of chunks that a callable gives.
    sizes : sequence of int, optional
        Rows of each chunk. Without them, the chunks are read once to count them.
    feature_names : sequence of str, optional

    Examples
    --------
    >>> import numpy as np
    >>> from opgrow.rows.chunks import from_chunks
    >>> def day(i):
    ...     rng = np.random.default_rng(i)
    ...     x = rng.normal(size=(100, 2))
    ...     return x, x[:, 0] > 0
    >>> from_chunks(day, n_chunks=5).n_rows
    500
    """
    names = None if feature_names is None else [str(name) for name in feature_names]
    if callable(chunks):
        if n_chunks is None or n_chunks < 1:
            raise ValueError(
                f"chunks from a function need their number: n_chunks, at least 1, got {n_chunks}"
            )
        return _Function(chunks, n_chunks, sizes, names)
    if hasattr(chunks, "__getitem__") and hasattr(chunks, "__len__"):
        return _Function(chunks.__getitem__, len(chunks), sizes, names)
    if not hasattr(chunks, "__iter__"):
        raise TypeError(
            "chunks must be a sequence, a function or an iterable of tuples (X, y), "
            f"got {type(chunks).__name__}"
        )
    return spooled((_chunk(item) for item in chunks), names)


class _Function(Source):
    slow = True

    def __init__(
        self,
        function: Callable[[int], Any],
        n_chunks: int,
        sizes: Sequence[int] | None,
        feature_names: list[str] | None,
    ) -> None:
        if not n_chunks:
            raise ValueError("there are no chunks")
        self.function = function
        first = _chunk(function(0))
        self.n_features, self.dtype, self.feature_names = first.x.shape[1], first.x.dtype, feature_names
        if feature_names is not None and len(feature_names) != self.n_features:
            raise ValueError(f"there are {len(feature_names)} feature_names for {self.n_features} columns")
        if sizes is None:
            sizes = [len(first), *(len(_chunk(function(i))) for i in range(1, n_chunks))]
        elif len(sizes) != n_chunks:
            raise ValueError(f"sizes has {len(sizes)} numbers for {n_chunks} chunks")
        self.sizes = np.asarray(sizes, np.int64)

    def read(self, number: int) -> Chunk:
        chunk = _chunk(self.function(number))
        if len(chunk) != self.sizes[number] or chunk.x.shape[1] != self.n_features:
            raise ValueError(
                f"chunk {number} has shape {chunk.x.shape} where ({self.sizes[number]}, {self.n_features}) "
                "was expected: a chunk must be the same whenever it is read"
            )
        return chunk


def _chunk(item: Any) -> Chunk:
    """What users hand out as a chunk."""
    if isinstance(item, Chunk):
        return item
    if not isinstance(item, tuple | list) or not 1 <= len(item) <= 3:
        raise TypeError(f"a chunk must be a tuple (X, y) or (X, y, sample_weight), got {type(item).__name__}")
    x, y, weight = (*(as_array(part) for part in item), None, None)[:3]
    x = as_matrix(x)
    y, weight = (None if v is None else as_numpy(v) for v in (y, weight))
    for name, values in (("y", y), ("sample_weight", weight)):
        if values is not None and (not values.ndim or len(values) != len(x)):
            raise ValueError(f"{name} of a chunk has shape {values.shape}, and its X has {len(x)} rows")
    return Chunk(x, y, weight)
