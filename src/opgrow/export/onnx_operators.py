"""The built-in operators as ONNX nodes, by name: what `opgrow.operators` says in torch.

Formulas are chosen for float32 runtimes. exp(x) - 1 is written as tanh(x / 2) (exp(x) + 1), which keeps the
digits of small x, and the sigmoid as 1 / (1 + exp(-x)): ONNX Runtime approximates its own to an absolute
error, which batch norm would magnify where the sigmoid is small.

A nodal operator that is a product v(y) u(w) needs no value per input and weight: products of neighbours are
again such products, so sums and correlations are matrix products. The others are computed for (rows, D, d),
rows by the chunk (`opgrow.export.onnx_network`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..operators import OperatorSet
from ..operators.formulas import CLAMP
from .onnx_graph import Graph

__all__ = ["ACTIVATIONS", "NODALS", "WINDOWS", "General", "Separable", "is_matrix_product", "pooled"]

#: Neighbouring inputs that a pool multiplies before it adds; "maximum", the remaining pool, adds nothing.
WINDOWS = {"sum": 1, "correlation1": 2, "correlation2": 3}


@dataclass(frozen=True)
class Separable:
    """psi(y, w) = v(y) u(w): nodes for v, and u of the weights, which is computed at export."""

    inputs: Callable[[Graph, str], str]
    weights: Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class General:
    """Nodes for psi(y, w) with y of shape (rows, D, 1) and w of shape (D, d)."""

    values: Callable[[Graph, str, str], str]


def _clip(graph: Graph, x: str) -> str:
    return graph.add("Clip", x, graph.constant(-CLAMP), graph.constant(CLAMP))


def _square(graph: Graph, x: str) -> str:
    return graph.add("Mul", x, x)


def _exp_minus_one(graph: Graph, x: str) -> str:
    half = graph.add("Tanh", graph.add("Mul", x, graph.constant(0.5)))
    return graph.add("Mul", half, graph.add("Add", graph.add("Exp", x), graph.constant(1)))


def _bell(graph: Graph, y: str, w: str) -> str:
    """w exp(-w y^2), with the exponent clamped."""
    exponent = graph.add("Mul", graph.add("Neg", _square(graph, y)), w)
    return graph.add("Mul", graph.add("Exp", _clip(graph, exponent)), w)


def _exponential(graph: Graph, y: str, w: str) -> str:
    return _exp_minus_one(graph, _clip(graph, graph.add("Mul", y, w)))


def _harmonic(graph: Graph, y: str, w: str) -> str:
    return graph.add("Sin", graph.add("Mul", y, w))


def _dog(graph: Graph, y: str, w: str) -> str:
    return graph.add("Mul", _bell(graph, y, w), y)


def _pygop_dog(graph: Graph, y: str, w: str) -> str:
    return graph.add("Mul", _bell(graph, _clip(graph, y), w), y)


NODALS: dict[str, Separable | General] = {
    "multiplication": Separable(lambda graph, y: y, lambda w: w),
    "exponential": General(_exponential),
    "harmonic": General(_harmonic),
    "quadratic": Separable(_square, lambda w: w),
    "gaussian": General(_bell),
    "dog": General(_dog),
    "pygop_quadratic": Separable(lambda graph, y: _square(graph, _clip(graph, y)), np.square),
    "pygop_dog": General(_pygop_dog),
}


def _sigmoid(graph: Graph, x: str) -> str:
    below = graph.add("Add", graph.add("Exp", graph.add("Neg", x)), graph.constant(1))
    return graph.add("Reciprocal", below)


def _softplus(graph: Graph, x: str) -> str:
    return graph.add("Softplus", graph.add("Neg", x))


def _elu(graph: Graph, x: str) -> str:
    below = _exp_minus_one(graph, graph.add("Min", x, graph.constant(0)))
    return graph.add("Add", graph.add("Relu", x), below)


ACTIVATIONS: dict[str, Callable[[Graph, str], str]] = {
    "sigmoid": _sigmoid,
    "tanh": lambda graph, x: graph.add("Tanh", x),
    "relu": lambda graph, x: graph.add("Relu", x),
    "softplus": _softplus,
    "inverse_absolute": lambda graph, x: graph.add("Softsign", x),
    "elu": _elu,
    "pygop_softplus": lambda graph, x: _softplus(graph, _clip(graph, x)),
    "identity": lambda graph, x: x,
}


def is_matrix_product(operator_set: OperatorSet, n_inputs: int) -> bool:
    """Whether the pooled values take no tensor of (rows, D, d)."""
    window = WINDOWS.get(operator_set.pool)
    if window is None:
        return False
    return n_inputs < window or isinstance(NODALS[operator_set.nodal], Separable)


def pooled(graph: Graph, x: str, weight: np.ndarray, operator_set: OperatorSet, name: str) -> str:
    """Nodes for rho(psi(x, weight)): x of shape (rows, D), the result of shape (rows, d)."""
    n_inputs, n_neurons = weight.shape
    window, nodal = WINDOWS.get(operator_set.pool), NODALS[operator_set.nodal]
    if window is not None and n_inputs < window:  # nothing to add up
        n_rows = graph.add("Shape", x, start=0, end=1)
        shape = graph.add("Concat", n_rows, graph.integers(n_neurons), axis=0)
        return graph.add("Expand", graph.constant(0), shape)
    if isinstance(nodal, Separable):
        factors = nodal.weights(weight.astype(np.float64))
        if window is not None:
            n_terms = n_inputs - window + 1
            products = np.prod([factors[start : start + n_terms] for start in range(window)], axis=0)
            inputs = _neighbours(graph, nodal.inputs(graph, x), n_inputs, window)
            return graph.add("MatMul", inputs, graph.weight(products, name))
        deep = graph.add("Unsqueeze", nodal.inputs(graph, x), graph.integers(2))
        values = graph.add("Mul", deep, graph.weight(factors, name))
    else:
        deep = graph.add("Unsqueeze", x, graph.integers(2))
        values = nodal.values(graph, deep, graph.weight(weight, name))
    if window is None:
        return graph.add("ReduceMax", values, axes=[1], keepdims=0)
    terms = _neighbours(graph, values, n_inputs, window)
    return graph.add("ReduceSum", terms, graph.integers(1), keepdims=0)


def _neighbours(graph: Graph, values: str, n_inputs: int, window: int) -> str:
    """Products of each input's value (axis 1) with those of the ``window - 1`` inputs after it."""
    if window == 1:
        return values
    n_terms = n_inputs - window + 1
    product, *others = (graph.columns(values, start, start + n_terms) for start in range(window))
    for other in others:
        product = graph.add("Mul", product, other)
    return product
