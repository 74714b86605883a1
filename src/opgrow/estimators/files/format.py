"""What the JSON text of a model file may contain: versions, bounds, labels, steps, and checks of its values.

The text is bounded, because parsed JSON takes up to thirty times as much memory, and so are layers and
blocks, because an object takes many times as much memory and time as its few numbers.

Format 1 knew only blocks with batch norm and bias below a linear head; format 2 says what each of them is;
format 3 ends with a checksum (`opgrow.common.checksums`) and adds the bound of the inputs, what was seen in
training and a sample of it; format 4 says of an average which blocks are whose, and how far a regressor errs;
format 5 has the encoder of the table as a part of the estimator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from types import NoneType
from typing import Any, get_args, get_type_hints

from sklearn.base import ClassifierMixin

from ...growth.events import GrowthStep
from ...operators import registered
from ..base import GrowingEstimator
from ..registry import ESTIMATORS

__all__ = [
    "FORMAT",
    "LABEL_KINDS",
    "LABEL_TYPES",
    "MAX_BLOCKS",
    "MAX_TEXT",
    "READABLE",
    "SEALED",
    "STEP_DEFAULTS",
    "STEP_FIELDS",
    "STEP_TENSORS",
    "as_number",
    "as_row",
    "check_label_lengths",
    "check_number_of_blocks",
    "check_registered",
    "classifies",
    "estimator_class",
    "of_type",
    "operator_names",
    "require",
    "size_of",
]

#: Version of the text that is written.
FORMAT = 5
#: Versions that are read; a file with another one is refused.
READABLE = (1, 2, 3, 4, 5)
#: The first version whose files have a checksum.
SEALED = 3
#: Characters of the text at most; one with 100,000 features and their names has two million.
MAX_TEXT = 1 << 23
#: How the names of the tensors of a pipeline's steps begin.
STEP_TENSORS = "pipeline."
#: Layers of a network at most, and blocks of all of them: hundreds of times what the defaults can grow.
MAX_LAYERS, MAX_BLOCKS = 1000, 10_000
#: Characters of a class label at most, and of all of them, each as long as the longest: so numpy stores them.
_MAX_LABEL, _MAX_LABELS = 1 << 16, 1 << 24
LABEL_KINDS = {"bool": bool, "int": int, "float": float, "str": str}
_WIDTHS = {"int": (8, 16, 32, 64), "uint": (8, 16, 32, 64), "float": (16, 32, 64)}
LABEL_TYPES = {
    "bool": ("bool",),
    "int": tuple(f"{kind}{bits}" for kind in ("int", "uint") for bits in _WIDTHS[kind]),
    "float": tuple(f"float{bits}" for bits in _WIDTHS["float"]),
    "str": ("str", "object"),
}


def _step_fields() -> dict[str, tuple[type, bool]]:
    """The fields of a step that JSON holds as they are: their type and whether they may be null."""
    described = {}
    for name, hint in get_type_hints(GrowthStep).items():
        kinds = get_args(hint) or (hint,)
        plain = [kind for kind in kinds if kind is not NoneType]
        if len(plain) == 1 and plain[0] in (str, int, bool, float):
            described[name] = (plain[0], NoneType in kinds)
    return described


#: Read off `GrowthStep`, so that a field that is added there is saved too.
STEP_FIELDS = _step_fields()
#: Fields that a file may lack, because it was written before they were added.
STEP_DEFAULTS = {field.name for field in fields(GrowthStep) if field.default is not MISSING}


# --- checks of values ---


def as_number(data: Any, what: str) -> float:
    if isinstance(data, dict) and len(data) == 1 and data.get("float") in ("inf", "-inf", "nan"):
        return float(data["float"])
    require(type(data) in (int, float), f"a {what} is {data!r} and not a number")
    try:
        return float(data)
    except OverflowError:
        raise ValueError(f"a {what} has {len(str(data))} digits") from None


def as_row(data: Any, what: str, length: int) -> list[Any]:
    require(isinstance(data, list) and len(data) == length, f"a {what} is not a list of {length}")
    return data


def of_type(record: Mapping[str, Any], key: str, kind: type) -> Any:
    require(key in record, f"{key!r} is missing")
    value = record[key]
    if kind is float:
        return as_number(value, repr(key))
    require(type(value) is kind, f"{key!r} is of type {type(value).__name__}, expected {kind.__name__}")
    return value


def size_of(record: Mapping[str, Any], key: str, where: str = "the network") -> int:
    value = record.get(key)
    require(
        type(value) is int and value >= 1, f"{key!r} of {where} is {value!r}, expected a number of at least 1"
    )
    return value  # type: ignore[return-value]


def require(condition: Any, otherwise: str) -> None:
    if not condition:
        raise ValueError(otherwise)


def operator_names(data: Any) -> list[str]:
    texts = isinstance(data, list) and len(data) == 3 and all(isinstance(name, str) for name in data)
    require(texts, "an operator set is not a list of three names")
    return data


def check_registered(names: list[str]) -> None:
    for kind, name in zip(("nodal", "pool", "activation"), names, strict=True):
        require(
            name in registered(kind),
            f"it uses the {kind} operator {name!r}, which is not registered here: "
            f"call opgrow.register_{kind} before loading it",
        )


def check_number_of_blocks(layers: list[Any]) -> None:
    blocks = sum(len(layer) for layer in layers if isinstance(layer, list))
    for what, number, most in (("layers", len(layers), MAX_LAYERS), ("blocks", blocks, MAX_BLOCKS)):
        require(number <= most, f"the network has {number} {what}, and a model file holds at most {most}")


def check_label_lengths(labels: list[str]) -> None:
    longest = max(map(len, labels))
    require(
        longest <= min(_MAX_LABEL, _MAX_LABELS // len(labels)),
        f"a class label has {longest} characters, which is too many for {len(labels)} classes",
    )


def estimator_class(record: Mapping[str, Any]) -> type[GrowingEstimator[Any]]:
    """The class of the estimator that a record describes."""
    name = of_type(record, "estimator", str)
    require(name in ESTIMATORS, f"the estimator {name!r} is not one of opgrow's ({', '.join(ESTIMATORS)})")
    return ESTIMATORS[name]


def classifies(record: Mapping[str, Any]) -> bool:
    """Whether a record describes a classifier."""
    return issubclass(estimator_class(record), ClassifierMixin)
