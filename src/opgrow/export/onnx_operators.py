"""The pooled nodal operators of a block as ONNX nodes, from what the operators state.

A nodal operator that is a product v(y) u(w) needs no value per input and weight: products of neighbours are
again such products, so sums and correlations are matrix products. The others are computed for (rows, D, d),
rows by the chunk (`opgrow.export.onnx_network`).
"""

from __future__ import annotations

import numpy as np

from ..operators import OperatorSet, Separable
from ..operators.kinds import stated
from .onnx_graph import Graph

__all__ = ["is_matrix_product", "pooled"]


def is_matrix_product(operator_set: OperatorSet, n_inputs: int) -> bool:
    """Whether the pooled values take no tensor of (rows, D, d)."""
    window = operator_set.pool_operator.window
    if window is None:
        return False
    return n_inputs < window or isinstance(operator_set.nodal_operator.onnx, Separable)


def pooled(graph: Graph, x: str, weight: np.ndarray, operator_set: OperatorSet, name: str) -> str:
    """Nodes for rho(psi(x, weight)): x of shape (rows, D), the result of shape (rows, d)."""
    n_inputs, n_neurons = weight.shape
    nodal, pool, _ = operator_set.operators
    psi, window = nodal.onnx, pool.window
    if window is not None and n_inputs < window:  # nothing to add up
        n_rows = graph.add("Shape", x, start=0, end=1)
        shape = graph.add("Concat", n_rows, graph.integers(n_neurons), axis=0)
        return graph.add("Expand", graph.constant(0), shape)
    if isinstance(psi, Separable):
        factors = psi.weights(weight.astype(np.float64))
        if window is not None:
            n_terms = n_inputs - window + 1
            products = np.prod([factors[start : start + n_terms] for start in range(window)], axis=0)
            inputs = _neighbours(graph, psi.inputs(graph, x), n_inputs, window)
            return graph.add("MatMul", inputs, graph.weight(products, name))
        deep = graph.add("Unsqueeze", psi.inputs(graph, x), graph.integers(2))
        values = graph.add("Mul", deep, graph.weight(factors, name))
    else:
        deep = graph.add("Unsqueeze", x, graph.integers(2))
        values = stated(psi)(graph, deep, graph.weight(weight, name))
    if window is None:
        return stated(pool.onnx)(graph, values)
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
