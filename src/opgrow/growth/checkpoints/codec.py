"""Dataclasses as JSON and arrays, and back: what the files of a checkpoint hold.

The type that is expected says how to read: nothing in a file decides what is made of it. A file may come from
anywhere, so whatever does not fit the type is a ValueError that says where.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

__all__ = ["decode", "encode"]

_NOT_FINITE = ("nan", "inf", "-inf")


def encode(value: Any) -> tuple[Any, dict[str, np.ndarray]]:
    """Plain data for JSON, and the arrays that belong to it, by their place in the value."""
    arrays: dict[str, np.ndarray] = {}
    return _encode(value, "value", arrays), arrays


def decode(kind: Any, plain: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """The value of type ``kind`` that `encode` has been given."""
    return _decode(kind, plain, arrays, "value")


def _encode(value: Any, where: str, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(value, np.ndarray):
        arrays[where] = np.ascontiguousarray(value).reshape(value.shape)  # numpy makes (1,) of ()
        return None
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if is_dataclass(value):
        return {f.name: _encode(getattr(value, f.name), f"{where}.{f.name}", arrays) for f in fields(value)}
    if isinstance(value, list | tuple):
        return [_encode(item, f"{where}.{i}", arrays) for i, item in enumerate(value)]
    if isinstance(value, dict):
        return {key: _encode(item, f"{where}.{key}", arrays) for key, item in value.items()}
    raise TypeError(f"{where} is of type {type(value).__name__}, which a checkpoint cannot hold")


def _decode(kind: Any, plain: Any, arrays: Mapping[str, np.ndarray], where: str) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        [kind] = [k for k in inner if k is not NoneType]
        if kind is np.ndarray:
            return arrays.get(where)
        return None if plain is None else _decode(kind, plain, arrays, where)
    if kind is np.ndarray:
        _require(where in arrays, f"the array {where!r} is missing")
        return arrays[where]
    if kind is float:
        if isinstance(plain, str) and plain in _NOT_FINITE:
            return float(plain)
        _require(type(plain) in (int, float), f"{where!r} is not a number")
        return float(plain)
    if kind in (int, bool, str):
        _require(
            type(plain) is kind, f"{where!r} is of type {type(plain).__name__}, expected {kind.__name__}"
        )
        return plain
    if origin in (list, tuple):
        _require(isinstance(plain, list), f"{where!r} is not a list")
        items = (_decode(inner[0], item, arrays, f"{where}.{i}") for i, item in enumerate(plain))
        return origin(items)
    if origin is dict:
        _require(isinstance(plain, dict), f"{where!r} is not a JSON object")
        return {key: _decode(inner[1], item, arrays, f"{where}.{key}") for key, item in plain.items()}
    _require(isinstance(plain, dict), f"{where!r} is not a JSON object")
    hints = _hints(kind)
    _require(plain.keys() == hints.keys(), f"{where!r} does not have the fields {', '.join(hints)}")
    return kind(**{name: _decode(hints[name], plain[name], arrays, f"{where}.{name}") for name in hints})


@lru_cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {f.name: hints[f.name] for f in fields(kind)}


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise ValueError(otherwise)
