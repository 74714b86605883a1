"""Sources, whose rows are read in chunks: when a fit reads one, and what is predicted for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...common.team import current
from ...growth.capabilities import methods_with
from ...rows.chunks.ahead import ahead
from ...rows.chunks.limits import check_memory_limit, total_memory
from ...rows.chunks.sources import Chunk, Source, from_arrays, memory_map, rows_at_once
from ..base import GrowingEstimator

__all__ = ["as_source", "chunks_for", "memory_limit_of", "targets_of"]


def as_source(estimator: GrowingEstimator[Any], x: Any, y: Any, sample_weight: Any) -> Source | None:
    """The source that a fit is to read, if it is to read one; None: the rows go into memory.

    Arrays that would take more than ``memory_limit`` are read in chunks, and so are memory maps that would
    take more than a quarter of the machine's memory. Not of what is free: a fit should not depend on that.
    What one rank reads in chunks, all of them do.
    """
    team = current()
    source = team.together(lambda: _wanted(estimator, x, y, sample_weight))
    if not team.largest(float(source is not None)):
        return None
    return team.together(lambda: from_arrays(x, y, sample_weight) if source is None else source)


def _wanted(estimator: GrowingEstimator[Any], x: Any, y: Any, sample_weight: Any) -> Source | None:
    takes_sources = estimator._method.sources
    if isinstance(x, Source):
        if y is not None or sample_weight is not None:
            raise ValueError("a source has its own targets and weights: give neither y nor sample_weight")
        if not takes_sources:
            raise ValueError(
                f"{type(estimator).__name__} needs all rows in memory and takes no source: "
                f"{methods_with('sources')} do"
            )
        return x
    limit = check_memory_limit(getattr(estimator, "memory_limit", None))
    if not takes_sources or not isinstance(x, np.ndarray) or x.ndim != 2 or y is None:
        return None
    if x.dtype.kind not in "biuf" or (limit is None and memory_map(x) is None):
        return None
    most = memory_limit_of(estimator)
    if 4 * x.size <= most:  # the rows as float32
        return None
    rows = rows_at_once(x.shape[1], x.dtype, min(1 << 24, max(1, most // 32)))
    return from_arrays(x, y, sample_weight, chunk_rows=rows)


def memory_limit_of(estimator: GrowingEstimator[Any]) -> int:
    """Bytes for rows, in this process."""
    limit = check_memory_limit(estimator.memory_limit)
    return total_memory() // 4 // current().neighbours if limit is None else limit


def chunks_for(estimator: GrowingEstimator[Any], source: Source) -> Iterator[Chunk]:
    """The chunks of a source, in order, for an estimator that predicts them."""
    name = type(estimator).__name__
    if estimator.table_ is not None:
        raise ValueError(f"this {name} was fitted on a table, and a source has numbers alone: predict tables")
    if source.n_features != estimator.n_features_in_:
        raise ValueError(
            f"the source has {source.n_features} features, but {name} is expecting "
            f"{estimator.n_features_in_} features as input"
        )
    fitted = getattr(estimator, "feature_names_in_", None)
    if fitted is not None and source.feature_names is not None and fitted.tolist() != source.feature_names:
        raise ValueError(
            f"the columns of the source are not those that {name} was fitted on, in "
            "their order: name them where the source is made (columns=clf.feature_names_in_)"
        )
    return ahead(source.read, range(source.n_chunks), 1)


def targets_of(source: Source) -> tuple[np.ndarray, np.ndarray | None]:
    """All targets and weights of a source."""
    chunks = [(chunk.y, chunk.weight) for chunk in source]
    targets = [y for y, _ in chunks if y is not None]
    if len(targets) < len(chunks):
        raise ValueError("the source has no targets to compare predictions with")
    weights = [weight for _, weight in chunks if weight is not None]
    return np.concatenate(targets), np.concatenate(weights) if weights else None
