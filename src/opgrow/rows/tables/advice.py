"""The error message of an estimator, which takes numbers only, when it is given a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from opgrow.rows.tables.csv_files import as_numbers
from opgrow.rows.tables.table import Table

__all__ = ["advice"]

_CHUNK_ELEMENTS = 1 << 22


def advice(data: Any, estimator: str) -> str | None:
    """A sentence on text or gaps in inputs that scikit-learn has refused; None if they have neither.

    Parameters
    ----------
    data : anything
        The inputs, X.
    estimator : str
        Name of the class that was to take them.
    """
    remedy = f"put an opgrow.TableEncoder in front, as in make_pipeline(TableEncoder(), {estimator}())"
    gaps = []
    for name, text, has_gaps in _columns(data):
        if text is not None:
            return (
                f"X holds text in column {name!r}, such as {text!r}: {remedy}, which makes categories of it"
            )
        if has_gaps:
            gaps.append(name)
    if not gaps:
        return None
    more = f" and {len(gaps) - 1} more" if len(gaps) > 1 else ""
    return f"X has gaps (NaN or None) in column {gaps[0]!r}{more}: {remedy}, which fills them in"


def _columns(data: Any) -> list[tuple[str, str | None, bool]]:
    """Name of every column, a text in it that is no number, and whether it has gaps; none for other data."""
    frame = hasattr(data, "columns")
    if not frame:
        if hasattr(data, "toarray"):
            return []  # scikit-learn's sentence says it all
        data = np.asarray(data, dtype=getattr(data, "dtype", object))
    if not frame and data.dtype.kind in "biuf":
        gaps = _gaps(data).tolist() if data.ndim == 2 else []
        return [(f"x{i}", None, gap) for i, gap in enumerate(gaps)]
    try:
        table = Table.from_any(data)
    except (TypeError, ValueError):
        return []
    return [(name, *_looked_at(values)) for name, values in table.columns.items()]


def _gaps(matrix: np.ndarray) -> np.ndarray:
    """Which columns have gaps, in chunks: a memory map may be larger than memory."""
    gaps = np.zeros(matrix.shape[1], dtype=bool)
    size = max(1, _CHUNK_ELEMENTS // max(1, matrix.shape[1]))
    for start in range(0, len(matrix), size):
        gaps |= np.isnan(matrix[start : start + size]).any(axis=0)
    return gaps


def _looked_at(values: np.ndarray) -> tuple[str | None, bool]:
    if values.dtype != object:
        return None, bool(np.isnan(values).any())
    missing = np.array([value is None for value in values], dtype=bool)
    strays = values[~missing & np.isnan(as_numbers(values))]
    return (strays[0] if strays.size else None), bool(missing.any())
