"""The operators: what a Generalized Operational Perceptron can compute.

An operator is declared once, in `nodal`, `pool`, `activation` or `pygop`, with every fact about it (`kinds`):
its formulas, slopes and cost, its code in the compiled kernels, and its text and nodes in exports.
"""

from .fixed_forms import ExactProducts, FixedActivation, FixedNodal, FixedPool
from .kinds import Activation, Nodal, Pool, Separable
from .library import PERCEPTRON, OperatorSet, library, operator_sets
from .registration import register_activation, register_nodal, register_pool
from .registry import registered, unregister

__all__ = [
    "PERCEPTRON",
    "Activation",
    "ExactProducts",
    "FixedActivation",
    "FixedNodal",
    "FixedPool",
    "Nodal",
    "OperatorSet",
    "Pool",
    "Separable",
    "library",
    "operator_sets",
    "register_activation",
    "register_nodal",
    "register_pool",
    "registered",
    "unregister",
]
