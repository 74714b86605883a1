"""A network as ONNX nodes: from (N, n_inputs) to (N, n_outputs), without what turns outputs into labels.

Where every block is a matrix product, the nodes are applied to all rows at once. Otherwise the rows go
through the network in chunks (one ``Scan``), so that memory does not grow with rows x inputs x neurons; a
chunk is never larger than the batch, and a single row costs nothing extra.

Double precision is used where `Network` uses it: input constants, for features whose mean is large and whose
deviation is small, and a linear head, whose weights may be large and cancel. All else is float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
from onnx import TensorProto

from ..engine.wiring import Span
from ..network import Block, Layer, Network
from ..network.scaling import FARTHEST
from ..operators.kinds import stated
from .onnx_graph import Graph, value_info
from .onnx_operators import is_matrix_product, pooled

__all__ = ["CHUNK_VALUES", "network_outputs"]

#: Values of (rows, D, d) that a chunk may have: a few such tensors stay in a core's cache.
CHUNK_VALUES = 1 << 18
#: Keeps the lengths of vectors of zeros from dividing by 0.
_TINY = float(np.finfo(np.float32).tiny)


def network_outputs(graph: Graph, network: Network, x: str, element: int) -> str:
    """Nodes for the outputs of a network, not yet scaled by its output constants.

    Parameters
    ----------
    graph : Graph
    network : Network
    x : str
        Name of the input, of shape (N, n_inputs).
    element : TensorProto.FLOAT or TensorProto.DOUBLE
        Type of the input.

    Returns
    -------
    str
        Name of the outputs, in double precision, of shape (N, n_outputs); NaN in rows that hold NaN.
    """
    layers = zip(network.layers, network.block_spans(), strict=True)
    groups = [blocks for layer, reads in layers for _, blocks in _groups(layer, reads)]
    if isinstance(network.head, Block):
        groups.append([network.head])
    sizes = [
        sum(block.weight.size for block in blocks)
        for blocks in groups
        if not is_matrix_product(blocks[0].operator_set, blocks[0].n_inputs)
    ]
    if sizes:
        outputs = _in_chunks(graph, network, x, element, max(1, CHUNK_VALUES // max(sizes)))
    else:
        outputs = _apply(graph, network, x, element)
    return _unknown_where_input_is(graph, x, outputs, element)


def _in_chunks(graph: Graph, network: Network, x: str, element: int, most: int) -> str:
    """The network over chunks of ``most`` rows, or of all of them where there are fewer."""
    one, no_rows = graph.integers(1), graph.integers(0)
    n_rows = graph.add("Shape", x, start=0, end=1)
    chunk = graph.add("Max", graph.add("Min", n_rows, graph.integers(most)), one)
    # The number of chunks, rounded up; an empty batch is one chunk of padding.
    before_last = graph.add("Div", graph.add("Sub", n_rows, one), chunk)
    count = graph.add("Max", graph.add("Add", before_last, one), one)
    missing = graph.add("Sub", graph.add("Mul", count, chunk), n_rows)
    padded = graph.add("Pad", x, graph.add("Concat", no_rows, no_rows, missing, no_rows, axis=0))
    shape = graph.add("Concat", count, chunk, graph.integers(network.n_inputs), axis=0)
    chunks = graph.add("Reshape", padded, shape)

    inner = graph.body()
    outputs = _apply(inner, network, "chunk", element)
    body = inner.finish(
        "chunk_of_rows",
        [value_info("chunk", element, [None, network.n_inputs])],
        [value_info(outputs, TensorProto.DOUBLE, [None, network.n_outputs])],
    )
    stacked = graph.add("Reshape", graph.scan(chunks, body), graph.integers(-1, network.n_outputs))
    return graph.add("Slice", stacked, no_rows, n_rows, no_rows)


def _apply(graph: Graph, network: Network, x: str, element: int) -> str:
    x = _network_input(graph, network, x, element)
    widths = [network.n_inputs, *(layer.n_neurons for layer in network.layers)]
    outputs = [x]
    for number, reads in enumerate(network.block_spans()):
        groups = _groups(network.layers[number], reads)
        parts = [
            _group(
                graph,
                blocks,
                _columns(graph, outputs[-1], span, widths[number]),
                f"layer{number + 1}.blocks{i}",
            )
            for i, (span, blocks) in enumerate(groups, 1)
        ]
        outputs.append(_normalized(graph, network.layers[number], parts))
    seen = [
        _columns(graph, outputs[span.layer + 1], span, widths[span.layer + 1])
        for span in network.head_spans()
    ]
    if seen:
        x = graph.add("Concat", *seen, axis=1) if len(seen) > 1 else seen[0]
    if isinstance(network.head, Block):
        return _cast(graph, _group(graph, [network.head], x, "head"), TensorProto.DOUBLE)
    for beyond, limits in (("Less", network.head_low), ("Greater", network.head_high)):
        if limits is not None:  # by a comparison, which leaves NaN as it is
            limit = graph.constant(limits)
            x = graph.add("Where", graph.add(beyond, x, limit), limit, x)
    weight = graph.weight(network.head.weight, "head.weight", TensorProto.DOUBLE)
    products = graph.add("MatMul", _cast(graph, x, TensorProto.DOUBLE), weight)
    return graph.add("Add", products, graph.constant(network.head.bias, np.float64))


def _network_input(graph: Graph, network: Network, x: str, element: int) -> str:
    """Raw inputs as the network sees them: standardised and, where it has a bound, squashed."""
    mean, scale, bound = network.input_mean, network.input_scale, network.input_bound
    standardizes = bool(mean.any() or (scale != 1).any())
    if not standardizes and bound is None:
        return _cast(graph, x, TensorProto.FLOAT) if element != TensorProto.FLOAT else x
    z = _cast(graph, x, TensorProto.DOUBLE) if element != TensorProto.DOUBLE else x
    if standardizes:
        z = graph.add("Sub", z, graph.constant(mean, np.float64))
        z = graph.add("Div", z, graph.constant(scale, np.float64))
    if bound is not None:
        limits = (graph.constant(sign * FARTHEST * bound, np.float64) for sign in (-1, 1))
        z = graph.add("Clip", z, *limits)
        u = graph.add("Div", z, graph.constant(bound, np.float64))
        squares = graph.add("Add", graph.add("Mul", u, u), graph.constant(1, np.float64))
        z = graph.add("Div", z, graph.add("Sqrt", squares))
    return _cast(graph, z, TensorProto.FLOAT)


def _columns(graph: Graph, x: str, span: Span, width: int) -> str:
    """Some of the features of a layer, or of the inputs; all of them are there already."""
    return x if (span.start, span.stop) == (0, width) else graph.columns(x, span.start, span.stop)


def _normalized(graph: Graph, layer: Layer, parts: Sequence[str]) -> str:
    """Features of a layer from those of its groups of blocks: batch norm over all of them."""
    features = graph.add("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]
    if all(block.norm is None for block in layer):
        return features
    scales, shifts = zip(*map(_batch_norm, layer), strict=True)
    features = graph.add("Mul", features, graph.constant(np.concatenate(scales)))
    return graph.add("Add", features, graph.constant(np.concatenate(shifts)))


def _groups(layer: Layer, reads: Sequence[Span]) -> list[tuple[Span, list[Block]]]:
    """Blocks computed as one, and what they read; a unit norm is over one block alone."""

    def kind(numbered: tuple[int, tuple[Block, Span]]) -> tuple[Any, ...]:
        number, (block, span) = numbered
        span = span._replace(stop=span.start + block.n_inputs)
        return span, block.operator_set, number if block.normalization == "unit" else None

    grouped = groupby(enumerate(zip(layer, reads, strict=True)), kind)
    return [(key[0], [block for _, (block, _) in numbered]) for key, numbered in grouped]


def _group(graph: Graph, blocks: Sequence[Block], x: str, name: str) -> str:
    """f(rho(psi(x, weight)) + bias) of blocks that share an operator set and their inputs."""
    first = blocks[0]
    weight = np.concatenate([block.weight for block in blocks], axis=1)
    bias = np.concatenate([block.bias for block in blocks])
    values = pooled(graph, x, weight, first.operator_set, f"{name}.weight")
    if bias.any():
        values = graph.add("Add", values, graph.constant(bias))
    if first.normalization == "unit":
        values = _unit_rows(graph, values)
    return stated(first.operator_set.activation_operator.onnx)(graph, values)


def _batch_norm(block: Block) -> tuple[np.ndarray, np.ndarray]:
    """Scale and shift that a block's batch norm comes to; 1 and 0 where it has none."""
    if block.norm is None:
        return np.ones(block.n_neurons), np.zeros(block.n_neurons)
    return block.norm.folded()


def _unit_rows(graph: Graph, z: str) -> str:
    """Rows divided by their Euclidean norm; rows of zeros stay: `opgrow.operators.unit_norm`."""
    tiny = graph.constant(_TINY)
    largest = graph.add("ReduceMax", graph.add("Abs", z), axes=[1], keepdims=1)
    z = graph.add("Div", z, graph.add("Max", largest, tiny))
    squares = graph.add("ReduceSum", graph.add("Mul", z, z), graph.integers(1), keepdims=1)
    return graph.add("Div", z, graph.add("Sqrt", graph.add("Max", squares, tiny)))


def _unknown_where_input_is(graph: Graph, x: str, outputs: str, element: int) -> str:
    """NaN in every row whose input holds NaN: clamps and maxima of runtimes may lose it on the way."""
    zero = graph.constant(0, np.float64 if element == TensorProto.DOUBLE else np.float32)
    unknown = graph.add("Where", graph.add("IsNaN", x), x, zero)
    unknown = graph.add("ReduceSum", unknown, graph.integers(1), keepdims=1)
    return graph.add("Add", outputs, _cast(graph, unknown, TensorProto.DOUBLE))


def _cast(graph: Graph, x: str, element: int) -> str:
    return graph.add("Cast", x, to=element)
