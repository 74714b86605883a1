"""Finding the compiled library and the best instruction set in it.

One library holds every function once for each instruction set. All of them give the same bits, so which one
runs changes nothing but the time; ``OPGROW_ISA`` chooses a specific one, for tests, and
``OPGROW_ENGINE`` names a file to use instead of the installed one.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

__all__ = ["EngineError", "Library", "library"]

#: As in ``dispatch.c``: raised there and here when a function changes its arguments.
VERSION = 4
_SUFFIX = {"win32": "dll"}.get(sys.platform, "so")


class EngineError(RuntimeError):
    """The compiled engine is missing, or does not fit this package or this processor."""


def _path() -> Path:
    if chosen := os.environ.get("OPGROW_ENGINE"):
        return Path(chosen)
    # The folders of the package, of which an editable installation has two: sources, and what was built.
    from . import __path__ as folders

    name = f"libopgrow_engine.{_SUFFIX}"
    for folder in folders:
        if (Path(folder) / name).exists():
            return Path(folder) / name
    raise EngineError(f"the compiled engine {name} is missing in {', '.join(folders)}; install opgrow again")


class Library:
    """The functions of one instruction set.

    Parameters
    ----------
    path : of the library; by default the one that was installed
    isa : name of the instruction set, such as "v3"; by default ``OPGROW_ISA`` or the best
    """

    def __init__(self, path: Path | None = None, isa: str | None = None) -> None:
        self.path = _path() if path is None else path
        try:
            self._handle = ctypes.CDLL(str(self.path))
            self._declare()
        except (OSError, AttributeError) as error:
            raise EngineError(f"the compiled engine {self.path} cannot be loaded: {error}") from None
        version = self._handle.opgrow_engine_version()
        if version != VERSION:
            raise EngineError(
                f"the compiled engine {self.path} has version {version}, expected {VERSION}; build it again"
            )
        self._number, self.isa = self._choose(os.environ.get("OPGROW_ISA") if isa is None else isa)

    def _declare(self) -> None:
        handle = self._handle
        handle.opgrow_engine_version.restype = ctypes.c_int64
        handle.opgrow_engine_isa.restype = ctypes.c_char_p
        handle.opgrow_engine_isa.argtypes = [ctypes.c_int64]
        handle.opgrow_engine_supported.restype = ctypes.c_int64
        handle.opgrow_engine_supported.argtypes = [ctypes.c_int64]
        handle.opgrow_engine_function.restype = ctypes.c_void_p
        handle.opgrow_engine_function.argtypes = [ctypes.c_int64, ctypes.c_char_p]

    def isas(self) -> dict[str, bool]:
        """The instruction sets in the library, best first, and whether this processor knows them."""
        supported: dict[str, bool] = {}
        while (name := self._handle.opgrow_engine_isa(len(supported))) is not None:
            supported[name.decode()] = bool(self._handle.opgrow_engine_supported(len(supported)))
        return supported

    def _choose(self, wanted: str | None) -> tuple[int, str]:
        isas = self.isas()
        usable = [name for name, supported in isas.items() if supported]
        if not usable:
            raise EngineError(f"this processor knows none of the instruction sets {', '.join(isas)}")
        chosen = wanted or usable[0]
        if chosen not in usable:
            reason = (
                "this processor does not know it" if chosen in isas else "there is no such instruction set"
            )
            raise EngineError(f"OPGROW_ISA is {chosen!r}, but {reason}; use one of {', '.join(usable)}")
        return list(isas).index(chosen), chosen

    def function(self, name: str, arguments: Sequence[Any], result: Any = None) -> Any:
        """A function of the chosen instruction set; calls release the GIL."""
        address = self._handle.opgrow_engine_function(self._number, name.encode())
        if not address:
            raise EngineError(f"the compiled engine {self.path} has no function {name!r}; build it again")
        return ctypes.CFUNCTYPE(result, *arguments)(address)


@lru_cache(maxsize=1)
def library() -> Library:
    """The installed library, loaded once."""
    return Library()
