"""What methods can do beyond growing from arrays in one process, as their declarations say."""

from __future__ import annotations

from typing import Literal

from . import methods
from .loop import Method

__all__ = ["methods_with"]


def methods_with(capability: Literal["sources", "ranks"]) -> str:
    """The names of the methods that have a capability, as a list in words."""
    declared = (getattr(methods, name) for name in methods.__all__)
    names = [m.name for m in declared if isinstance(m, Method) and getattr(m, capability)]
    return f"{', '.join(names[:-1])} and {names[-1]}"
