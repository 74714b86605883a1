"""Packages that are not always installed, and the sentences that say which extra installs them."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

__all__ = ["has", "loaded_torch", "needs", "require", "require_torch"]


def needs(what: str, package: str, extra: str) -> str:
    """The sentence that says that something needs a package, and how to install it."""
    return f"{what} needs {package}: pip install 'opgrow[{extra}]'"


def has(package: str) -> bool:
    """Whether a package is installed; it is not imported."""
    return find_spec(package) is not None


def require(module: str, what: str, extra: str) -> Any:
    """Import a module that comes with an extra; without it, an ImportError says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(needs(what, module.partition(".")[0], extra)) from error


def require_torch(what: str) -> Any:
    """Import torch, for something that does not work without it."""
    return require("torch", what, "torch")


def loaded_torch() -> Any:
    """The module torch if somebody has imported it, else None: its settings matter only then."""
    module = sys.modules.get("torch")
    return module if hasattr(module, "get_num_threads") else None  # not while it is being imported
