"""Tables that estimators are given: whether X is one, what is learned from it, and its rows for networks.

A matrix of finite numbers is no table: it goes to the network as it is. Everything else that has columns goes
through the estimator's encoder (``table_``).
"""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils.validation import _check_y

from ...common.team import current
from ...rows.tables import Table, TableEncoder
from ...rows.tables.columns import NumberColumn
from ...rows.tables.frames import dense, eager, is_frame, is_sparse
from ...rows.tables.target_means import Target
from ...rows.tables.wishes import warn
from ..base import GrowingEstimator

__all__ = [
    "Given",
    "adopt",
    "as_given",
    "checked_targets",
    "encoded",
    "learn_table",
    "learned_matrix",
    "plain_encoder",
]

_CHUNK_ELEMENTS = 1 << 22


class Given:
    """A table as the user has given it.

    Attributes
    ----------
    table : its columns, by name
    has_names : whether it has names of its own, or columns are called x0, x1, ...
    texts : whether all of them are text, which scikit-learn wants of names
    """

    def __init__(self, data: Any) -> None:
        self.has_names = isinstance(data, Table) or is_frame(data)
        self.table = Table.from_any(data)
        # Only pandas and dictionaries know names that are no text.
        raw = data.columns if hasattr(data, "iloc") else data if isinstance(data, dict) else ()
        self.texts = self.has_names and all(isinstance(name, str) for name in raw)


def as_given(x: Any, wishes: TableEncoder | None = None) -> Any:
    """X as a `Given` if it is a table, and else as it is, but dense."""
    x = dense(x) if is_sparse(x) else eager(x)
    if isinstance(x, Table) or (is_frame(x) and not _is_plain_frame(x)):
        return Given(x)
    wished = wishes is not None and len(wishes.text) > 0
    if is_frame(x):
        return Given(x) if wished else x
    array = _as_objects(x)
    if array is None or array.ndim != 2 or not array.size:
        return x
    return Given(array) if wished or _is_table(array) else x


def _is_plain_frame(frame: Any) -> bool:
    """Whether a frame of pandas or polars has numbers alone; scikit-learn refuses infinity."""
    if hasattr(frame, "iloc") and hasattr(frame, "dtypes"):
        kinds = [getattr(dtype, "kind", "O") for dtype in frame.dtypes]
        odd = any(isinstance(dtype, Real) or str(dtype) == "category" for dtype in frame.dtypes)
        return not odd and all(kind in "biuf" for kind in kinds) and not frame.isna().to_numpy().any()
    dtypes = list(getattr(frame, "dtypes", ()))
    if not (hasattr(frame, "get_column") and dtypes and all(hasattr(d, "is_numeric") for d in dtypes)):
        return False
    if not all(d.is_float() or d.is_integer() or str(d) == "Boolean" for d in dtypes):
        return False
    columns = [frame.get_column(name) for name in frame.columns]
    return not any(c.null_count() or (c.dtype.is_float() and c.is_nan().any()) for c in columns)


def _as_objects(x: Any) -> np.ndarray | None:
    """An array or nested lists as an array that has the values as they are; None for all else."""
    if isinstance(x, np.ndarray):
        return x
    if not isinstance(x, list | tuple):
        return None
    try:
        array = np.asarray(x)
        return array if array.dtype.kind in "biufc" else np.asarray(x, dtype=object)
    except ValueError:  # rows of several lengths
        return None


def _is_table(array: np.ndarray) -> bool:
    kind = array.dtype.kind
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        return True
    if kind == "f":
        with np.errstate(all="ignore"):
            return not np.isfinite(array.sum()) and _has_gaps(array)
    if kind == "O":
        return not all(isinstance(v, Real | np.bool_) and v == v for v in array.ravel().tolist())
    return kind in "USmM"


