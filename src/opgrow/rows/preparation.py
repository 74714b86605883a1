"""From what users pass to what growth needs: arrays, weights, splits and standardisation.

Everything here works chunk by chunk in float64 and hands over float32, so a memory map is read but never
copied as a whole in double precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Number
from typing import Any

import numpy as np

from ..common.extras import loaded_torch
from ..common.team import Alone
from ..engine.shards import pairwise_sum
from ..network.scaling import Ranges, Scaling

__all__ = [
    "are_extreme",
    "as_array",
    "as_numbers",
    "check_labels",
    "checking",
    "in_units",
    "merged",
    "moments",
    "one_hot",
    "ranges",
    "scale_of",
    "scaled",
    "split_rows",
    "standardized",
]

_CHUNK_ELEMENTS = 1 << 22
#: Variances whose squares may have vanished, and means of columns that can have such variances.
_TINY_VARIANCE, _TINY_MEAN = 1e-280, 1e-120
#: Values beyond which differences may overflow.
_LARGEST = 1e307
#: Rows that are left of any number of identical ones.
_MERGED_ROWS = 1000
_ALONE = Alone()


def as_array(data: Any) -> Any:
    """Torch tensors as numpy arrays; everything else unchanged, but for what would be misread."""
    torch = loaded_torch()
    if torch is not None and isinstance(data, torch.Tensor):
        data = data.detach().cpu()
        return (data.float() if data.dtype == torch.bfloat16 else data).numpy()
    if isinstance(data, np.ma.MaskedArray) and np.ma.is_masked(data):
        raise ValueError("masked values are missing values: fill them in or leave their rows out")
    frame = hasattr(data, "iloc") and hasattr(data, "columns")
    for dtype in data.dtypes if frame else [getattr(data, "dtype", None)]:
        if getattr(dtype, "kind", None) in ("m", "M"):
            raise ValueError(
                f"dates or times ({dtype}) are no numbers: turn them into such, as days since a fixed date"
            )
    return data


@contextmanager
def checking() -> Iterator[None]:
    """Around scikit-learn's checks: no false alarm, and a word on integers without bounds."""
    # It sums values first, and large ones, of one sign or of both, overflow.
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            yield
        except OverflowError:
            raise ValueError("an integer is too large to become a float") from None


def check_labels(y: Any, classes: bool, name: str = "y") -> None:
    """Complain of what objects may be and numbers cannot: missing or, as ``classes``, text beside numbers."""
    if not isinstance(y, list | tuple) and getattr(getattr(y, "dtype", None), "kind", None) != "O":
        return
    values = y if isinstance(y, list | tuple) else y.tolist()
    if any(_is_missing(value) for value in values):
        raise ValueError(f"{name} has missing values (None or NaN): fill them in or leave their rows out")
    text = next((value for value in values if isinstance(value, str)), None)
    number = next((value for value in values if isinstance(value, Number)), None)
    if classes and text is not None and number is not None:
        raise ValueError(
            f"{name} has text and numbers, such as {text!r} and {number!r}: make all of them text"
        )


def _is_missing(value: Any) -> bool:
    # pandas' NA by its name, because pandas need not be there.
    return value is None or type(value).__name__ == "NAType" or (isinstance(value, float) and value != value)


def as_numbers(y: np.ndarray, name: str = "y") -> np.ndarray:
    """Targets of regression as float64 (N, targets)."""
    if y.dtype.kind in "SU":
        raise ValueError(f"{name} holds text, such as {y.flat[0].item()!r}: regression needs numbers")
    return np.asarray(y, np.float64).reshape(len(y), -1)


