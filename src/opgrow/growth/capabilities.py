"""What methods can do beyond growing from arrays in one process, as their declarations say."""

from __future__ import annotations

from typing import Literal

from .methods import METHODS

__all__ = ["methods_with"]


def methods_with(capability: Literal["sources", "ranks"]) -> str:
    """The names of the methods that have a capability, as a list in words."""
    names = [method.name for method in METHODS.values() if getattr(method, capability)]
    return f"{', '.join(names[:-1])} and {names[-1]}"
