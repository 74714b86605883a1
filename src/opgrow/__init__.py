"""opgrow grows compact neural networks of generalized operational perceptrons from data.

The public names are imported when they are first used: torch and scikit-learn take seconds to import, which
``opgrow --help`` should not take.
"""

import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .common.version import __version__

if TYPE_CHECKING:
    from .common.errors import RangeWarning, TableWarning
    from .estimators import *  # noqa: F403
    from .estimators.files import load, save
    from .estimators.head import GrowingHead
    from .estimators.listeners import Callback
    from .estimators.stream.page_hinkley import PageHinkley
    from .export import ExportCheck, export_c, export_onnx
    from .network import Block, Layer, Network
    from .operators import (
        PERCEPTRON,
        OperatorSet,
        operator_sets,
        register_activation,
        register_nodal,
        register_pool,
    )
    from .rows.signals import WindowFeatures
    from .rows.tables import TableEncoder

__all__ = [
    "PERCEPTRON",
    "Block",
    "Callback",
    "ExportCheck",
    "GrowingHead",
    "Layer",
    "Network",
    "OperatorSet",
    "PageHinkley",
    "RangeWarning",
    "TableEncoder",
    "TableWarning",
    "WindowFeatures",
    "__version__",
    "export_c",
    "export_onnx",
    "load",
    "operator_sets",
    "register_activation",
    "register_nodal",
    "register_pool",
    "save",
]
#: Each has a classifier and a regressor.
_METHODS = (
    *("HeMLGOP", "HoMLGOP", "HeMLRN", "HoMLRN", "POP", "POPFast", "POPMemO", "POPMemH", "PMLP", "PLN", "BLS"),
)
_HOMES = {
    "common.errors": ("RangeWarning", "TableWarning"),
    "estimators": tuple(f"{method}{kind}" for method in _METHODS for kind in ("Classifier", "Regressor")),
    "estimators.files": ("load", "save"),
    "estimators.head": ("GrowingHead",),
    "estimators.listeners": ("Callback",),
    "estimators.stream.page_hinkley": ("PageHinkley",),
    "export": ("ExportCheck", "export_c", "export_onnx"),
    "network": ("Block", "Layer", "Network"),
    "operators": (
        "PERCEPTRON",
        "OperatorSet",
        "operator_sets",
        "register_activation",
        "register_nodal",
        "register_pool",
    ),
    "rows.signals": ("WindowFeatures",),
    "rows.tables": ("TableEncoder",),
}
__all__ += _HOMES["estimators"]
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
#: Modules that users import by a short name, and where they are.
_PUBLIC_MODULES = {
    "callbacks": "estimators.listeners",
    "data": "rows.tables",
    "datasets": "rows.datasets",
    "distributed": "distributed",
    "estimators": "estimators",
    "network": "network",
    "operators": "operators",
    "report": "report",
    "signals": "rows.signals",
    "stream": "rows.chunks",
}


class _PublicModules(MetaPathFinder, Loader):
    """Lets ``import opgrow.callbacks`` and the like find the module that goes by that name."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        home = _PUBLIC_MODULES.get(name, name) if package == __name__ else name
        return None if home == name else ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(f".{_PUBLIC_MODULES[spec.name.rpartition('.')[2]]}", __name__)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It was executed under its own name, whose facts stay."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


sys.meta_path.append(_PublicModules())


def __getattr__(name: str) -> Any:
    if name in _PUBLIC_MODULES:
        return import_module(f".{_PUBLIC_MODULES[name]}", __name__)
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME_OF[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PUBLIC_MODULES})
