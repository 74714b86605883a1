"""opgrow grows compact neural networks of generalized operational perceptrons from data.

The public names are imported when they are first used: torch and scikit-learn take seconds to import, which
``opgrow --help`` should not take.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from .callbacks import Callback
    from .data import TableEncoder
    from .errors import RangeWarning, TableWarning
    from .estimators import (
        BLSClassifier,
        BLSRegressor,
        HeMLGOPClassifier,
        HeMLGOPRegressor,
        HeMLRNClassifier,
        HeMLRNRegressor,
        HoMLGOPClassifier,
        HoMLGOPRegressor,
        HoMLRNClassifier,
        HoMLRNRegressor,
        PLNClassifier,
        PLNRegressor,
        PMLPClassifier,
        PMLPRegressor,
        POPClassifier,
        POPFastClassifier,
        POPFastRegressor,
        POPMemHClassifier,
        POPMemHRegressor,
        POPMemOClassifier,
        POPMemORegressor,
        POPRegressor,
    )
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
    from .persistence import load

__all__ = [
    "PERCEPTRON",
    "BLSClassifier",
    "BLSRegressor",
    "Block",
    "Callback",
    "ExportCheck",
    "HeMLGOPClassifier",
    "HeMLGOPRegressor",
    "HeMLRNClassifier",
    "HeMLRNRegressor",
    "HoMLGOPClassifier",
    "HoMLGOPRegressor",
    "HoMLRNClassifier",
    "HoMLRNRegressor",
    "Layer",
    "Network",
    "OperatorSet",
    "PLNClassifier",
    "PLNRegressor",
    "PMLPClassifier",
    "PMLPRegressor",
    "POPClassifier",
    "POPFastClassifier",
    "POPFastRegressor",
    "POPMemHClassifier",
    "POPMemHRegressor",
    "POPMemOClassifier",
    "POPMemORegressor",
    "POPRegressor",
    "RangeWarning",
    "TableEncoder",
    "TableWarning",
    "__version__",
    "export_c",
    "export_onnx",
    "load",
    "operator_sets",
    "register_activation",
    "register_nodal",
    "register_pool",
]

_HOMES = {
    "callbacks": ("Callback",),
    "data": ("TableEncoder",),
    "errors": ("RangeWarning", "TableWarning"),
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
    "persistence": ("load",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_SUBMODULES = (
    *_HOMES,
    "datasets",
    "distributed",
    "estimators",
    "growth",
    "kernels",
    "progress",
    "report",
    "stream",
)


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f".{name}", __name__)
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME_OF.get(name, 'estimators')}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBMODULES})
