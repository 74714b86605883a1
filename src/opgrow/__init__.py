"""opgrow grows compact neural networks of generalized operational perceptrons from data."""

from ._version import __version__
from .callbacks import Callback
from .estimators import (
    HeMLGOPClassifier,
    HeMLGOPRegressor,
    HeMLRNClassifier,
    HeMLRNRegressor,
    HoMLGOPClassifier,
    HoMLGOPRegressor,
    HoMLRNClassifier,
    HoMLRNRegressor,
)
from .network import Block, Layer, Network
from .operators import (
    PERCEPTRON,
    OperatorSet,
    operator_sets,
    register_activation,
    register_nodal,
    register_pool,
)

__all__ = [
    "PERCEPTRON",
    "Block",
    "Callback",
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
    "__version__",
    "operator_sets",
    "register_activation",
    "register_nodal",
    "register_pool",
]
