"""The steps of pipelines that a model file may contain, and what is kept of each.

A declaration says which parameters a step has and which values they may take, and which arrays it has learned
and of which shape. Nothing else of a step is written, and nothing else is read: names of classes and of
functions are looked up in the tables of this file alone. Steps whose state is of another kind, categories and
filled gaps, are in `category_steps`, and what contains steps is in `pipelines`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import comb
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.feature_selection import (
    SelectKBest,
    VarianceThreshold,
    chi2,
    f_classif,
    f_regression,
    mutual_info_classif,
    mutual_info_regression,
)
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from ...rows.signals import WindowFeatures
from .format import as_number, require

__all__ = [
    "MAX_WIDTH",
    "STEPS",
    "Check",
    "Known",
    "any_of",
    "as_tensor",
    "describe_arrays",
    "flag",
    "from_json",
    "none",
    "number",
    "one_of",
    "parameters_of",
    "step_of",
    "take_parameters",
    "to_json",
]

#: Columns that a step may take or make at most: memory for one row stays small.
MAX_WIDTH = 200_000
_MAX_DEGREE = 20
#: Parameters that say how a fit goes about its work, and nothing about what comes of it.
_WITHOUT_EFFECT = {
    *("copy", "n_jobs", "verbose", "random_state", "subsample", "force_int_remainder_cols"),
    *("svd_solver", "tol", "iterated_power", "n_oversamples", "power_iteration_normalizer"),  # of PCA
}
SCORE_FUNCTIONS: dict[str, Callable[..., Any]] = {
    one.__name__: one for one in (chi2, f_classif, f_regression, mutual_info_classif, mutual_info_regression)
}

Check = Callable[[Any], bool]


def to_json(value: Any) -> Any:
    """A number, a text, a flag, None or a tuple of these for JSON, in which not every number has a place."""
    if isinstance(value, tuple):
        return {"tuple": [to_json(item) for item in value]}
    return {"float": str(value)} if isinstance(value, float) and not np.isfinite(value) else value


def from_json(data: Any) -> Any:
    """What `to_json` has written, as it was."""
    if isinstance(data, dict) and list(data) == ["tuple"] and isinstance(data["tuple"], list):
        items = [from_json(item) for item in data["tuple"]]
        require(not any(isinstance(item, tuple) for item in items), "a parameter has tuples within tuples")
        return tuple(items)
    if isinstance(data, dict):
        return as_number(data, "parameter")
    require(data is None or isinstance(data, str | bool | int | float), f"a parameter is {data!r:.100}")
    return data


def flag(value: Any) -> bool:
    return type(value) is bool


def none(value: Any) -> bool:
    return value is None


def number(value: Any) -> bool:
    return type(value) in (int, float)


def pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(map(number, value))


def whole(value: Any) -> bool:
    return type(value) is int and 0 < value <= MAX_WIDTH


def numbers(value: Any) -> bool:
    return isinstance(value, tuple) and all(map(number, value))


def texts(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(one, str) for one in value)


def degree(value: Any) -> bool:
    degrees = value if isinstance(value, tuple) and len(value) == 2 else (0, value)
    return all(type(one) is int and 0 <= one <= _MAX_DEGREE for one in degrees)


def one_of(*choices: Any) -> Check:
    """The check that a value is one of some texts or None."""
    return lambda value: isinstance(value, str | None) and value in choices


def any_of(*checks: Check) -> Check:
    """The check that a value passes one of several."""
    return lambda value: any(check(value) for check in checks)


@dataclass(frozen=True)
class Known:
    """A step that a file may contain.

    Attributes
    ----------
    cls : its class
    parameters : which values each of its parameters may have
    arrays : shapes of what it has learned, "n" being the columns that it takes and "k" any number of at least
        1; a name that ends in "?" may be missing, as an attribute that is None
    counts : attributes that are numbers
    empty : whether what it has learned follows from its parameters and the number of columns
    """

    cls: type[Any]
    parameters: Mapping[str, Check]
    arrays: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    counts: tuple[str, ...] = ()
    empty: bool = False


_N = ("n",)
_K = ("k",)
STEPS: dict[str, Known] = {
    one.cls.__name__: one
    for one in (
        Known(
            StandardScaler,
            {"with_mean": flag, "with_std": flag},
            {"mean_?": _N, "var_?": _N, "scale_?": _N},
        ),
        Known(
            MinMaxScaler,
            {"feature_range": pair, "clip": flag},
            dict.fromkeys(("min_", "scale_", "data_min_", "data_max_", "data_range_"), _N),
            ("n_samples_seen_",),
        ),
        Known(MaxAbsScaler, {"clip": flag}, {"scale_": _N, "max_abs_": _N}, ("n_samples_seen_",)),
        Known(
            RobustScaler,
            {"with_centering": flag, "with_scaling": flag, "quantile_range": pair, "unit_variance": flag},
            {"center_?": _N, "scale_?": _N},
        ),
        Known(
            QuantileTransformer,
            {
                "n_quantiles": lambda value: type(value) is int and value > 0,
                "output_distribution": one_of("uniform", "normal"),
                "ignore_implicit_zeros": flag,
            },
            {"quantiles_": ("k", "n"), "references_": _K},
            ("n_quantiles_",),
        ),
        Known(Normalizer, {"norm": one_of("l1", "l2", "max")}, empty=True),
        Known(
            PolynomialFeatures,
            {"degree": degree, "interaction_only": flag, "include_bias": flag, "order": one_of("C", "F")},
            empty=True,
        ),
        Known(
            FunctionTransformer,
            {
                **dict.fromkeys(("func", "inverse_func", "kw_args", "inv_kw_args"), none),
                **dict.fromkeys(("validate", "accept_sparse", "check_inverse"), flag),
                "feature_names_out": one_of(None, "one-to-one"),
            },
            empty=True,
        ),
        Known(
            PCA,
            {"n_components": any_of(none, number, one_of("mle")), "whiten": flag},
            {
                "components_": ("k", "n"),
                "mean_": _N,
                **dict.fromkeys(("explained_variance_", "explained_variance_ratio_", "singular_values_"), _K),
            },
            ("n_components_", "n_samples_", "noise_variance_"),
        ),
        Known(VarianceThreshold, {"threshold": number}, {"variances_": _N}),
        Known(
            SelectKBest,
            {"k": any_of(whole, one_of("all")), "score_func": one_of(*SCORE_FUNCTIONS)},
            {"scores_": _N, "pvalues_?": _N},
        ),
        Known(
            WindowFeatures,
            {
                "n_channels": whole,
                "features": texts,
                "bands": any_of(whole, numbers),
                "hysteresis": number,
            },
            empty=True,
        ),
    )
}


# --- writing ---


def parameters_of(step: Any, checks: Mapping[str, Check], name: str) -> dict[str, Any]:
    """The parameters of a step as plain data; refuses values that no file may contain."""
    signature = inspect.signature(type(step).__init__).parameters
    data: dict[str, Any] = {}
    for key, value in step.get_params(deep=False).items():
        if key == "score_func":
            value = next((known for known, one in SCORE_FUNCTIONS.items() if one is value), value)
        value = value.item() if isinstance(value, np.generic) else value
        value = tuple(value) if isinstance(value, list) else value
        if key in checks:
            fits = checks[key](value)
        else:
            fits = key in _WITHOUT_EFFECT or value is signature[key].default
        if not fits:
            raise TypeError(
                f"Step {name!r} ({type(step).__name__}) has {key}={value!r:.100}, which no model file holds."
            )
        if key in checks:
            data[key] = to_json(value)
    return data


def describe_arrays(step: Any, known: Known, name: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What a step has learned: numbers for the text, and arrays for the tensors."""
    arrays = {}
    for key in known.arrays:
        value = getattr(step, key.rstrip("?"))
        if value is not None:
            arrays[key.rstrip("?")] = as_tensor(value, name)
    counts = {key: np.asarray(getattr(step, key)).item() for key in known.counts}
    return {key: to_json(value) for key, value in counts.items()}, arrays


