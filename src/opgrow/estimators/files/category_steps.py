"""Steps that have learned categories or what to fill gaps with: encoders and `SimpleImputer`.

Their state has parts that scikit-learn makes of others while it fits. They are made by the same code here: a
step from a file is fitted to one or two rows that have just the categories, or the fillings, of the file.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from .format import as_row, require
from .steps import (
    Check,
    any_of,
    flag,
    from_json,
    none,
    number,
    one_of,
    parameters_of,
    take_parameters,
    to_json,
)

__all__ = ["CATEGORY_STEPS", "CategoryStep"]

#: Types of numbers that encoders make, and of columns of labels.
_TYPES = {name: np.dtype(name) for name in ("float64", "float32", "int64", "int32", "int16", "int8", "uint8")}
_LABELS = {"bool", "object", *_TYPES}


def _text(value: Any) -> bool:
    return isinstance(value, str)


_UNLIMITED = {"min_frequency": none, "max_categories": none}
_ONE_HOT: dict[str, Check] = {
    "drop": one_of(None, "first", "if_binary"),
    "handle_unknown": one_of("error", "ignore", "infrequent_if_exist", "warn"),
    "sparse_output": flag,
    "dtype": one_of(*_TYPES),
    "feature_name_combiner": one_of("concat"),
    **_UNLIMITED,
}
_ORDINAL: dict[str, Check] = {
    "handle_unknown": one_of("error", "use_encoded_value"),
    "unknown_value": any_of(none, number),
    "encoded_missing_value": number,
    "dtype": one_of(*_TYPES),
    **_UNLIMITED,
}
_IMPUTER: dict[str, Check] = {
    "missing_values": any_of(none, number, _text),
    "strategy": one_of("mean", "median", "most_frequent", "constant"),
    "fill_value": any_of(none, number, _text),
    "add_indicator": flag,
    "keep_empty_features": flag,
}


@dataclass(frozen=True)
class CategoryStep:
    """How a step of this kind is written and read.

    Attributes
    ----------
    describe : a fitted step and its name as plain data
    restore : the fitted step from plain data and the number of columns that it takes
    """

    describe: Callable[[Any, str], dict[str, Any]]
    restore: Callable[[dict[str, Any], int], Any]


# --- encoders ---


def _describe_encoder(encoder: Any, name: str) -> dict[str, Any]:
    checks = _checks_of(encoder)
    shown = _with_plain_type(encoder)
    return {
        "parameters": parameters_of(shown, checks, name),
        "categories": [_labels(values, name) for values in encoder.categories_],
    }


def _checks_of(encoder: Any) -> dict[str, Check]:
    # What was given as categories is what was learned as categories.
    return (_ONE_HOT if isinstance(encoder, OneHotEncoder) else _ORDINAL) | {"categories": one_of("auto")}


def _with_plain_type(encoder: Any) -> Any:
    """The same encoder, not fitted, with the name of its type, and without a list of categories."""
    parameters = encoder.get_params(deep=False)
    return type(encoder)(**parameters | {"dtype": np.dtype(parameters["dtype"]).name, "categories": "auto"})


def _restore_encoder(cls: type[Any]) -> Callable[[dict[str, Any], int], Any]:
    def restore(data: dict[str, Any], n: int) -> Any:
        checks = _ONE_HOT if cls is OneHotEncoder else _ORDINAL
        parameters = take_parameters(data.get("parameters"), cls, checks | {"categories": one_of("auto")})
        parameters["dtype"] = _TYPES[parameters.get("dtype", "float64")].type
        learned = [
            _array(item)
            for item in as_row(data.get("categories"), f"list of categories of a {cls.__name__}", n)
        ]
        require(all(map(len, learned)), f"a column of a {cls.__name__} has no category")
        encoder = cls(**parameters | {"categories": [values.astype(object) for values in learned]})
        first = np.empty((1, n), dtype=object)
        first[0] = [values[0] for values in learned]
        encoder.fit(first)
        encoder.categories_, encoder.categories = learned, "auto"
        return encoder

    return restore


# --- fillings of gaps ---


def _describe_imputer(imputer: SimpleImputer, name: str) -> dict[str, Any]:
    indicator = imputer.indicator_
    return {
        "parameters": parameters_of(imputer, _IMPUTER, name),
        "statistics": _labels(imputer.statistics_, name),
        "indicator": None if indicator is None else indicator.features_.tolist(),
        "type": np.dtype(getattr(imputer, "_fit_dtype", imputer.statistics_.dtype)).name,
    }


def _restore_imputer(data: dict[str, Any], n: int) -> Any:
    parameters = take_parameters(data.get("parameters"), SimpleImputer, _IMPUTER)
    statistics = _array(data.get("statistics"))
    require(statistics.shape == (n,), f"a SimpleImputer fills {len(statistics)} columns, and has {n}")
    given, kind = data.get("indicator"), data.get("type")
    require(kind in ("float64", "float32", "object"), f"a SimpleImputer takes values of type {kind!r:.40}")
    imputer = SimpleImputer(**parameters)
    rows = np.empty((2, n), dtype=kind)
    rows[:] = statistics
    require(
        (given is None) != imputer.add_indicator, "'indicator' of a SimpleImputer does not fit its parameters"
    )
    if given is not None:
        places = isinstance(given, list) and all(type(place) is int and 0 <= place < n for place in given)
        require(
            places and given == sorted(set(given)), "'indicator' of a SimpleImputer is no list of columns"
        )
        rows[1, given] = parameters.get("missing_values", np.nan)
    imputer.fit(rows)
    imputer.statistics_ = statistics
    if given is not None:
        require(imputer.indicator_.features_.tolist() == given, "'indicator' does not fit the gaps")
    return imputer


# --- labels ---


def _labels(values: np.ndarray, name: str) -> dict[str, Any]:
    """Labels of a column, or the fillings of several, as plain data."""
    values = np.asarray(values)
    kind = "object" if values.dtype.kind in "OUT" else values.dtype.name
    items = values.tolist()
    strange = next((v for v in items if v is not None and not isinstance(v, str | bool | int | float)), None)
    if kind not in _LABELS or strange is not None:
        what = values.dtype if strange is None else type(strange).__name__
        raise TypeError(f"Step {name!r} has learned values of type {what}, which a model file cannot hold.")
    return {"type": kind, "values": [to_json(item) for item in items]}


def _array(data: Any) -> np.ndarray:
    """What `_labels` has written."""
    fits = isinstance(data, dict) and data.get("type") in _LABELS and isinstance(data.get("values"), list)
    require(fits, f"labels are {data!r:.100}")
    items = [from_json(item) for item in data["values"]]
    require(not any(isinstance(item, tuple) for item in items), "a label is a list")
    if data["type"] != "object":
        require(all(type(item) in (bool, int, float) for item in items), f"a label is no {data['type']}")
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.array(items, dtype=data["type"])
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


CATEGORY_STEPS = {
    OneHotEncoder: CategoryStep(_describe_encoder, _restore_encoder(OneHotEncoder)),
    OrdinalEncoder: CategoryStep(_describe_encoder, _restore_encoder(OrdinalEncoder)),
    SimpleImputer: CategoryStep(_describe_imputer, _restore_imputer),
}
