"""Checks of values that users pass: each complaint names the parameter, its value and what was expected."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = [
    "check_choice",
    "check_flag",
    "check_integer",
    "check_number",
    "check_numbers",
    "is_auto",
    "is_integer",
    "is_listed",
    "is_number",
]

#: Largest integer that a parameter may be.
_MOST = 2**31 - 1


def is_auto(value: Any) -> bool:
    """Whether a value is the text "auto"."""
    return isinstance(value, str) and value == "auto"


def is_integer(value: Any) -> bool:
    """Whether a value is an integer, and not so large that the kernels could not count to it."""
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool | np.bool_)
    return whole and value <= _MOST


def is_number(value: Any) -> bool:
    """Whether a value is a number that fits into a float."""
    real = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
    return real and not (isinstance(value, int) and abs(value) > float(np.finfo(np.float64).max))


def is_listed(value: Any) -> bool:
    """Whether a value is a list, a tuple, an array or the like, and no text."""
    return (
        isinstance(value, Sequence | np.ndarray)
        and not isinstance(value, str | bytes)
        and np.ndim(value) == 1
    )


def check_flag(name: str, value: Any) -> None:
    """Complain unless ``value`` is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}")


def check_integer(name: str, value: Any, least: int, otherwise: str = "") -> None:
    """Complain unless ``value`` is an integer of at least ``least``; ``otherwise`` says what else may be."""
    if not is_integer(value) or value < least:
        most = f" and at most {_MOST}" if isinstance(value, int) and value > _MOST else ""
        raise ValueError(f"{name} must be an integer of at least {least}{most}{otherwise}, got {value!r}")


def check_number(name: str, value: Any, low: float, high: float, otherwise: str = "") -> None:
    """Complain unless ``value`` is a number in [low, high]; ``otherwise`` says what else may be."""
    if not is_number(value) or not low <= value <= high:
        raise ValueError(f"{name} must be {otherwise}a number in [{low:g}, {high:g}], got {value!r}")


def check_choice(
    name: str, value: Any, choices: tuple[Any, ...], *, auto: bool = False, function: bool = False
) -> None:
    """Complain unless ``value`` is one of ``choices``; the rest only words the complaint."""
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        listed = ", ".join(repr(choice) for choice in ((*(("auto",) if auto else ()), *choices)))
        also = " or a function" if function else ""
        raise ValueError(f"{name} must be one of {listed}{also}, got {value!r}")


def check_numbers(
    name: str,
    value: Any,
    allowed: Callable[[float], bool],
    rule: str,
    *,
    empty: bool = False,
    otherwise: str = "",
) -> tuple[float, ...]:
    """The floats of one number or of a sequence of numbers, each of which must be allowed.

    ``otherwise`` is what the caller accepts beside numbers, such as "'auto', ".
    """
    items = (value,) if is_number(value) else value
    if (
        not is_listed(items)
        or not (empty or len(items))
        or not all(is_number(v) and allowed(v) for v in items)
    ):
        raise ValueError(
            f"{name} must be {otherwise}a number or a sequence of numbers, each {rule}, got {value!r}"
        )
    return tuple(float(v) for v in items)