def as_tensor(value: Any, name: str) -> np.ndarray:
    """An array of numbers as a file holds it."""
    array = np.asarray(value)
    if array.dtype.kind in "biu":
        return np.ascontiguousarray(array, dtype=np.int64)
    if array.dtype in (np.float32, np.float64):
        return np.ascontiguousarray(array)
    raise TypeError(
        f"Step {name!r} has learned values of type {array.dtype}, which a model file cannot hold."
    )


# --- reading ---


def take_parameters(data: Any, cls: type[Any], checks: Mapping[str, Check]) -> dict[str, Any]:
    """Parameters from plain data, each of them checked."""
    name = cls.__name__
    require(isinstance(data, dict), f"the parameters of a {name} are not a JSON object")
    parameters = {}
    for key, value in data.items():
        require(key in checks and key in cls._get_param_names(), f"{name} has no parameter {key!r}")
        parameters[key] = from_json(value)
        require(checks[key](parameters[key]), f"the parameter {key!r} of a {name} is {value!r:.100}")
    if "score_func" in parameters:
        parameters["score_func"] = SCORE_FUNCTIONS[parameters["score_func"]]
    return parameters


def step_of(known: Known, data: dict[str, Any], arrays: dict[str, np.ndarray], n: int) -> Any:
    """A fitted step from its description, its arrays and the columns that it takes."""
    name = known.cls.__name__
    step = known.cls(**take_parameters(data.get("parameters"), known.cls, known.parameters))
    if known.empty:
        require(not arrays, f"a {name} has tensors")
        if isinstance(step, PolynomialFeatures):
            _check_degree(step.degree, n)
        return step.fit(np.zeros((1, n)))
    sizes = {"n": n}
    for key, shape in known.arrays.items():
        array = arrays.pop(key.rstrip("?"), None)
        require(array is not None or key.endswith("?"), f"a {name} has no {key!r}")
        if array is not None:
            require(
                array.ndim == len(shape) and min(array.shape) > 0,
                f"{key!r} of a {name} has shape {array.shape}",
            )
            fits = all(
                sizes.setdefault(letter, size) == size
                for letter, size in zip(shape, array.shape, strict=True)
            )
            require(fits, f"{key!r} of a {name} has shape {array.shape}, which does not fit {n} columns")
            require(array.dtype.kind == "f", f"{key!r} of a {name} has no floating point numbers")
        setattr(step, key.rstrip("?"), array)
    require(not arrays, f"a {name} has the unknown tensor {next(iter(arrays), '')!r}")
    counts = data.get("counts")
    require(
        isinstance(counts, dict) and set(counts) == set(known.counts),
        f"the numbers of a {name} are not known",
    )
    for key in known.counts:
        value = from_json(counts[key])  # type: ignore[index]
        require(number(value), f"{key!r} of a {name} is {value!r:.100}")
        setattr(step, key, value)
    for key in ("n_components_", "n_quantiles_"):
        require(
            getattr(step, key, sizes.get("k")) == sizes.get("k"),
            f"{key!r} of a {name} does not fit its arrays",
        )
    if isinstance(step, StandardScaler):
        step.n_samples_seen_ = 1  # of use to partial_fit alone
    step.n_features_in_ = n
    return step


def _check_degree(degree: Any, n: int) -> None:
    most = degree[1] if isinstance(degree, tuple) else degree
    require(
        comb(n + most, most) <= MAX_WIDTH, f"PolynomialFeatures of degree {most} for {n} columns are too many"
    )
