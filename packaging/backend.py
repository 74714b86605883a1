"""The build backend: scikit-build-core, with a C compiler from PyPI where the machine has none.

`ziglang` is clang with the headers and libraries of many systems, in one wheel. ``CC`` decides if it is set.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

from scikit_build_core import build as _backend
from scikit_build_core.build import (  # noqa: F401 (the hooks that need no compiler)
    build_sdist,
    get_requires_for_build_sdist,
)

_COMPILERS = ("cc", "gcc", "clang")


def _has_compiler() -> bool:
    return bool(os.environ.get("CC")) or any(shutil.which(name) for name in _COMPILERS)


def _with_compiler() -> None:
    if not _has_compiler():
        os.environ["CC"] = f"{sys.executable} -m ziglang cc"


def _requirements(found: list[str]) -> list[str]:
    return found if _has_compiler() else [*found, "ziglang>=0.13"]


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    return _requirements(_backend.get_requires_for_build_wheel(config_settings))


def get_requires_for_build_editable(config_settings: Any = None) -> list[str]:
    return _requirements(_backend.get_requires_for_build_editable(config_settings))


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: Any = None) -> str:
    _with_compiler()
    return _backend.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory: str, config_settings: Any = None, metadata_directory: Any = None) -> str:
    _with_compiler()
    return _backend.build_editable(wheel_directory, config_settings, metadata_directory)