def _has_gaps(matrix: np.ndarray) -> bool:
    """Whether there is NaN, in chunks: a memory map may be larger than memory."""
    size = max(1, _CHUNK_ELEMENTS // max(1, matrix.shape[1]))
    return any(np.isnan(matrix[start : start + size]).any() for start in range(0, len(matrix), size))


def learn_table(
    estimator: GrowingEstimator[Any], given: Given, y: Any, **options: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and targets of the rows to fit; the estimator gets its encoder and the names of columns."""
    name, table = type(estimator).__name__, given.table
    if not current().alone:
        raise ValueError(
            "on several ranks X has to be numbers without gaps: encode it first, with the same fitted "
            "opgrow.TableEncoder on all ranks"
        )
    if table.n_rows < 2:
        raise ValueError(
            f"Found array with {table.n_rows} sample(s) (shape=({table.n_rows}, {len(table.names)})) while a "
            f"minimum of 2 is required by {name}."
        )
    y = checked_targets(estimator, y, **options)
    if len(y) != table.n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: [{table.n_rows}, {len(y)}]"
        )
    encoder, matrix = learned_matrix(estimator, table, y)
    adopt(estimator, encoder, has_names=given.texts)
    return matrix, y


def learned_matrix(
    estimator: GrowingEstimator[Any], table: Table, y: np.ndarray
) -> tuple[TableEncoder, np.ndarray]:
    """The encoder that the user wishes, fitted to the training rows, and what it makes of them."""
    encoder: TableEncoder = TableEncoder() if estimator.table is None else clone(estimator.table)
    target = Target.of(y, is_classifier(estimator)) if encoder.many == "target" else None
    crossed = encoder.learn(table, target)
    return encoder, encoder.encode(table, crossed=crossed)


def checked_targets(estimator: GrowingEstimator[Any], y: Any, **options: Any) -> np.ndarray:
    """The targets of rows whose inputs scikit-learn has not seen."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    return _check_y(y, estimator=estimator, **options)


def adopt(estimator: GrowingEstimator[Any], encoder: TableEncoder, has_names: bool = True) -> None:
    """Give an estimator the encoder that has made its inputs."""
    estimator.table_ = encoder
    estimator.n_features_in_ = encoder.n_features_in_
    if has_names:
        estimator.feature_names_in_ = np.array(encoder.feature_names_in_, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def plain_encoder(estimator: GrowingEstimator[Any]) -> TableEncoder:
    """An encoder for tables of numbers, of an estimator that was fitted on a matrix of them.

    A gap becomes what the network takes for the middle of its input.
    """
    network = estimator.network_
    middle = network.input_mean
    if not estimator.standardize and network.input_low is not None and network.input_high is not None:
        middle = network.input_low / 2 + network.input_high / 2
    names = getattr(estimator, "feature_names_in_", [f"x{i}" for i in range(network.n_inputs)])
    return TableEncoder.of([NumberColumn(str(n), float(m)) for n, m in zip(names, middle, strict=True)])


def encoded(estimator: GrowingEstimator[Any], given: Given) -> np.ndarray:
    """The rows of a table as the network of a fitted estimator takes them."""
    table = _with_known_names(estimator, given)
    name = type(estimator).__name__
    if not table.n_rows:
        raise ValueError(
            f"Found array with 0 sample(s) (shape=(0, {len(table.names)})) while a minimum of 1 is required "
            f"by {name}."
        )
    if estimator.table_ is not None:
        return estimator.table_.encode(table)
    encoder = plain_encoder(estimator)
    matrix = encoder.encode(table)
    gaps = {n: sum_of_gaps(table.columns[n]) for n in encoder.feature_names_in_}
    if any(gaps.values()):
        first = next(n for n, count in gaps.items() if count)
        warn(
            f"{gaps[first]} of {table.n_rows} rows have no value in {first!r}, which fit never saw: "
            "the mean of the training rows takes its place"
        )
    return matrix


def sum_of_gaps(values: np.ndarray) -> int:
    """How many values of a column are missing."""
    return sum(v is None for v in values) if values.dtype == object else int(np.isnan(values).sum())


def _with_known_names(estimator: GrowingEstimator[Any], given: Given) -> Table:
    """The table with the names that the encoder knows: an array has its columns in their order."""
    table, name = given.table, type(estimator).__name__
    known = getattr(estimator, "feature_names_in_", None)
    if given.has_names and (known is not None or given.texts is False):
        return table
    if len(table.names) != estimator.n_features_in_:
        raise ValueError(
            f"X has {len(table.names)} features, but {name} is expecting {estimator.n_features_in_} features "
            "as input"
        )
    if known is None and not given.has_names:
        return table
    if known is not None:
        message = f"X does not have valid feature names, but {name} was fitted with feature names"
    else:
        message = f"X has feature names, but {name} was fitted without feature names"
        known = [f"x{i}" for i in range(estimator.n_features_in_)]
    warnings.warn(message, UserWarning, stacklevel=2)
    return Table(dict(zip(map(str, known), table.columns.values(), strict=True)))
