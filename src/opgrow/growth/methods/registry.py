"""All methods by name, in the order in which they are listed wherever a user sees them.

A method is one declaration, ``declared(Method(...))``. Its estimators name it, and from both follow the names
that the command line and the experiments take (`opgrow.estimators.by_method`).
"""

from __future__ import annotations

from typing import TypeVar

from ..loop import Method

__all__ = ["METHODS", "declared"]

METHODS: dict[str, Method] = {}
_Method = TypeVar("_Method", bound=Method)


def declared(method: _Method) -> _Method:
    """Let a method be found by its name."""
    if method.name in METHODS:
        raise ValueError(f"There is already a method {method.name!r}.")
    METHODS[method.name] = method
    return method