def _chunks(
    x: np.ndarray, rows: np.ndarray | None, within: slice | None = None
) -> Iterator[tuple[slice, np.ndarray]]:
    """Where each chunk of the chosen rows (None: all) belongs among them, and its values in float64.

    Always in the same order in memory: sums of other orders are rounded in other ways.
    """
    size = max(1, _CHUNK_ELEMENTS // max(1, x.shape[1]))
    within = slice(0, len(x) if rows is None else len(rows)) if within is None else within
    for start in range(within.start, within.stop, size):
        span = slice(start, min(start + size, within.stop))
        yield span, x[span if rows is None else rows[span]].astype(np.float64, order="C")


def _summed(
    function: Callable[[slice, np.ndarray], np.ndarray], x: np.ndarray, rows: np.ndarray | None, team: Alone
) -> np.ndarray:
    """The sum over ranks of what a function makes of chunks of rows, each a value for every column.

    The rows of a cell are added by themselves, so that it does not show which rank holds it.
    """
    cells = []
    for cell in team.cells(len(x), rows):
        total = np.zeros(x.shape[1])
        for span, values in _chunks(x, rows, cell):
            total += function(span, values)
        cells.append(total)
    return team.sum(pairwise_sum(np.stack(cells)), "moments")


def in_units(weight: np.ndarray, team: Alone = _ALONE) -> np.ndarray:
    """Weights of any magnitude times a power of 2, so that the largest of all lies between 1 and 2."""
    return np.ldexp(weight, 1 - np.frexp(team.largest(weight.max()))[1])


def moments(
    x: np.ndarray,
    weight: np.ndarray,
    what: str = "X",
    rows: np.ndarray | None = None,
    team: Alone = _ALONE,
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and scale of each column; the scale of a constant column is 1.

    ``rows`` are those that count, None for all, and ``weight`` has a value for each of them. The rows of all
    ``team`` are meant.
    """
    n_rows = team.total(len(weight))
    mean, variance = _mean_and_variance(x, weight, rows, team)
    extreme = are_extreme(x, mean, variance, team)
    if not extreme.any():
        return mean, scale_of(mean, variance, n_rows, what)
    unit = np.where(extreme, _units(x, what, rows, team), 1.0)
    mean, variance = _mean_and_variance(x, weight, rows, team, unit)
    return mean * unit, scale_of(mean, variance, n_rows, what, unit)


def _mean_and_variance(
    x: np.ndarray,
    weight: np.ndarray,
    rows: np.ndarray | None,
    team: Alone,
    unit: np.ndarray | float = 1.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and variance of each column, divided by its unit."""
    total = team.weight(weight, len(x), rows)

    def first(span: slice, values: np.ndarray) -> np.ndarray:
        return (weight[span, None] * (values / unit)).sum(axis=0) / total

    def second(span: slice, values: np.ndarray) -> np.ndarray:
        return (weight[span, None] * np.square(values / unit - mean)).sum(axis=0) / total

    with np.errstate(over="ignore", invalid="ignore"):
        mean = _summed(first, x, rows, team)
        return mean, _summed(second, x, rows, team)


def are_extreme(x: np.ndarray, mean: np.ndarray, variance: np.ndarray, team: Alone = _ALONE) -> np.ndarray:
    """Columns whose squares overflow or vanish, by their moments: the scale has to be taken with units."""
    with np.errstate(invalid="ignore"):
        extreme = ~np.isfinite(variance) | ((variance < _TINY_VARIANCE) & (np.abs(mean) < _TINY_MEAN))
    if extreme.any():  # zeros are only constant
        extreme[extreme] = team.largest(x[:, extreme].any(axis=0)) > 0
    return extreme


def _units(x: np.ndarray, what: str, rows: np.ndarray | None, team: Alone) -> np.ndarray:
    """The power of 2 below the largest value of each column."""
    largest = np.zeros(x.shape[1])
    for _, values in _chunks(x, rows):
        np.maximum(largest, np.abs(values).max(axis=0), out=largest)
    largest = team.largest(largest)
    if (largest > _LARGEST).any():
        column = int(largest.argmax())
        raise ValueError(
            f"the values of {what} are too large: column {column} reaches {largest[column]:.3g}; rescale it"
        )
    return np.ldexp(1.0, np.frexp(largest)[1] - 1)


def scale_of(
    mean: np.ndarray, variance: np.ndarray, n_rows: int, what: str = "X", unit: np.ndarray | float = 1.0
) -> np.ndarray:
    """The scale of each column from its moments over so many rows, in units; 1 for a constant column."""
    if not (np.isfinite(mean).all() and np.isfinite(variance).all()):
        column = int(np.flatnonzero(~np.isfinite(variance))[0])
        raise ValueError(
            f"the values of {what} are too large: the variance of column {column} overflows; rescale it"
        )
    # A constant column has a variance of rounding errors (the bound is scikit-learn's).
    epsilon = np.finfo(np.float64).eps
    deviation = np.sqrt(variance)
    noise = np.hypot(np.sqrt(n_rows * epsilon) * deviation, n_rows * mean * epsilon)
    return np.where((deviation <= noise) | (deviation == 0), 1.0, deviation * unit)


def standardized(
    x: np.ndarray, mean: np.ndarray, scale: np.ndarray, what: str = "X", rows: np.ndarray | None = None
) -> np.ndarray:
    """(x - mean) / scale of some rows (None: all) as a new float32 array."""
    out = np.empty((len(x) if rows is None else len(rows), x.shape[1]), np.float32)
    try:
        with np.errstate(over="raise"):
            for span, values in _chunks(x, rows):
                out[span] = (values - mean) / scale
    except FloatingPointError:
        raise ValueError(
            f"{what} has values that are too far from the others, or too large, for single precision: "
            "leave them out or rescale them"
        ) from None
    return out


def scaled(x: np.ndarray, scaling: Scaling, what: str = "X", rows: np.ndarray | None = None) -> np.ndarray:
    """What the first layer sees of some rows (None: all), as a new float32 array."""
    if scaling.bound is None:
        return standardized(x, scaling.center, scaling.scale, what, rows)
    out = np.empty((len(x) if rows is None else len(rows), x.shape[1]), np.float32)
    with np.errstate(over="ignore"):  # an infinite distance is squashed, too
        for span, values in _chunks(x, rows):
            out[span] = scaling(values)
    return out


def ranges(x: np.ndarray, target: np.ndarray, team: Alone = _ALONE) -> Ranges:
    """The least and the largest value of each column of inputs and targets, of all ranks."""
    bounds = [
        limit
        for values in (x, target)
        for limit in (
            -team.largest(-values.min(axis=0).astype(np.float64)),
            team.largest(values.max(axis=0).astype(np.float64)),
        )
    ]
    return Ranges(*bounds)


def merged(target: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Targets and weights of few rows that say as much as many with identical inputs.

    Rows with equal targets become one of their weight. Where many targets are different, neighbours become
    one with their mean.
    """
    distinct, group = np.unique(target, axis=0, return_inverse=True)
    group = group.reshape(-1)
    if len(distinct) > _MERGED_ROWS:
        group = group * _MERGED_ROWS // len(distinct)
    total = np.bincount(group, weight)
    sums = [np.bincount(group, weight * column) for column in target.T]
    return (np.stack(sums, axis=1) / total[:, None]).astype(target.dtype), total


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
