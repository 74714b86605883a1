"""The encoder of a table as ONNX nodes: from the columns of the table to the matrix that the network takes.

A table of numbers is one input, ``X``, as it is where there is no encoder. Otherwise every column that is
used is an input of its own, of shape (N, 1): text as strings, numbers as numbers with NaN for gaps, and dates
and times as seconds, because ONNX has no dates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, ValueInfoProto, defs

from ..rows.tables import TableEncoder
from ..rows.tables.categories import TextColumn
from ..rows.tables.columns import Column, DroppedColumn, NumberColumn
from ..rows.tables.date_columns import PERIODS, UNITS, DateColumn
from ..rows.tables.dates import DAY
from ..rows.tables.target_means import TargetColumn
from .onnx_graph import Graph, value_info

__all__ = ["ML_OPSET", "columns_of", "gap_of", "inputs_of", "is_numeric", "matrix_of"]

#: Version of the operators of ai.onnx.ml.
ML_OPSET = 2
#: Names that other values of the graph have.
_TAKEN = ("", "X", "label", "probabilities", "variable")
_OPERATORS = {"constant", *(schema.name.lower() for schema in defs.get_all_schemas())}


def used_columns(encoder: TableEncoder) -> list[Column]:
    """The columns that the network sees."""
    return [column for column in encoder.columns_ if not isinstance(column, DroppedColumn)]


def is_numeric(encoder: TableEncoder) -> bool:
    """Whether all columns are numbers, so that the model takes a matrix."""
    return all(isinstance(column, NumberColumn) for column in used_columns(encoder))


def gap_of(column: Column) -> str:
    """The text that stands for a missing value in a column of text."""
    gap, categories = "", getattr(column, "categories", ())
    while gap in categories:
        gap = f"<missing{gap[8:-1]}_>" if gap else "<missing>"
    return gap


def input_names(encoder: TableEncoder) -> dict[str, str]:
    """The name of the input of each column: its own, if no other value of the graph can have it."""
    names: dict[str, str] = {}
    for number, column in enumerate(used_columns(encoder)):
        name = f"column {number}" if column.name in _TAKEN else column.name
        operator, _, place = name.rpartition("_")
        if place.isdigit() and operator in _OPERATORS:  # so other values of the graph are called
            name += " "
        while name in names.values():
            name += " "
        names[column.name] = name
    return names


def columns_of(encoder: TableEncoder) -> list[dict[str, Any]]:
    """What the metadata tells of each input."""
    names, told = input_names(encoder), []
    for column in used_columns(encoder):
        kind = "text" if isinstance(column, TextColumn | TargetColumn) else "number"
        more = {"gap": gap_of(column)} if kind == "text" else {}
        if isinstance(column, DateColumn):
            kind = "seconds since 1970 in UTC" if column.form == "date" else "seconds"
        told.append({"input": names[column.name], "column": column.name, "holds": kind, **more})
    return told


def inputs_of(encoder: TableEncoder, element: int) -> list[ValueInfoProto]:
    """The inputs of the graph."""
    used, names = used_columns(encoder), input_names(encoder)
    if is_numeric(encoder):
        return [value_info("X", element, ["N", len(used)])]
    return [value_info(names[column.name], _element(column, element), ["N", 1]) for column in used]


def _element(column: Column, element: int) -> int:
    if isinstance(column, NumberColumn):
        return element
    return int(TensorProto.DOUBLE if isinstance(column, DateColumn) else TensorProto.STRING)


def matrix_of(graph: Graph, encoder: TableEncoder) -> str:
    """Nodes for the matrix (N, n_inputs), in double precision."""
    used, names = used_columns(encoder), input_names(encoder)
    if is_numeric(encoder):
        return _numbers(graph, "X", [column for column in used if isinstance(column, NumberColumn)])
    parts: list[str] = []
    for column in used:
        name = names[column.name]
        if isinstance(column, NumberColumn):
            parts.append(_numbers(graph, name, [column]))
        elif isinstance(column, DateColumn):
            parts += _date(graph, name, column)
        elif isinstance(column, TargetColumn):
            parts += _means(graph, name, column)
        elif isinstance(column, TextColumn):
            parts.append(_one_hot(graph, name, column))
    return graph.add("Concat", *parts, axis=1)


def _double(graph: Graph, value: str) -> str:
    return graph.add("Cast", value, to=TensorProto.DOUBLE)


def _numbers(graph: Graph, x: str, columns: Sequence[NumberColumn]) -> str:
    """Numbers with medians in their gaps, and where these were."""
    values, gaps = _double(graph, x), graph.add("IsNaN", x)
    medians = graph.constant([[column.median for column in columns]], np.float64)
    filled = graph.add("Where", gaps, medians, values)
    marked = [i for i, column in enumerate(columns) if column.missing]
    if not marked:
        return filled
    both = graph.add("Concat", filled, _double(graph, gaps), axis=1)
    order = [place for i in range(len(columns)) for place in (i, len(columns) + i)[: 1 + (i in marked)]]
    return graph.add("Gather", both, graph.integers(*order), axis=1)


def _date(graph: Graph, x: str, column: DateColumn) -> list[str]:
    """Time that has passed, the places in periods, and where there were gaps."""
    gaps, zero = graph.add("IsNaN", x), graph.constant([[0.0]], np.float64)
    unit = graph.constant([[float(UNITS[column.form])]], np.float64)
    elapsed = graph.add("Sub", graph.add("Div", x, unit), graph.constant([[column.origin]], np.float64))
    parts = [graph.add("Where", gaps, graph.constant([[column.median]], np.float64), elapsed)]
    days = graph.add("Div", x, graph.constant([[float(DAY)]], np.float64))
    for part in column.parts:
        passed = graph.add("Floor", days) if part == "week" else days
        turned = graph.add("Div", passed, graph.constant([[PERIODS[part]]], np.float64))
        turned = graph.add("Sub", turned, graph.add("Floor", turned))
        angle = graph.add("Mul", turned, graph.constant([[2 * np.pi]], np.float64))
        single = graph.add("Cast", angle, to=TensorProto.FLOAT)
        for wave in ("Sin", "Cos"):
            parts.append(graph.add("Where", gaps, zero, _double(graph, graph.add(wave, single))))
    return [*parts, *[_double(graph, gaps)] * column.missing]


def _one_hot(graph: Graph, x: str, column: TextColumn) -> str:
    """Zeros and ones for the categories."""
    n = len(column.categories)
    keys, codes = list(column.categories), list(range(n))
    if column.missing:
        keys, codes = [*keys, gap_of(column)], [*codes, n + column.pooled]
    elif column.pooled:  # a gap is no category, not even another one
        keys, codes = [*keys, gap_of(column)], [*codes, -1]
    if not keys:
        raise ValueError(f"Column {column.name!r} has no category of its own, and ONNX cannot encode it.")
    code = graph.add(
        "LabelEncoder",
        x,
        domain="ai.onnx.ml",
        keys_strings=keys,
        values_int64s=codes,
        default_int64=n if column.pooled else -1,
    )
    places = graph.constant([list(range(len(column.outputs)))], np.int64)
    return _double(graph, graph.add("Equal", code, places))


def _means(graph: Graph, x: str, column: TargetColumn) -> list[str]:
    """The means of the target, looked up by the place of the category: ONNX's own tables are float32."""
    n = len(column.categories)
    keys = [*column.categories, *[gap_of(column)] * column.missing] or [gap_of(column)]
    code = graph.add(
        "LabelEncoder",
        x,
        domain="ai.onnx.ml",
        keys_strings=keys,
        values_int64s=list(range(len(keys))) if column.means else [0],
        default_int64=n + column.missing,
    )
    table = graph.constant([*column.means, column.overall], np.float64)
    rows = graph.add("Gather", table, graph.add("Squeeze", code, graph.integers(1)), axis=0)
    return [rows]
