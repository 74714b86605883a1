"""Batches of rows as features, a bounded number of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .batches import Batch

__all__ = ["FeatureRows", "all_rows", "feature_rows"]


class FeatureRows(NamedTuple):
    """Features (n, p) of some rows, with their targets and weights if they have such."""

    features: np.ndarray
    y: np.ndarray | None
    weight: np.ndarray | None


def feature_rows(
    features_of: Callable[[Any], np.ndarray], batches: Iterable[Batch], n_rows: int | None, width: int | None
) -> Iterator[FeatureRows]:
    """The features of batches: as soon as there are so many rows, or of all batches together.

    Parameters
    ----------
    features_of : what gives features (n, p) of a batch
    n_rows : rows after which a part is complete; None: never
    width : how many features there have to be; None: as many as the first batch has
    """
    waiting: list[FeatureRows] = []
    for batch in batches:
        features = features_of(batch.x)
        width = _checked(features.shape[1], width)
        if len(features):
            waiting.append(FeatureRows(features, batch.y, batch.weight))
        if n_rows is not None and sum(len(part.features) for part in waiting) >= n_rows:
            yield _joined(waiting)
            waiting = []
    if waiting:
        yield _joined(waiting)


def all_rows(rows: Iterator[FeatureRows]) -> FeatureRows:
    """The one part that there is where all rows are taken together."""
    part = next(rows, None)
    if part is None:
        raise ValueError("there are no rows")
    return part


def _checked(found: int, expected: int | None) -> int:
    if expected is not None and found != expected:
        raise ValueError(f"the backbone gives {found} features of a row, and the head expects {expected}")
    return found


def _joined(parts: list[FeatureRows]) -> FeatureRows:
    features, y, weight = zip(*parts, strict=True)
    return FeatureRows(
        np.concatenate(features), *(None if v[0] is None else np.concatenate(v) for v in (y, weight))
    )
