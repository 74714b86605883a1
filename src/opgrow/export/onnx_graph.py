"""A small writer of ONNX graphs: nodes are added one by one, and every value goes by its name.

It exists so that the formulas of operators and networks read like formulas. Constants and weights belong to
the whole model; the body of a loop, which is a graph of its own, sees them by their names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

__all__ = ["SMALL", "Graph", "tensor_type", "value_info"]

#: Matrices of fewer values take more room in half precision than they save: the cast back is a node, too.
SMALL = 64


def tensor_type(dtype: Any) -> int:
    """ONNX's number for a NumPy type."""
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def value_info(name: str, element: int, shape: Sequence[int | str | None]) -> ValueInfoProto:
    """An input or output of a graph; a text in the shape names a size that is known at run time."""
    return helper.make_tensor_value_info(name, element, list(shape))


class Graph:
    """Nodes in the order in which they are added, and the constants of the model.

    Parameters
    ----------
    float16 : bool, default=False
        Whether `weight` stores half precision.
    parent : Graph, optional
        The graph around this one, which then holds the constants.
    """

    def __init__(self, *, float16: bool = False, parent: Graph | None = None) -> None:
        self.nodes: list[NodeProto] = []
        self.float16 = float16
        self.root: Graph = self if parent is None else parent.root
        self.initializers: dict[str, TensorProto] = {}
        self._known: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._n_values = 0

    def body(self) -> Graph:
        """An empty graph for the body of a loop."""
        return Graph(float16=self.float16, parent=self)

    def add(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node with one output, whose name is returned."""
        self.root._n_values += 1
        output = output or f"{operator.lower()}_{self.root._n_values}"
        self.nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def constant(self, values: Any, dtype: Any = np.float32) -> str:
        """A constant; equal ones are stored once."""
        array = np.asarray(values, dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if array.dtype == object:  # text, whose bytes are addresses
            key = ("text", array.shape, repr(array.tolist()).encode())
        names = self.root._known
        if key not in names:
            names[key] = f"constant_{len(names)}"
            self.root.initializers[names[key]] = numpy_helper.from_array(array, names[key])
        return names[key]

    def integers(self, *values: int) -> str:
        """A constant list of whole numbers: axes, bounds, shapes."""
        return self.constant(values, np.int64)

    def weight(self, values: np.ndarray, name: str, element: int = TensorProto.FLOAT) -> str:
        """A named matrix; stored as float32, or in half precision where that is wanted and can hold it."""
        stored = self._half(values) if self.float16 else np.ascontiguousarray(values, np.float32)
        self.root.initializers[name] = numpy_helper.from_array(stored, name)
        if tensor_type(stored.dtype) == element:
            return name
        # In the outer graph, before the loop, so that a runtime does it once.
        return self.root.add("Cast", name, output=f"{name}.cast", to=element)

    @staticmethod
    def _half(values: np.ndarray) -> np.ndarray:
        """Values in half precision, or in float32 where that is better."""
        single = np.ascontiguousarray(values, np.float32)
        with np.errstate(over="ignore"):
            half = single.astype(np.float16)
        # Beyond 65,504 half precision is infinite, and below 2^-14 its steps are coarser than 11 bits.
        bound = 2.0**-11 * np.abs(single).max(initial=0)
        fits = np.abs(half.astype(np.float32) - single).max(initial=0) <= bound
        return half if fits and single.size >= SMALL else single

    def columns(self, value: str, start: int, stop: int) -> str:
        """value[:, start:stop]."""
        return self.add("Slice", value, self.integers(start), self.integers(stop), self.integers(1))

    def finish(
        self, name: str, inputs: Sequence[ValueInfoProto], outputs: Sequence[ValueInfoProto]
    ) -> GraphProto:
        """The graph as ONNX has it."""
        return helper.make_graph(
            self.nodes, name, list(inputs), list(outputs), initializer=list(self.initializers.values())
        )

    def scan(self, rows: str, body: GraphProto) -> str:
        """Apply a graph to every rows[i] and stack what comes out."""
        return self.add("Scan", rows, body=body, num_scan_inputs=1)
