"""Checks of the description of a table encoder, which may come from a file of unknown origin."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["flag", "number", "numbers", "require", "texts"]


def require(condition: Any, otherwise: str) -> None:
    """Refuse a description that was read from a file."""
    if not condition:
        raise ValueError(f"This description of a table encoder is not valid: {otherwise}.")


def flag(data: Mapping[str, Any], key: str, default: bool | None = None) -> bool:
    """True or false."""
    value = data.get(key, default)
    require(
        isinstance(value, bool), f"{key!r} of column {data['name']!r} must be true or false, got {value!r}"
    )
    return bool(value)


def number(data: Mapping[str, Any], key: str) -> float:
    """A finite number."""
    value: Any = data.get(key)
    finite = isinstance(value, float) and math.isfinite(value)
    require(finite, f"the {key} of column {data['name']!r} must be a finite number, got {value!r}")
    return value


def numbers(data: Any, length: int, what: str) -> list[float]:
    """A list of so many finite numbers."""
    listed = isinstance(data, list) and len(data) == length
    finite = listed and all(isinstance(value, float) and math.isfinite(value) for value in data)
    require(finite, f"{what} must be {length} finite numbers")
    return list(data)


def texts(data: Any, what: str) -> list[str]:
    """A list of distinct texts."""
    valid = isinstance(data, list) and all(isinstance(item, str) for item in data)
    require(valid and len(set(data)) == len(data), f"{what} must be a list of distinct texts")
    return list(data)
