"""The base class of the interface to the engine: functions of the library, each looked up once."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from .library import Library, library

__all__ = ["INTEGER", "POINTER", "Functions"]

INTEGER, POINTER = ctypes.c_int64, ctypes.c_void_p


class Functions:
    """Functions of one instruction set, by default of the best one."""

    def __init__(self, functions: Library | None = None) -> None:
        self.library = library() if functions is None else functions
        self._bound: dict[str, Any] = {}

    @property
    def isa(self) -> str:
        """The instruction set that computes."""
        return self.library.isa

    def _bind(self, name: str, arguments: Sequence[Any], result: Any = None) -> Any:
        function = self._bound.get(name)
        if function is None:
            function = self._bound[name] = self.library.function(name, arguments, result)
        return function
